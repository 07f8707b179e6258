"""Where nothing can be written every command ends with one sentence and leaves nothing half-written."""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from dicot.cli import main
from dicot.cli.exitcodes import UNREAD
from dicot.model.estimator import TimeSeriesEmbedder

QUICK = ["--set", "dim=8", "--steps", "1", "--device", "cpu", "--set", "encoder=fcn", "--preset", "paper"]


@pytest.fixture
def place(tmp_path, waves, monkeypatch):
    """A folder with a data file and a model, where commands are run."""
    monkeypatch.chdir(tmp_path)
    np.savez("waves.npz", X=waves.x, y=waves.y)
    TimeSeriesEmbedder("dicot", encoder="fcn", dim=8, steps=1, device="cpu").fit(waves).save_pretrained("model")
    return tmp_path


def run(monkeypatch, capsys, *words: str) -> str:
    """What a failing command says."""
    monkeypatch.setattr(sys, "argv", ["dicot", *words])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    *warnings, said = capsys.readouterr().err.splitlines()
    assert said.startswith("Error: ") and all(line.startswith("Warning: ") for line in warnings)
    return said


COMMANDS = {
    "pretrain": ["pretrain", "waves.npz", "--out", "{out}", *QUICK],
    "embed": ["embed", "model", "waves.npz", "--out", "{out}.npz"],
    "evaluate": ["evaluate", "waves.npz", "--protocols", "knn_all", "--out", "{out}", *QUICK],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk(place, monkeypatch, capsys, command):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = sorted(path for path in place.rglob("*"))
    monkeypatch.setattr(os, "fsync", full)
    said = run(monkeypatch, capsys, *(word.format(out="new") for word in COMMANDS[command]))
    assert "new" in said and "No space left" in said and "Free some space" in said
    left = {path for path in place.rglob("*") if path.is_file()} - set(before)
    assert not left, "nothing half-written stays"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_place_where_nothing_can_be_written(place, monkeypatch, capsys, command):
    (place / "file").write_text("mine")
    said = run(monkeypatch, capsys, *(word.format(out="file/new") for word in COMMANDS[command]))
    assert "file/new" in said and "choose another place" in said
    assert (place / "file").read_text() == "mine"


def test_pretrain_says_so_before_it_trains(place, monkeypatch, capsys):
    monkeypatch.setattr(TimeSeriesEmbedder, "fit", lambda *given, **options: pytest.fail("it was trained"))
    run(monkeypatch, capsys, *(word.format(out="waves.npz/new") for word in COMMANDS["pretrain"]))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_screen_that_takes_nothing():
    code = "from dicot.cli import main; main()"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, "list", "methods"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1 and "No space left" in done.stderr


def test_a_command_ends_quietly_when_nobody_reads_its_lines():
    """As in `dicot list methods | head -1`, whose head has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    code = "from dicot.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "list", "methods"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (UNREAD, "")
