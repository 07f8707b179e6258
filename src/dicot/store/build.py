"""Build a corpus: look at every file, settle what all have in common, cut, and write the manifest last.

Each file is read twice: an error of the last one is told before anything is cut. The bytes of a corpus depend on
sources and options alone, not on how many processes build it or how often they are killed.
"""

import hashlib
import multiprocessing
import shutil
import signal
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import (
    DicotWarning,
    InputError,
    LostWorkerError,
    NoWindowError,
    ShortRecordingWarning,
    listed,
    naming,
)
from dicot.core.processes.budget import memory_of, refuse_beyond, said_bytes
from dicot.core.processes.launcher import end_with_parent
from dicot.core.progress import Bar
from dicot.core.storage import arrow, check_writable
from dicot.core.storage.locks import only_writer
from dicot.data import Windows
from dicot.data.cutting import Cut, LeftOut, Outline, no_window, outline_of, settle, warn_of_short, warn_of_uneven
from dicot.data.readers import read_named, refuse_mistaken, suffix_of
from dicot.data.reading import Reading
from dicot.store.corpus import Corpus, Source
from dicot.store.folder import WINDOWS, Shard, UnfinishedStore, finish_unit, known_of, write_manifest, write_shard
from dicot.store.sources import Origin, at_hand, find_origins

SHARD_BYTES = 64 * 2**20
FETCHED = ".fetched"  # where files behind URLs lie while they are read
PROGRAM = 150 * 10**6  # bytes of the program itself, whatever it reads
# Bytes at the peak for each byte of a file, or, where that is known, of the numbers in it: about twice what
# `python -m benchmarks.corpus needs` found.
TIMES = {".csv": 40, ".csv.gz": 40, ".parquet": 10, ".npz": 8, ".mat": 40, ".edf": 20, ".hea": 20, ".wav": 20}
Note = dict[str, Any]  # what became of a file, in plain values


class Build(NamedTuple):
    """What a build did."""

    corpus: Corpus
    continued: int = 0  # files that an earlier run had cut
    was_there: bool = False  # the corpus had been built before, from the same sources
    workers: int = 0


