"""How units are carried out: in this process, or in others with one thread each.

On a CPU the others take whole units. On a GPU this process trains and embeds, several units at once, and the others
score what it has embedded and fit what has no network. What they scored is recorded here, because a ledger has to lie
on one machine. A process that dies costs only the jobs that it had open.
"""

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from bench.ledger import Ledger
from dicot.core.device import host_threads, release_memory
from dicot.core.errors import LostWorkerError
from dicot.core.processes.budget import cores
from dicot.core.processes.launcher import end_with_parent
from dicot.data.datasets import family_of
from dicot.judge.evaluation.jobs import Job, Unit
from dicot.judge.evaluation.run import Embedded, Record, Shelf, Site, fail, run_units, score_embedded
from dicot.judge.result import Result
from dicot.train.many import AT_ONCE

GROUP = 64  # units that are trained by one call on a GPU
# What must be said before a process imports anything, so that it computes with one thread.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
FILLS_A_GPU = ("large",)  # families whose runs gain nothing from others beside them

Task = Unit | Embedded  # to be fitted and scored, or only to be scored
Scored = tuple[Job, Sequence[Result]]
OnJob = Callable[[Job, str | None], None]  # is told of a job that was recorded, and why it failed


def site_for(ledger: Path, device: str) -> Site:
    """The site of a run; a GPU fits several units at once."""
    return Site(device, ledger.with_suffix(".work"), AT_ONCE if device.startswith("cuda") else 1)


def execute(
    units: Sequence[Unit], ledger: Path, site: Site, workers: int, on_job: OnJob, start_method: str = "spawn"
) -> None:
    """Run all units with up to `workers` processes; `on_job` is told of every job that was recorded."""
    alone = [unit for unit in units if unit.alone]
    others = [unit for unit in units if not unit.alone]
    if site.at_once > 1 or (workers > 1 and len(others) > 1):
        taken = [unit for unit in others if site.at_once == 1 or unit.first.contender.classical]
        here = [unit for unit in others if site.at_once > 1 and not unit.first.contender.classical]
        free = max(1, cores() - workers)
        with Workers(workers, ledger, site, on_job, start_method) as pool, host_threads(free):
            for unit in taken:
                pool.submit(unit)
            _run_here(_groups(here), ledger, site, pool.on_job, pool.submit)
    else:
        _run_here([(unit,) for unit in others], ledger, replace(site, alone=True), on_job)
    _run_here([(unit,) for unit in alone], ledger, replace(site, alone=True), on_job)
    if site.work is not None:
        with suppress(OSError):  # something is in it, or somebody else has removed it
            site.work.rmdir()


def _run_here(
    groups: Iterable[Sequence[Unit]],
    ledger: Path,
    site: Site,
    on_job: OnJob,
    score: Callable[[Embedded], None] | None = None,
) -> None:
    """Run groups of units one after the other in this process; `score` may leave the scoring to others."""
    shelf = Shelf()
    with Ledger(ledger) as book:
        for group in groups:
            run_units(group, site, shelf, recorder(book, on_job), score=score)
            if not release_memory(site.device):
                raise LostWorkerError("The GPU takes no more work from this process. Run the same command again.")


def _groups(units: Sequence[Unit]) -> list[Sequence[Unit]]:
    """What is trained at once: small runs together, everything else for itself."""
    small, others = list[Unit](), list[Unit]()
    for unit in units:
        source = unit.first.source
        fills = (source.family or family_of(source.name)) in FILLS_A_GPU
        (others if fills or not unit.first.contender.trained else small).append(unit)
    return [*(small[start : start + GROUP] for start in range(0, len(small), GROUP)), *((unit,) for unit in others)]


def recorder(book: Ledger, on_job: OnJob) -> Record:
    """Write the results of a job into the ledger, and tell of it."""

    def record(job: Job, results: Sequence[Result]) -> None:
        book.record(results)
        on_job(job, results[0].error)

    return record


class _Worker(NamedTuple):
    process: BaseProcess
    connection: "Connection[Task, Scored | None]"

    def heard(self) -> Scored | None:
        """Wait for what the process has scored; None at the end of a task, a LostWorkerError where it is gone."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
        while (code := self.process.exitcode) is None:  # another thread has waited for it too, and is about to say
            time.sleep(0.01)
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise LostWorkerError(f"the worker {how}. Where memory is short, use fewer workers.")


class Workers(AbstractContextManager["Workers"]):
    """Up to `count` processes, each with a thread here that hands it tasks and records what it has scored."""

    def __init__(self, count: int, ledger: Path, site: Site, on_job: OnJob, start_method: str = "spawn") -> None:
        self.ledger, self.site = ledger, replace(site, device="cpu", at_once=1)
        self._on_job, self._lock, self._ending = on_job, threading.Lock(), False
        self._context = multiprocessing.get_context(start_method)
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._processes: list[BaseProcess] = []
        self._pool = ThreadPoolExecutor(count)
        self._threads = [self._pool.submit(self._attend) for _ in range(count)]

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Wait until all tasks are done, unless there was an error; one of a thread is the ledger's."""
        for _ in self._threads:
            self._tasks.put(None)
        try:
            for thread in as_completed(self._threads if kind is None else ()):
                thread.result()
        finally:
            with self._lock:
                self._ending = True
                for process in self._processes:
                    process.kill()  # idle, or nobody waits for it any more; the ledger is whole at any moment
            self._pool.shutdown()
            for process in self._processes:
                process.join()

    def submit(self, task: Task) -> None:
        """Hand over a unit to be fitted and scored, or embeddings to be scored."""
        for thread in self._threads:
            if thread.done():
                thread.result()
        self._tasks.put(task)

    def on_job(self, job: Job, error: str | None) -> None:
        """Tell of a recorded job, one at a time."""
        with self._lock:
            self._on_job(job, error)

    def _attend(self) -> None:
        worker = None
        with Ledger(self.ledger) as book:
            record = recorder(book, self.on_job)
            while (task := self._tasks.get()) is not None:
                worker = worker or self._start()
                unrecorded = {job.key: job for job in task.jobs}
                with suppress(OSError):  # where it died idle, the task is lost like any other
                    worker.connection.send(task)
                try:
                    while (scored := worker.heard()) is not None:
                        del unrecorded[scored[0].key]
                        record(*scored)
                except LostWorkerError as error:
                    if self._ending:
                        return
                    fail(unrecorded.values(), error, record)
                    worker = None

    def _start(self) -> _Worker:
        mine, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self.site))  # type: ignore[attr-defined]
        # What must be said before a process imports anything: one thread, and no GPU.
        wanted = {**dict.fromkeys(THREADS, "1"), "CUDA_VISIBLE_DEVICES": ""}
        with self._lock:
            if self._ending:
                raise LostWorkerError("The run is ending.")
            before = {name: os.environ[name] for name in wanted if name in os.environ}
            os.environ.update(wanted)
            process.start()
            for name in wanted:
                del os.environ[name]
            os.environ.update(before)
            self._processes.append(process)
        theirs.close()  # so that the pipe ends when the process does
        return _Worker(process, mine)


def _work(connection: "Connection[Scored | None, Task]", site: Site) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends this process
    end_with_parent()
    shelf = Shelf()

    def answer(job: Job, results: Sequence[Result]) -> None:
        connection.send((job, results))

    with suppress(EOFError):
        while True:
            task = connection.recv()
            if isinstance(task, Unit):
                run_units((task,), site, shelf, answer)
            else:
                score_embedded(task, answer)
            connection.send(None)
