"""Processes: the values of one process; a killed one costs only its own jobs."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.executor import Worker, execute, recorder, run_side_by_side, site_for
from bench.ledger import Ledger
from dicot.judge.evaluation.jobs import units_of


def rows(path):
    with Ledger(path) as ledger:
        return {(r.key, metric): (value, r.error) for r in ledger.results() for metric, value in r.values.items()}


@pytest.mark.slow
def test_processes_give_the_values_of_one_and_a_killed_one_costs_only_its_own_jobs(tmp_path, job):
    doomed = [job("raw-flat", name) for name in ("knn_5", "forest", "linear", "few_5", "few_10", "ridge")]
    sound = [job(), job(protocol="knn_5")]
    alone, beside, told = tmp_path / "alone.sqlite", tmp_path / "beside.sqlite", {}
    # One worker and not this process: the order of sums depends on the number of threads.
    with Ledger(alone) as book:
        run_side_by_side(units_of(sound), site_for(alone, "cpu"), 1, recorder(book, lambda one, error: None))

    def on_job(one, error):
        assert one.key not in told
        told[one.key] = error
        if one.key == doomed[0].key:  # whose process has five more to do
            os.kill(process_of(doomed[1].key), signal.SIGKILL)

    def process_of(key):
        started = [value for value in gc.get_objects() if type(value) is Worker]
        return next(worker.process.pid for worker in started if key in worker.open_jobs)

    execute(units_of([*doomed, *sound]), beside, site_for(beside, "cpu"), 2, on_job)
    values = rows(beside)
    assert {key: value for key, value in values.items() if key[0] in {one.key for one in sound}} == rows(alone)
    assert told == {key: error for (key, _), (_, error) in values.items()}
    assert told.keys() == {one.key for one in [*doomed, *sound]}
    assert told[doomed[0].key] is None
    assert "LostWorkerError" in told[doomed[-1].key] and "SIGKILL" in told[doomed[-1].key]
    assert not multiprocessing.active_children()


def test_an_interrupt_ends_the_workers(tmp_path, job, processes):
    path = tmp_path / "interrupted.sqlite"
    units = units_of([job("raw-mean", "knn_5"), job("raw-flat", "forest")])

    def interrupt(one, error):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(units, path, site_for(path, "cpu"), 2, interrupt, "forkserver")
    assert not multiprocessing.active_children()
    assert rows(path), "what was recorded before stays"


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    words = ["run", "knn", "--sets", "synthetic", "--only", "dicot", "--seeds", "1", "--steps", "100000"]
    more = ["--device", "cpu", "--workers", "2", "--ledger", str(tmp_path / "a.sqlite")]
    parent = subprocess.Popen([sys.executable, "-m", "bench", *words, *more])

    def children() -> list[int]:
        tasks = Path(f"/proc/{parent.pid}/task").glob("*/children")
        return [int(pid) for task in tasks for pid in task.read_text().split()]

    wait_until(lambda: len(children()) > 2)  # both workers, and what Python starts beside them
    workers = children()
    parent.kill()
    parent.wait()
    wait_until(lambda: not any(is_running(pid) for pid in workers))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(holds) -> None:
    given_up = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < given_up
        time.sleep(0.1)
