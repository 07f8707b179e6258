"""Recordings cut into windows: none spans two recordings, a gap or a change of rate."""

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, zip_longest
from typing import Any, NamedTuple, final

import numpy as np

from dicot.core.errors import DicotWarning, InputError, LeftOutWarning, ShortRecordingWarning, listed
from dicot.core.settings import how_to_set
from dicot.data import timestamps
from dicot.data.cases import MISSING, Array, no_value
from dicot.data.clocks import utc_times
from dicot.data.conversion import convert
from dicot.data.labels import as_text, check_labels, join_column, labelled
from dicot.data.ranges import Label, labels_of_windows, rows_on_windows
from dicot.data.reading import Reading
from dicot.data.recording import Recording
from dicot.data.timestamps import BRIDGE, BRIDGED, Seconds, is_worth_bridging, resampled_lengths, stretches

# Shares of time steps from which on those cut off, and all in no window, are told.
_TELL_CUT_OFF, _TELL_ALL = 0.01, 0.25
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
        cut_off = self.between + self.other
        in_no_window = cut_off + self.tail
        is_much_cut_off = cut_off and cut_off >= _TELL_CUT_OFF * self.rows
        is_much_in_all = in_no_window and in_no_window >= _TELL_ALL * self.rows
        if not is_much_cut_off and not is_much_in_all:
            return ""

        rate_text = "the windows" if rate is None else f"{rate:.4g} per second"
        reasons = {
            f"another rate than {rate_text} ({self.other:,}; --set resample=true keeps them)": self.other,
            f"stretches between gaps that are shorter than a window ({self.between:,}; {self._bridge()})": self.between,
            f"ends behind the last window ({self.tail:,}; a smaller --window keeps more)": self.tail,
        }
        why = " and ".join(reason for reason, count in reasons.items() if count)
        share = f"{100 * in_no_window / self.rows:.2g} % of rows ({in_no_window:,} of {self.rows:,})"
        return f"{share} lie in no window, because of {why}."

    def _bridge(self) -> str:
        """Say how more rows come into windows."""
        if not is_worth_bridging(self.bridgeable, self.between):
            return "a smaller --window keeps more"
        return (
            f"{BRIDGE} bridges up to {int(BRIDGED) - 1} lost rows in a row and keeps {self.bridgeable:,} of them; a "
            "smaller --window keeps more too"
        )

    def warn(self, rate: float | None) -> None:
        sentence = self.sentence(rate)
        if sentence:
            warnings.warn(sentence, LeftOutWarning, stacklevel=3)
        if self.unused_ranges:
            sentence = (
                f"{self.unused_ranges} of {self.ranges} ranges of labels cover more than half of no window, so no "
                "window has their label. A smaller window, or a smaller stride, keeps more."
            )
            warnings.warn(sentence, DicotWarning, stacklevel=3)


class CutStretch(NamedTuple):
    """A stretch of a track without a gap, and its windows."""

    values: Array  # (C, T); nothing is missing in it if it gives windows
    first: int  # the time step of the track at which it begins
    starts: Array  # (n,) the time steps of the stretch at which its windows begin


