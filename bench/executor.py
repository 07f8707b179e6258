"""How units are carried out: one after the other in this process, or side by side in others.

What the others have scored is recorded by this process, because a ledger has to lie on one machine. A process that
dies costs only the jobs that it had open.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from bench.ledger import Ledger
from dicot.core.errors import LostWorkerError
from dicot.judge.evaluation.jobs import Job, Unit
from dicot.judge.evaluation.labelled import Shelf
from dicot.judge.evaluation.scoring import Record, Site, record_failure, run_unit
from dicot.judge.result import Result

OnJob = Callable[[Job, str | None], None]  # is told of a job that was recorded, and why it failed
# Read by a process when it imports numpy and torch: side by side each computes with one thread.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


def site_for(ledger: Path, device: str) -> Site:
    """The site of a run: checkpoints of its fits lie beside the ledger."""
    return Site(device, ledger.with_suffix(".work"))


def execute(
    units: Sequence[Unit], ledger: Path, site: Site, workers: int, on_job: OnJob, start_method: str = "spawn"
) -> None:
    """Run all units with up to `workers` processes; `on_job` is told of every job that was recorded."""
    measured = [unit for unit in units if unit.alone]
    others = [unit for unit in units if not unit.alone]

    with Ledger(ledger) as book:
        record = recorder(book, on_job)
        if workers > 1 and len(others) > 1:
            run_side_by_side(others, site, workers, record, start_method)
        else:
            measured = [*others, *measured]
        shelf = Shelf()
        for unit in measured:
            run_unit(unit, replace(site, alone=True), shelf, record)

    if site.work is not None:
        with suppress(OSError):  # something is in it, or somebody else has removed it
            site.work.rmdir()


def recorder(book: Ledger, on_job: OnJob) -> Record:
    """Write the results of a job into the ledger, and tell of it."""

    def record(job: Job, results: Sequence[Result]) -> None:
        book.record(results)
        on_job(job, results[0].error)

    return record


@dataclass
class Worker:
    """A process, and the jobs of its unit that have no result yet, by key."""

    process: BaseProcess
    open_jobs: dict[str, Job]

    def loss(self) -> LostWorkerError:
        """Say how the process ended."""
        self.process.join()
        code = self.process.exitcode or 0
        ending = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return LostWorkerError(f"the worker {ending}. Where memory is short, use fewer workers.")


def run_side_by_side(
    units: Sequence[Unit], site: Site, count: int, record: Record, start_method: str = "spawn"
) -> None:
    """Hand units to processes, each the next one when it has finished one, and record what they score."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    context = multiprocessing.get_context(start_method)
    waiting = list(reversed(units))
    workers: dict[Connection, Worker] = {}

    def start() -> None:
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(theirs, site), daemon=True)  # type: ignore[attr-defined]
        process.start()
        theirs.close()  # so that the pipe ends when the process does
        workers[ours] = Worker(process, {})

    try:
        for _ in range(min(count, len(units))):
            start()
        while workers:
            for connection in wait(list(workers)):
                assert isinstance(connection, Connection)
                worker = workers[connection]
                try:
                    scored = connection.recv()
                except (EOFError, OSError):
                    del workers[connection]
                    record_failure(worker.open_jobs.values(), worker.loss(), record, {})
                    if waiting:
                        start()
                    continue

                if scored is not None:
                    del worker.open_jobs[scored[0].key]
                    record(*scored)
                elif waiting:
                    unit = waiting.pop()
                    worker.open_jobs = {job.key: job for job in unit.jobs}
                    with suppress(OSError):  # it died idle, which is heard next
                        connection.send(unit)
                else:
                    del workers[connection]
                    connection.close()
                    worker.process.join()
    finally:
        for worker in workers.values():
            worker.process.kill()
            worker.process.join()


def work(connection: Connection, site: Site) -> None:
    """Run units in a process of its own until the connection ends; None asks for the next one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends this process
    threading.Thread(target=end_with_parent, daemon=True).start()
    shelf = Shelf()

    def answer(job: Job, results: Sequence[Result]) -> None:
        connection.send((job, results))

    with suppress(EOFError):
        while True:
            connection.send(None)
            run_unit(connection.recv(), site, shelf, answer)


def end_with_parent() -> None:
    """End this process when the one that started it has ended, also by a kill."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
