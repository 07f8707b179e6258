"""Long recordings cut into windows."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, final

import numpy as np

from dicot.core.errors import InputError, LeftOutWarning, NoWindowError, ShortRecordingWarning, is_whole
from dicot.data.cases import to_array, to_cases
from dicot.data.collection import (
    Windows,
    check_channel_names,
    check_groups,
    check_labels,
    check_rate,
    labelled,
    warn_of_layout,
)
from dicot.data.conversion import convert
from dicot.data.naming import listed
from dicot.data.policies import NO_VALUE, Array, Cases, cases_where, check_missing, fill_missing, name_cases
from dicot.data.texts import join_values
from dicot.data.timestamps import GAP, SAME_RATE, Seconds, check_gap, is_other_rate, stretches, usual_rate

_SAID, _LARGE = 0.01, 0.25  # shares of time steps from which on those cut off, and all in no window, are told


def slide(
    recordings: Any,
    length: int,
    stride: int,
    *,
    labels: Any = None,
    groups: Any = None,
    layout: str = "nct",
    missing: str = "error",
    keep_tail: bool = False,
    name: str = "",
    rate: float | None = None,
    channels: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    times: Any = None,
    gap: float = GAP,
) -> Windows:
    """Cut long recordings into windows of `length` time steps, one every `stride`; none spans two recordings or a gap.

    A recording shorter than a window is left out with a warning. The windows know their recording, its channels, its
    rate, and where they start and end: in seconds if `rate` or `times` are given, otherwise in time steps.

    Parameters
    ----------
    recordings : one array (channels, time) or (time,), or a list of them; (time, channels) with layout="ntc"
    length, stride : in time steps
    labels, groups : for each recording one value, or one value per time step, of which a window gets the most frequent
        (of several the smallest). NaN, None and "" mean unlabelled; a window that is labelled in less than half of its
        time steps has no label. Without groups, a window's group is the number of its recording
    layout : "nct" or "ntc"
    missing : "error", "interpolate" or "zero" for NaN
    keep_tail : cover the end of a recording by a last window that ends there; otherwise a tail shorter than a window
        is dropped
    name : of the result, for reports
    rate : time steps per second. Beside `times` it must agree with them
    channels : the names of the channels
    names : one for each recording; without them the numbers 0, 1 ... Pieces of one recording may share its name
    times : for each recording the increasing time stamps of its time steps, in seconds
    gap : a step between time stamps that is longer than so many usual steps is a gap, unless those behind it catch up.
        The stretches beside it are cut each by itself, and missing values are not filled in across it. They are divided
        where the rate changes too, and those of another rate are left out with a warning
    """
    plan = plan_cuts(
        recordings,
        length,
        stride,
        labels=labels,
        groups=groups,
        layout=layout,
        missing=missing,
        keep_tail=keep_tail,
        name=name,
        rate=rate,
        channels=channels,
        names=names,
        times=times,
        gap=gap,
    )
    plan.left.warn(plan.about.rate)
    return plan.windows()


class LeftOut(NamedTuple):
    """How many time steps lie in no window, by reason; not those of recordings shorter than one, which are named."""

    rows: int = 0  # all time steps
    between: int = 0  # in stretches between gaps, or changes of rate, that are shorter than a window
    other: int = 0  # at another rate
    tail: int = 0  # behind the last window of a stretch

    def plus(self, other: Sequence[int]) -> "LeftOut":
        return LeftOut(*(a + int(b) for a, b in zip(self, other, strict=True)))

    def sentence(self, rate: float | None) -> str:
        """Say how many and why; nothing where they are few."""
        cut, lost = self.between + self.other, self.between + self.other + self.tail
        if not (cut and cut >= _SAID * self.rows) and not (lost and lost >= _LARGE * self.rows):
            return ""
        at = "the windows" if rate is None else f"{rate:.4g} per second"
        reasons = {
            f"another rate than {at} ({self.other:,}; resample=True (--resample) keeps them)": self.other,
            f"stretches between gaps that are shorter than a window ({self.between:,}; a smaller window, or a larger "
            "gap= (--gap), keeps more)": self.between,
            f"ends behind the last window ({self.tail:,}; a smaller window keeps more)": self.tail,
        }
        why = " and ".join(reason for reason, count in reasons.items() if count)
        return f"{100 * lost / self.rows:.2g} % of rows ({lost:,} of {self.rows:,}) lie in no window, because of {why}."

    def warn(self, rate: float | None) -> None:
        """Warn of them."""
        if said := self.sentence(rate):
            warnings.warn(said, LeftOutWarning, stacklevel=3)


@final
@dataclass(frozen=True, eq=False)
class CutPlan:
    """All that is known of the windows of some recordings before they are cut, a few at a time or all at once."""

    runs: Cases  # stretches without a gap (C, T_i), nothing missing
    starts: list[Array]  # for each of them the time steps at which its windows begin
    length: int
    stride: int
    about: Windows  # all windows with what is known of them, without values
    left: LeftOut  # what is in none of them

    def __len__(self) -> int:
        return len(self.about)

    @property
    def n_channels(self) -> int:
        """Give the number of channels C."""
        return int(self.runs[0].shape[0])

    def windows(self, rows: slice = slice(None)) -> Windows:
        """Cut the windows in these rows."""
        first, stop, _ = rows.indices(len(self))
        some: list[Array] = []
        before = 0
        for at in self.starts:
            some.append(at[max(0, first - before) : max(0, stop - before)])
            before += len(at)
        x = convert(_cut(self.runs, some, self.length, self.stride)).whole()
        about = {
            what: values[first:stop]
            for what in ("y", "group", "recording", "start", "end")
            if (values := getattr(self.about, what)) is not None
        }
        return replace(self.about, x=x, **about)


def plan_cuts(
    recordings: Any,
    length: int,
    stride: int,
    *,
    labels: Any = None,
    groups: Any = None,
    layout: str = "nct",
    missing: str = "error",
    keep_tail: bool = False,
    name: str = "",
    rate: float | None = None,
    channels: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    times: Any = None,
    gap: float = GAP,
) -> CutPlan:
    """Do all of `slide` but the cutting itself: check, fill in, divide at gaps, and give windows their labels."""
    for what, value in (("length", length), ("stride", stride)):
        if not is_whole(value, 1):
            raise InputError(f"{what} must be a whole number of at least 1 time step; got {value!r}.")
    single = not isinstance(recordings, list | tuple) and to_array(recordings).ndim <= 2
    tracks = to_cases([recordings] if single else recordings, layout)
    if single:
        labels, groups = (None if v is None else _of_one_recording(v) for v in (labels, groups))
        times = times if times is None or _is_listed(times) else [times]
    known = _recording_names(names, len(tracks))
    clock = _clock(times, rate, tracks, gap)
    lost = _refuse_values(tracks, missing, known)
    whole = [(number, slice(0, track.shape[1])) for number, track in enumerate(tracks)]
    spans = whole if clock.spans is None else clock.spans
    runs = tracks if clock.spans is None else [tracks[i][:, run] for i, run in spans]
    runs = fill_missing(runs, missing) if lost else runs
    if lost and missing == "interpolate":
        _refuse_dead(
            [(run, i, span) for run, (i, span) in zip(runs, spans, strict=True) if run.shape[1] >= length],
            known,
            clock,
            channels,
        )
    starts = [_starts(run.shape[1], length, stride, keep_tail) for run in runs]
    left = _left_out(tracks, known, [(known[i], run.stop - run.start) for i, run in spans], starts, length)
    try:
        _warn_of_short(runs, [known[i] for i, _ in spans], length, layout, len(tracks))
    except NoWindowError as error:
        error.left = left
        raise
    # The same places, counted from the beginning of the recording.
    places = [np.concatenate([_NONE, *parts]) for parts in _by_recording(starts, spans, len(tracks))]
    ids = np.arange(len(tracks)) if groups is None else groups
    y = None if labels is None else _per_window(labels, tracks, places, length, "labels")
    group = _per_window(ids, tracks, places, length, "groups")
    n_channels = runs[0].shape[0]
    start, end = (without_noise(times, clock.rate) for times in clock.read(places, length))
    about = Windows(
        np.broadcast_to(np.float32(0), (len(start), n_channels, length)),
        y,
        group,
        name,
        recording=np.repeat(np.array(known), [len(at) for at in places]),
        start=start,
        end=end,
        channels=None if channels is None else check_channel_names(channels, n_channels),
        rate=clock.rate,
    )
    return CutPlan(runs, starts, length, stride, about, left)


def _left_out(
    tracks: Cases, names: Sequence[str], runs: Sequence[tuple[str, int]], starts: Sequence[Array], length: int
) -> LeftOut:
    """Count the time steps in no window, of runs by the name of their recording and their time steps."""
    rows = sum(track.shape[1] for track in tracks)
    held: dict[str, int] = {}  # time steps by recording, to tell whether it was cut
    for name, track in zip(names, tracks, strict=True):
        held[name] = held.get(name, 0) + track.shape[1]
    short = sum(n for name, n in runs if n < length and n < held[name])
    tail = sum(n - int(at[-1]) - length for (_, n), at in zip(runs, starts, strict=True) if len(at))
    return LeftOut(rows, short, rows - sum(n for _, n in runs), tail)


_NONE = np.array([], dtype=np.intp)
_Span = tuple[int, slice]  # a stretch without a gap: the number of its recording, and its time steps


class _Clock(NamedTuple):
    """What is known of the time of recordings."""

    rate: float | None = None
    times: list[Seconds] | None = None
    spans: list[_Span] | None = None  # in order; None where nothing is known of gaps

    def read(self, places: Sequence[Array], length: int) -> tuple[Seconds, Seconds]:
        """Return start and end of the windows that begin at these time steps of each recording."""
        if self.times is None or self.rate is None:
            steps, rate = np.concatenate(places), self.rate or 1.0
            return steps / rate, (steps + length) / rate
        starts = [times[at] for times, at in zip(self.times, places, strict=True)]
        lasts = [times[at + length - 1] for times, at in zip(self.times, places, strict=True)]
        return np.concatenate(starts), np.concatenate(lasts) + 1 / self.rate


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


def _is_listed(times: Any) -> bool:
    """Tell whether time stamps came as a list of one array."""
    return hasattr(times, "__len__") and len(times) == 1 and hasattr(times[0], "__len__")


def _recording_names(names: Any, n: int) -> list[str]:
    if names is None:
        return [str(number) for number in range(n)]
    given = [names] if isinstance(names, str) else list(names)
    if len(given) != n or not all(isinstance(one, str) and one for one in given):
        raise InputError(f"names must hold one text for each of the {n} recording(s); got {names!r}.")
    return given


def _clock(times: Any, rate: Any, tracks: Cases, gap: Any) -> _Clock:
    """Check rate and time stamps, and divide the recordings at gaps."""
    rate = None if rate is None else check_rate(rate)
    gap = check_gap(gap)
    if times is None:
        return _Clock(rate)
    if not hasattr(times, "__len__") or len(times) != len(tracks):
        raise InputError(f"times must hold the time stamps of each of the {len(tracks)} recording(s); got {times!r}.")
    stamps = [
        _stamps(one, track.shape[1], f"times[{i}]") for i, (one, track) in enumerate(zip(times, tracks, strict=True))
    ]
    parts = [stretches(one, gap) for one in stamps]
    rates = {i: found for i, one in enumerate(stamps) if (found := usual_rate(one, parts[i])) is not None}
    if not rates and rate is None:
        raise InputError("times hold no two time steps without a gap, so the rate is unknown. Pass rate= too.")
    usual = rate if rate is not None else float(np.median(list(rates.values())))
    other = [i for i, found in rates.items() if abs(found - usual) > SAME_RATE * usual]
    if other:
        raise InputError(
            f"Recordings must have one rate; recording {other[0]} has {rates[other[0]]:g} time steps per second, "
            f"{'rate= says' if rate is not None else 'the median is'} {usual:g}. Resample them to one rate first, as "
            "windows_from does with rate=."
        )
    spans = [(i, one) for i, found in enumerate(parts) for one in found]
    return _Clock(usual, stamps, [(i, one.rows) for i, one in spans if not is_other_rate(one.rate, usual)])


def _stamps(values: Any, n: int, what: str) -> Seconds:
    stamps = to_array(values)
    if stamps.shape != (n,) or stamps.dtype.kind not in "iuf":
        raise InputError(
            f"{what} must be {n} numbers, a time in seconds for each time step; got shape {stamps.shape} of dtype "
            f"{stamps.dtype}. Convert dates to seconds first."
        )
    stamps = stamps.astype(np.float64)
    lost = np.flatnonzero(~np.isfinite(stamps))
    if len(lost):
        raise InputError(f"{what} has no number at {name_cases(lost, 'time step', 'time steps')}. Fill them in.")
    back = np.flatnonzero(np.diff(stamps) <= 0) + 1
    if len(back):
        raise InputError(
            f"{what} must increase; time step {back[0]} is at {stamps[back[0]]:g} s, the one before it at "
            f"{stamps[back[0] - 1]:g} s. Sort the recording by time and drop what is double."
        )
    return stamps


def _by_recording(starts: Sequence[Array], spans: Sequence[_Span], n: int) -> list[list[Array]]:
    """Gather the starts of windows by recording, counted from its beginning."""
    gathered: list[list[Array]] = [[] for _ in range(n)]
    for at, (number, run) in zip(starts, spans, strict=True):
        gathered[number].append(run.start + at)
    return gathered


def _of_one_recording(values: Any) -> Any:
    """Accept what belongs to the only recording bare, or in a list of one."""
    listed = not isinstance(values, str) and hasattr(values, "__len__") and len(values) == 1
    return values if listed else [values]


def split_groups(windows: Windows, test_groups: Iterable[Any]) -> tuple[Windows, Windows]:
    """Split into (train, test): the windows of `test_groups` are the test part, all others the training part."""
    if windows.group is None:
        raise InputError("These windows carry no groups. Pass groups= to slide or group= to check_collection.")
    wanted = list(test_groups)
    known = set(windows.group.tolist())
    unknown = [g for g in wanted if g not in known]
    if unknown or not wanted or known <= set(wanted):
        raise InputError(
            f"test_groups must name some, not all, of the groups {sorted(known)}; got {wanted}"
            + (f", of which {unknown} do not occur." if unknown else ".")
        )
    in_test = np.isin(windows.group, wanted)
    return windows.subset(~in_test), windows.subset(in_test)


def _refuse_values(tracks: Cases, missing: str, names: Sequence[str]) -> bool:
    """Refuse inf, and by `missing` NaN, naming the recording; tell whether there is any NaN."""
    numbered = all(one == str(number) for number, one in enumerate(names))
    bad = cases_where(np.isinf, tracks)
    if len(bad):
        which = name_cases(bad, "Recording", "Recordings") if numbered else f"Recording {names[bad[0]]!r}"
        raise InputError(f"{which} contain inf. Remove or clip these values.")
    lost = cases_where(np.isnan, tracks)
    if len(lost) and missing == "error" and not numbered:
        raise InputError(
            f"Recording {names[lost[0]]!r} contains NaN ({len(lost)} of {len(names)} do). "
            'Set missing="interpolate" or missing="zero", or remove the missing values.'
        )
    check_missing(lost, missing, "recording")
    return bool(len(lost))


def _refuse_dead(
    runs: Sequence[tuple[Array, int, slice]], names: Sequence[str], clock: "_Clock", channels: Sequence[str] | None
) -> None:
    """Refuse a stretch (C, T) that gives windows and has no value of a channel."""
    for run, number, span in runs:
        dead = np.flatnonzero(np.isnan(run[:, 0]))  # all else is filled in
        if len(dead):
            channel = dead[0] if channels is None else channels[dead[0]]
            times = None if clock.times is None else clock.times[number][span]
            when = "" if times is None else f" from {times[0]:g} to {times[-1]:g} s"
            raise InputError(NO_VALUE.format(f"Recording {names[number]!r}", f"channel {channel!r}{when}"))


def _warn_of_short(runs: Cases, names: Sequence[str], length: int, layout: str, n_recordings: int) -> None:
    """Say which recordings give no window, or that none does; `names` are those of the runs' recordings."""
    n_channels = runs[0].shape[0]
    n_times: dict[str, int] = {}  # of the longest run, by recording
    for run, name in zip(runs, names, strict=True):
        n_times[name] = max(run.shape[1], n_times.get(name, 0))
    longest = max(n_times.values())
    if longest < length:
        other = {"nct": "ntc", "ntc": "nct"}[layout]
        turned = (
            f'If these are in fact the time steps, set layout="{other}"; otherwise use'
            if n_channels >= length
            else "Use"
        )
        cut = f", cut at {len(runs) - n_recordings} gap(s)" if len(runs) > n_recordings else ""
        wider = ", or a larger gap= if the time stamps are only uneven" if cut else ""
        raise NoWindowError(
            f"No recording is as long as a window of length={length}: {n_recordings} recording(s) of {n_channels} "
            f"channel(s) came{cut}, the longest with {longest} time steps. {turned} a smaller length{wider}."
        )
    warn_of_layout(n_channels, longest, layout)
    short = {name: n for name, n in n_times.items() if n < length}
    warn_of_short(short, length, " without a gap" if len(runs) > n_recordings else "")