class CutTrack(NamedTuple):
    """What is cut as one: a recording or, where it was resampled, what lies between two gaps of it."""

    recording: Recording  # its values may not be filled in: those of the stretches are
    stretches: list[CutStretch]
    left: LeftOut

    @property
    def starts(self) -> Array:
        """Return the time steps of the track at which its windows begin."""
        if not self.stretches:
            return np.array([], np.intp)
        return np.concatenate([stretch.first + stretch.starts for stretch in self.stretches])


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
        """Say where the windows of some recordings begin."""
        tracks = [track for recording in recordings for track in self._tracks_of(recording)]
        steps_of_recording: Counter[str] = Counter()
        for track in tracks:
            steps_of_recording[track.name] += track.n_times
        return CutPlan(self, [self._cut(track, steps_of_recording[track.name]) for track in tracks])

    def _tracks_of(self, recording: Recording) -> list[Recording]:
        """Return what is cut of a recording: channels in one order, resampled between gaps where asked for."""
        if recording.channels != self.channels:
            rows = [recording.channels.index(channel) for channel in self.channels]
            values = np.ascontiguousarray(recording.values[rows])
            recording = replace(recording, values=values, channels=self.channels)
        if self.texts:
            texts = {what: as_text(getattr(recording, what)) for what in self.texts}
            recording = replace(recording, **texts)
        if self.reading.even and self.rate:
            return resampled(recording, self.rate, self.reading.gap)
        return [recording]

    def _cut(self, track: Recording, steps_of_recording: int) -> CutTrack:
        """Say where the windows of a track begin, and count the time steps that lie in none."""
        runs = self._runs(track)
        cut_stretches = []
        n_in_runs, between, tail = 0, 0, 0
        for run in runs:
            n_steps = run.stop - run.start
            n_in_runs += n_steps
            starts = self._starts(n_steps)
            values = track.values[:, run]
            if len(starts):
                values = _filled(track, run, self.reading.missing)
                tail += n_steps - (int(starts[-1]) + self.length)
            elif n_steps < steps_of_recording:
                # A recording that is too short as a whole is named elsewhere.
                between += n_steps
            cut_stretches.append(CutStretch(values, run.start, starts))

        left = LeftOut(
            rows=track.n_times,
            between=between,
            other=track.n_times - n_in_runs,
            tail=tail,
            bridgeable=self._bridgeable(track, runs),
        )
        return CutTrack(track, cut_stretches, left)

    def _starts(self, n_steps: int) -> Array:
        """Return the time steps at which the windows of so many time steps begin."""
        starts = np.arange(0, n_steps - self.length + 1, self.stride)
        if self.reading.keep_tail and len(starts) and starts[-1] + self.length < n_steps:
            return np.append(starts, n_steps - self.length)
        return starts

    def _runs(self, track: Recording) -> list[slice]:
        """Return the stretches of a track that can be cut."""
        if track.times is None:
            return [slice(0, track.n_times)]
        runs = stretches(track.times, self.reading.gap)
        return [run.rows for run in runs if self.rate is None or not timestamps.is_other_rate(run.rate, self.rate)]

    def _bridgeable(self, track: Recording, runs: Sequence[slice]) -> int:
        """Count the rows in stretches shorter than a window that a wider gap would bring into windows."""
        lengths = [int(run.stop - run.start) for run in runs]
        if len(runs) < 2 or min(lengths) >= self.length or track.times is None or self.rate is None:
            return 0
        n_short = sum(n for n in lengths if n < self.length)
        still_short = sum(n for n in resampled_lengths(track.times, self.rate, BRIDGED) if n < self.length)
        return max(0, n_short - still_short)


