"""Build a corpus: look at every file, settle what all have in common, cut, and write the manifest last.

Each file is read twice: an error of the last one is told before anything is cut. The bytes of a corpus depend on
sources and options alone, not on how many processes build it or how often they are killed. A file behind a URL is
copied beside the corpus for as long as it is read, so that the readers need not know where it came from.
"""

import glob
import multiprocessing
import shutil
import signal
import tempfile
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import (
    DicotError,
    DicotWarning,
    InputError,
    LostWorkerError,
    ShortRecordingWarning,
    brief,
    naming,
    need_extra,
)
from dicot.core.processes.budget import memory_of, refuse_beyond, said_bytes
from dicot.core.processes.launcher import end_with_parent
from dicot.core.progress import Bar
from dicot.core.storage import arrow, check_writable, only_writer
from dicot.data import Windows
from dicot.data.allowance import Allowance
from dicot.data.conversion import is_swallowed
from dicot.data.coverage import Coverage, refuse_partial
from dicot.data.cutting import Cut, LeftOut, no_window, warn_of_short, warn_of_uneven
from dicot.data.folders import below_named, by_name, read_named, refuse_mistaken
from dicot.data.looking import Outline, outline_of, settle, unlike_most
from dicot.data.ranges import Misplaced
from dicot.data.readers import known_suffixes
from dicot.data.reading import Reading, before_pattern, suffix_of
from dicot.data.recording import Recording
from dicot.data.tags import NOTHING, Tag, tags_of, told_of
from dicot.store.folder import (
    SCHEME,
    WINDOWS,
    Corpus,
    Shard,
    Source,
    UnfinishedStore,
    finish_unit,
    known_of,
    write_shard,
)

