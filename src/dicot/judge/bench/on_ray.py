"""Units on a Ray cluster: fitted and scored there, recorded here, because a ledger has to lie on one machine."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dicot.core.processes.cluster import Cluster, Lost, Share
from dicot.judge.bench.executor import OnJob, recorder
from dicot.judge.bench.ledger import Ledger
from dicot.judge.evaluation.jobs import Job, Unit
from dicot.judge.evaluation.loading import Shelf
from dicot.judge.evaluation.result import Result
from dicot.judge.evaluation.run import Site, fail, run_units

Recorded = tuple[Job, Sequence[Result]]


def execute_on(
    cluster: Cluster, units: Sequence[Unit], ledger: Path, site: Site, share: Share, most: int | None, on_job: OnJob
) -> None:
    """Run all units with up to `most` processes; `on_job` is told of every job that was recorded.

    The jobs of a unit are recorded when all of them are scored. What a lost process had open is begun anew by another
    one, and fails like a job of a lost process on this machine where that happens again and again.
    """
    here = _Units(replace(site, work=None if site.work is None else site.work.absolute()), ledger.absolute())
    open_jobs = {unit.key: {job.key: job for job in unit.jobs} for unit in units}

    def left(key: str) -> Unit | None:
        return Unit(tuple(open_jobs[key].values())) if open_jobs[key] else None

    with Ledger(ledger) as book:
        record = recorder(book, on_job)

        def run(keys: Sequence[str], most: int | None) -> None:
            for key, answer in cluster.answers(here, keys, share, most=most, payload=left):
                if isinstance(answer, Lost):
                    fail(open_jobs.pop(key).values(), answer.error, record)
                    continue
                job, results = answer
                if open_jobs[key].pop(job.key, None) is not None:  # else another process was first
                    record(job, results)

        run([unit.key for unit in units if not unit.alone], most)
        run([unit.key for unit in units if unit.alone], 1)


@dataclass(frozen=True)
class _Units:
    """Gives what runs a unit in a process of the cluster."""

    site: Site
    ledger: Path

    def __call__(self) -> Callable[[Unit], Iterator[Recorded]]:
        # Where the ledger is not seen, nor are the checkpoints beside it: a fit that was lost is begun anew.
        site = self.site if self.ledger.exists() else replace(self.site, work=None)
        shelf = Shelf()

        def run(unit: Unit) -> Iterator[Recorded]:
            where = replace(site, device="cpu") if unit.first.contender.classical else site
            scored: list[Recorded] = []
            run_units((unit,), where, shelf, lambda job, results: scored.append((job, results)))
            yield from scored

        return run