@final
@dataclass(frozen=True, eq=False)
class CutPlan:
    """All that is known of the windows of some recordings before they are cut, a few at a time or all at once."""

    cut: Cut
    tracks: list[CutTrack]

    @cached_property
    def _starts(self) -> list[Array]:
        """Return where the windows of each track begin, counted from the beginning of the track."""
        return [track.starts for track in self.tracks]

    @cached_property
    def _n_windows(self) -> int:
        return sum(map(len, self._starts))

    def __len__(self) -> int:
        return self._n_windows

    @property
    def with_window(self) -> set[str]:
        """Return the names of the recordings that have a window."""
        pairs = zip(self.tracks, self._starts, strict=True)
        return {track.recording.name for track, starts in pairs if len(starts)}

    @property
    def lengths(self) -> dict[str, int]:
        """Return the time steps of the longest stretch of each recording."""
        lengths: dict[str, int] = {}
        for track in self.tracks:
            for stretch in track.stretches:
                name = track.recording.name
                lengths[name] = max(lengths.get(name, 0), stretch.values.shape[1])
        return lengths

    @property
    def rows(self) -> dict[str, int]:
        """Return all time steps of each recording."""
        rows: Counter[str] = Counter()
        for track in self.tracks:
            rows[track.recording.name] += track.recording.n_times
        return dict(rows)

    @property
    def has_ranges(self) -> bool:
        """Tell whether a table has labels of ranges for any of these recordings."""
        return any(track.recording.ranges for track in self.tracks)

    @property
    def left(self) -> LeftOut:
        """Count what lies in no window."""
        left = LeftOut()
        for track in self.tracks:
            left = left.plus(track.left)
        if not self.has_ranges:
            return left
        n_ranges, n_unused = self._count_ranges()
        return left.plus(LeftOut(ranges=n_ranges, unused_ranges=n_unused))

    def warn(self) -> None:
        """Name recordings without a window, and count the time steps that lie in none."""
        length = self.cut.length
        warn_of_short({name: n for name, n in self.lengths.items() if n < length}, length)
        self.left.warn(self.cut.rate)

    def fields(self, rows: slice = slice(None)) -> dict[str, Any]:
        """Cut the windows in these rows: the arguments of `Windows`."""
        first, stop, _ = rows.indices(len(self))
        length = self.cut.length
        cut_stretches = [stretch for track in self.tracks for stretch in track.stretches]
        dtype = np.result_type(*(stretch.values for stretch in cut_stretches))
        x = np.empty((stop - first, len(self.cut.channels), length), dtype)
        places = ((stretch.values, start) for stretch in cut_stretches for start in stretch.starts.tolist())
        for window, (values, start) in zip(x, islice(places, first, stop), strict=True):
            window[:] = values[:, start : start + length]
        about = {what: values[first:stop] for what, values in self.about.items()}
        return {"x": convert(x).whole(), **about, "channels": self.cut.channels, "rate": self.cut.rate}

    @cached_property
    def about(self) -> dict[str, Array]:
        """Return y, group, recording, start, end and so on of all windows, as far as they are known."""
        recordings = [track.recording for track in self.tracks]
        length = self.cut.length
        counts = [len(starts) for starts in self._starts]
        groups = [one.name if one.group is None else one.group for one in recordings]
        labels = [one.label for one in recordings]
        y = None if all(label is None for label in labels) else _per_window(labels, self._starts, length)
        if self.has_ranges:
            y = _joined_labels(self._labels_of_ranges, y)

        about = {
            "y": y,
            "group": _per_window(groups, self._starts, length),
            "recording": np.repeat([one.name for one in recordings], counts),
            "start": np.concatenate([start for start, _ in self._spans]),
            "end": np.concatenate([end for _, end in self._spans]),
        }
        if self.cut.rate is not None and any(one.origin for one in recordings):
            for side, what in enumerate(("start_time", "end_time")):
                pairs = zip(recordings, self._spans, strict=True)
                about[what] = np.concatenate([utc_times(one.origin, span[side]) for one, span in pairs])
        return {what: values for what, values in about.items() if values is not None}

    @cached_property
    def _spans(self) -> list[tuple[Seconds, Seconds]]:
        """Return start and end of the windows of each track; a window ends a usual step after its last time step."""
        rate = self.cut.rate or 1.0
        firsts, lasts = [], []
        for track, starts in zip(self.tracks, self._starts, strict=True):
            stamps = track.recording.times
            if stamps is None or self.cut.rate is None:
                stamps = np.arange(track.recording.n_times) / rate
            firsts.append(stamps[starts])
            lasts.append(stamps[starts + self.cut.length - 1])
        # All at once, because rounding a few numbers takes as long as rounding thousands.
        edges = np.cumsum([len(starts) for starts in self._starts])[:-1]
        start = without_noise(np.concatenate(firsts), self.cut.rate)
        end = without_noise(np.concatenate(lasts) + 1 / rate, self.cut.rate)
        return list(zip(np.split(start, edges), np.split(end, edges), strict=True))

    @cached_property
    def _labels_of_ranges(self) -> list[list[Label | None]]:
        """Return for each track the label that each of its windows takes from a range, None where there is none."""
        if self.cut.rate is None:
            raise InputError(
                f"Ranges of labels are in seconds, and the rate is not known. Say it: {how_to_set('rate', 50)}."
            )
        labels = []
        for track, (start, end) in zip(self.tracks, self._spans, strict=True):
            spans = [range_[:3] for range_ in track.recording.ranges]
            labels.append(labels_of_windows(spans, start, end))
        return labels

    def _count_ranges(self) -> tuple[int, int]:
        """Count the ranges of these tracks, and those of them that lie on windows but gave none its label.

        A row of a table may be of several tracks: the recordings of one file, or the pieces of one between gaps.
        """
        rows, overlapping, used = set[str](), set[str](), set[str]()
        tracks = zip(self.tracks, self._labels_of_ranges, self._spans, strict=True)
        for track, labels, (start, end) in tracks:
            ranges = track.recording.ranges
            rows |= {range_.row for range_ in ranges}
            on_windows, on_labels = rows_on_windows(ranges, labels, start, end)
            overlapping |= on_windows
            used |= on_labels
        return len(rows), len(overlapping - used)


def _joined_labels(by_range: Sequence[Sequence[Label | None]], y: Array | None) -> Array:
    """Return the labels of windows: those of ranges, and where none is, those of y."""
    labels = [label for track in by_range for label in track]
    others = [None] * len(labels) if y is None else y.tolist()
    chosen = [other if label is None else label for label, other in zip(labels, others, strict=True)]
    return check_labels(chosen, len(chosen), "label", "windows")


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
