"""Units on Ray leave the rows that processes of this machine leave; see CONTRIBUTING.md for how to run it."""

import os
from importlib.util import find_spec

import pytest

from dicot.core.errors import LostWorkerError
from dicot.core.processes.cluster import Lost, Share, joined
from dicot.judge.bench.executor import Workers, execute_on, site_for
from dicot.judge.bench.ledger import Ledger
from dicot.judge.evaluation.jobs import units_of
from dicot.judge.result import Result


def rows(path) -> dict[tuple[str, int], Result]:
    with Ledger(path) as ledger:
        return {(row.key, row.draw): row for row in ledger.results()}


def facts(row: Result) -> tuple[object, ...]:
    """What of a row does not depend on when and how fast it was made."""
    times = {"fit_seconds", "embed_seconds", "score_seconds", "recorded", "peak_memory"}
    return tuple((name, str(value)) for name, value in vars(row).items() if name not in times)


class Here:
    """A cluster of this process; it loses what has a job by the protocol `lost` after its first answer, for good."""

    def __init__(self, lost: str = "") -> None:
        self.lost, self.at_once = lost, []

    def answers(self, make, tasks, share, *, most=None, payload=lambda task: task):
        work = make()
        for task in tasks:
            self.at_once.append(most)
            unit = payload(task)
            for number, answer in enumerate(work(unit)):
                if number and any(job.protocol == self.lost for job in unit.jobs):
                    break
                yield task, answer
                yield task, answer  # as when a process was thought lost and was not
            if any(job.protocol == self.lost for job in unit.jobs):
                yield task, Lost(LostWorkerError("gone"))


def test_answers_are_recorded_once_and_what_is_lost_is_a_failure(tmp_path, job):
    path, told = tmp_path / "a.sqlite", []
    jobs = [job("raw-mean", "knn_5"), job("raw-flat", "knn_5"), job("raw-flat", "ridge"), job("raw-flat", "forest")]
    site = site_for(path, "cpu")
    execute_on(Here("ridge"), units_of(jobs), path, site, Share(), 2, lambda one, error: told.append((one.key, error)))
    errors = {key: row.error for (key, _), row in rows(path).items()}
    assert errors == dict(told) and len(told) == len(jobs)
    assert [errors[one.key] is None for one in jobs].count(False) == 2
    assert {error for error in errors.values() if error} == {"LostWorkerError: gone"}


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("DICOT_RAY") or find_spec("ray") is None,
    reason="starts Ray, which takes half a minute: set DICOT_RAY=1 and install the extra ray",
)
@pytest.mark.filterwarnings("ignore")  # of Ray
def test_rows_are_those_of_processes_on_this_machine(tmp_path, job, processes, monkeypatch):
    jobs = [job(kind, name) for kind in ("dicot", "random", "raw-mean") for name in ("knn_5", "linear")]
    local, on_ray, told = tmp_path / "local.sqlite", tmp_path / "ray.sqlite", []
    with Workers(1, local, site_for(local, "cpu"), lambda one, error: None, "forkserver") as pool:
        for unit in units_of(jobs):
            pool.submit(unit)
    monkeypatch.chdir(tmp_path)
    with joined("local", 2) as cluster:
        execute_on(
            cluster, units_of(jobs), on_ray, site_for(on_ray, "cpu"), Share(), None, lambda *one: told.append(one)
        )
    expected = rows(local)
    assert len(expected) == len(told) == len(jobs) and not any(error for _, error in told)
    assert {key: facts(row) for key, row in rows(on_ray).items()} == {key: facts(row) for key, row in expected.items()}
