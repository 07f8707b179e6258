"""How units are carried out: in this process, or in others with one thread each that write to the ledger themselves.

On a CPU the others take whole units. On a GPU this process trains and embeds, several units at once, and the others
score what it has embedded and fit what has no network. One that dies costs only the jobs that it had open.
"""

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType

from dicot.core.errors import DicotError, LostWorkerError
from dicot.core.processes.cluster import THREADS
from dicot.core.processes.launcher import end_with_parent
from dicot.judge.bench.ledger import Ledger
from dicot.judge.evaluation.jobs import Job, Unit
from dicot.judge.evaluation.loading import Shelf, family
from dicot.judge.evaluation.result import Result
from dicot.judge.evaluation.run import KEY, Embedded, Record, Score, Site, fail, run_units, score_embedded

GROUP = 64  # units that are trained by one call on a GPU
FILLS_A_GPU = ("large",)  # families whose runs gain nothing from others beside them

Task = Unit | Embedded  # to be fitted and scored, or only to be scored
Message = tuple[str, str | None] | DicotError | None  # a recorded job and why it failed; why no more; the task is done
OnJob = Callable[[Job, str | None], None]  # is told of a job that was recorded, and why it failed


def default_workers() -> int:
    """A process per core."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def site_for(ledger: Path, device: str) -> Site:
    """The site of a run; a GPU fits several units at once."""
    from dicot.train.many import AT_ONCE

    return Site(device, ledger.with_suffix(".work"), AT_ONCE if device.startswith("cuda") else 1)


def clear_finished(site: Site, fits: Set[str]) -> None:
    """Remove the checkpoints of finished fits, which a run leaves that is killed between its last row and this."""
    if site.work is not None and site.work.is_dir():
        for path in site.work.iterdir():
            if path.name.lstrip(".")[:KEY] in {fit[:KEY] for fit in fits}:
                path.unlink(missing_ok=True)
        _remove_empty(site.work)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # something is in it, or somebody else has removed it
        folder.rmdir()


def execute(
    units: Sequence[Unit], ledger: Path, site: Site, workers: int, on_job: OnJob, start_method: str = "spawn"
) -> None:
    """Run all units with up to `workers` processes; `on_job` is told of every job that was recorded."""
    from dicot.core.device import host_threads

    alone = [unit for unit in units if unit.alone]
    others = [unit for unit in units if not unit.alone]
    if site.at_once > 1:
        free = max(1, default_workers() - workers)
        with Workers(workers, ledger, site, on_job, start_method) as pool, host_threads(free):
            for unit in others:
                if unit.first.contender.classical:
                    pool.submit(unit)
            here = [unit for unit in others if not unit.first.contender.classical]
            _run_here(_groups(here), ledger, site, pool.on_job, pool.submit)
            pool.wait()
    elif workers > 1 and len(others) > 1:
        with Workers(workers, ledger, site, on_job, start_method) as pool:
            for unit in others:
                pool.submit(unit)
            pool.wait()
    else:
        _run_here([(unit,) for unit in others], ledger, replace(site, alone=True), on_job)
    _run_here([(unit,) for unit in alone], ledger, replace(site, alone=True), on_job)
    if site.work is not None:
        _remove_empty(site.work)


def _run_here(
    groups: Iterable[Sequence[Unit]], ledger: Path, site: Site, on_job: OnJob, score: Score | None = None
) -> None:
    """Run groups of units one after the other in this process; `score` may leave the scoring to others."""
    from dicot.core.device import release_memory

    shelf = Shelf()
    with Ledger(ledger) as book:
        for group in groups:
            run_units(group, site, shelf, recorder(book, on_job), score=score)
            if not release_memory(site.device):
                raise LostWorkerError("The GPU takes no more work from this process. Run the same command again.")


def _groups(units: Sequence[Unit]) -> list[Sequence[Unit]]:
    """What is trained at once: small runs together, everything else for itself."""
    families = {data: family(data) for data in {unit.first.source for unit in units}}

    def is_small(unit: Unit) -> bool:
        return unit.first.contender.trained and families[unit.first.source] not in FILLS_A_GPU

    small = [unit for unit in units if is_small(unit)]
    groups: list[Sequence[Unit]] = [small[start : start + GROUP] for start in range(0, len(small), GROUP)]
    return [*groups, *((unit,) for unit in units if not is_small(unit))]


def recorder(book: Ledger, on_job: OnJob) -> Record:
    """Write the results of a job into the ledger, and tell of it."""

    def record(job: Job, results: Sequence[Result]) -> None:
        book.record(results)
        on_job(job, results[0].error)

    return record


@dataclass
class _Process:
    process: BaseProcess
    connection: "Connection[Task, Message]"


class Workers:
    """Up to `count` processes, each looked after by a thread that hands it tasks and listens to it."""

    def __init__(self, count: int, ledger: Path, site: Site, on_job: OnJob, start_method: str = "spawn") -> None:
        self.ledger, self.site = ledger, replace(site, device="cpu", at_once=1)
        self._on_job, self._telling = on_job, threading.Lock()
        self._starting, self._ending = threading.Lock(), False
        self._context = multiprocessing.get_context(start_method)
        self._threads = ThreadPoolExecutor(count)
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        self._all: list[_Process] = []
        self._tasks: list[Future[None]] = []

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._starting:
            self._ending = True
            for one in self._all:
                one.process.kill()  # idle, or nobody waits for it any more; the ledger is whole at any moment
        self._threads.shutdown(cancel_futures=True)
        for one in self._all:
            one.process.join()

    def submit(self, task: Task) -> None:
        """Hand over a unit to be fitted and scored, or embeddings to be scored; errors are those of `wait`."""
        for done in [one for one in self._tasks if one.done()]:
            self._tasks.remove(done)
            done.result()
        self._tasks.append(self._threads.submit(self._carry_out, task))

    def wait(self) -> None:
        """Wait until all tasks are done; an error is the ledger's, which ends the run."""
        for done in as_completed(self._tasks):
            done.result()

    def on_job(self, job: Job, error: str | None) -> None:
        """Tell of a recorded job, one at a time."""
        with self._telling:
            self._on_job(job, error)

    def _carry_out(self, task: Task) -> None:
        unrecorded = {job.key: job for job in task.jobs}
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = self._start()
        with suppress(OSError):  # where it died idle, the task is lost like any other
            worker.connection.send(task)
        while (message := _heard(worker)) is not None:
            if isinstance(message, DicotError):
                raise message
            if isinstance(message, int):
                if not self._ending:
                    self._write_off(unrecorded.values(), message)
                return
            self.on_job(unrecorded.pop(message[0]), message[1])
        self._idle.put(worker)

    def _start(self) -> _Process:
        mine, theirs = self._context.Pipe()
        with self._starting:
            if self._ending:
                raise LostWorkerError("The run is ending.")
            process = self._context.Process(target=_work, args=(theirs, self.ledger, self.site))  # type: ignore[attr-defined]
            with _environment_of_a_worker():
                process.start()
            theirs.close()  # so that the pipe ends when the process does
            worker = _Process(process, mine)
            self._all.append(worker)
        return worker

    def _write_off(self, jobs: Iterable[Job], code: int) -> None:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        error = LostWorkerError(f"the worker {how}. Where memory is short, use fewer workers.")
        with Ledger(self.ledger) as book:
            fail(jobs, error, recorder(book, self.on_job))


def _heard(worker: _Process) -> Message | int:
    """Wait for what a process says; the exit code of one that is gone."""
    try:
        return worker.connection.recv()
    except (EOFError, OSError):
        worker.process.join()
        while worker.process.exitcode is None:  # another thread has waited for it too, and is about to say
            time.sleep(0.01)
        return worker.process.exitcode


@contextmanager
def _environment_of_a_worker() -> Iterator[None]:
    """Say what must be said before a process imports anything: one thread, and no GPU."""
    wanted = {**dict.fromkeys(THREADS, "1"), "CUDA_VISIBLE_DEVICES": ""}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(connection: "Connection[Message, Task]", ledger: Path, site: Site) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends this process
    end_with_parent()
    shelf = Shelf()
    try:
        with Ledger(ledger) as book, suppress(EOFError):
            record = recorder(book, lambda job, error: connection.send((job.key, error)))
            while True:
                task = connection.recv()
                if isinstance(task, Unit):
                    run_units((task,), site, shelf, record)
                else:
                    score_embedded(task, record)
                connection.send(None)
    except DicotError as error:  # what fails in a job is recorded: this is about the ledger itself
        connection.send(error)
