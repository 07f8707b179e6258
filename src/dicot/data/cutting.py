"""Recordings cut into windows: none spans two recordings, a gap or a change of rate."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any, NamedTuple, final

import numpy as np

from dicot.core.errors import (
    ClockWarning,
    DicotWarning,
    InputError,
    LeftOutWarning,
    SettingNeededError,
    ShortRecordingWarning,
    listed,
)
from dicot.core.settings import COLUMN, COLUMNS, how_to_set
from dicot.data import timestamps
from dicot.data.cases import MISSING, Array, no_value, to_array, to_cases
from dicot.data.clocks import Remark, remark_sentences, unit_for_rate, unit_remedy, utc_times
from dicot.data.conversion import convert
from dicot.data.devices import join_advice
from dicot.data.labelcolumns import check_lacking
from dicot.data.labels import (
    as_text,
    check_channel_names,
    check_groups,
    check_labels,
    check_rate,
    join_column,
    labelled,
)
from dicot.data.ranges import Label, Misplaced, check_places, labels_of_windows, rows_on_windows
from dicot.data.reading import Reading
from dicot.data.recording import Recording
from dicot.data.timestamps import BRIDGE, BRIDGED, SAME_RATE, Seconds, is_worth_bridging, resampled_lengths, stretches

_SAID, _LARGE = 0.01, 0.25  # shares of time steps from which on those cut off, and all in no window, are told
_UNEVEN = 0.1  # share by which windows of one length may differ in time before it is worth a warning


class LeftOut(NamedTuple):
    """How many time steps lie in no window, by reason; not those of recordings shorter than one, which are named."""

    rows: int = 0  # all time steps
    between: int = 0  # in stretches between gaps, or changes of rate, that are shorter than a window
    other: int = 0  # at another rate
    tail: int = 0  # behind the last window of a stretch
    ranges: int = 0  # of labels in a table, for these recordings
    unused_ranges: int = 0  # that no window took its label from
    bridgeable: int = 0  # of those between gaps: how many a gap of BRIDGED usual steps would bring into windows

    def plus(self, other: Sequence[int]) -> "LeftOut":
        # What an earlier version noted has fewer counts.
        return LeftOut(*(a + int(b) for a, b in zip_longest(self, other, fillvalue=0)))

    def sentence(self, rate: float | None) -> str:
        """Say how many and why; nothing where they are few."""
        cut, lost = self.between + self.other, self.between + self.other + self.tail
        if not (cut and cut >= _SAID * self.rows) and not (lost and lost >= _LARGE * self.rows):
            return ""
        at = "the windows" if rate is None else f"{rate:.4g} per second"
        reasons = {
            f"another rate than {at} ({self.other:,}; --set resample=true keeps them)": self.other,
            f"stretches between gaps that are shorter than a window ({self.between:,}; {self._bridge()})": self.between,
            f"ends behind the last window ({self.tail:,}; a smaller --window keeps more)": self.tail,
        }
        why = " and ".join(reason for reason, count in reasons.items() if count)
        return f"{100 * lost / self.rows:.2g} % of rows ({lost:,} of {self.rows:,}) lie in no window, because of {why}."

    def _bridge(self) -> str:
        """Say how more rows come into windows."""
        if not is_worth_bridging(self.bridgeable, self.between):
            return "a smaller --window keeps more"
        return (
            f"{BRIDGE} bridges up to {int(BRIDGED) - 1} lost rows in a row and keeps {self.bridgeable:,} of them; a "
            "smaller --window keeps more too"
        )

    def warn(self, rate: float | None) -> None:
        if said := self.sentence(rate):
            warnings.warn(said, LeftOutWarning, stacklevel=3)
        if self.unused_ranges:
            sentence = (
                f"{self.unused_ranges} of {self.ranges} ranges of labels cover more than half of no window, so no "
                "window has their label. A smaller window, or a smaller stride, keeps more."
            )
            warnings.warn(sentence, DicotWarning, stacklevel=3)


class Outline(NamedTuple):
    """What recordings must have in common, of one of them, in plain values."""

    name: str
    channels: tuple[str, ...]
    units: tuple[str, ...]
    rate: float | None
    timed: bool  # whether it has time stamps
    label: str | None  # "text" or "number"
    group: str | None
    longest: int  # time steps of its longest stretch without a gap
    n_times: int = 0
    n_merged: int = 0  # rows that became one with the row before, which had the same time stamp
    remarks: tuple[Remark, ...] = ()  # on its clock
    assumed_unit: str | None = None  # of its time stamps, where nobody named one
    n_ranges: int = 0  # of labels in a table, for the whole file
    misplaced: tuple[Misplaced, ...] = ()  # those of them that do not lie in the recordings of the file
    lacking: tuple[str, ...] = ()  # columns that were named and that its file has not
    columns: tuple[str, ...] = ()  # of its file, where it lacks one
    has_missing: bool = False  # values


def outline_of(recording: Recording, reading: Reading) -> Outline:
    """Return what other recordings must agree with; missing values are refused where the reading says so."""
    lost = np.isnan(recording.values)
    has_missing = bool(lost.any())
    if reading.missing == "error" and has_missing:
        channel = int(np.argmax(lost.any(axis=1)))
        raise InputError(
            f"Recording {recording.name!r} has no value in channel {recording.channels[channel]!r} at "
            f"{np.count_nonzero(lost[channel])} of {recording.n_times} time steps, the first of which is "
            f"{np.argmax(lost[channel])}. Fill them in: {how_to_set('missing', 'interpolate')}, or zero. Or remove "
            "these rows."
        )
    longest, timed = recording.n_times, recording.times is not None
    if recording.times is not None:
        longest = max(int(run.stop - run.start) for run, *_ in stretches(recording.times, reading.gap))
    labels = [one.label for one in recording.ranges] or recording.label
    kinds = (_kind(labels), _kind(recording.group))
    return Outline(
        recording.name,
        recording.channels,
        recording.units,
        recording.rate,
        timed,
        *kinds,
        longest,
        n_times=recording.n_times,
        n_merged=recording.n_merged,
        remarks=recording.remarks,
        assumed_unit=recording.assumed_unit,
        n_ranges=recording.n_ranges,
        misplaced=recording.misplaced,
        lacking=recording.lacking,
        columns=recording.columns,
        has_missing=has_missing,
    )


def _kind(value: Any) -> str | None:
    values = np.atleast_1d(np.asarray(np.nan if value is None else value))
    return None if not labelled(values).any() else "text" if values.dtype.kind == "U" else "number"


@final
@dataclass(frozen=True)
class Cut:
    """How recordings are cut, settled for all of them."""

    reading: Reading
    channels: tuple[str, ...]
    rate: float | None  # time steps per second
    length: int  # time steps of a window
    stride: int
    texts: tuple[str, ...] = ()  # which of label and group are written as text

    def plan(self, recordings: Sequence[Recording]) -> "CutPlan":
        """Say where the windows of some recordings begin, for those who cut a few at a time."""
        tracks = self._tracks(recordings)
        held: Counter[str] = Counter()  # time steps by recording, to tell whether it was cut
        values, starts, places, lengths, left = [], [], [], dict[str, int](), LeftOut()
        for track in tracks:
            held[track.name] += track.n_times
        for track in tracks:
            runs, own = self._runs(track), [np.array([], np.intp)]
            n_in_runs = sum(run.stop - run.start for run in runs)
            left = left.plus(LeftOut(rows=track.n_times, other=track.n_times - n_in_runs))
            left = left.plus(LeftOut(bridgeable=self._bridgeable(track, runs)))
            for run in runs:
                n = run.stop - run.start
                lengths[track.name] = max(n, lengths.get(track.name, 0))
                at = np.arange(0, n - self.length + 1, self.stride)
                if self.reading.keep_tail and len(at) and at[-1] + self.length < n:
                    at = np.append(at, n - self.length)
                tail, short = (n - int(at[-1]) - self.length, 0) if len(at) else (0, n * (n < held[track.name]))
                left = left.plus(LeftOut(between=short, tail=tail))
                values.append(_filled(track, run, self.reading.missing) if len(at) else track.values[:, run])
                starts.append(at)
                own.append(run.start + at)
            places.append(np.concatenate(own))  # counted from the beginning of the track
        labels = [one.label for one in tracks]
        start, end = self._times(tracks, places)
        recording = np.repeat([one.name for one in tracks], [len(at) for at in places])
        y = None if all(label is None for label in labels) else _per_window(labels, places, self.length)
        edges = np.cumsum([len(at) for at in places])[:-1]
        spans = list(zip(np.split(start, edges), np.split(end, edges), strict=True))  # of the windows of each track
        if any(one.ranges for one in tracks):
            taken = self._labels_of_ranges(tracks, spans)
            left = left.plus((0, 0, 0, 0, *_count_ranges(tracks, taken, spans)))
            y = _joined_labels(taken, y)
        about = {
            "y": y,
            "group": _per_window([one.name if one.group is None else one.group for one in tracks], places, self.length),
            "recording": recording,
            "start": start,
            "end": end,
        }
        if self.rate is not None and any(one.origin for one in tracks):
            for side, what in enumerate(("start_time", "end_time")):
                times = [utc_times(one.origin, span[side]) for one, span in zip(tracks, spans, strict=True)]
                about[what] = np.concatenate(times)
        known = {key: value for key, value in about.items() if value is not None}
        return CutPlan(self, values, starts, known, left, lengths, dict(held))

    def _labels_of_ranges(self, tracks: Sequence[Recording], spans: Sequence[Any]) -> list[list[Label | None]]:
        """Return for each track the label that each of its windows takes from a range, None where there is none."""
        if self.rate is None:
            raise InputError(
                f"Ranges of labels are in seconds, and the rate is not known. Say it: {how_to_set('rate', 50)}."
            )
        tracked = zip(tracks, spans, strict=True)
        return [labels_of_windows([range_[:3] for range_ in one.ranges], *span) for one, span in tracked]

    def _tracks(self, recordings: Sequence[Recording]) -> list[Recording]:
        """Return recordings as they are cut: channels in one order, resampled between gaps where asked for."""
        out = []
        for one in recordings:
            rows = [one.channels.index(channel) for channel in self.channels]
            values = one.values if one.channels == self.channels else np.ascontiguousarray(one.values[rows])
            texts = {what: as_text(getattr(one, what)) for what in self.texts}
            one = replace(one, values=values, channels=self.channels, **texts)
            out += resampled(one, self.rate, self.reading.gap) if self.reading.even and self.rate else [one]
        return out

    def _runs(self, track: Recording) -> list[slice]:
        """Return the stretches of a track that can be cut."""
        if track.times is None:
            return [slice(0, track.n_times)]
        found = stretches(track.times, self.reading.gap)
        return [one.rows for one in found if self.rate is None or not timestamps.is_other_rate(one.rate, self.rate)]

    def _bridgeable(self, track: Recording, runs: Sequence[slice]) -> int:
        """Count the rows in stretches shorter than a window that a wider gap would bring into windows."""
        lengths = [int(run.stop - run.start) for run in runs]
        if len(runs) < 2 or min(lengths) >= self.length or track.times is None or self.rate is None:
            return 0
        n_short = sum(n for n in lengths if n < self.length)
        still_short = sum(n for n in resampled_lengths(track.times, self.rate, BRIDGED) if n < self.length)
        return max(0, n_short - still_short)

    def _times(self, tracks: Sequence[Recording], places: Sequence[Array]) -> tuple[Seconds, Seconds]:
        """Return start and end of the windows that begin at these time steps of each track."""
        rate = self.rate or 1.0
        clocks = [
            np.arange(one.n_times) / rate if one.times is None or self.rate is None else one.times for one in tracks
        ]
        starts = np.concatenate([times[at] for times, at in zip(clocks, places, strict=True)])
        lasts = np.concatenate([times[at + self.length - 1] for times, at in zip(clocks, places, strict=True)])
        return without_noise(starts, self.rate), without_noise(lasts + 1 / rate, self.rate)


def _joined_labels(by_range: Sequence[Sequence[Label | None]], y: Array | None) -> Array:
    """Return the labels of windows: those of ranges, and where none is, those of y."""
    labels = [label for track in by_range for label in track]
    others = [None] * len(labels) if y is None else y.tolist()
    taken = [other if label is None else label for label, other in zip(labels, others, strict=True)]
    return check_labels(taken, len(taken), "label", "windows")


def _count_ranges(
    tracks: Sequence[Recording], taken: Sequence[Sequence[Label | None]], spans: Sequence[Any]
) -> tuple[int, int]:
    """Count the ranges of these tracks, and those of them that lie on windows but gave none its label.

    A row of a table may be of several tracks: the recordings of one file, or the pieces of one between gaps.
    """
    rows = {one.row for track in tracks for one in track.ranges}
    overlapping, used = set[str](), set[str]()
    for track, labels, (start, end) in zip(tracks, taken, spans, strict=True):
        on_windows, on_labels = rows_on_windows(track.ranges, labels, start, end)
        overlapping |= on_windows
        used |= on_labels
    return len(rows), len(overlapping - used)


@final
@dataclass(frozen=True, eq=False)
class CutPlan:
    """All that is known of the windows of some recordings before they are cut, a few at a time or all at once."""

    cut: Cut
    runs: list[Array]  # stretches without a gap (C, T_i); nothing is missing in those that give windows
    starts: list[Array]  # for each of them the time steps at which its windows begin
    about: dict[str, Array]  # of all windows y, group, recording, start, end and so on, as far as they are known
    left: LeftOut  # what is in none of them
    lengths: dict[str, int]  # name of each recording -> time steps of its longest stretch
    rows: dict[str, int]  # name of each recording -> all its time steps

    def __len__(self) -> int:
        return len(self.about["start"])

    def warn(self) -> None:
        """Name recordings without a window, and count the time steps that lie in none."""
        length = self.cut.length
        warn_of_short({name: n for name, n in self.lengths.items() if n < length}, length)
        self.left.warn(self.cut.rate)

    def fields(self, rows: slice = slice(None)) -> dict[str, Any]:
        """Cut the windows in these rows: the arguments of `Windows`."""
        first, stop, _ = rows.indices(len(self))
        x = np.empty((stop - first, len(self.cut.channels), self.cut.length), np.result_type(*self.runs))
        places = ((run, at) for run, starts in zip(self.runs, self.starts, strict=True) for at in starts.tolist())
        for window, (run, at) in zip(x, islice(places, first, stop), strict=True):
            window[:] = run[:, at : at + self.cut.length]
        about = {what: values[first:stop] for what, values in self.about.items()}
        return {"x": convert(x).whole(), **about, "channels": self.cut.channels, "rate": self.cut.rate}


def settled_plan(recordings: Sequence[Recording], reading: Reading) -> CutPlan:
    """Settle what holds for all of these recordings, and say where their windows begin."""
    cut = settle([outline_of(one, reading) for one in recordings], reading)
    plan = cut.plan(recordings)
    if not len(plan):
        raise no_window(cut.length, max(plan.lengths.values(), default=0))
    return plan


def settle(
    outlines: Sequence[Outline], reading: Reading, known: tuple[tuple[str, ...], float | None] | None = None
) -> Cut:
    """Find what holds for all recordings, and for what was cut before (`known`); refuse what does not agree."""
    first, channels = ("what was cut before", known[0]) if known else (repr(outlines[0].name), outlines[0].channels)
    found: dict[str, tuple[str, str]] = {}  # channel -> unit, recording
    for one in outlines:
        if set(one.channels) != set(channels):
            advice = join_advice({outline.name: outline.channels for outline in outlines})
            joined = "" if advice is None else advice.sentence
            raise InputError(
                f"All recordings must have the same channels: {first} has {', '.join(channels)}; {one.name!r} has "
                f"{', '.join(one.channels)}. Choose those that all have: {_shared_channels(outlines, channels)}, or "
                f"leave the other files out. {joined}".strip()
            )
        for channel, unit in zip(one.channels, one.units, strict=False):
            other, name = found.setdefault(channel, (unit, one.name)) if unit else (unit, "")
            if unit.lower() != other.lower():
                raise InputError(
                    f"Channel {channel!r} is in {other} in {name!r} and in {unit} in {one.name!r}. Convert one of the "
                    f"files, or leave the channel out: {how_to_set('ignore', [channel])}."
                )
    check_lacking(outlines, reading.label, allowed=known is not None)
    texts = [what for what in ("label", "group") if {"text", "number"} <= {getattr(one, what) for one in outlines}]
    rate = _common_rate(outlines, reading, known[1] if known else None)
    warn_of_merged(outlines, reading.duplicates)
    for sentence in remark_sentences({one.name: one.remarks for one in outlines}):
        warnings.warn(sentence, ClockWarning, stacklevel=4)
    length, stride = reading.steps(rate)
    if rate is not None:
        check_ranges(outlines, length / rate)
    return Cut(reading, channels, rate, length, stride, tuple(texts))


def check_ranges(outlines: Sequence[Outline], tolerance: float) -> None:
    """Refuse a table of labels most of whose ranges lie outside; they may reach so many seconds over an end."""
    misplaced = [one for outline in outlines for one in outline.misplaced]
    check_places(sum(outline.n_ranges for outline in outlines), misplaced, tolerance)


def recordings_in_memory(
    arrays: Any,
    reading: Reading,
    labels: Any = None,
    groups: Any = None,
    layout: str = "nct",
    *,
    rate: float | None = None,
    channels: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    times: Any = None,
) -> list[Recording]:
    """Make recordings of arrays, as `Windows.from_array` describes them."""
    single = not isinstance(arrays, list | tuple) and to_array(arrays).ndim <= 2
    tracks = to_cases([arrays] if single else arrays, layout)
    n, n_channels, longest = len(tracks), tracks[0].shape[0], max(track.shape[1] for track in tracks)
    if single:  # what belongs to the only recording may come bare, or in a list of one
        labels, groups = (
            v if v is None or (isinstance(v, list | tuple | np.ndarray) and len(v) == 1) else [v]
            for v in (labels, groups)
        )
        times = times if times is None or (len(times) == 1 and hasattr(times[0], "__len__")) else [times]
    for what, given in (("y", labels), ("group", groups), ("names", names), ("times", times)):
        if given is not None and (isinstance(given, str) or not hasattr(given, "__len__") or len(given) != n):
            raise InputError(f"{what} must hold one entry for each of the {n} recording(s); got {given!r}.")
    window = reading.window
    if isinstance(window, int) and n_channels >= window > longest:
        raise InputError(
            f"No recording is as long as a window of {window} time steps: {n_channels} channel(s) of at most {longest} "
            f'time steps came. Set layout="{"ntc" if layout == "nct" else "nct"}" if it is the other way round.'
        )
    called = check_channel_names(channels or [f"channel {i}" for i in range(n_channels)], n_channels)
    found = []
    for i, values in enumerate(tracks):
        if np.isinf(values).any():
            raise InputError(f"Recording {i if names is None else names[i]} contains inf. Remove or clip these values.")
        stamps = None if times is None else timestamps.check_stamps(times[i], values.shape[1], f"times[{i}]")
        own = None if stamps is None else timestamps.usual_rate(stamps, stretches(stamps, reading.gap))
        if rate is not None and own is not None and abs(own - rate) > SAME_RATE * rate:
            raise InputError(f"times[{i}] have {own:g} time steps per second; rate= says {rate:g}. Pass one of them.")
        own = own if rate is None else check_rate(rate)
        label, group = (
            default if given is None else _of_steps(given[i], values.shape[1], f"{what}[{i}]", check)
            for what, given, default, check in (("y", labels, None, check_labels), ("group", groups, i, check_groups))
        )
        found.append(Recording(str(i) if names is None else names[i], values, called, stamps, own, label, group))
    return found


def _of_steps(value: Any, n_times: int, what: str, check: Callable[..., Array]) -> Array:
    """Return one value for a recording, or one for each of its time steps."""
    alone = to_array(value).ndim == 0
    return check([value] if alone else value, 1 if alone else n_times, what, "time steps")


def _shared_channels(outlines: Sequence[Outline], channels: Sequence[str]) -> str:
    """Say how to choose those of the channels that all recordings have."""
    shared = [channel for channel in channels if all(channel in outline.channels for outline in outlines)]
    return how_to_set("channels", shared or COLUMNS)


def _common_rate(outlines: Sequence[Outline], reading: Reading, before: float | None) -> float | None:
    """Return the rate of all windows; None where it is known of no recording."""
    if reading.rate is not None:
        _refuse_other_units(outlines, reading.rate)
        return reading.rate
    rates = {one.name: one.rate for one in outlines if one.rate is not None}
    timeless = [one.name for one in outlines if one.rate is None and not one.timed]
    if before is None and timeless and (rates or reading.resample):
        others = f", that of {listed(list(rates))} is" if rates else ""
        raise InputError(
            f"The rate of {listed(timeless)} is not known{others}. "
            f"Name the column of time stamps: {how_to_set('time', COLUMN)}, or say the rate: {how_to_set('rate', 50)}."
        )
    usual = before if before is not None else float(np.median(list(rates.values()))) if rates else None
    if usual is None:
        return None
    _refuse_other_units(outlines, usual)
    other = [name for name, rate in rates.items() if abs(rate - usual) > SAME_RATE * usual]
    if other and not reading.resample:
        near = min(rates, key=lambda name: abs(rates[name] - usual))
        first, own = (repr(near), rates[near]) if before is None else ("what was cut before", before)
        raise InputError(
            f"All recordings must have one rate: {first} has {own:g} time steps per second, {other[0]!r} "
            f"{rates[other[0]]:g} ({len(other)} of {len(rates)} differ). Resample them with --set rate={own:g}, "
            "or leave some out."
        )
    return usual


def _refuse_other_units(outlines: Sequence[Outline], rate: float) -> None:
    """Refuse recordings whose time stamps count in another unit than it seemed, because they would have this rate."""
    for outline in outlines:
        unit = unit_for_rate(outline.assumed_unit, outline.rate, rate)
        if unit is not None and outline.assumed_unit is not None and outline.rate is not None:
            remedy = unit_remedy(outline.name, outline.assumed_unit, outline.rate, unit, rate)
            raise SettingNeededError(remedy, unit=unit)


def resampled(recording: Recording, rate: float, gap: float) -> list[Recording]:
    """Return the stretches between gaps, each with even time stamps of this rate."""
    times = recording.times
    if times is None:  # without any, the rate is what was said
        times = np.arange(recording.n_times) / (recording.rate or rate)
    pieces = []
    for run, *_ in stretches(times, gap):
        stamps, label = times[run], recording.label
        grid = timestamps.even_grid(stamps, rate)
        values = timestamps.interpolate_at(grid, stamps, recording.values[:, run])
        if isinstance(label, np.ndarray):
            label = label[run][timestamps.nearest(grid, stamps)]
        pieces.append(replace(recording, values=values, times=grid, rate=rate, label=label))
    return pieces


def _filled(track: Recording, run: slice, missing: str) -> Array:
    """Return a stretch (C, T) without missing values; one that has no value of a channel is refused."""
    values = track.values[:, run]
    if not np.isnan(values).any():
        return values
    values = MISSING[missing](values)
    if len(dead := np.flatnonzero(np.isnan(values[:, 0]))):  # all else is filled in
        when = "" if track.times is None else f" from {track.times[run][0]:g} to {track.times[run][-1]:g} s"
        raise no_value(f"Recording {track.name!r}", f"channel {track.channels[dead[0]]!r}{when}")
    return values


def without_noise(times: Seconds, rate: float | None) -> Seconds:
    """Round times to what they mean: 8.96 s, and not the 8.959999999999999 that float64 makes of 8.94 + 1 / 50.

    To a nanosecond or a millionth of a time step, whichever is less, but to no more than 15 digits in all. Each time is
    rounded by itself, so that a window has the same place whatever others there are.
    """
    if rate is None:
        return times
    finest = max(9, 6 + math.ceil(math.log10(rate)))
    before_point = np.searchsorted(10.0 ** np.arange(15), np.abs(times), side="right")  # digits
    digits = np.clip(15 - before_point, 0, finest)
    out = times.copy()
    for n in np.unique(digits).tolist():
        out[digits == n] = np.round(times[digits == n], n)
    return out


def no_window(length: int, longest: int) -> InputError:
    """Return the error for recordings that are all shorter than a window."""
    return InputError(
        f"No recording is as long as a window of {length} time steps; the longest stretch without a gap has {longest}. "
        f"Use a smaller --window, or bridge lost rows: {BRIDGE}."
    )


def warn_of_short(short: Mapping[str, int], length: int) -> None:
    """Name recordings that give no window, if there are any, with their time steps."""
    if short:
        warnings.warn(
            f"Left out recording{'s' if len(short) > 1 else ''} {listed(list(short))} "
            f"({listed(list(map(str, short.values())))} time steps): shorter than a window of {length}.",
            ShortRecordingWarning,
            stacklevel=5,
        )


def warn_of_merged(outlines: Sequence[Outline], how: str) -> None:
    """Say how many rows of equal time stamps became one, in how many recordings."""
    n_merged = sum(one.n_merged for one in outlines)
    if not n_merged:
        return
    n_rows = n_merged + sum(one.n_times for one in outlines)
    n_recordings = sum(one.n_merged > 0 for one in outlines)
    warnings.warn(merged_sentence(n_merged, n_rows, n_recordings, how), DicotWarning, stacklevel=4)


def merged_sentence(n_merged: int, n_rows: int, n_recordings: int, how: str) -> str:
    """Say how many rows became one with the row before."""
    kept = "their mean was taken" if how == "mean" else "the first was kept"
    return (
        f"{n_merged:,} of {n_rows:,} rows, in {n_recordings:,} recording(s), share their time stamp with the row "
        f"before: {kept} (duplicates={how})."
    )


def warn_of_uneven(about: Mapping[str, Array], cut: Cut) -> None:
    """Name recordings whose windows last unequally long."""
    if cut.rate is None:
        return
    lasting, length, rate = about["end"] - about["start"], cut.length, cut.rate
    uneven = np.abs(lasting - length / rate) > _UNEVEN * length / rate
    if uneven.any():
        which = list(dict.fromkeys(about["recording"][uneven].tolist()))
        warnings.warn(
            f"Uneven time stamps: windows of {length} time steps last {lasting.min():.3g} to "
            f"{lasting.max():.3g} s, in {listed(which)}. For an even grid say --set resample=true.",
            DicotWarning,
            stacklevel=3,
        )


def _per_window(values: Sequence[Any], starts: Sequence[Array], length: int) -> Array:
    """Return the value of each window from one value per recording or per time step; not known where most is not."""
    parts = [np.atleast_1d(np.asarray(np.nan if value is None else value)) for value in values]
    joined = join_column(parts, [len(part) for part in parts])
    assert joined is not None
    seen = labelled(joined)
    codes = np.full(len(joined), -1, dtype=np.intp)
    known, codes[seen] = np.unique(joined[seen], return_inverse=True)
    coded = np.split(codes, np.cumsum([len(part) for part in parts])[:-1])
    winners = [
        np.repeat(part, len(at)) if len(part) == 1 else _majority(part, at, length, len(known))
        for part, at in zip(coded, starts, strict=True)
    ]
    known = known if seen.all() else np.append(known, "" if joined.dtype.kind == "U" else np.nan)
    return np.asarray(known[np.concatenate(winners)])


def _majority(codes: Array, starts: Array, length: int, n_codes: int) -> Array:
    """Return the most frequent code of each window, of several the smallest; -1 where less than half has a code."""
    best = np.zeros(len(starts), dtype=np.intp)
    most = np.zeros(len(starts), dtype=np.intp)
    coded = np.zeros(len(starts), dtype=np.intp)
    for code in range(n_codes):  # one code at a time: memory stays at one array of the recording's length
        seen = np.concatenate([[0], np.cumsum(codes == code)])
        count = seen[starts + length] - seen[starts]
        best[count > most] = code
        most = np.maximum(most, count)
        coded += count
    best[2 * coded < length] = -1
    return best