SHARD_BYTES = 64 * 2**20
FETCHED = ".fetched"  # where files behind URLs lie while they are read
STAMPS = ("mtime", "LastModified", "last_modified", "updated", "created", "ETag", "etag")  # of file systems
PROGRAM = 150 * 10**6  # bytes of the program itself, whatever it reads
# Bytes at the peak for each byte of a file, or, where that is known, of the numbers in it: about twice what
# was measured.
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
    allowance: Allowance | None = None,
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
    allowance : says the same, and whether more than a fifth may lie in no window; what is left out is kept in it
    overwrite : replace another corpus, or another unfinished one, that is in the folder
    """
    folder, reading = Path(out), Reading(window, stride, **options)
    allowance = Allowance(bad_files=skip_damaged) if allowance is None else allowance
    skip_damaged = skip_damaged or allowance.bad_files
    check_writable(folder, folder=True)
    if reading.join is not None:
        raise InputError("A corpus is built file by file, so --join is not for it. Leave it out, or use `dicot embed`.")
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    found = find_sources(given, reading.table)
    tags = tags_of([one for one in given if SCHEME not in str(one)], {one.name: one.file for one in found}, reading)
    budget = memory_of(memory)
    with only_writer(folder, folder=True):
        files = {one.file: [one.name, one.bytes, one.changed] for one in found}
        plan = {**reading.to_dict(), "shard_bytes": shard_bytes, "files": files}
        plan |= {"labels": told_of(tags)} if tags else {}
        work = UnfinishedStore(folder, plan, overwrite=overwrite)
        if work.finished is not None:
            return Build(_kept_in(allowance, Corpus(folder)), was_there=True)
        how = (folder, reading, shard_bytes, budget)
        tasks = [_Task(one, number, *how, tags.get(one.name, NOTHING)) for number, one in enumerate(found)]
        need = max(PROGRAM + 2 * shard_bytes if one.source.is_url else one.need(Path(one.source.file)) for one in tasks)
        workers = max(1, min(workers, len(found), (budget - PROGRAM) // need))
        try:
            with _pool(workers) as pool:
                looked, _ = _staged("look", tasks, work, pool, skip_damaged)
                if skip_damaged:
                    looked = _without_odd_files(looked, found, reading)
                cut = _settled(looked, found, reading)
                ready = [replace(task, cut=cut) for task in tasks if not looked[task.number].get("damaged")]
                done, continued = _staged("cut", ready, work, pool, skip_damaged)
        finally:
            shutil.rmtree(folder / FETCHED, ignore_errors=True)
        entries = [entry for note in looked.values() for entry in note.get("recordings", ())]
        longest = {entry["name"]: entry["longest"] for entry in entries}  # time steps without a gap
        if not any(note.get("shards") for note in done.values()):
            raise no_window(cut.length, max(longest.values()))
        parts = [Coverage(**note.get("coverage", {})) for note in done.values()]
        refuse_partial(Coverage.of_all(parts), cut, allowance)
        _warn([*looked.values(), *done.values()], longest, cut)
        about = {
            "channels": cut.channels,
            "rate": cut.rate,
            "stride": cut.stride,
            "reading": reading.to_dict(),
            "sources": [asdict(_cut_source(one, done.get(n, looked[n]))) for n, one in enumerate(found)],
        }
        work.finish(WINDOWS, [len(cut.channels), cut.length], done.values(), about)
    return Build(_kept_in(allowance, Corpus(folder)), continued, workers=workers)


def _kept_in(allowance: Allowance, corpus: Corpus) -> Corpus:
    """Keep in the allowance which files a corpus was built without."""
    for source in corpus.damaged:
        allowance.refuse(source.name, source.file, InputError(source.damaged))
    return corpus


@dataclass(frozen=True)
class _Task:
    """What a process is told about one file: to look at it or, once that is settled for all files, how to cut it."""

    source: Source
    number: int
    folder: Path  # of the corpus
    reading: Reading
    shard_bytes: int
    memory: int  # bytes that this file may take
    tag: Tag
    cut: Cut | None = None

    @property
    def unit(self) -> str:
        return f"{'look' if self.cut is None else 'cut'}-{self.number:06d}"

    def need(self, path: Path) -> int:
        """Return the memory that the file, which lies here, takes; refuse one that would take more than it may."""
        need = need_of(path, self.shard_bytes)
        what = f"{self.source.file} ({said_bytes(path.stat().st_size)}), read as a whole,"
        refuse_beyond(self.memory, need, what, "Divide the file into shorter recordings, or allow more.")
        return need


def _work(task: _Task) -> Note:
    """Look at a file or cut it; return a note of what came of it. What is warned of is shown by another process."""
    with _opened(task) as path, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DicotWarning)
        warnings.simplefilter("ignore", ShortRecordingWarning)  # they are named together later
        task.need(path)
        recordings = read_named(path, task.source.name, task.reading, task.tag)
        with naming(path):
            note, shards = _look(task, recordings) if task.cut is None else _cut(task, task.cut, recordings)
    note["warnings"] = list(dict.fromkeys(str(one.message) for one in caught))
    return finish_unit(task.folder, task.unit, shards, note)


def _look(task: _Task, recordings: Sequence[Recording]) -> tuple[Note, list[Shard]]:
    """Tell what all recordings of a corpus must have in common."""
    outlines = [outline_of(one, task.reading)._asdict() for one in recordings]
    for one in recordings:
        _check_held(one)
    return {"recordings": outlines}, []


def _check_held(recording: Recording) -> None:
    """Refuse a recording whose values float32, which a corpus has, cannot tell apart; warn where it loses stretches."""
    if recording.values.dtype == np.float32:
        return
    low, high = np.nanmin(recording.values, axis=1), np.nanmax(recording.values, axis=1)
    known = np.isfinite(low)
    if is_swallowed(low[known], high[known]):
        raise InputError(
            f"The values of recording {recording.name!r} differ by less than float32, which a corpus has, can tell. "
            "Subtract what they have in common, or leave the channel out: --ignore NAME."
        )
    warnings.warn(
        f"In stretches of recording {recording.name!r} the values of a channel differ by less than float32, which a "
        "corpus has, can tell at their size. Subtract the offset there, or embed the recording itself.",
        DicotWarning,
        stacklevel=2,
    )


def _cut(task: _Task, cut: Cut, recordings: Sequence[Recording]) -> tuple[Note, list[Shard]]:
    """Cut the windows of a file and write them in shards of bounded size."""
    plan, shards = cut.plan(recordings), []
    if len(plan):
        warn_of_uneven(plan.about, cut)
    at_once = max(1, task.shard_bytes // (4 * len(cut.channels) * cut.length))
    for part, start in enumerate(range(0, len(plan), at_once)):
        some = Windows(**plan.fields(slice(start, start + at_once)))
        shards.append(write_shard(task.folder, f"{task.number:06d}-{part:03d}", some.x, known_of(some)))
    return {
        "recordings": len(np.unique(plan.about["recording"])),
        "left": list(plan.left),
        "coverage": asdict(Coverage.of(plan)),
    }, shards


def _without_odd_files(looked: Mapping[int, Note], sources: Sequence[Source], reading: Reading) -> dict[int, Note]:
    """Mark files as damaged that have other channels, or another rate, than most."""
    numbers = {source.name: number for number, source in enumerate(sources)}
    outlines = {name: _outlines(looked[number]) for name, number in numbers.items()}
    errors = unlike_most(outlines, reading, None)
    damaged = {numbers[name]: {"damaged": f"{sources[numbers[name]].file}: {e}"} for name, e in errors.items()}
    return {**looked, **damaged}


def _outlines(note: Note) -> list[Outline]:
    """Return the outlines that a note of a file keeps in plain values."""
    outlines = []
    for entry in note.get("recordings", ()):
        lists = {key: tuple(entry[key]) for key in ("channels", "units")}
        lists["misplaced"] = tuple(Misplaced(*place) for place in entry.get("misplaced", ()))
        outlines.append(Outline(**{**entry, **lists}))
    return outlines


def _settled(looked: Mapping[int, Note], sources: Sequence[Source], reading: Reading) -> Cut:
    """Find what holds for all files that are sound; refuse what does not agree."""
    outlines, files = [], {one.name: one.file for one in sources}
    for source, note in zip(sources, looked.values(), strict=True):
        of_file = _outlines(note)
        refuse_mistaken([outline.name for outline in of_file], source.name, files)
        outlines += of_file
    if not outlines:
        raise InputError(f"None of the {len(sources)} files can be used; the first: {looked[0]['damaged']}")
    return settle(outlines, reading)


def _staged(
    stage: str, tasks: Sequence[_Task], store: UnfinishedStore, pool: Executor, skip_damaged: bool
) -> tuple[dict[int, Note], int]:
    """Do one thing to every file; return a note for each, in their order, and how many an earlier run had done."""
    done = {task.number: note for task in tasks if (note := store.note(task.unit)) is not None}
    continued, started, n_bytes = len(done), time.monotonic(), 0
    with Bar(stage, len(tasks)) as bar:
        under_way = {pool.submit(_work, task): task for task in tasks if task.number not in done}
        for future in as_completed(under_way):
            task = under_way[future]
            try:
                done[task.number] = future.result()
            except BrokenProcessPool as error:
                said = "A process that built the corpus has ended in the middle of its work, perhaps out of memory."
                raise LostWorkerError(f"{said} Run the same command again, with fewer --workers.") from error
            except InputError as error:
                if not skip_damaged:
                    remedy = "To leave such files out, and list them: skip_damaged=True, or no --strict."
                    raise InputError(f"{error} {remedy}") from error
                done[task.number] = {"damaged": str(error)}
            n_bytes += task.source.bytes
            bar.update(len(done), f"files, {n_bytes / 1e6 / max(1e-9, time.monotonic() - started):.0f} MB/s")
    return {task.number: done[task.number] for task in tasks}, continued


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    """Start processes, or a thread of this one where one is enough."""
    spawn = multiprocessing.get_context("spawn")
    pool = ThreadPoolExecutor(1) if workers == 1 else ProcessPoolExecutor(workers, spawn, initializer=_begin)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that tells this one what to do
    end_with_parent()


def _cut_source(source: Source, note: Note) -> Source:
    windows = sum(shard["rows"] for shard in note.get("shards", ()))
    recordings = note["recordings"] if windows else 0
    return replace(source, windows=windows, recordings=recordings, damaged=note.get("damaged", ""))


def _warn(notes: Sequence[Note], longest: Mapping[str, int], cut: Cut) -> None:
    """Say what the processes were warned of, once each, and which recordings gave no window."""
    for message in dict.fromkeys(text for note in notes for text in note.get("warnings", ())):
        warnings.warn(message, DicotWarning, stacklevel=3)
    left = LeftOut()
    for note in notes:
        left = left.plus(note.get("left", LeftOut()))  # damaged files have none
    left.warn(cut.rate)
    warn_of_short({name: n for name, n in longest.items() if n < cut.length and not cut.reading.even}, cut.length)


def need_of(path: Path, shard_bytes: int) -> int:
    """Return how many bytes reading and cutting this file takes at most, told from its size before it is read."""
    suffix, content = suffix_of(path), path.stat().st_size
    try:  # what a packed file says of the numbers in it
        if suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                content = sum(member.file_size for member in archive.infolist())
        elif suffix == ".parquet":
            with arrow()[1].ParquetFile(path) as file:
                content = int(file.metadata.num_rows * file.metadata.num_columns * 8)
        elif suffix == ".csv.gz":  # the last four bytes say how long it is unpacked, up to 4 GB
            with path.open("rb") as packed:
                packed.seek(-4, 2)
                content = max(content, int.from_bytes(packed.read(), "little"))
        elif suffix == ".hea":
            content = sum(file.stat().st_size for file in path.parent.glob(f"{path.stem}.*"))
    except Exception:  # its reader says what is wrong; pyarrow has many errors of its own
        pass
    return PROGRAM + 2 * shard_bytes + TIMES.get(suffix, max(TIMES.values())) * content


def find_sources(sources: Sequence[str | Path], table: str | None = None) -> list[Source]:
    """List the files of all sources but the table of labels, each once, sorted, with names that none shares."""
    local = [one for one in sources if SCHEME not in str(one)]
    found: dict[str, tuple[PurePath, int, str]] = {}  # the path below what was named, size, and when it was changed
    for one in reversed(sources):  # a file that is named twice has the name of the first time
        if SCHEME in str(one):
            found |= _behind(str(one))
    if local or not sources:
        for path, below in below_named(local, table):
            known = path.stat()
            found[str(path.resolve())] = below, known.st_size, str(known.st_mtime_ns)
    named = by_name((file, found[file][0]) for file in sorted(found))
    return [Source(file, name, *found[file][1:]) for name, file in named.items()]


@contextmanager
def _reached(url: str) -> Iterator[tuple[Any, str]]:
    """Give the file system of a URL and the path there; each has errors of its own, which become ours."""
    try:
        import fsspec
    except ImportError as error:
        raise need_extra("fsspec", "fsspec", f"Reading {url}") from error
    try:
        yield fsspec.core.url_to_fs(url)
    except DicotError:
        raise
    except Exception as error:
        raise InputError(f"{url} cannot be reached ({brief(error)}). Check the address, or try again.") from error


def _behind(url: str) -> dict[str, tuple[PurePath, int, str]]:
    """Return the files of a URL of a folder, a pattern or a file, as `find_sources` wants them."""
    with _reached(url) as (system, path):
        if glob.has_magic(path):
            files, root = [str(file) for file in system.glob(path)], before_pattern(PurePosixPath(path))
        elif system.isdir(path):
            files, root = [str(file) for file in system.find(path)], PurePosixPath(path)
        elif system.exists(path):
            files, root = [path], PurePosixPath(path).parent
        else:
            raise InputError(f"There is no file or folder {url}. Check the address.")
        suffixes = known_suffixes("recordings")
        found: dict[str, tuple[PurePath, int, str]] = {}
        for file in files:
            if files == [path] or suffix_of(PurePosixPath(file)) in suffixes:
                info = system.info(file)
                stamp = next((str(info[key]) for key in STAMPS if info.get(key) is not None), "")
                below = PurePosixPath(file).relative_to(root)
                found[system.unstrip_protocol(file)] = below, int(info.get("size") or 0), stamp
        if not found:
            raise InputError(f"{url} holds no recording ({', '.join(suffixes)}). Check the address.")
        return found


@contextmanager
def _opened(task: _Task) -> Iterator[Path]:
    """Give the file as one of this machine, where it must not have changed; behind a URL, as a copy for a while."""
    source = task.source
    if not source.is_url:
        path = Path(source.file)
        with naming(path):
            now = path.stat()
        if (now.st_size, str(now.st_mtime_ns)) != (source.bytes, source.changed):
            raise InputError(f"{path} was changed while the corpus was built. Run the same command again.")
        yield path
        return
    (task.folder / FETCHED).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=task.folder / FETCHED) as folder, _reached(source.file) as (system, there):
        parts = PurePosixPath(there)
        wanted = [there]
        if parts.suffix.lower() == ".hea":  # the signals lie beside it, under its name
            wanted += [str(file) for file in system.glob(f"{parts.parent}/{glob.escape(parts.stem)}.*")]
        for file in dict.fromkeys(wanted):
            system.get_file(file, str(Path(folder) / PurePosixPath(file).name))
        try:
            yield Path(folder) / parts.name
        except InputError as error:  # not under the name of a copy that nobody knows
            raise InputError(str(error).replace(str(Path(folder) / parts.name), source.file)) from error
