"""Training here, scoring beside: what a GPU does, stood in for by the CPU."""

import os
import signal
from dataclasses import replace

import pytest

from dicot.bench import scorers
from dicot.bench.executors import execute, fit_here_score_beside, site_for
from dicot.bench.jobs import units_of
from dicot.bench.ledger import Ledger


def values(path):
    with Ledger(path) as ledger:
        return {(r.contender, r.protocol, r.metric): (r.value, r.error) for r in ledger.records()}


@pytest.fixture
def beside(monkeypatch, processes):
    monkeypatch.setattr(scorers, "get_context", lambda kind: processes)


@pytest.mark.slow
def test_the_values_are_those_of_one_process(tmp_path, job, beside):
    kinds = ("dicot", "catt", "random", "raw-mean")
    jobs = [job(kind, protocol) for kind in kinds for protocol in ("knn_5", "clustering")]
    alone, shared, told = tmp_path / "alone.sqlite", tmp_path / "shared.sqlite", []
    execute(units_of(jobs), alone, site_for(alone, "cpu"), 1, lambda one, error: None)
    site = replace(site_for(shared, "cpu"), at_once=2)
    fit_here_score_beside(units_of(jobs), shared, site, 2, lambda one, error: told.append((one.key, error)))
    assert values(shared) == values(alone)
    assert sorted(told) == sorted((one.key, None) for one in jobs)


def test_a_lost_process_is_a_failure_with_a_reason(tmp_path, job, processes, beside, monkeypatch):
    ledger, told = tmp_path / "lost.sqlite", {}
    one = job("raw-mean", "knn_5")
    monkeypatch.setattr(scorers, "_carry_out", _die)
    with scorers.Scorers(1, ledger, site_for(ledger, "cpu"), lambda one, error: told.update({one.key: error})) as pool:
        for unit in units_of([one]):
            pool.submit(unit)
    assert list(told) == [one.key] and "a process that scores was lost" in told[one.key]
    assert all("LostWorkerError" in error for _, error in values(ledger).values())


def _die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
