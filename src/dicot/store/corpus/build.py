"""Build a corpus: look at every file, settle what all have in common, cut, and write the manifest last.

Each file is read twice, as `dicot embed` reads recordings: an error of the last one is told before anything is cut. The
bytes of a corpus depend on sources and options alone, not on how many processes build it or how often they are killed.
"""

import hashlib
import json
import multiprocessing
import shutil
import signal
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from dicot.core.errors import DicotWarning, InputError, LostWorkerError, NoWindowError, lookup
from dicot.core.processes.budget import memory_of
from dicot.core.processes.launcher import end_with_parent
from dicot.core.progress import Bar
from dicot.core.storage import check_writable, remove_leftovers, writing
from dicot.core.storage.locks import only_writer
from dicot.data.cutting import Cut, LeftOut, settle, warn_of_short
from dicot.data.folders import refuse_mistaken
from dicot.data.naming import listed
from dicot.data.reading import Reading
from dicot.data.timestamps import GAP
from dicot.store.corpus.files import Note, Task, Work, check_need, cut, fetched_folder, look_at, recalled
from dicot.store.corpus.manifest import DTYPES, MANIFEST, SHARDS, Manifest, Shard, Source, read_manifest, write_manifest
from dicot.store.corpus.needs import PROGRAM
from dicot.store.corpus.notes import FOLDER, Notes
from dicot.store.corpus.sources import Origin, find_origins

SHARD_BYTES = 64 * 2**20


class Build(NamedTuple):
    """What a build did."""

    manifest: Manifest
    continued: int  # files that an earlier run had cut
    was_there: bool  # the corpus had been built before, from the same sources
    workers: int


