"""Build a corpus: look at every file, settle what all have in common, cut, and write the manifest last.

Each file is read twice: an error of the last one is told before anything is cut. The bytes of a corpus depend on
sources and options alone, not on how many processes build it or how often they are killed.
"""

import multiprocessing
import signal
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
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
    ShortRecordingWarning,
    naming,
)
from dicot.core.place import end_with_parent
from dicot.core.progress import Bar
from dicot.core.storage import check_writable, only_writer
from dicot.data import Windows
from dicot.data.allowance import Allowance
from dicot.data.conversion import is_swallowed
from dicot.data.coverage import Coverage, refuse_partial
from dicot.data.cutting import Cut, LeftOut, no_window, warn_of_short, warn_of_uneven
from dicot.data.folders import below_named, by_name, read_named, refuse_mistaken
from dicot.data.looking import Outline, outline_of, settle, unlike_most
from dicot.data.ranges import Misplaced
from dicot.data.reading import Reading
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
    skip_damaged: bool = False,
    allowance: Allowance | None = None,
    overwrite: bool = False,
    **options: Any,
) -> Build:
    """Cut recordings into windows and keep these in a folder, a corpus; killed, the same call continues.

    Parameters
    ----------
    sources : folders, patterns or files
    out : the folder of the corpus
    window, stride, options : as for `Windows.from_folder`: channels, rate, label and so on
    shard_bytes : the most that the windows of one shard take
    workers : processes that read and cut files; each holds one file at a time
    skip_damaged : leave out files that cannot be used, and list them in the manifest; otherwise the first is an error
    allowance : says the same, and whether more than a fifth may lie in no window; what is left out is kept in it
    overwrite : replace another corpus, or another unfinished one, that is in the folder
    """
    folder, reading = Path(out), Reading(window, stride, **options)
    if allowance is None:
        allowance = Allowance(bad_files=skip_damaged)
    allowance.bad_files = allowance.bad_files or skip_damaged
    check_writable(folder, folder=True)
    if reading.join is not None:
        raise InputError("A corpus is built file by file, so --join is not for it. Leave it out, or use `dicot embed`.")

    named = [sources] if isinstance(sources, str | Path) else list(sources)
    files = find_sources(named, reading.table)
    tags = tags_of(named, {source.name: source.file for source in files}, reading)
    plan = {
        **reading.to_dict(),
        "shard_bytes": shard_bytes,
        "files": {source.file: [source.name, source.bytes, source.changed] for source in files},
    }
    if tags:
        plan["labels"] = told_of(tags)

    with only_writer(folder, folder=True):
        work = UnfinishedStore(folder, plan, overwrite=overwrite)
        if work.finished is not None:
            return Build(_with_damaged(allowance, Corpus(folder)), was_there=True)
        tasks = [
            FileTask(source, number, folder, reading, shard_bytes, tags.get(source.name, NOTHING))
            for number, source in enumerate(files)
        ]
        workers = max(1, min(workers, len(files)))
        with _pool(workers) as pool:
            continued = _build(tasks, work, Stages(work, pool, allowance))
    return Build(_with_damaged(allowance, Corpus(folder)), continued, workers=workers)


def find_sources(sources: Sequence[str | Path], table: str | None = None) -> list[Source]:
    """List the files of all sources but the table of labels, each once, sorted, with names that none shares."""
    refuse_urls(sources)
    found = {str(path.resolve()): (path, below) for path, below in below_named(list(sources), table)}
    names = by_name((file, found[file][1]) for file in sorted(found))
    listed = []
    for name, file in names.items():
        state = found[file][0].stat()
        listed.append(Source(file, name, state.st_size, str(state.st_mtime_ns)))
    return listed


def refuse_urls(sources: Sequence[str | Path]) -> None:
    """Refuse addresses, which earlier versions read, by saying what to do instead."""
    for source in sources:
        if SCHEME in str(source):
            raise InputError(
                f"{source} is a URL, and recordings behind URLs are not read any more. Copy them to a folder first, "
                "for example by `aws s3 sync` or `rclone copy`, and name the folder."
            )


