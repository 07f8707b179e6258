"""dicot pretrain: killed, interrupted and run again."""

import json
import shutil
import signal
import sys

import numpy as np
import pytest
from tests.commands import dicot
from tests.own import Halves, Net, slow_start

from dicot import TimeSeriesEmbedder
from dicot.core.errors import InputError, OutputError
from dicot.core.storage import only_writer
from dicot.methods.dicot import DiCOT
from dicot.model.files import grouped
from dicot.model.runs import pretrain_into

STEPS = 6


class Killed(BaseException):
    """Stands for kill -9: nothing of the library may catch it."""


@pytest.fixture
def call(tmp_path, waves):
    np.savez(tmp_path / "waves.npz", X=waves.x)
    small = ["--method", "dicot", "--set", "encoder=fcn", "--set", "dim=8", "--steps", STEPS, "--device", "cpu"]
    return ["pretrain", tmp_path / "waves.npz", "--out", tmp_path / "model", *small]


def during(monkeypatch, step: int, what) -> list[int]:
    """`what` happens in the middle of this step; the list grows with the steps."""
    loss, steps = DiCOT.loss, []

    def wrapped(self, batch, plan):
        steps.append(len(steps))
        if len(steps) == step:
            what()
        return loss(self, batch, plan)

    monkeypatch.setattr(DiCOT, "loss", wrapped)
    return steps


def kill():
    raise Killed


def weights(tmp_path) -> bytes:
    return (tmp_path / "model" / "model.safetensors").read_bytes()


def test_an_overwriting_run_that_was_killed_goes_on(tmp_path, call, monkeypatch):
    dicot(*call, "--seed", 2)
    whole = weights(tmp_path)
    shutil.rmtree(tmp_path / "model")
    dicot(*call, "--seed", 1)
    again = [*call, "--seed", 2, "--overwrite", "--set", "checkpoint_seconds=0"]
    with monkeypatch.context() as patch:
        during(patch, 4, kill)
        with pytest.raises(Killed):
            dicot(*again)
    with monkeypatch.context() as patch:
        steps = during(patch, -1, kill)
        assert "resumed and finished" in dicot(*again)
    assert len(steps) == STEPS - 3
    assert weights(tmp_path) == whole
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]


def test_an_interrupt_keeps_the_run_and_says_how_to_go_on(tmp_path, call, monkeypatch):
    dicot(*call)
    whole = weights(tmp_path)
    shutil.rmtree(tmp_path / "model")
    monkeypatch.setattr(sys, "argv", ["dicot", *map(str, call)])
    with monkeypatch.context() as patch:
        during(patch, 4, lambda: signal.raise_signal(signal.SIGINT))
        said = dicot(*call, code=130)
    assert str(tmp_path / "model" / "checkpoint.safetensors") in said
    assert " ".join(["dicot", *map(str, call)]) in said
    with monkeypatch.context() as patch:
        steps = during(patch, -1, kill)
        assert "resumed and finished" in dicot(*call)
    assert len(steps) == STEPS - 4
    assert weights(tmp_path) == whole


def test_a_folder_takes_one_run_at_a_time(tmp_path, call):
    with only_writer(tmp_path / "model", folder=True):
        with pytest.raises(OutputError, match="is being written by another process"):
            dicot(*call)
        assert not (tmp_path / "model" / "checkpoint.safetensors").exists()
    dicot(*call)
    (tmp_path / "model" / ".lock").write_text("a run that was killed in its last moment")
    assert "nothing to do" in dicot(*call)
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]


def test_a_run_of_an_older_version_is_the_same_run(tmp_path, waves):
    pretrain_into(tmp_path, small(), waves)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    config["estimator"]["preset"] = "paper"
    del config["estimator"]["recipe"], config["sha256"]
    path.write_text(json.dumps(config))
    assert "already holds this run" in pretrain_into(tmp_path, small(), waves)
    with pytest.raises(InputError, match="another model"):
        pretrain_into(tmp_path, small(recipe={"warmup": 0}), waves)


def test_a_run_with_parts_of_ones_own_is_recognised(tmp_path, waves):
    for kind in (Net, Net):
        said = pretrain_into(tmp_path, small(method=Halves, encoder=kind(), schedule=slow_start), waves)
    assert "already holds this run" in said


def small(**settings) -> TimeSeriesEmbedder:
    usual = {"preset": "paper", "encoder": "fcn", "dim": 8, "steps": 1, "random_state": 1, "device": "cpu"}
    return TimeSeriesEmbedder(**grouped({**usual, **settings}))
