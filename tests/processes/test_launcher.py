"""Processes of one command: started, watched and ended together."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.commands import dicot

from dicot.core.errors import InputError, LostWorkerError
from dicot.core.processes.launcher import launch


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(root), str(root / "src")]))


def test_the_first_process_speaks_for_all(capfd):
    assert launch(3, ["well"], "", module="tests.launched", grace=0.2) == 0
    assert capfd.readouterr().out == "rank 0\n"


def test_where_one_is_killed_the_rest_is_ended_and_the_remedy_told():
    with pytest.raises(LostWorkerError, match=r"Process 1 of 2 was killed by SIGKILL.*Do it again"):
        launch(2, ["killed"], "Do it again.", module="tests.launched", grace=0.2)


def test_where_the_one_that_started_them_is_killed_all_end(tmp_path):
    call = f"launch(2, ['lonely', {str(tmp_path)!r}], '', 'tests.launched')"
    start = f"from dicot.core.processes.launcher import launch; {call}"
    driver = subprocess.Popen([sys.executable, "-c", start])
    pids = _after(lambda: [int(path.name) for path in tmp_path.iterdir()], lambda found: len(found) == 2)
    driver.kill()
    driver.wait()
    _after(lambda: [pid for pid in pids if is_alive(pid)], lambda alive: not alive)


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False


def _after(look, is_enough, seconds=30):
    """What is seen once it is enough; they would sleep for longer than that."""
    given_up = time.monotonic() + seconds
    while not is_enough(seen := look()):
        assert time.monotonic() < given_up, seen
        time.sleep(0.02)
    return seen


def test_ctrl_c_ends_all():
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    assert launch(2, ["waits"], "", module="tests.launched", grace=0.2) == 130
    assert time.monotonic() - started < 50, "they were not ended but had slept enough"


def test_torchrun_and_nproc_contradict_each_other(monkeypatch, tmp_path):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match="started as 2 processes already; leave out --nproc 3"):
        dicot("pretrain", "ItalyPowerDemand", "--out", tmp_path, "--nproc", "3")
