"""kill -9 at random moments of a suite: nothing recorded is lost or doubled, and the same command finishes the rest.

DICOT_KILLS sets how often it is killed (default 4), DICOT_KILL_WORKERS with how many processes it runs (default 1).
"""

import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from dicot.cli import main
from dicot.judge.bench.ledger import Ledger

KILLS = int(os.environ.get("DICOT_KILLS", "4"))
WORKERS = os.environ.get("DICOT_KILL_WORKERS", "1")
JOBS = 3 * 2 * 2  # contenders, protocols, seeds


def words(data: str, ledger: Path) -> list[str]:
    chosen = ["--only", "dicot", "--protocols", "linear,knn_5", "--seeds", "1,2", "--steps", "4", "--device", "cpu"]
    return ["bench", "large", "--sets", data, *chosen, "--ledger", str(ledger), "--workers", WORKERS]


def command(arguments: list[str]) -> None:
    sys.argv = ["dicot", *arguments]
    main()


def held(path: Path) -> dict[tuple[str, str], float]:
    """Values by key and metric; each once, and none of them failed."""
    if not path.exists():
        return {}
    with Ledger(path) as ledger:
        rows = [row for result in ledger.results() for row in result.tidy()]
    values = {(row["key"], row["metric"]): row["value"] for row in rows}
    assert len(values) == len(rows)
    assert not any(row["error"] for row in rows)
    return values


@pytest.mark.slow
def test_a_killed_suite_is_finished_by_the_same_command(tmp_path, data, processes):
    path, dice = tmp_path / "bench.sqlite", random.Random(0)

    def start(ledger: Path) -> multiprocessing.Process:
        process = processes.Process(target=command, args=(words(data, ledger),))
        process.start()
        return process

    started = time.monotonic()
    start(tmp_path / "whole.sqlite").join()
    usual = time.monotonic() - started
    whole = held(tmp_path / "whole.sqlite")
    assert len(whole) == JOBS * 4

    runs = kills = partly = 0
    while kills < KILLS or not partly:
        runs += 1
        assert runs < 10 * KILLS + 40, f"{kills} of {runs} runs were killed, {partly} of them half-way"
        process, before = start(path), held(path)
        process.join(dice.uniform(0.0, 1.0) * usual)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            kills += 1
        now = held(path)
        assert now.items() >= before.items(), "something recorded is lost"
        partly += 0 < len(now) < len(whole)
        if len(now) == len(whole):  # finished: begin again
            for file in tmp_path.glob("bench.sqlite*"):
                file.unlink()
    start(path).join()
    assert held(path) == whole
    assert not list(tmp_path.glob("bench.work/*.safetensors")), "checkpoints of finished fits"
