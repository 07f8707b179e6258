"""python -m bench paper --run as it is typed."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.commands import bench

from bench.ledger import Contents
from bench.paper import suites as paper_suites
from bench.suites import SUITES
from dicot.core.errors import InputError
from dicot.judge.protocols import Probe


@pytest.fixture
def call(tmp_path, waves, monkeypatch):
    """`bench paper --run` of Table 11 with the controls alone, on small data, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    np.savez("waves.npz", X_train=waves.x[::2], y_train=waves.y[::2], X_test=waves.x[1::2], y_test=waves.y[1::2])
    controls = ("random", "calibrated")
    monkeypatch.setitem(SUITES, "knn", lambda options: paper_suites.knn(replace(options, contenders=controls)))
    narrow = ["--only", "table11", "--device", "cpu"]
    narrow += [word for one in ("sets=waves.npz", "seeds=1", "workers=1") for word in ("--set", one)]
    return ["paper", "--run", "--overwrite", *narrow]


def test_what_is_missing_is_run_once_and_shown(call):
    assert "10 jobs: 0 recorded, 0 failed, 0 no data, 10 to run, in 2 fits." in bench(*call, "--dry-run")
    assert not Path("out").exists()
    said = bench(*call)
    assert "10 jobs recorded in out/bench.sqlite" in said and "out/paper/report.html" in said
    text = Path("out/paper/report.md").read_text(encoding="utf-8")
    assert "Not of the paper: waves.npz." in text and "| calibrated |" in text and "## Table 12" not in text
    assert "10 recorded, 0 failed, 0 no data, 0 to run" in bench(*call)


def test_published_records_are_taken_over_before_anything_is_run(call):
    bench(*call)
    Path("results").mkdir()
    bench("run", "knn", "--sets", "waves.npz", "--dry-run", "--export", "results/a.csv")
    elsewhere = ["--ledger", "new/b.sqlite"]
    assert "10 recorded, 0 failed, 0 no data, 0 to run" in bench(*call, *elsewhere, "--dry-run")
    assert not Path("new").exists()
    Path("results/times_here.csv").write_text("published")
    assert "10 recorded, 0 failed, 0 no data, 0 to run" in bench(*call, *elsewhere)
    Path("results/times_here.csv").write_text("published later")
    bench(*call, *elsewhere)
    assert Path("new/times_here.csv").read_text() == "published", "what lies beside a ledger is its user's"


def test_failed_jobs_are_run_again_when_asked(call, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(Probe, "score_draws", lambda *words, **more: 1 / 0)
        assert "10 of them failed" in bench(*call, code=1)
    assert "Failed jobs are run again with --retry-failed." in bench(*call)
    assert "10 jobs recorded" in bench(*call, "--retry-failed")


def test_an_exhibit_that_no_run_fills_needs_no_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "out/paper/report.html" in bench("paper", "--run", "--only", "figure2")


def test_maps_are_made_where_they_are_asked_for(tmp_path, waves, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("waves.npz", X_train=waves.x[::2], y_train=waves.y[::2], X_test=waves.x[1::2], y_test=waves.y[1::2])
    called = []
    monkeypatch.setattr("bench.commands.paper.run_maps", lambda name, path, **more: called.append((name, path, more)))
    monkeypatch.setattr("bench.commands.paper.write_paper", lambda *words: [])
    Path("results").mkdir()
    Path("results/a.csv").write_text("")
    Path("results/maps.npz").write_bytes(b"maps")
    monkeypatch.setattr("bench.commands.paper.read_maps", lambda path: SimpleNamespace(data_set="waves.npz"))
    monkeypatch.setattr("bench.commands.paper.read_contents", lambda path: Contents([], []))
    monkeypatch.setattr("bench.commands.paper.read_records", lambda *words: Contents([], []))
    call = ["paper", "--run", "--overwrite", "--only", "figure5", "--set", "sets=waves.npz", "--device", "cpu"]
    assert "Maps of waves.npz would be written to out/maps.npz" in bench(*call, "--dry-run")
    assert not called and not Path("out").exists()
    bench(*call, "--set", "steps=3")
    assert called == [("waves.npz", Path("out/maps.npz"), {"seed": 1, "device": "cpu", "steps": 3})]
    assert not Path("out/maps.npz").exists(), "a trial cannot go on with what is none"
    bench(*call)
    assert Path("out/maps.npz").read_bytes() == b"maps"  # gone on with


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dry-run"], "--dry-run, --retry-failed and --set are for --run"),
        (["--retry-failed"], "--retry-failed and --set are for --run"),
        (["--ledger", "a", "--records", "b"], "either --ledger FILE or --records PATH"),
        (["--only", "table30"], "table3"),
        (["--run", "--dry-run", "--set", "workers=2,sets=a"], "workers must be a whole number.*2,sets=a"),
        (["--run", "--dry-run", "--set", "steps=0"], "steps must be a whole number, 1 or more; got 0"),
        ([], "There is no ledger at out/bench.sqlite"),
    ],
)
def test_a_call_that_cannot_work_says_why(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        bench("paper", *words)
