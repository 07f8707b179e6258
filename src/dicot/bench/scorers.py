"""Processes beside one that trains on a GPU: they score what it has embedded, and fit what needs no GPU."""

import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType

from dicot.bench.fits import Site
from dicot.bench.jobs import Job, Unit
from dicot.bench.ledger import Ledger
from dicot.bench.lines import Result
from dicot.bench.loading import Shelf
from dicot.bench.run import Embedded, fail, run_units, score_embedded
from dicot.bench.workers import OnJob, end_with_parent, recorder, worker_environment
from dicot.errors import LostWorkerError

Outcome = list[tuple[str, str | None]]  # key and error of each job that was recorded


class Scorers:
    """Up to `count` processes, each with one thread, which write to the ledger themselves."""

    def __init__(self, count: int, ledger: Path, site: Site, on_job: OnJob) -> None:
        self.ledger, self.site, self.on_job = ledger, Site("cpu", site.work), on_job
        self.pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=_begin)
        self.open: dict[Future[Outcome], dict[str, Job]] = {}

    def __enter__(self) -> "Scorers":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.pool.shutdown(wait=kind is None, cancel_futures=kind is not None)
        if kind is None:
            self.take(all_of_them=True)

    def submit(self, task: Embedded | Unit) -> None:
        """Hand over embeddings to be scored, or a unit to be fitted and scored without a GPU."""
        jobs = {job.key: job for job in task.jobs}
        try:
            with worker_environment(self.site.device):
                self.open[self.pool.submit(_carry_out, task, self.ledger, self.site)] = jobs
        except BrokenProcessPool as error:
            self._write_off(list(jobs.values()), error)

    def take(self, *, all_of_them: bool = False) -> None:
        """Tell of the jobs that were recorded since the last time."""
        for future in [future for future in self.open if all_of_them or future.done()]:
            jobs = self.open.pop(future)
            try:
                outcome = future.result()
            except BrokenProcessPool as error:
                self._write_off(list(jobs.values()), error)
                continue
            for key, reason in outcome:
                self.on_job(jobs[key], reason)

    def _write_off(self, jobs: Sequence[Job], error: Exception) -> None:
        """What a lost process had recorded already stays, and only the rest is marked as failed."""
        with Ledger(self.ledger) as book:
            recorded = book.rows()
            for job in jobs:
                if job.key in recorded and recorded[job.key]["error"] is None:
                    self.on_job(job, None)
                    continue
                lost = f"a process that scores was lost ({error}). Where memory is short, use fewer workers."
                fail([job], LostWorkerError(lost), recorder(book, self.on_job))


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends this process
    threading.Thread(target=end_with_parent, daemon=True).start()


def _carry_out(task: Embedded | Unit, ledger: Path, site: Site) -> Outcome:
    outcome: Outcome = []
    with Ledger(ledger) as book:

        def record(job: Job, result: Result) -> None:
            book.record(job, result)
            outcome.append((job.key, result.error))

        if isinstance(task, Unit):
            run_units((task,), site, Shelf(), record)
        else:
            score_embedded(task, record)
    return outcome
