"""The series behind vectors: read when somebody looks, where their file says that they are or where a user does."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, is_whole, quoted
from dicot.data.collection import check_rate
from dicot.data.contents import are_facts, is_as_before, seems_as_before
from dicot.data.cutting import resampled
from dicot.data.datasets import is_here, is_path, load, load_parts
from dicot.data.folders import file_name_of, named_recordings, read_named
from dicot.data.naming import listed
from dicot.data.policies import MISSING, Array
from dicot.data.reading import Reading, read_toml, toml_of
from dicot.data.recordingfile import Recording
from dicot.data.timestamps import nearest, stretches
from dicot.store.vectors.reading import Vectors

MEMORY = 2**28  # bytes of recordings that are kept for the next look
WIDTHS = 10  # of a window, that its surroundings show
WITHIN = 1e-3  # of a time step: times that differ by less are the same
COLUMNS = ("time", "unit", "channels", "label", "group")  # options that name the columns of recordings
CUTTING = ("resample", "gap", "missing")  # options that say how recordings were cut, beside those of their columns
NEAR = 0.5  # of a time step: the time steps of a window lie no farther from where its vector says


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
    lost: dict[str, str]  # recordings that cannot be shown, and why: a sentence

    @abstractmethod
    def window(self, row: int) -> Array | None:
        """Return the values (C, T) of a window; None where its recording is lost, which may show only now."""

    @abstractmethod
    def surroundings(self, row: int) -> Surroundings | None:
        """Return what lies around a window; None where its recording is lost."""


def series_of(
    known: Vectors,
    data: str | Path | None,
    options: Mapping[str, Any],
    rate: float | None = None,
    path: Path | None = None,
) -> Series | None:
    """Find the values that were embedded: in `data`, or where the vectors say; None where they are not at hand.

    Parameters
    ----------
    known : the vectors
    data : what was embedded, where the vectors do not say it or it was moved: recordings (a folder, a pattern or a
        file), or a data set or a file of cases
    options : how the files are read, where the user says anything: time, unit, channels, label, group, and of
        recordings resample, gap and missing. They win
        over what the vectors say, or where these say nothing, over the dicot.toml beside `data`
    rate : time steps per second, as windows_from takes it; wins likewise
    path : of the vectors' file, for errors
    """
    what = "the file of vectors" if path is None else str(path)
    source = _source_of(known, what)
    placed = known.recording is not None and known.start is not None and known.end is not None
    if not placed if source is None else source.kind != "recordings":
        if refused := sorted(options.keys() & {"unit", *CUTTING}):
            raise InputError(f"--{refused[0]} is for recordings, and {what} was made of cases. Leave it out.")
        return _case_series(known, source, data, options, what)
    if refused := sorted(options.keys() - {*COLUMNS, *CUTTING}):
        raise InputError(f"--{refused[0]} is for tables of cases, and these are windows of recordings. Leave it out.")
    if data is not None:
        source = _source_beside(data) if source is None else source
        files = named_recordings(data)
    elif source is not None:
        files = source.files
    if source is None:
        return None
    try:
        return RecordedSeries(known, files, source.facts, _reading(source, options, rate, what), what)
    except _AllLostError:
        if data is None:
            return None
        raise


def why_absent(known: Vectors, path: Path) -> str:
    """Say why `series_of` finds nothing without data, and what to do."""
    source = _source_of(known, str(path))
    if source is None:
        return f"{path} does not say what it was made of. Name what was embedded (--data)."
    if source.kind == "name":
        return f"The data set {source.place!r} of {path} is not on this machine. Name what was embedded (--data)."
    if changed := [str(file) for file in source.files.values() if file.is_file()]:
        return f"The recordings of {path} have changed since they were embedded: {listed(changed)}. Embed them again."
    gone, what = next(iter(source.files.values()), source.place), "recordings" if source.files else "cases"
    return f"The {what} of {path} are gone: there is no {gone}. Say where they are (--data)."


class _AllLostError(InputError):
    """None of the recordings can be shown."""


class _Source(NamedTuple):
    """What a file of vectors says of what it was made of."""

    kind: str  # "recordings", or for cases "file" or "name"
    options: dict[str, Any]
    place: str = ""  # of cases: their file, or the name of the data set
    facts: Mapping[str, dict[str, Any]] = {}  # of each file of recordings, as `data.contents` tells them
    channels: tuple[str, ...] | None = None
    rate: float | None = None
    n_times: int | None = None  # of a window

    @property
    def files(self) -> dict[str, Path]:
        """Return the file of each recording."""
        return {name: Path(entry["file"]) for name, entry in self.facts.items()}


def source_of_cases(
    data: str, options: Mapping[str, Any], channels: Sequence[str] | None, model: str
) -> dict[str, Any]:
    """Say of vectors that they were made of a file of cases or a data set by name, for `write_vectors`.

    `options` are those of read_parts for a file, and the policies of a data set by name.
    """
    by_path = is_path(data)
    return {
        "kind": "file" if by_path else "name",
        "data": [str(Path(data).expanduser().absolute())] if by_path else [data],
        "options": dict(options),
        "channels": None if channels is None else list(channels),
        "rate": None,
        "model": model,
    }


def _source_of(known: Vectors, what: str) -> _Source | None:
    """Take what is needed here from what the vectors say; anybody may have written it."""
    said = known.source
    if said is None:
        return None
    try:
        kind, options, channels = said["kind"], dict(said["options"]), said.get("channels")
        if kind not in ("recordings", "file", "name"):
            raise ValueError(f"its kind is {quoted(kind)}")
        named = isinstance(channels, list | tuple) and all(isinstance(name, str) for name in channels)
        if channels is not None and not named:
            raise ValueError(f"its channels are {quoted(channels)}")
        n_times = said.get("n_times")
        if n_times is not None and not is_whole(n_times, 1):
            raise ValueError(f"its windows have {quoted(n_times)} time steps")
        recorded = kind == "recordings"
        if recorded:
            Reading.from_dict(options)
        entries = dict(said["recordings"]) if recorded else {}
        if wrong := [name for name, entry in entries.items() if not are_facts(entry)]:
            raise ValueError(f"of {quoted(wrong[0])} it says {quoted(entries[wrong[0]])}")
        return _Source(
            kind,
            options,
            "" if recorded else str(said["data"][0]),
            entries,
            tuple(channels) if channels else None,
            None if said.get("rate") is None else check_rate(said["rate"]),
            n_times,
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{what} is damaged: what it says about its source cannot be used ({error!r}). Embed it again."
        ) from error


def _source_beside(data: str | Path) -> _Source:
    """Go by the dicot.toml beside recordings, where the vectors do not tell how they were read."""
    kept = read_toml(toml_of(data))
    return _Source("recordings", kept, rate=None if kept.get("rate") is None else check_rate(kept["rate"]))


class _Reading(NamedTuple):
    """How recordings are read, settled for all of them."""

    reading: Reading
    rate: float | None
    n_times: int | None  # of a window, where it is known


def _reading(source: _Source, options: Mapping[str, Any], rate: float | None, what: str) -> _Reading:
    said = {**source.options, **options}
    reading = Reading(**{key: said.get(key) for key in (*COLUMNS, *CUTTING, "rate")})
    if "channels" not in options and source.channels is not None:  # all of them by name, also where none were asked for
        reading = reading.replace(channels=source.channels)
    settled = source.rate if rate is None else check_rate(rate)
    reading = reading.replace(resample=reading.even or rate is not None)
    if reading.resample and settled is None:
        raise InputError(
            f"The recordings of {what} were resampled, and it does not say to which rate. Say it (--rate)."
        )
    n_times = source.n_times if rate is None else None
    return _Reading(reading, settled, n_times)


class _Track(NamedTuple):
    """A recording as it was cut, all its stretches one after the other."""

    times: NDArray[np.float64]  # (T,)
    values: Array  # (C, T)
    channels: tuple[str, ...]
    rate: float | None


@final
class RecordedSeries(Series):
    """Windows of recordings: a file is read when one of its windows is looked at, and kept while there is room.

    Several threads may ask at once.

    Parameters
    ----------
    known : the vectors, which say where their windows lie
    files : name of a recording, or what stands before ":" and its group -> its file
    facts : by the same names what the files held, where that is known; one that has changed since is not shown
    reading : how they are read
    what : the vectors' file in errors
    """

    def __init__(
        self,
        known: Vectors,
        files: Mapping[str, Path],
        facts: Mapping[str, dict[str, Any]],
        reading: _Reading,
        what: str,
    ) -> None:
        self._recording, self._start, self._end = known.places()
        self._files, self._facts, self._reading, self._what = files, facts, reading, what
        self._held: OrderedDict[str, dict[str, _Track]] = OrderedDict()
        self._lock = Lock()
        names = list(dict.fromkeys(self._recording.tolist()))
        own = {name: file_name_of(name, files) for name in names}
        if not any(own.values()):
            raise _AllLostError(
                f"None of the recordings that {what} names is among the data: they are {listed(names)}, the data have "
                f"{listed(list(files))}. Name what was embedded (--data)."
            )
        problems = {name: self._problem(name, seems_as_before) for name in own.values() if name is not None}
        absent = f"Its recording is not among the data, {listed(list(files))}. Name what was embedded (--data)."
        self.lost = {name: said for name, file in own.items() if (said := absent if file is None else problems[file])}
        for name in names:
            first = int(np.argmax(self._recording == name))
            if (track := self._track(first)) is not None:
                break
        else:
            raise _AllLostError(f"No recording of {what} can be shown. {next(iter(self.lost.values()))}")
        self.rate, self.channels = reading.rate or track.rate, track.channels
        # The other files must have the channels of the first.
        self._reading = reading._replace(reading=reading.reading.replace(channels=self.channels))
        self.window(first)  # other recordings than those embedded are refused at once

    def window(self, row: int) -> Array | None:
        track = self._track(row)
        return None if track is None else track.values[:, self._steps(track, row)]

    def surroundings(self, row: int) -> Surroundings | None:
        track = self._track(row)
        if track is None:
            return None
        own, start, end = self._steps(track, row), self._start[row], self._end[row]
        margin = (WIDTHS - 1) / 2 * (end - start)
        edges = np.array([start - margin, end + margin]) - WITHIN / self._rate_of(track)
        first, stop = (int(edge) for edge in np.searchsorted(track.times, edges))
        around = slice(min(first, own.start), max(stop, own.stop))
        return Surroundings(
            track.times[around], own.start - around.start, own.stop - 1 - around.start, track.values[:, around]
        )

    def _rate_of(self, track: _Track) -> float:
        return self._reading.rate or track.rate or 1.0

    def _steps(self, track: _Track, row: int) -> slice:
        """Return the time steps of a window: it begins at one, and ends a usual step after its last."""
        start, end, rate = float(self._start[row]), float(self._end[row]), self._rate_of(track)
        first, last = (int(place) for place in nearest(np.array([start, end - 1 / rate]), track.times))
        if self._reading.n_times is not None:
            last = first + self._reading.n_times - 1
        if first <= last < len(track.times):
            away = np.abs(track.times[[first, last]] - [start, end - 1 / rate])
            if (away * rate <= NEAR).all():
                return slice(first, last + 1)
        recording = str(self._recording[row])
        raise InputError(
            f"{self._files[str(file_name_of(recording, self._files))]} has no time steps of {recording!r} from "
            f"{start:g} to {end:g}, where row {row} of {self._what} lies. Was the file changed? Embed it again, or "
            "name the recordings that were embedded (--data), and their rate= (--rate) where they have no time stamps."
        )

    def _problem(self, name: str, is_same: Callable[[Path, dict[str, Any]], bool]) -> str:
        """Say why a file cannot be shown; nothing where it can."""
        file = self._files[name]
        if not file.is_file():
            return f"There is no {file}. Say where the recordings are (--data)."
        if name in self._facts and not is_same(file, self._facts[name]):
            return f"{file} has changed since {self._what} was made of it. Put the former file back, or embed it again."
        return ""

    def _track(self, row: int) -> _Track | None:
        recording = str(self._recording[row])
        name = file_name_of(recording, self._files)
        if name is None or recording in self.lost:
            return None
        with self._lock:
            if name not in self._held:
                if problem := self._problem(name, is_as_before):
                    self.lost[recording] = problem
                    return None
                self._held[name] = self._read(name)
                while len(self._held) > 1 and sum(map(_size, self._held.values())) > MEMORY:
                    self._held.popitem(last=False)
            self._held.move_to_end(name)
            there = self._held[name]
        if recording not in there:
            raise InputError(
                f"{self._files[name]} has no recording {recording!r}, where row {row} of {self._what} lies; it has "
                f"{listed(list(there))}. Name the column that tells its recordings apart: group= (--group)."
            )
        return there[recording]

    def _read(self, name: str) -> dict[str, _Track]:
        how, rate = self._reading.reading, self._reading.rate
        pieces: dict[str, list[Recording]] = {}
        for one in read_named(self._files[name], name, how):
            pieces[one.name] = resampled(one, rate, how.gap) if how.resample and rate is not None else [one]
        return {
            recording: _Track(
                np.concatenate([self._times(one) for one in parts]),
                np.concatenate([_filled(one, how.gap, how.missing) for one in parts], axis=1),
                parts[0].channels,
                parts[0].rate,
            )
            for recording, parts in pieces.items()
        }

    def _times(self, one: Recording) -> NDArray[np.float64]:
        if one.times is not None:
            return one.times
        rate = self._reading.rate or one.rate
        if rate is None and (self._start % 1).any():
            raise InputError(
                f"Recording {one.name!r} has no time stamps, and windows of {self._what} start at times such as "
                f"{self._start[self._start % 1 > 0][0]:g} s. Say its rate= (--rate)."
            )
        return np.arange(one.n_times) / (rate or 1.0)


def _filled(one: Recording, gap: float, missing: str) -> Array:
    """Return the values as they were cut: missing ones are filled in, but not across a gap."""
    if missing == "error" or not np.isnan(one.values).any():
        return one.values
    runs = [slice(None)] if one.times is None else [run for run, *_ in stretches(one.times, gap)]
    return np.concatenate([MISSING[missing](one.values[:, run]) for run in runs], axis=1)


def _size(tracks: Mapping[str, _Track]) -> int:
    return sum(track.values.nbytes + track.times.nbytes for track in tracks.values())


@final
class CaseSeries(Series):
    """Cases as a data set has them: row by row the ones that the vectors were made of."""

    def __init__(self, cases: Sequence[Array], channels: Sequence[str] | None = None) -> None:
        self._cases, self.lost = cases, {}  # (C, T) each
        self.channels = tuple(channels or (f"channel {number}" for number in range(len(cases[0]))))
        self.rate = None

    def window(self, row: int) -> Array | None:
        return self._cases[row]

    def surroundings(self, row: int) -> Surroundings | None:
        values = self._cases[row]
        return Surroundings(np.arange(values.shape[1]), 0, values.shape[1] - 1, values)


def _case_series(
    known: Vectors, source: _Source | None, data: str | Path | None, options: Mapping[str, Any], what: str
) -> CaseSeries | None:
    """Return the case of each vector; None where nobody says where they are, or they are gone."""
    if data is None:
        if source is None or not (Path(source.place).is_file() if source.kind == "file" else is_here(source.place)):
            return None
        data = source.place
    own = source.options if source is not None and is_path(data) == (source.kind == "file") else {}
    parts, channels = _cases_of(data, own, options)
    if known.part is not None:
        parts = {name: parts[name] for name in dict.fromkeys(known.part.tolist()) if name in parts}
    counts = {name: len(cases) for name, cases in parts.items()}
    if sum(counts.values()) != len(known):
        # Vectors that do not say what they were made of may be those of one part.
        fitting = [name for name, count in counts.items() if count == len(known) and source is None]
        if len(fitting) != 1:
            held = " and ".join(f"{count} {name} cases".replace("  ", " ") for name, count in counts.items())
            raise InputError(
                f"{data} holds {held or 'none of the parts'}, and {what} has {len(known)} vectors. Name the data that "
                "were embedded (--data), or embed them again."
            )
        parts = {fitting[0]: parts[fitting[0]]}
    # A case of one channel may come as (T,).
    return CaseSeries([np.atleast_2d(np.asarray(case)) for cases in parts.values() for case in cases], channels)


def _cases_of(
    data: str | Path, own: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Sequence[Array]], Sequence[str] | None]:
    """Return the cases of each part, and the names of their channels where they have any."""
    if is_path(data) or options:
        contents = load_parts(data, **{**own, **options})
        return {name: part.X for name, part in contents.items()}, next(iter(contents.values())).channels  # type: ignore[misc]
    split = load(data, **own)
    windows = {"train": split.train, "test": split.test}
    return {name: part.x for name, part in windows.items() if part is not None}, split.train.channels  # type: ignore[misc]
