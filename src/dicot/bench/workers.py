"""A pool of processes that run units and write to the ledger themselves; one that dies costs only its own unit."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from dicot.bench.fits import Site
from dicot.bench.jobs import Job, Unit
from dicot.bench.ledger import Ledger
from dicot.bench.lines import Result
from dicot.bench.loading import Shelf
from dicot.bench.run import Record, Score, fail, run_units
from dicot.errors import DicotError, LostWorkerError

Task = tuple[Unit, ...]
Said = tuple[str, str | None] | DicotError | None  # a recorded job and why it failed; why no more; the task is done
OnJob = Callable[[Job, str | None], None]  # a job that was recorded, and why it failed
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


@dataclass
class _Worker:
    process: SpawnProcess
    connection: "Connection[Task | None, Said]"
    open: dict[str, Job] = field(default_factory=dict)  # jobs of its task that it has not recorded yet
    busy: bool = False


def run_in_process(
    tasks: Sequence[Task],
    ledger: Path,
    site: Site,
    on_job: OnJob,
    score: Score | None = None,
    after_task: Callable[[], None] = lambda: None,
) -> None:
    """One after the other, here; `score` may leave the scoring to others."""
    from dicot.gpu.device import release_memory

    shelf = Shelf()
    with Ledger(ledger) as book:
        for task in tasks:
            run_units(task, site, shelf, recorder(book, on_job), score)
            after_task()
            if not release_memory(site.device):
                raise LostWorkerError("The GPU takes no more work from this process. Run the same command again.")


def run_in_pool(tasks: Sequence[Task], count: int, ledger: Path, site: Site, on_job: OnJob) -> None:
    """Up to `count` at a time, each in a process of its own with one thread."""
    waiting, workers = deque(tasks), list[_Worker]()
    try:
        while waiting or any(worker.busy for worker in workers):
            while waiting and (worker := _idle(workers, count, ledger, site)):
                task = waiting.popleft()
                worker.open, worker.busy = {job.key: job for unit in task for job in unit.jobs}, True
                with suppress(OSError):  # where it died idle, the task is lost like any other
                    worker.connection.send(task)
            for ready in wait([worker.connection for worker in workers if worker.busy]):
                worker = next(worker for worker in workers if worker.connection is ready)
                if not _listen(worker, on_job):
                    workers.remove(worker)
                    _write_off(worker, ledger, on_job)
    finally:
        for worker in workers:
            worker.process.kill()  # idle, or nobody waits for it any more; the ledger is whole at any moment
            worker.process.join()


def recorder(book: Ledger, on_job: OnJob) -> Record:
    def record(job: Job, result: Result) -> None:
        book.record(job, result)
        on_job(job, result.error)

    return record


def _idle(workers: list[_Worker], count: int, ledger: Path, site: Site) -> _Worker | None:
    """A worker that has nothing to do, a new one where there may be more of them."""
    found = next((worker for worker in workers if not worker.busy), None)
    if found is None and len(workers) < count:
        found = _start(ledger, site)
        workers.append(found)
    return found


def _start(ledger: Path, site: Site) -> _Worker:
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, ledger, site))
    with worker_environment(site.device):
        process.start()
    theirs.close()  # so that the pipe ends when the process does
    return _Worker(process, mine)


@contextmanager
def worker_environment(device: str) -> Iterator[None]:
    """What must be said before a process imports anything: one thread, and no GPU but for units that run there."""
    wanted = dict.fromkeys(THREADS, "1")
    if not device.startswith("cuda"):
        wanted["CUDA_VISIBLE_DEVICES"] = ""
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


def _listen(worker: _Worker, on_job: OnJob) -> bool:
    """Take one message; False where the process is gone. An error is one of the ledger's, which ends the run."""
    try:
        message = worker.connection.recv()
    except (EOFError, OSError):
        return False
    if isinstance(message, DicotError):
        raise message
    if message is None:
        worker.busy = False
    else:
        on_job(worker.open.pop(message[0]), message[1])
    return True


def _write_off(worker: _Worker, ledger: Path, on_job: OnJob) -> None:
    worker.process.join()
    code = worker.process.exitcode or 0
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    error = LostWorkerError(f"the worker {how}. Where memory is short, use fewer workers.")
    with Ledger(ledger) as book:
        fail(worker.open.values(), error, recorder(book, on_job))


def _work(connection: "Connection[Said, Task | None]", ledger: Path, site: Site) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted too, and ends this process
    threading.Thread(target=end_with_parent, daemon=True).start()
    from dicot.gpu.device import release_memory

    shelf = Shelf()
    try:
        with Ledger(ledger) as book:
            record = recorder(book, lambda job, error: connection.send((job.key, error)))
            while task := connection.recv():
                run_units(task, site, shelf, record)
                if not release_memory(site.device):
                    return  # another worker takes the next task
                connection.send(None)
    except DicotError as error:  # what fails in a job is recorded: this is about the ledger itself
        connection.send(error)


def end_with_parent() -> None:
    """A parent that is killed cannot end its workers; without this they would go on beside the next run."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
