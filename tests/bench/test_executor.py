"""Processes: the values of one process; a killed one costs only its own jobs; training here, scoring beside."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench import executor
from bench.executor import Workers, execute, site_for
from bench.ledger import Ledger
from dicot.judge.evaluation.jobs import units_of


def rows(path):
    with Ledger(path) as ledger:
        return {(r.key, metric): (value, r.error) for r in ledger.results() for metric, value in r.values.items()}


def run_in_pool(jobs, path, count, on_job, start_method="spawn"):
    with Workers(count, path, site_for(path, "cpu"), on_job, start_method) as pool:
        for unit in units_of(jobs):
            pool.submit(unit)


@pytest.mark.slow
def test_a_pool_gives_the_values_of_one_process_and_outlives_a_killed_worker(tmp_path, job, monkeypatch):
    doomed = [job("raw-flat", name) for name in ("knn_5", "forest", "linear", "few_5", "few_10", "ridge")]
    sound = [job(), job(protocol="knn_5")]
    alone, pooled, told, heard = tmp_path / "alone.sqlite", tmp_path / "pooled.sqlite", {}, {}
    # One worker and not this process: the order of sums depends on the number of threads.
    run_in_pool(sound, alone, 1, lambda one, error: None)

    def hear(worker, listen=executor._Worker.heard):
        heard[threading.get_ident()] = worker.process.pid
        return listen(worker)

    def on_job(one, error):
        assert one.key not in told
        told[one.key] = error
        if one.key == doomed[0].key:  # whose worker, the one this thread listens to, has five more to do
            os.kill(heard[threading.get_ident()], signal.SIGKILL)

    monkeypatch.setattr(executor._Worker, "heard", hear)
    execute(units_of([*doomed, *sound]), pooled, site_for(pooled, "cpu"), 2, on_job)
    values = rows(pooled)
    assert {key: value for key, value in values.items() if key[0] in {one.key for one in sound}} == rows(alone)
    assert told == {key: error for (key, _), (_, error) in values.items()}
    assert told.keys() == {one.key for one in [*doomed, *sound]}
    assert told[doomed[0].key] is None
    assert "LostWorkerError" in told[doomed[-1].key] and "SIGKILL" in told[doomed[-1].key]
    assert not multiprocessing.active_children()


@pytest.mark.slow
def test_training_here_and_scoring_beside_gives_the_values_of_one_process(tmp_path, job, processes):
    """What a GPU does, with the CPU in its place."""
    kinds = ("dicot", "catt", "random", "raw-mean")
    jobs = [job(kind, protocol) for kind in kinds for protocol in ("knn_5", "clustering")]
    alone, shared, told = tmp_path / "alone.sqlite", tmp_path / "shared.sqlite", []
    execute(units_of(jobs), alone, site_for(alone, "cpu"), 1, lambda one, error: None)
    site = replace(site_for(shared, "cpu"), at_once=2)
    execute(units_of(jobs), shared, site, 2, lambda one, error: told.append((one.key, error)), "forkserver")
    assert rows(shared) == rows(alone)
    assert sorted(told) == sorted((one.key, None) for one in jobs)


def test_an_interrupt_ends_the_workers(tmp_path, job, processes):
    path = tmp_path / "interrupted.sqlite"

    def interrupt(one, error):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_pool([job("raw-mean", "knn_5"), job("raw-flat", "forest")], path, 2, interrupt, "forkserver")
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