def build_corpus(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    window: str | int,
    stride: str | int = "50%",
    *,
    shard_bytes: int = SHARD_BYTES,
    workers: int = 1,
    memory: str | None = None,
    skip_damaged: bool = False,
    overwrite: bool = False,
    **options: Any,
) -> Build:
    """Cut recordings into windows and keep these in a folder, a corpus; killed, the same call continues.

    Parameters
    ----------
    sources : folders, patterns, files, or URLs of such by fsspec, as in "s3://bucket/ecg"
    out : the folder of the corpus
    window, stride, options : as for `Windows.from_folder`: channels, rate, label and so on
    shard_bytes : the most that the windows of one shard take
    workers : processes that read and cut files, as far as `memory` allows
    memory : how much all of them may take, such as "4GB"; None means half of what is free
    skip_damaged : leave out files that cannot be used, and list them in the manifest; otherwise the first is an error
    overwrite : replace another corpus, or another unfinished one, that is in the folder
    """
    folder, reading = Path(out), Reading(window, stride, **options)
    check_writable(folder, folder=True)
    origins = find_origins([sources] if isinstance(sources, str | Path) else list(sources))
    budget = memory_of(memory)
    with only_writer(folder, folder=True):
        files = {origin.file: origin.name for origin in origins}
        plan = {**reading.to_dict(), "shard_bytes": shard_bytes, "files": files}
        work = UnfinishedStore(folder, plan, overwrite=overwrite)
        if work.finished is not None:
            changed = _changed(Corpus(folder), origins)
            if not changed:
                return Build(Corpus(folder), was_there=True)
            if not overwrite:
                raise InputError(
                    f"{folder} is a corpus of files that have changed: {listed(changed)}. Choose another folder, or "
                    "replace it (--overwrite)."
                )
            work.begin_anew()
        need = max(_need(origin, budget, shard_bytes) for origin in origins)
        workers = max(1, min(workers, len(origins), (budget - PROGRAM) // need))
        tasks = [_Task(origin, number, folder, reading, shard_bytes, budget) for number, origin in enumerate(origins)]
        try:
            with _pool(workers) as pool:
                looked, _ = _staged("look", _look, tasks, work, pool, skip_damaged)
                cut = _settled(looked, origins, reading)
                ready = [
                    replace(task, cut=cut) for task, note in zip(tasks, looked, strict=True) if not note.get("damaged")
                ]
                notes, continued = _staged("cut", _cut, ready, work, pool, skip_damaged)
                done = dict(zip([task.number for task in ready], notes, strict=True))
        finally:
            shutil.rmtree(folder / FETCHED, ignore_errors=True)
        shards = [Shard(**one) for note in done.values() for one in note.get("shards", ())]
        if not shards:
            raise no_window(cut.length, max(_longest(looked).values()))
        _warn(looked, done, cut)
        about = {
            "plan": plan,
            "channels": cut.channels,
            "rate": cut.rate,
            "stride": cut.stride,
            "reading": reading.to_dict(),
            "sources": [asdict(_source(o, done.get(number, looked[number]))) for number, o in enumerate(origins)],
        }
        write_manifest(folder, WINDOWS, [len(cut.channels), cut.length], shards, about)
    return Build(Corpus(folder), continued, workers=workers)


@dataclass(frozen=True)
class _Task:
    """What a process is told about one file."""

    origin: Origin
    number: int
    folder: Path  # of the corpus
    reading: Reading
    shard_bytes: int
    memory: int  # bytes that this file may take
    cut: Cut | None = None  # what was settled for all files, before they are cut

    def unit(self, stage: str) -> str:
        return f"{stage}-{self.number:06d}"

    def key(self) -> str:
        """Tell whether what was done before still counts: the same file, cut in the same way."""
        return hashlib.sha256(repr((self.origin, self.cut)).encode()).hexdigest()


def _look(task: _Task) -> Note:
    """Read a file for what all recordings of a corpus must have in common."""
    with _opened(task) as path, _gathered() as said:
        _check_need(path, task.memory, task.shard_bytes, task.origin.file)
        recordings = read_named(path, task.origin.name, task.reading)
        with naming(path):
            outlines = [outline_of(one, task.reading)._asdict() for one in recordings]
            for one in recordings:
                if one.values.dtype != np.float32:  # kept in float64 because float32 would swallow what differs
                    raise InputError(
                        f"The values of recording {one.name!r} differ by less than float32 can tell apart at their "
                        "size, and a corpus keeps no more. Subtract what they have in common, or leave the channel out "
                        "by channels= (--channels)."
                    )
    return finish_unit(task.folder, task.unit("look"), [], {"recordings": outlines, "warnings": said}, task.key())


def _settled(looked: Sequence[Note], origins: Sequence[Origin], reading: Reading) -> Cut:
    """Find what holds for all files that are sound; refuse what does not agree."""
    found = [
        (Outline(**{**entry, "channels": tuple(entry["channels"]), "units": tuple(entry["units"])}), origin)
        for note, origin in zip(looked, origins, strict=True)
        for entry in note.get("recordings", ())
    ]
    if not found:
        raise InputError(f"None of the {len(origins)} files can be used; the first: {looked[0]['damaged']}")
    files = {origin.name: origin.file for origin in origins}
    for one, origin in found:
        refuse_mistaken([one.name], origin.name, files)
    return settle([one for one, _ in found], reading)


def _cut(task: _Task) -> Note:
    """Cut the windows of a file and write them in shards of bounded size."""
    assert task.cut is not None
    cut, shards = task.cut, []
    note: Note
    with _opened(task) as path, _gathered() as said:
        try:
            plan = cut.plan(read_named(path, task.origin.name, task.reading))
        except NoWindowError as error:
            note = {"recordings": 0, "left": list(error.left)}
        else:
            about = plan.about
            warn_of_uneven(about["recording"], about["end"] - about["start"], cut.length, cut.rate)
            note = {"recordings": len(np.unique(about["recording"])), "left": list(plan.left)}
            at_once = max(1, task.shard_bytes // (4 * len(cut.channels) * cut.length))
            with naming(path):
                for part, start in enumerate(range(0, len(plan), at_once)):
                    some = Windows(**plan.fields(slice(start, start + at_once)))
                    shards.append(write_shard(task.folder, f"{task.number:06d}-{part:03d}", some.x, known_of(some)))
    return finish_unit(task.folder, task.unit("cut"), shards, {**note, "warnings": said}, task.key())


@contextmanager
def _opened(task: _Task) -> Iterator[Path]:
    """Give the file, and make sure that it is still the one that was found at first."""
    with at_hand(task.origin, task.folder / FETCHED) as path:
        if not task.origin.is_url:
            with naming(path):
                now = path.stat()
            if (now.st_size, str(now.st_mtime_ns)) != (task.origin.bytes, task.origin.changed):
                raise InputError(f"{path} was changed while the corpus was built. Run the same command again.")
        try:
            yield path
        except InputError as error:
            if task.origin.is_url:  # not under the name of a copy that nobody knows
                raise InputError(str(error).replace(str(path), task.origin.file)) from error
            raise


@contextmanager
def _gathered() -> Iterator[list[str]]:
    """Gather what is warned of, once each; another process shows it. Short recordings are named together later."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DicotWarning)
        warnings.simplefilter("ignore", ShortRecordingWarning)
        yield said
    said += dict.fromkeys(str(one.message) for one in caught)


def _staged(
    stage: str,
    work: Callable[[_Task], Note],
    tasks: Sequence[_Task],
    store: UnfinishedStore,
    pool: ProcessPoolExecutor | None,
    skip_damaged: bool,
) -> tuple[list[Note], int]:
    """Do one thing to every file; return a note for each, in their order, and how many an earlier run had done."""
    found = {task.number: store.note(task.unit(stage), task.key()) for task in tasks}
    done = {number: note for number, note in found.items() if note is not None}
    continued, started, n_bytes = len(done), time.monotonic(), 0
    with Bar(stage, len(tasks)) as bar:
        for task, result in _over(pool, work, [task for task in tasks if task.number not in done]):
            if isinstance(result, InputError) and skip_damaged:
                result = {"damaged": str(result)}
            elif isinstance(result, InputError):
                raise InputError(f"{result} To leave such files out, and list them: --skip-damaged.")
            elif isinstance(result, BaseException):
                raise result
            done[task.number] = result
            n_bytes += task.origin.bytes
            bar.update(len(done), f"files, {n_bytes / 1e6 / max(1e-9, time.monotonic() - started):.0f} MB/s")
    return [done[task.number] for task in tasks], continued


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor | None]:
    """Start processes, where there is to be more than this one."""
    if workers == 1:
        yield None
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Prepare a process for work on files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that tells this one what to do
    end_with_parent()


def _over(
    pool: ProcessPoolExecutor | None, work: Callable[[_Task], Note], tasks: Sequence[_Task]
) -> Iterator[tuple[_Task, Note | BaseException]]:
    """Yield each task and what came of it, in the order in which they end."""
    if pool is None:
        for task in tasks:
            try:
                yield task, work(task)
            except Exception as error:
                yield task, error
        return
    under_way = {pool.submit(work, task): task for task in tasks}
    for future in as_completed(under_way):
        failed = future.exception()
        if isinstance(failed, BrokenProcessPool):
            raise LostWorkerError(
                "A process that built the corpus has ended in the middle of its work; it may have run out of memory. "
                "Run the same command again, with fewer --workers; it goes on from here."
            ) from failed
        yield under_way[future], future.result() if failed is None else failed


def _source(origin: Origin, note: Note) -> Source:
    windows = sum(shard["rows"] for shard in note.get("shards", ()))
    recordings = note["recordings"] if windows else 0
    return Source(origin.file, origin.name, origin.bytes, origin.changed, windows, recordings, note.get("damaged", ""))


def _longest(looked: Sequence[Note]) -> dict[str, int]:
    """Return the time steps of the longest stretch without a gap of each recording."""
    return {entry["name"]: entry["longest"] for note in looked for entry in note.get("recordings", ())}


def _warn(looked: Sequence[Note], done: Mapping[int, Note], cut: Cut) -> None:
    """Say what the processes were warned of, once each, and which recordings gave no window."""
    for message in dict.fromkeys(text for note in (*looked, *done.values()) for text in note.get("warnings", ())):
        warnings.warn(message, DicotWarning, stacklevel=3)
    left = LeftOut()
    for note in done.values():
        left = left.plus(note.get("left", LeftOut()))  # damaged files have none
    left.warn(cut.rate)
    longest = _longest([looked[number] for number in done])
    short = {name: n for name, n in longest.items() if n < cut.length and not cut.reading.even}
    warn_of_short(short, cut.length)


def _changed(corpus: Corpus, origins: Sequence[Origin]) -> list[str]:
    """List the files that have changed since a corpus was built."""
    there = {(source.file, source.bytes, source.changed) for source in corpus.sources}
    now = {(origin.file, origin.bytes, origin.changed) for origin in origins}
    return sorted({file for file, *_ in there ^ now})


def _need(origin: Origin, budget: int, shard_bytes: int) -> int:
    """Return what a file takes; one behind a URL is looked at again once it is here."""
    if origin.is_url:
        return PROGRAM + 2 * shard_bytes
    return _check_need(Path(origin.file), budget, shard_bytes, origin.file)


def _check_need(path: Path, memory: int, shard_bytes: int, name: str) -> int:
    """Return the memory that a file takes; refuse one that would take more than it may."""
    need = need_of(path, shard_bytes)
    what = f"{name} ({said_bytes(path.stat().st_size)}), read as a whole,"
    refuse_beyond(memory, need, what, "Divide the file into shorter recordings, or allow more.")
    return need


def need_of(path: Path, shard_bytes: int) -> int:
    """Return how many bytes reading and cutting this file takes at most, told from its size before it is read."""
    return PROGRAM + 2 * shard_bytes + TIMES.get(suffix_of(path), max(TIMES.values())) * _content(path)


def _content(path: Path) -> int:
    """Count the bytes of the numbers in a file; of one that does not say, those of the file."""
    suffix, size = suffix_of(path), path.stat().st_size
    try:
        if suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return sum(member.file_size for member in archive.infolist())
        if suffix == ".parquet":
            with arrow()[1].ParquetFile(path) as file:
                return int(file.metadata.num_rows * file.metadata.num_columns * 8)
    except Exception:  # its reader says what is wrong; pyarrow has many errors of its own
        return size
    if suffix == ".csv.gz":  # the last four bytes say how long it is unpacked, up to 4 GB
        with path.open("rb") as packed:
            packed.seek(max(0, size - 4))
            return max(size, int.from_bytes(packed.read(), "little"))
    if suffix == ".hea":
        return sum(file.stat().st_size for file in path.parent.glob(f"{path.stem}.*"))
    return size