def build_corpus(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    window: str | int,
    stride: str | int = "50%",
    *,
    time: str | None = None,
    unit: str | None = None,
    channels: Sequence[str] | None = None,
    rate: float | None = None,
    label: str | None = None,
    group: str | None = None,
    resample: bool = False,
    missing: str = "error",
    gap: float = GAP,
    dtype: str = "float32",
    shard_bytes: int = SHARD_BYTES,
    workers: int = 1,
    memory: str | None = None,
    skip_damaged: bool = False,
    overwrite: bool = False,
) -> Build:
    """Cut recordings into windows and keep these in a folder, a corpus; killed, the same call continues.

    Parameters
    ----------
    sources : folders, patterns, files, or URLs of such by fsspec, as in "s3://bucket/ecg"
    out : the folder of the corpus
    window, stride, time, unit, channels, rate, label, group, resample, missing, gap : as for `Windows.from_folder`
    dtype : "float32", or "float16" for half the disk and three digits
    shard_bytes : the most that the windows of one shard take
    workers : processes that read and cut files, as far as `memory` allows
    memory : how much all of them may take, such as "4GB"; None means half of what is free
    skip_damaged : leave out files that cannot be used, and list them in the manifest; otherwise the first is an error
    overwrite : replace another corpus, or another unfinished one, that is in the folder
    """
    folder = Path(out)
    lookup(dict.fromkeys(DTYPES), dtype, "dtype")
    if shard_bytes < 1 or workers < 1:
        raise InputError(f"shard_bytes and workers must be at least 1; got {shard_bytes} and {workers}.")
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    reading = Reading(
        window, stride, time, unit, tuple(channels) if channels else None, rate, label, group, resample, missing, gap
    )
    options = {**reading.to_dict(), "dtype": dtype, "shard_bytes": shard_bytes}
    check_writable(folder, folder=True)
    origins = find_origins(given)
    budget = memory_of(memory)
    with only_writer(folder, folder=True):
        if overwrite:
            _clear(folder)
        with writing(folder):
            remove_leftovers(folder / MANIFEST)
        if (folder / MANIFEST).exists():
            there = _same_corpus(folder, origins, options)
            _forget(folder)  # of a build that was killed behind its manifest
            return Build(there, 0, True, 0)
        needs = [_need(origin, budget, shard_bytes) for origin in origins]
        workers = max(1, min(workers, len(origins), (budget - PROGRAM) // max(needs)))
        notes = Notes(folder, {"options": options, "files": {origin.file: origin.name for origin in origins}})
        notes.begin()
        _remove_fetched(folder)
        tasks = [
            Task(origin, number, folder, reading, dtype, shard_bytes, budget) for number, origin in enumerate(origins)
        ]
        with _Processes(workers) as processes:
            looked = _Stage("look", look_at, notes, skip_damaged).run(tasks, processes)
            settled = _settle(looked, origins, reading)
            ready = [
                replace(task, settled=settled)
                for task, note in zip(tasks, looked, strict=True)
                if not note.get("damaged")
            ]
            stage = _Stage("cut", cut, notes, skip_damaged, hashlib.sha256(repr(settled).encode()).hexdigest())
            done = dict(zip([task.number for task in ready], stage.run(ready, processes), strict=True))
        manifest = _manifest(origins, looked, done, settled, options)
        _warn(looked, done, settled)
        _remove_strays(folder, manifest)
        write_manifest(folder, manifest)
        _forget(folder)
    return Build(manifest, stage.continued, False, workers)


def _settle(looked: Sequence[Note], origins: Sequence[Origin], reading: Reading) -> Cut:
    """Find channels, rate, window and kinds of labels of all files that are sound; refuse what does not agree."""
    found = [
        (recalled(entry), origin)
        for note, origin in zip(looked, origins, strict=True)
        for entry in note.get("recordings", ())
    ]
    if not found:
        raise InputError(f"None of the {len(origins)} files can be used; the first: {looked[0]['damaged']}")
    files = {origin.name: origin.file for origin in origins}
    for one, origin in found:
        refuse_mistaken([one.name], origin.name, files)
    return settle([one for one, _ in found], reading)


class _Stage:
    """One thing that is done to every file, by some processes, and noted so that no run does it again."""

    def __init__(self, kind: str, work: Work, notes: Notes, skip_damaged: bool, settled: str = "") -> None:
        self.kind, self.work, self.notes, self.settled = kind, work, notes, settled
        self.skip_damaged, self.continued = skip_damaged, 0

    def run(self, tasks: Sequence[Task], processes: "_Processes") -> list[Note]:
        """Return a note for each task, in their order."""
        found = {task.number: self.notes.read(self.kind, task.number, task.origin, self.settled) for task in tasks}
        done = {number: note for number, note in found.items() if note is not None and self._is_whole(note, tasks[0])}
        self.continued = len(done)
        left = [task for task in tasks if task.number not in done]
        started, n_bytes = time.monotonic(), 0
        with Bar(self.kind, len(tasks)) as bar:
            for task, result in processes.over(self.work, left):
                note = self._noted(task, result)
                self.notes.write(self.kind, task.number, task.origin, note, self.settled)
                done[task.number] = note
                n_bytes += task.origin.bytes
                bar.update(len(done), f"files, {n_bytes / 1e6 / max(1e-9, time.monotonic() - started):.0f} MB/s")
        return [done[task.number] for task in tasks]

    def _noted(self, task: Task, result: Note | Exception) -> Note:
        if not isinstance(result, Exception):
            return result
        if isinstance(result, InputError) and self.skip_damaged:
            return {"damaged": str(result)}
        if isinstance(result, InputError):
            raise InputError(f"{result} To leave such files out, and list them: skip_damaged=True (--skip-damaged).")
        raise result

    def _is_whole(self, note: Note, like: Task) -> bool:
        """Tell whether the shards that a note names are there; damage that was noted is looked at again."""
        if note.get("damaged"):
            return False
        files = [(entry, like.folder / SHARDS / entry["name"]) for entry in note.get("shards", ())]
        try:
            return all(
                path.with_suffix(".npy").stat().st_size == entry["bytes"]
                and path.with_suffix(".npz").stat().st_size == entry["about_bytes"]
                for entry, path in files
            )
        except OSError:
            return False


class _Processes:
    """Carries out work on files in this process, or in several others."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "_Processes":
        if self.count > 1:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, spawn, initializer=_begin)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def over(self, work: Work, tasks: Sequence[Task]) -> Iterator[tuple[Task, Note | Exception]]:
        """Yield each task and what came of it, in the order in which they end."""
        if self._pool is None:
            for task in tasks:
                yield task, _outcome(work, task)
            return
        waiting = iter(tasks)
        under_way: dict[Future[Note | Exception], Task] = {}
        try:
            while True:
                # Not all at once: what is not begun when one fails need not be done.
                for task in islice(waiting, 2 * self.count - len(under_way)):
                    under_way[self._pool.submit(_outcome, work, task)] = task
                if not under_way:
                    return
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    yield under_way.pop(future), future.result()
        except BrokenProcessPool as error:
            raise LostWorkerError(
                "A process that built the corpus has ended in the middle of its work; it may have run out of memory. "
                "Run the same command again, with fewer --workers; it goes on from here."
            ) from error


def _begin() -> None:
    """Prepare a process for work on files."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one that tells this one what to do
    end_with_parent()


def _outcome(work: Work, task: Task) -> Note | Exception:
    try:
        return work(task)
    except Exception as error:
        return error


def _need(origin: Origin, budget: int, shard_bytes: int) -> int:
    """Return what a file takes; one behind a URL is looked at again once it is here."""
    if origin.is_url:
        return PROGRAM + 2 * shard_bytes
    return check_need(Path(origin.file), budget, shard_bytes, origin.file)


def _manifest(
    origins: Sequence[Origin],
    looked: Sequence[Note],
    done: Mapping[int, Note],
    settled: Cut,
    options: Mapping[str, Any],
) -> Manifest:
    shards: list[Shard] = []
    sources: list[Source] = []
    for number, origin in enumerate(origins):
        note = done.get(number, looked[number])
        own = [Shard(**entry) for entry in note.get("shards", ())]
        shards += own
        sources.append(
            Source(
                origin.file,
                origin.name,
                origin.bytes,
                origin.changed,
                sum(shard.windows for shard in own),
                note["recordings"] if number in done and "recordings" in note else 0,
                note.get("damaged", ""),
            )
        )
    if not shards:
        longest = max((entry["longest"] for note in looked for entry in note.get("recordings", ())), default=0)
        raise NoWindowError(
            f"No recording is as long as a window of {settled.length} time steps; the longest stretch without a gap "
            f"has {longest}. Use a smaller window= (--window)."
        )
    return Manifest(
        (len(settled.channels), settled.length),
        options["dtype"],
        settled.channels,
        settled.rate,
        settled.stride,
        dict(options),
        tuple(shards),
        tuple(sources),
    )


def _warn(looked: Sequence[Note], done: Mapping[int, Note], settled: Cut) -> None:
    """Say what the processes were warned of, once each, and which recordings gave no window."""
    for message in dict.fromkeys(text for note in (*looked, *done.values()) for text in note.get("warnings", ())):
        warnings.warn(message, DicotWarning, stacklevel=3)
    left = LeftOut()
    for note in done.values():
        left = left.plus(note.get("left", LeftOut()))  # damaged files have none
    left.warn(settled.rate)
    short = {
        entry["name"]: entry["longest"]
        for number, note in enumerate(looked)
        for entry in note.get("recordings", ())
        if number in done and entry["longest"] < settled.length and not settled.reading.even
    }
    warn_of_short(short, settled.length)


def _same_corpus(folder: Path, origins: Sequence[Origin], options: Mapping[str, Any]) -> Manifest:
    """Return the manifest of a corpus that is what would be built; refuse another one."""
    manifest = read_manifest(folder)
    there = [(source.file, source.name, source.bytes, source.changed) for source in manifest.sources]
    other = "Choose another folder, or replace it (--overwrite)."
    if manifest.options != json.loads(json.dumps(options)):
        differing = [key for key in options if manifest.options.get(key) != options[key]]
        raise InputError(f"{folder} is a corpus that was built with another {listed(differing)}. {other}")
    wanted = [(origin.file, origin.name, origin.bytes, origin.changed) for origin in origins]
    if there != wanted:
        changed = sorted({file for file, *_ in set(there) ^ set(wanted)})
        raise InputError(
            f"{folder} is a corpus of other files, of files under other names, or of files that have changed: "
            f"{listed(changed)}. {other}"
        )
    return manifest


def _clear(folder: Path) -> None:
    """Remove a corpus, its manifest first: what is left is no corpus."""
    with writing(folder):
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in (SHARDS, FOLDER):
            if (folder / name).exists():
                shutil.rmtree(folder / name)


def _remove_strays(folder: Path, manifest: Manifest) -> None:
    """Remove what killed processes left among the shards."""
    named = {f"{shard.name}{suffix}" for shard in manifest.shards for suffix in (".npy", ".npz")}
    with writing(folder):
        for path in (folder / SHARDS).iterdir():
            if path.name not in named:
                path.unlink(missing_ok=True)


def _forget(folder: Path) -> None:
    """Remove what only an unfinished build needs."""
    with writing(folder):
        if (folder / FOLDER).exists():
            shutil.rmtree(folder / FOLDER)
    _remove_fetched(folder)


def _remove_fetched(folder: Path) -> None:
    shutil.rmtree(fetched_folder(folder), ignore_errors=True)
