"""What is done to one source file of a corpus, by itself: looked at, and cut into shards. Any process may do it."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import DicotWarning, InputError, NoWindowError, ShortRecordingWarning
from dicot.core.processes.budget import refuse_beyond, said_bytes
from dicot.data.cutting import Cut, Outline, outline_of, warn_of_uneven
from dicot.data.folders import read_named
from dicot.data.naming import naming
from dicot.data.reading import Reading
from dicot.data.recordingfile import Recording
from dicot.store.corpus.manifest import SHARDS
from dicot.store.corpus.needs import need_of
from dicot.store.corpus.shards import write_shard
from dicot.store.corpus.sources import Origin, at_hand

Note = dict[str, Any]  # what became of a file, in plain values


@dataclass(frozen=True)
class Task:
    """What a process is told about one file."""

    origin: Origin
    number: int
    folder: Path  # of the corpus
    reading: Reading
    dtype: str
    shard_bytes: int
    memory: int  # bytes that this file may take
    settled: Cut | None = None  # for all files, before they are cut

    def read(self, path: Path) -> list[Recording]:
        """Read the recordings of the file, under their names in the corpus."""
        return read_named(path, self.origin.name, self.reading)


def fetched_folder(corpus: Path) -> Path:
    """Return where files behind URLs lie while they are read."""
    return corpus / ".fetched"


def look_at(task: Task) -> Note:
    """Read a file for what all recordings of a corpus must have in common."""
    with _opened(task) as path, _gathered() as said:
        check_need(path, task.memory, task.shard_bytes, task.origin.file)
        recordings = task.read(path)
        with naming(path):
            entries = [outline_of(one, task.reading)._asdict() for one in recordings]
            _refuse_fine(recordings)
    return {"recordings": entries, "warnings": said}


def recalled(entry: Note) -> Outline:
    """Make of a note in JSON the outline of a recording."""
    return Outline(**{**entry, "channels": tuple(entry["channels"]), "units": tuple(entry["units"])})


def _refuse_fine(recordings: Sequence[Recording]) -> None:
    """Refuse values that were kept in float64 because float32 would swallow what tells them apart."""
    for one in recordings:
        if one.values.dtype != np.float32:
            raise InputError(
                f"The values of recording {one.name!r} differ by less than float32 can tell apart at their size, and a "
                "corpus keeps no more. Subtract what they have in common, or leave the channel out by channels= "
                "(--channels)."
            )


def cut(task: Task) -> Note:
    """Cut the windows of a file and write them in shards of bounded size; those of a killed build are replaced."""
    assert task.settled is not None
    entries: list[Note] = []
    with _opened(task) as path, _gathered() as said:
        try:
            plan = task.settled.plan(task.read(path))
        except NoWindowError as error:
            return {"shards": [], "recordings": 0, "left": list(error.left), "warnings": said}
        about = plan.about
        assert about.recording is not None and about.start is not None and about.end is not None
        recordings = len(np.unique(about.recording))
        warn_of_uneven(about.recording, about.end - about.start, task.settled.length, task.settled.rate)
        width = about.n_channels * plan.length * np.dtype(task.dtype).itemsize
        at_once = max(1, task.shard_bytes // width)
        with naming(path):
            for part, start in enumerate(range(0, len(plan), at_once)):
                windows = plan.windows(slice(start, start + at_once))
                name = f"{task.number:06d}-{part:03d}"
                entries.append(vars(write_shard(task.folder / SHARDS, name, windows, task.dtype)))
    return {"shards": entries, "recordings": recordings, "left": list(plan.left), "warnings": said}


@contextmanager
def _opened(task: Task) -> Iterator[Path]:
    """Give the file, and make sure that it is still the one that was found at first."""
    with at_hand(task.origin, fetched_folder(task.folder)) as path:
        if not task.origin.is_url:
            try:
                now = path.stat()
            except OSError as error:
                raise InputError(f"{path} is gone ({error.strerror}). Put it back, or leave it out.") from error
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


def check_need(path: Path, memory: int, shard_bytes: int, name: str) -> int:
    """Return the memory that a file takes; refuse one that would take more than it may."""
    need = need_of(path, shard_bytes)
    refuse_beyond(
        memory,
        need,
        f"{name} ({said_bytes(path.stat().st_size)}), read as a whole,",
        "Divide the file into shorter recordings, or allow more.",
    )
    return need


Work = Callable[[Task], Note]