def warn_of_short(short: Mapping[str, int], length: int, cut: str = "") -> None:
    """Name recordings that give no window, if there are any, with their time steps."""
    if short:
        warnings.warn(
            f"Left out recording{'s' if len(short) > 1 else ''} {listed(list(short))} "
            f"({listed(list(map(str, short.values())))} time steps{cut}): shorter than a window of length={length}.",
            ShortRecordingWarning,
            stacklevel=5,
        )


def _starts(n_times: int, length: int, stride: int, keep_tail: bool) -> Array:
    starts = np.arange(0, n_times - length + 1, stride)
    if keep_tail and len(starts) and starts[-1] + length < n_times:
        starts = np.append(starts, n_times - length)
    return starts


def _cut(tracks: Cases, starts: Sequence[Array], length: int, stride: int) -> Array:
    out = np.empty((sum(map(len, starts)), tracks[0].shape[0], length), dtype=np.result_type(*tracks))
    row = 0
    for track, at in zip(tracks, starts, strict=True):
        if not len(at):
            continue
        views = np.lib.stride_tricks.sliding_window_view(track, length, axis=1)  # (C, T - length + 1, length)
        # Still a view: values are copied once, below. A tail that is kept may lie closer than a stride.
        n_regular = len(at) - int(len(at) > 1 and at[-1] - at[-2] != stride)
        regular = views[:, at[0] : at[n_regular - 1] + 1 : stride].transpose(1, 0, 2)
        out[row : row + n_regular] = regular
        if len(at) > n_regular:
            out[row + n_regular] = views[:, at[-1]]
        row += len(at)
    return out