def _with_damaged(allowance: Allowance, corpus: Corpus) -> Corpus:
    """Keep in the allowance which files a corpus was built without."""
    for source in corpus.damaged:
        allowance.refuse(source.name, source.file, InputError(source.damaged))
    return corpus


@dataclass(frozen=True)
class FileTask:
    """What a process is told about one file: to look at it or, once that is settled for all files, how to cut it."""

    source: Source
    number: int
    folder: Path  # of the corpus
    reading: Reading
    shard_bytes: int
    tag: Tag
    cut: Cut | None = None

    @property
    def unit(self) -> str:
        stage = "look" if self.cut is None else "cut"
        return f"{stage}-{self.number:06d}"


@dataclass
class Stages:
    """Does one thing to every file, by the processes of a pool."""

    store: UnfinishedStore
    pool: Executor
    allowance: Allowance

    def carry_out(self, stage: str, tasks: Sequence[FileTask]) -> tuple[dict[int, Note], int]:
        """Return a note for each file, in their order, and how many an earlier run had done."""
        notes = {task.number: self.store.note(task.unit) for task in tasks}
        done = {number: note for number, note in notes.items() if note is not None}
        continued, n_bytes, started = len(done), 0, time.monotonic()
        with Bar(stage, len(tasks)) as bar:
            under_way = {self.pool.submit(work_on, task): task for task in tasks if task.number not in done}
            for future in as_completed(under_way):
                task = under_way[future]
                try:
                    done[task.number] = future.result()
                except BrokenProcessPool as error:
                    raise LostWorkerError(
                        "A process that built the corpus has ended in the middle of its work, perhaps out of memory. "
                        "Run the same command again, with fewer --workers."
                    ) from error
                except InputError as error:
                    if not self.allowance.bad_files:
                        remedy = "To leave such files out, and list them: skip_damaged=True, or no --strict."
                        raise InputError(f"{error} {remedy}") from error
                    done[task.number] = {"damaged": str(error)}
                n_bytes += task.source.bytes
                seconds = max(1e-9, time.monotonic() - started)
                bar.update(len(done), f"files, {n_bytes / 1e6 / seconds:.0f} MB/s")
        return {task.number: done[task.number] for task in tasks}, continued


def _build(tasks: Sequence[FileTask], work: UnfinishedStore, stages: Stages) -> int:
    """Look at all files, cut them, and write the manifest; return how many an earlier run had cut."""
    reading = tasks[0].reading
    looked, _ = stages.carry_out("look", tasks)
    if stages.allowance.bad_files:
        looked = _without_odd_files(looked, tasks)
    cut = _settled(looked, tasks)
    sound = [replace(task, cut=cut) for task in tasks if not looked[task.number].get("damaged")]
    done, continued = stages.carry_out("cut", sound)

    longest = {}  # time steps without a gap, by recording
    for note in looked.values():
        for outline in note.get("recordings", ()):
            longest[outline["name"]] = outline["longest"]
    if not any(note.get("shards") for note in done.values()):
        raise no_window(cut.length, max(longest.values()))
    coverage = Coverage.of_all(Coverage(**note.get("coverage", {})) for note in done.values())
    refuse_partial(coverage, cut, stages.allowance)
    _warn([*looked.values(), *done.values()], longest, cut)

    sources = [_result_of(task.source, done.get(task.number, looked[task.number])) for task in tasks]
    about = {
        "channels": cut.channels,
        "rate": cut.rate,
        "stride": cut.stride,
        "reading": reading.to_dict(),
        "sources": [asdict(source) for source in sources],
    }
    work.finish(WINDOWS, [len(cut.channels), cut.length], done.values(), about)
    return continued


def work_on(task: FileTask) -> Note:
    """Look at a file or cut it; return a note of what came of it. What is warned of is shown by another process."""
    path = Path(task.source.file)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DicotWarning)
        warnings.simplefilter("ignore", ShortRecordingWarning)  # they are named together later
        with naming(path):
            state = path.stat()
        if (state.st_size, str(state.st_mtime_ns)) != (task.source.bytes, task.source.changed):
            raise InputError(f"{path} was changed while the corpus was built. Run the same command again.")
        recordings = read_named(path, task.source.name, task.reading, task.tag)
        with naming(path):
            if task.cut is None:
                note = _look(task.reading, recordings)
                shards: list[Shard] = []
            else:
                note, shards = _cut(task, task.cut, recordings)
    note["warnings"] = list(dict.fromkeys(str(warning.message) for warning in caught))
    return finish_unit(task.folder, task.unit, shards, note)


