"""The series behind vectors: read when somebody looks, where their file says that they are or where a user does."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, listed
from dicot.core.settings import how_to_set
from dicot.data.cases import MISSING, Array
from dicot.data.collection import Windows
from dicot.data.cutting import resampled
from dicot.data.datasets import is_here, is_path, load, load_parts
from dicot.data.folders import file_name_of, files_to_read, read_named
from dicot.data.reading import Reading, read_toml, toml_of
from dicot.data.recording import Recording
from dicot.data.stream import RecordingStream, is_as_before
from dicot.data.timestamps import nearest, stretches
from dicot.store.vectors import MadeOf, Vectors

MEMORY = 2**28  # bytes of recordings that are kept for the next look
WIDTHS = 10  # of a window, that its surroundings show
WITHIN = 1e-3  # of a time step: times that differ by less are the same
NEAR = 0.5  # of a time step: the time steps of a window lie no farther from where its vector says
OF_RECORDINGS = {"unit", "resample", "duplicates", "gap", "missing"}  # options that cases do not have
OF_BOTH = {"time", "channels", "ignore", "label", "group"}


class Surroundings(NamedTuple):
    """A stretch of a recording with a window in it."""

    time: Array  # (T,)
    first: int  # the window's time steps, both included
    last: int
    values: Array  # (C, T)


class Track(NamedTuple):
    """A recording as it was cut, all its stretches one after the other."""

    times: NDArray[np.float64]  # (T,)
    values: Array  # (C, T)
    channels: tuple[str, ...]
    rate: float | None
    units: tuple[str, ...] = ()  # of the channels, as in Recording
    origin: str | None = None  # the date from which the times count, as ISO 8601


class Series(ABC):
    """Where the values of windows come from."""

    channels: tuple[str, ...]
    rate: float | None  # time steps per second
    lost: dict[str, str]  # recordings that cannot be shown, and why: a sentence

    @abstractmethod
    def surroundings(self, row: int) -> Surroundings | None:
        """Return what lies around a window; None where its recording is lost, which may show only now."""

    def window(self, row: int) -> Array | None:
        """Return the values (C, T) of a window; None where its recording is lost."""
        around = self.surroundings(row)
        return None if around is None else around.values[:, around.first : around.last + 1]


class AbsentSeriesError(InputError):
    """The series behind vectors are not at hand."""


def series_of(
    known: Vectors,
    data: str | Path | None,
    options: Mapping[str, Any],
    rate: float | None = None,
    path: Path | None = None,
) -> Series:
    """Find the values that were embedded: in `data`, or where the vectors say; an AbsentSeriesError where they are not.

    `options` and `rate` say how files are read. They win over what the vectors say, or, where these say nothing, over
    the dicot.toml beside `data`. `path` is that of the vectors, for errors.
    """
    what, made = "the file of vectors" if path is None else str(path), known.source
    recorded = known.placed if made is None else made.kind == "recordings"
    if refused := options.keys() - OF_RECORDINGS - OF_BOTH if recorded else options.keys() & OF_RECORDINGS:
        kinds = ("tables of cases", "windows of recordings") if recorded else ("recordings", "cases")
        raise InputError(f"{min(refused)} is for {kinds[0]}, and {what} was made of {kinds[1]}. Leave it out.")
    if made is None and data is None:
        raise AbsentSeriesError(f"{what} does not say what it was made of. Name what was embedded (--data).")
    if not recorded:
        return _case_series(known, data, options, what)
    if made is None:  # by the dicot.toml beside the recordings
        kept = read_toml(toml_of(str(data)))
        made = MadeOf("recordings", (), kept, rate=kept.get("rate"))
    files = made.files if data is None else files_to_read(data, Reading(**made.options))
    series = RecordedSeries.open(known, files, made, options, rate, what)
    if not series.channels:
        raise AbsentSeriesError(f"No recording of {what} can be shown. {next(iter(series.lost.values()))}")
    return series


def _reading_of_channels(
    recordings: Array, files: Mapping[str, Path], made: MadeOf, options: Mapping[str, Any]
) -> Reading:
    """Return how the channels of recordings are read; labels and groups are not drawn, and may be told elsewhere."""
    # All channels by name, also where none were asked for.
    named = {} if made.channels is None else {"channels": made.channels}
    reading = Reading(**{**made.options, **named, **options, "window": None})
    if not (reading.names or reading.table or named):
        return reading
    # The groups of a file tell its recordings apart.
    tells_apart = any(file_name_of(name, files) not in (None, name) for name in set(recordings.tolist()))
    unused = ["label"] if tells_apart else ["label", "group"]
    return reading.replace(**{role: None for role in unused if role not in options})


@final
class RecordedSeries(Series):
    """Windows of recordings: a file is read when one of its windows is looked at, and kept while there is room.

    Several threads may ask at once. A file that has changed since is not shown; `channels` are empty where none is.
    `files` are by the name of the recording, or what stands before ":" and its group; `what` is the vectors' file.
    `open` looks at one window, so that other recordings than those embedded are refused at once.
    """

    def __init__(
        self,
        known: Vectors,
        files: Mapping[str, Path],
        made: MadeOf,
        reading: Reading,
        rate: float | None,
        what: str,
    ) -> None:
        self._recording, self._start, self._end = known.places()
        self._files, self._facts, self._what = files, made.recordings, what
        self._reading = reading.replace(resample=reading.even or rate is not None, rate=None)
        self.rate = Reading(rate=made.rate if rate is None else rate).rate
        self._n_times = made.n_times if rate is None else None
        self.channels = ()
        self.lost = {}
        self._tracks_by_file: dict[str, dict[str, Track]] = {}
        self._lock = Lock()
        if self._reading.resample and self.rate is None:
            raise InputError(
                f"The recordings of {what} were resampled, and it does not say to which rate. Say it: "
                f"{how_to_set('rate', 50)}."
            )

    @classmethod
    def open(
        cls,
        known: Vectors,
        files: Mapping[str, Path],
        made: MadeOf,
        options: Mapping[str, Any],
        rate: float | None,
        what: str,
    ) -> "RecordedSeries":
        """Find out which recordings can be shown, and look at the first of them."""
        recordings = known.places()[0]
        series = cls(known, files, made, _reading_of_channels(recordings, files, made, options), rate, what)
        names, first_rows = np.unique(recordings, return_index=True)
        problems = {name: series._problem(name) for name in {file_name_of(one, files) for one in names.tolist()}}
        for name in names.tolist():
            problem = problems[file_name_of(name, files)]
            if problem:
                series.lost[name] = problem
        for row in sorted(first_rows.tolist()):
            track = series.track(row)
            if track is not None:
                series._take_for_all(track)
                series.window(row)
                break
        return series

    def _take_for_all(self, track: Track) -> None:
        """Let the other files have the channels of this recording, and its rate where none is known."""
        self.rate = self.rate or track.rate
        self.channels = track.channels
        self._reading = self._reading.replace(channels=track.channels)

    def surroundings(self, row: int) -> Surroundings | None:
        track = self.track(row)
        if track is None:
            return None
        own, start, end = self._steps(track, row), self._start[row], self._end[row]
        margin = (WIDTHS - 1) / 2 * (end - start)
        edges = np.array([start - margin, end + margin]) - WITHIN / (self.rate or 1.0)
        first, stop = (int(edge) for edge in np.searchsorted(track.times, edges))
        around = slice(min(first, own.start), max(stop, own.stop))
        return Surroundings(
            track.times[around], own.start - around.start, own.stop - 1 - around.start, track.values[:, around]
        )

    def _steps(self, track: Track, row: int) -> slice:
        """Return the time steps of a window: it begins at one, and ends a usual step after its last."""
        start, end, rate = float(self._start[row]), float(self._end[row]), self.rate or 1.0
        first, last = (int(place) for place in nearest(np.array([start, end - 1 / rate]), track.times))
        if self._n_times is not None:
            last = first + self._n_times - 1
        if first <= last < len(track.times):
            away = np.abs(track.times[[first, last]] - [start, end - 1 / rate])
            if (away * rate <= NEAR).all():
                return slice(first, last + 1)
        recording = str(self._recording[row])
        file = self._files[str(file_name_of(recording, self._files))]
        said = f"{file} has no time steps of {recording!r} from {start:g} to {end:g}, as row {row} of {self._what} has."
        raise InputError(
            f"{said} Embed it again, or name what was embedded (--data), and the rate if it has no "
            f"times: {how_to_set('rate', 50)}."
        )

    def _problem(self, name: str | None) -> str:
        """Say why a file cannot be shown; nothing where it can."""
        if name is None:
            return f"Its recording is not among the data, {listed(list(self._files))}. Name what was embedded (--data)."
        file = self._files[name]
        if not file.is_file():
            return f"There is no {file}. Say where the recordings are (--data)."
        try:
            is_changed = name in self._facts and not is_as_before(file, self._facts[name])
        except InputError as error:  # it cannot be opened
            return str(error)
        if is_changed:
            return f"{file} has changed since {self._what} was made of it. Put the former file back, or embed it again."
        return ""

    def track(self, row: int) -> Track | None:
        """Return the whole recording of a window; None where it is lost, which may show only now."""
        recording = str(self._recording[row])
        name = file_name_of(recording, self._files)
        if name is None or recording in self.lost:
            return None
        with self._lock:
            if name not in self._tracks_by_file:
                if problem := self._problem(name):
                    self.lost[recording] = problem
                    return None
                try:
                    self._tracks_by_file[name] = self._read(name)
                except InputError as error:
                    self.lost[recording] = str(error)
                    return None
            # The file that was asked for last comes last, and the first one goes first.
            there = self._tracks_by_file.pop(name)
            self._tracks_by_file[name] = there
            while len(self._tracks_by_file) > 1 and sum(map(_size, self._tracks_by_file.values())) > MEMORY:
                del self._tracks_by_file[next(iter(self._tracks_by_file))]
        if recording not in there:
            said = f"{self._files[name]} has no recording {recording!r}, where row {row} of {self._what} lies"
            raise InputError(f"{said}; it has {listed(list(there))}. Say what tells them apart (--group).")
        return there[recording]

    def _read(self, name: str) -> dict[str, Track]:
        how, tracks = self._reading, {}
        for one in read_named(self._files[name], name, how):
            parts = resampled(one, self.rate, how.gap) if how.resample and self.rate is not None else [one]
            even = np.arange(one.n_times) / (self.rate or one.rate or 1.0)  # of one without time stamps
            times = np.concatenate([even if part.times is None else part.times for part in parts])
            values = np.concatenate([_filled(part, how.gap, how.missing) for part in parts], axis=1)
            tracks[one.name] = Track(times, values, one.channels, parts[0].rate, one.units, one.origin)
        return tracks


def _filled(one: Recording, gap: float, missing: str) -> Array:
    """Return the values as they were cut: missing ones are filled in, but not across a gap."""
    if missing == "error" or not np.isnan(one.values).any():
        return one.values
    runs = [slice(None)] if one.times is None else [run for run, *_ in stretches(one.times, gap)]
    return np.concatenate([MISSING[missing](one.values[:, run]) for run in runs], axis=1)


def _size(tracks: Mapping[str, Track]) -> int:
    return sum(track.values.nbytes + track.times.nbytes for track in tracks.values())


@final
class CaseSeries(Series):
    """Cases as a data set has them: row by row the ones that the vectors were made of."""

    def __init__(self, cases: Sequence[Array], channels: Sequence[str] | None = None) -> None:
        self._cases, self.lost, self.rate = cases, {}, None  # (C, T) each
        self.channels = tuple(channels or (f"channel {number}" for number in range(len(cases[0]))))

    def surroundings(self, row: int) -> Surroundings | None:
        values = self._cases[row]
        return Surroundings(np.arange(values.shape[1]), 0, values.shape[1] - 1, values)


def _case_series(known: Vectors, data: str | Path | None, options: Mapping[str, Any], what: str) -> CaseSeries:
    """Return the case of each vector."""
    made = known.source
    if data is None and made is not None:
        data = made.data[0]
        if not (Path(data).is_file() if made.kind == "file" else is_here(data)):
            raise AbsentSeriesError(f"{data}, which {what} was made of, is not here. Say where it is (--data).")
    assert data is not None
    own = made.options if made is not None and is_path(data) == (made.kind == "file") else {}
    parts: dict[str, Any]
    if is_path(data) or options:
        contents = load_parts(data, **{**own, **options})
        parts, channels = {name: part.X for name, part in contents.items()}, next(iter(contents.values())).channels
    else:
        split = load(data, **own)
        parts, channels = {"train": split.train.x}, split.train.channels
        parts |= {"test": split.test.x} if split.test else {}
    if known.part is not None:
        parts = {name: parts[name] for name in dict.fromkeys(known.part.tolist()) if name in parts}
    counts = {name: len(cases) for name, cases in parts.items()}
    if sum(counts.values()) != len(known):
        # Vectors that do not say what they were made of may be those of one part.
        fitting = [name for name, count in counts.items() if count == len(known) and made is None]
        if len(fitting) != 1:
            held = " and ".join(f"{count} {name} cases".replace("  ", " ") for name, count in counts.items())
            said = f"{data} holds {held or 'none of the parts'}, and {what} has {len(known)} vectors."
            raise InputError(f"{said} Name the data that were embedded (--data), or embed them again.")
        parts = {fitting[0]: parts[fitting[0]]}
    # A case of one channel may come as (T,).
    return CaseSeries([np.atleast_2d(np.asarray(case)) for cases in parts.values() for case in cases], channels)


def windows_like(made: MadeOf, path: Path) -> Windows:
    """Cut a recording that is not among the vectors as theirs were: same channels, rate, window and stride."""
    nothing = {"label": None, "group": None, "names": None, "join": None, "table": ""}
    how = {"channels": made.channels, "window": made.n_times, "stride": made.stride, "resample": made.rate is not None}
    reading = Reading.from_dict(made.options).replace(**nothing, **how)
    stream = RecordingStream(path, reading, known=(made.channels or (), made.rate))
    cut = [windows for name in stream.files if (windows := stream.windows(name)) is not None]
    if len(cut) == 1:
        return cut[0]
    raise InputError(
        f"{path} must be one recording of at least {made.n_times} time steps without a gap, a window of these vectors; "
        f"it has {listed([f'{name} of {n}' for name, n in stream.lengths.items()])}. Cut out a longer piece."
    )