def _per_window(values: Any, tracks: Cases, starts: Sequence[Array], length: int, what: str) -> Array:
    """Return the value of each window from one value per recording or per time step."""
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != len(tracks):
        raise InputError(f"{what} must hold one entry for each of the {len(tracks)} recording(s); got {values!r}.")
    checked = []
    check = check_groups if what == "groups" else check_labels
    for number, (value, track) in enumerate(zip(values, tracks, strict=True)):
        steps, n_values = ([value], 1) if to_array(value).ndim == 0 else (value, track.shape[1])
        checked.append(check(steps, n_values, f"{what}[{number}]", "time steps"))
    kinds = {v.dtype.kind == "U" for v in checked if labelled(v).any()}
    if len(kinds) > 1:
        raise InputError(f"{what} must be all strings or all numbers; got both. Convert them to one type.")
    unlabelled = np.array("" if True in kinds else np.nan)
    joined = join_values([v if labelled(v).any() else np.full(len(v), unlabelled) for v in checked])
    unlabelled = np.array("" if joined.dtype.kind == "U" else np.nan)
    seen = labelled(joined)
    codes = np.full(len(joined), -1, dtype=np.intp)
    known, codes[seen] = np.unique(joined[seen], return_inverse=True)
    parts = np.split(codes, np.cumsum([len(v) for v in checked])[:-1])
    winners = np.concatenate(
        [
            np.repeat(part, len(at)) if len(part) == 1 else _majority(part, at, length, len(known))
            for part, at in zip(parts, starts, strict=True)
        ]
    )
    values_of_windows: Array = (known if seen.all() else np.append(known, unlabelled))[winners]
    return values_of_windows


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