def _look(reading: Reading, recordings: Sequence[Recording]) -> Note:
    """Tell what all recordings of a corpus must have in common."""
    outlines = [outline_of(recording, reading)._asdict() for recording in recordings]
    for recording in recordings:
        _check_held(recording)
    return {"recordings": outlines}


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


def _cut(task: FileTask, cut: Cut, recordings: Sequence[Recording]) -> tuple[Note, list[Shard]]:
    """Cut the windows of a file and write them in shards of bounded size."""
    plan = cut.plan(recordings)
    if len(plan):
        warn_of_uneven(plan.about, cut)
    shards = []
    at_once = max(1, task.shard_bytes // (4 * len(cut.channels) * cut.length))
    for part, start in enumerate(range(0, len(plan), at_once)):
        windows = Windows(**plan.fields(slice(start, start + at_once)))
        name = f"{task.number:06d}-{part:03d}"
        shards.append(write_shard(task.folder, name, windows.x, known_of(windows)))
    note = {
        "recordings": len(np.unique(plan.about["recording"])),
        "left": list(plan.left),
        "coverage": asdict(Coverage.of(plan)),
    }
    return note, shards


def _without_odd_files(looked: Mapping[int, Note], tasks: Sequence[FileTask]) -> dict[int, Note]:
    """Mark files as damaged that have other channels, or another rate, than most."""
    by_file = {task.source.name: task for task in tasks}
    outlines = {name: _outlines(looked[task.number]) for name, task in by_file.items()}
    notes = dict(looked)
    for name, error in unlike_most(outlines, tasks[0].reading, None).items():
        task = by_file[name]
        notes[task.number] = {"damaged": f"{task.source.file}: {error}"}
    return notes


def _outlines(note: Note) -> list[Outline]:
    """Return the outlines that a note of a file keeps in plain values."""
    outlines = []
    for entry in note.get("recordings", ()):
        lists = {key: tuple(entry[key]) for key in ("channels", "units")}
        lists["misplaced"] = tuple(Misplaced(*place) for place in entry.get("misplaced", ()))
        outlines.append(Outline(**{**entry, **lists}))
    return outlines


def _settled(looked: Mapping[int, Note], tasks: Sequence[FileTask]) -> Cut:
    """Find what holds for all files that are sound; refuse what does not agree."""
    outlines: list[Outline] = []
    files = {task.source.name: task.source.file for task in tasks}
    for task in tasks:
        of_file = _outlines(looked[task.number])
        refuse_mistaken([outline.name for outline in of_file], task.source.name, files)
        outlines += of_file
    if not outlines:
        raise InputError(f"None of the {len(tasks)} files can be used; the first: {looked[0]['damaged']}")
    return settle(outlines, tasks[0].reading)


def _result_of(source: Source, note: Note) -> Source:
    """Return a source with what became of it."""
    windows = sum(shard["rows"] for shard in note.get("shards", ()))
    recordings = note["recordings"] if windows else 0
    return replace(source, windows=windows, recordings=recordings, damaged=note.get("damaged", ""))


def _warn(notes: Sequence[Note], longest: Mapping[str, int], cut: Cut) -> None:
    """Say what the processes were warned of, once each, and which recordings gave no window."""
    messages: Iterable[str] = [text for note in notes for text in note.get("warnings", ())]
    for message in dict.fromkeys(messages):
        warnings.warn(message, DicotWarning, stacklevel=4)
    left = LeftOut()
    for note in notes:
        left = left.plus(note.get("left", LeftOut()))  # damaged files have none
    left.warn(cut.rate)
    short = {name: n for name, n in longest.items() if n < cut.length and not cut.reading.even}
    warn_of_short(short, cut.length)


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    """Start processes, or a thread of this one where one is enough."""
    pool: Executor
    if workers == 1:
        pool = ThreadPoolExecutor(1)
    else:
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_begin_process)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that tells this one what to do
    end_with_parent()
