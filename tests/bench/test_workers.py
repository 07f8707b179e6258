"""The pool: same values as in one process; a killed worker costs only its own jobs."""

import multiprocessing
import os
import signal

import pytest

from dicot.bench.executors import execute, site_for
from dicot.bench.jobs import units_of
from dicot.bench.ledger import Ledger
from dicot.bench.workers import run_in_pool


def rows(path):
    with Ledger(path) as ledger:
        return {(r.key, r.metric): (r.value, r.error) for r in ledger.records()}


@pytest.mark.slow
def test_a_pool_gives_the_values_of_one_process_and_outlives_a_killed_worker(tmp_path, job):
    doomed = [job("raw-flat", name) for name in ("knn_5", "forest", "linear", "few_5", "few_10", "ridge")]
    sound = [job(), job(protocol="knn_5")]
    alone, pooled, told = tmp_path / "alone.sqlite", tmp_path / "pooled.sqlite", {}
    # One worker and not this process: the order of sums depends on the number of threads.
    run_in_pool([(unit,) for unit in units_of(sound)], 1, alone, site_for(alone, "cpu"), lambda one, error: None)

    def on_job(one, error):
        assert one.key not in told
        told[one.key] = error
        if one.key == doomed[0].key:  # there are five more to do for its worker, which was started first
            os.kill(min(process.pid for process in multiprocessing.active_children()), signal.SIGKILL)

    execute(units_of([*doomed, *sound]), pooled, site_for(pooled, "cpu"), 2, on_job)
    values = rows(pooled)
    assert {key: value for key, value in values.items() if key[0] in {one.key for one in sound}} == rows(alone)
    assert told == {key: error for (key, _), (_, error) in values.items()}
    assert told.keys() == {one.key for one in [*doomed, *sound]}
    assert told[doomed[0].key] is None
    assert "LostWorkerError: the worker was ended by SIGKILL" in told[doomed[-1].key]
    assert not multiprocessing.active_children()
