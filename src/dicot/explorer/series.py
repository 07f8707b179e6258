"""The values behind a window: read from its recording, or the case itself, when somebody looks at it."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from dicot.data.folders import find_recordings, recording_names
from dicot.data.naming import listed
from dicot.data.policies import Array
from dicot.data.recordingfile import Choice, Recording, read_file
from dicot.errors import InputError
from dicot.vectors import Vectors

MEMORY = 2**28  # bytes of recordings that are kept for the next look
WIDTHS = 10  # of a window, that its surroundings show
WITHIN = 1e-3  # of a time step: times that differ by less are the same


class Surroundings(NamedTuple):
    """A stretch of a recording with a window in it."""

    time: Array  # (T,)
    first: int  # the window's time steps, both included
    last: int
    values: Array  # (C, T)


class Series(ABC):
    """Where the values of windows come from."""

    channels: tuple[str, ...]
    rate: float | None  # time steps per second

    @abstractmethod
    def window(self, row: int) -> Array | None:
        """Return the values (C, T) of a window; None where they are not at hand."""

    @abstractmethod
    def surroundings(self, row: int) -> Surroundings | None:
        """Return what lies around a window; None where it is not at hand."""


def decimate(values: Array, most: int) -> Array:
    """Return (C, at most `most`) values that look the same: the least and the greatest of each stretch, in order."""
    return values if values.shape[1] <= most else stretched(values, most)


def stretched(values: Array, n: int) -> Array:
    """Return exactly n values per channel, n even: of more, the least and the greatest of n / 2 stretches."""
    n_times = values.shape[1]
    if n_times <= n:
        return values[:, np.arange(n) * n_times // n]
    size = -(-n_times // (n // 2))
    # Every time step is in some stretch, and all stretches have one size: a few time steps are in two of them.
    index = (np.arange(n // 2 * size) * n_times // (n // 2 * size)).reshape(n // 2, size)
    parts = values[:, index]  # (C, n / 2, size)
    lost = np.isnan(parts)
    low, high = np.where(lost, np.inf, parts).argmin(axis=2), np.where(lost, -np.inf, parts).argmax(axis=2)
    ends = np.sort(np.stack([low, high], axis=2), axis=2)
    return np.take_along_axis(parts, ends, axis=2).reshape(len(values), -1)


class _Clocked(NamedTuple):
    recording: Recording
    times: NDArray[np.float64]
    step: float  # seconds between two time steps, gaps left out

    def between(self, start: float, end: float) -> slice:
        """Return the time steps from start on and before end."""
        edges = np.array([start, end]) - WITHIN * self.step
        first, stop = np.searchsorted(self.times, edges)
        return slice(int(first), int(stop))


@final
class RecordedSeries(Series):
    """Windows of recordings: a file is read when one of its windows is looked at, and kept while there is room.

    Parameters
    ----------
    known : the vectors, which say where their windows lie
    files : name of a recording, or what stands before ":" and its group -> its file
    choice : what the user said of the files
    rate : of recordings without time stamps
    channels : their order; None: that of the first window's recording
    """

    def __init__(
        self,
        known: Vectors,
        files: Mapping[str, Path],
        choice: Choice,
        rate: float | None = None,
        channels: Sequence[str] | None = None,
    ) -> None:
        self._recording, self._start, self._end = known.places()
        self._files, self._choice, self._usual = files, choice, rate
        self._held: OrderedDict[Path, dict[str, _Clocked]] = OrderedDict()
        self._lock = Lock()
        names = list(dict.fromkeys(self._recording.tolist()))
        self.lost = [name for name in names if self._file_of(name) is None]  # recordings whose file is not there
        if len(self.lost) == len(names):
            raise InputError(
                f"None of the recordings that the vectors name is among the data: they name {listed(names)}, the data "
                f"have {listed(list(files))}. Name what was embedded."
            )
        first = int(np.flatnonzero(~np.isin(self._recording, self.lost))[0])
        one = self._read(self._recording[first])
        self.rate = rate or one.recording.rate
        self.channels = one.recording.channels if channels is None else tuple(channels)
        values = self.window(first)
        if values is None or not values.shape[1]:
            raise InputError(
                f"Recording {str(self._recording[first])!r} has no values from {self._start[first]:g} to "
                f"{self._end[first]:g} s, where the vectors have a window. Name the recordings that were embedded, and "
                "their rate= (--rate) where they have no time stamps."
            )

    def window(self, row: int) -> Array | None:
        if self._file_of(self._recording[row]) is None:
            return None
        one = self._read(self._recording[row])
        return self._values(one, one.between(self._start[row], self._end[row]))

    def surroundings(self, row: int) -> Surroundings | None:
        if self._file_of(self._recording[row]) is None:
            return None
        one, start, end = self._read(self._recording[row]), self._start[row], self._end[row]
        margin = (WIDTHS - 1) / 2 * (end - start)
        around, own = one.between(start - margin, end + margin), one.between(start, end)
        last = max(own.start, own.stop - 1)
        return Surroundings(one.times[around], own.start - around.start, last - around.start, self._values(one, around))

    def _values(self, one: _Clocked, steps: slice) -> Array:
        there = one.recording.channels
        if missing := [channel for channel in self.channels if channel not in there]:
            raise InputError(
                f"Recording {one.recording.name!r} has no channel {missing[0]!r}; it has {', '.join(there)}. Choose "
                "channels that all recordings have: channels= (--channels)."
            )
        return one.recording.values[[there.index(channel) for channel in self.channels], steps]

    def _file_of(self, recording: str) -> Path | None:
        """Find the file of a recording; of a file with several groups, the name goes on with ":" and the group."""
        name = str(recording)
        while name not in self._files and ":" in name:
            name = name.rpartition(":")[0]
        return self._files.get(name)

    def _read(self, recording: str) -> _Clocked:
        file = self._file_of(recording)
        assert file is not None
        with self._lock:
            if file not in self._held:
                self._held[file] = self._of_file(file)
                while len(self._held) > 1 and sum(map(_size, self._held.values())) > MEMORY:
                    self._held.popitem(last=False)
            self._held.move_to_end(file)
            there = self._held[file]
        if recording not in there:
            raise InputError(
                f"{file} has no recording {str(recording)!r}; it has {listed(list(there))}. Name the column that tells "
                "its recordings apart: group= (--group)."
            )
        return there[recording]

    def _of_file(self, file: Path) -> dict[str, _Clocked]:
        name = next(name for name, path in self._files.items() if path == file)
        read = read_file(file, self._choice)
        return {name + one.name.removeprefix(file.stem): self._clocked(one) for one in read}

    def _clocked(self, one: Recording) -> _Clocked:
        if one.times is not None:
            times = one.times
        else:
            rate = one.rate or self._usual
            if rate is None and (self._start % 1).any():
                raise InputError(
                    f"Recording {one.name!r} has no time stamps, and the vectors' windows start at times such as "
                    f"{self._start[self._start % 1 > 0][0]:g} s. Say its rate= (--rate)."
                )
            times = np.arange(one.n_times) / (rate or 1.0)
        return _Clocked(one, times, float(np.median(np.diff(times))) if len(times) > 1 else 1.0)


def _size(recordings: Mapping[str, _Clocked]) -> int:
    return sum(one.recording.values.nbytes + one.times.nbytes for one in recordings.values())


@final
class CaseSeries(Series):
    """Cases as a data set has them: row by row the ones that the vectors were made of."""

    def __init__(self, cases: Sequence[Array]) -> None:
        self._cases = cases  # (C, T) each
        self.channels = tuple(f"channel {number}" for number in range(len(cases[0])))
        self.rate = None

    def window(self, row: int) -> Array | None:
        return self._cases[row]

    def surroundings(self, row: int) -> Surroundings | None:
        values = self._cases[row]
        return Surroundings(np.arange(values.shape[1]), 0, values.shape[1] - 1, values)


def series_of(known: Vectors, data: str | None, options: Mapping[str, Any], rate: float | None = None) -> Series | None:
    """Find the values of the windows: in `data`, or in the recordings that the vectors say they were made of.

    Parameters
    ----------
    known : the vectors
    data : recordings where the vectors know theirs (a folder, a pattern or a file), otherwise a data set or a file of
        cases; None: what the vectors name, if they do
    options : how the files of `data` are read, where the user said anything: time, channels, label, group and so on
    rate : of recordings without time stamps
    """
    source = _recorded(getattr(known, "source", None))
    placed = known.recording is not None and known.start is not None and known.end is not None
    if data is not None and not placed:
        return CaseSeries(_cases(known, data, options))
    if refused := sorted(options.keys() - set(Choice._fields)):
        raise InputError(f"--{refused[0]} is for tables of cases, and these are windows of recordings. Leave it out.")
    choice = Choice(**{**source.options, **options})
    if data is not None:
        found = find_recordings(data)
        files = dict(zip(recording_names(found), found, strict=True))
    else:
        files = {name: file for name, file in source.files.items() if placed and file.is_file()}
    return RecordedSeries(known, files, choice, rate or source.rate, source.channels) if files else None


class _Source(NamedTuple):
    """What a file of vectors says of the recordings that it was made of."""

    files: dict[str, Path]
    options: dict[str, Any]  # those of Choice
    rate: float | None = None
    channels: list[str] | None = None


def _recorded(source: Any) -> _Source:
    """Take from the entry "dicot.source" what is needed here; it may be missing, and anybody may have written it."""
    if not isinstance(source, dict) or source.get("kind") != "recordings":
        return _Source({}, {})
    options, files = source.get("options"), source.get("recordings")
    try:
        paths = {str(name): Path(entry["file"]) for name, entry in files.items()}  # type: ignore[union-attr]
        chosen = {name: options[name] for name in Choice._fields if options.get(name) is not None}  # type: ignore[index, union-attr]
        rate = None if source.get("rate") is None else float(source["rate"])
        channels = None if source.get("channels") is None else [str(name) for name in source["channels"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"What the vectors say of their recordings cannot be used ({error!r}). Write them again by `dicot embed`."
        ) from error
    return _Source(paths, chosen, rate, channels)


def _cases(known: Vectors, data: str, columns: Mapping[str, Any]) -> Sequence[Array]:
    """Return the case of each vector."""
    from dicot.datasets import load_parts

    parts = load_parts(data, **columns)
    if known.part is not None:
        names = list(dict.fromkeys(known.part.tolist()))
        parts = {name: parts[name] for name in names if name in parts}
    counts = {name: len(part.X) for name, part in parts.items()}
    if sum(counts.values()) != len(known):
        fitting = [name for name, count in counts.items() if count == len(known)]
        if len(fitting) != 1:
            held = " and ".join(f"{count} {name} cases".replace("  ", " ") for name, count in counts.items())
            raise InputError(
                f"{data} holds {held or 'none of the parts'}, and there are {len(known)} vectors. Name the data that "
                "were embedded."
            )
        parts = {fitting[0]: parts[fitting[0]]}
    return [case for part in parts.values() for case in part.X]
