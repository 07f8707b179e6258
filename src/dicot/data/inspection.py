"""A first look at recordings: what each file holds, which windows would suit them, and series thinned for drawing."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, SettingNeededError, listed
from dicot.data.cases import Array
from dicot.data.clocks import Remark
from dicot.data.cutting import LeftOut
from dicot.data.labelcolumns import TableColumns, check_lacking
from dicot.data.namepattern import NamePattern, suggest_pattern
from dicot.data.ranges import check_places
from dicot.data.readers import column_names, named_recordings, read_file, stem_of
from dicot.data.reading import Reading, Source, seconds_text, time_steps
from dicot.data.recording import Recording
from dicot.data.tables import says_time
from dicot.data.tags import NOTHING, tags_of
from dicot.data.timestamps import SAME_RATE, Stretch, is_other_rate, stretches

BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 24  # characters of a sparkline
_LOOKED_AT = 1 << 15  # time steps that a period is looked for in
_STRETCH, _STRETCHES = 1 << 10, 32  # time steps of a stretch, and how many are looked at where the whole has no period
_REPEATING = 0.2, 3  # share and number of the stretches that must have a period; in wandering noise at most one had
_NAMED = 4  # values of a part of the names that are shown
_FEWEST = 32  # time steps below which no period is looked for
_CLEAR = 0.3  # autocorrelation from which on a period counts
_AS_HIGH = 0.8  # share of the highest peak from which on the first one is the period, and the others repeat it
_REPEATS = 4  # periods in a window
_SHORTEST, _COMMON = 16, 128  # time steps: the least window, and the size that many studies use where nothing is known
_LEAST_SECONDS, _LEAST_FAST = 0.1, 1024  # a window lasts as long, where that is not more time steps than these
_FEW, _MANY = 500, 200_000  # windows
_SHIFTED = 3.0  # standard deviations between the levels of recordings from which on each case is scaled by itself,
_ALIKE = 2.0  # unless their sizes differ by more than this factor, which then tells recordings apart


@dataclass(frozen=True)
class Inspected:
    """What one recording looks like; where it could not be read, `problem` says why and the rest is empty."""

    file: str
    rows: int = 0
    seconds: float | None = None  # from the first to the end of the last time step, gaps counted
    rate: float | None = None  # time steps per second
    gaps: int = 0
    missing: float = 0.0  # share of values
    channels: tuple[str, ...] = ()
    sparkline: str = ""  # how far the values are from their usual level, over time
    stretches: tuple[int, ...] = ()  # time steps between gaps, at this rate
    others: int = 0  # time steps at another rate
    period: float | None = None  # time steps after which the values repeat, on the whole or in many stretches
    means: tuple[float, ...] = ()  # of each channel
    stds: tuple[float, ...] = ()
    problem: str = ""
    path: Path | None = None
    columns: tuple[str, ...] = ()  # the channels; of a file with a problem what else its first row names but time
    bytes: int = 0  # of the file
    n_merged: int = 0  # rows that became one with the row before, which had the same time stamp
    settings: Mapping[str, str] = field(default_factory=dict)  # with which a file that has a problem could be read
    remarks: tuple[Remark, ...] = ()  # on its clock
    assumed_unit: str | None = None  # of its time stamps, where nobody named one


@dataclass(frozen=True)
class Suggestion:
    """A reading for recordings, with its reasons."""

    reading: Reading
    reasons: dict[str, str]  # field of the reading -> why it is so, or why it is not set, in a sentence
    left: LeftOut | None = None  # what would lie in no window, where nothing is resampled


def inspect_recordings(source: Source, reading: Reading | None = None, **options: Any) -> list[Inspected]:
    """Look at every recording, one file in memory at a time; a file that cannot be read is a row with its problem."""
    how = (reading or Reading()).replace(**options)
    rows = []
    files = named_recordings(source, how.table)
    tags = tags_of(source, files, how)
    n_ranges, misplaced, tables = 0, [], []
    for name, file in files.items():
        shown = name + file.name.removeprefix(stem_of(file))
        size = file.stat().st_size
        try:
            recordings = read_file(file, how, tags.get(name, NOTHING))
        except InputError as error:
            settings = error.settings if isinstance(error, SettingNeededError) else {}
            columns = tuple(named for named in column_names(file) if not says_time(named))
            rows.append(Inspected(shown, problem=str(error), path=file, columns=columns, bytes=size, settings=settings))
            continue
        n_ranges += sum(recording.n_ranges for recording in recordings)
        misplaced += [place for recording in recordings for place in recording.misplaced]
        for recording in recordings:
            row = _inspected(shown + recording.name.removeprefix(stem_of(file)), recording, how.gap)
            rows.append(replace(row, path=file, columns=recording.channels, bytes=size))
            tables.append(TableColumns(recording.name, recording.lacking, recording.columns))
    check_lacking(tables, how.label)
    # Without a window nothing says how far a range may reach over the end of its recording.
    check_places(n_ranges, misplaced, tolerance=np.inf)
    return rows


def _inspected(file: str, recording: Recording, gap: float) -> Inspected:
    values, times, rate = recording.values, recording.times, recording.rate
    found = [Stretch(slice(0, recording.n_times), rate, 0)] if times is None else stretches(times, gap)
    runs = [one.rows for one in found if rate is None or not is_other_rate(one.rate, rate)]
    longest = max(runs, key=lambda run: run.stop - run.start)
    seconds = None
    if rate is not None:
        seconds = recording.n_times / rate if times is None else float(times[-1] - times[0]) + 1 / rate
    lost = np.isnan(values)
    empty = lost.all(axis=1, keepdims=True)
    filled = np.where(empty, 0.0, values)  # a channel without values has neither level nor spread
    exact = filled.astype(np.float64)
    mean, std = (np.nanmean, np.nanstd) if lost.any() else (np.mean, np.std)
    return Inspected(
        file=file,
        rows=recording.n_times,
        seconds=seconds,
        rate=rate,
        gaps=len(found) - len({one.part for one in found}),
        missing=float(lost.mean()),
        channels=recording.channels,
        sparkline=sparkline(filled),
        stretches=tuple(run.stop - run.start for run in runs),
        others=recording.n_times - sum(run.stop - run.start for run in runs),
        period=usual_period(filled[:, longest]),
        means=tuple(map(float, mean(exact, axis=1))),
        stds=tuple(map(float, std(exact, axis=1))),
        n_merged=recording.n_merged,
        remarks=recording.remarks,
        assumed_unit=recording.assumed_unit,
    )


def sparkline(values: Array) -> str:
    """Draw how far values (C, T) are from their median over time, in standard deviations; a blank has no value."""
    is_missing = np.isnan(values)
    # numpy's functions that leave out what is missing take ten times as long, which many short recordings feel.
    middle, spread_of = (np.nanmedian, np.nanstd) if is_missing.any() else (np.median, np.std)
    spread = spread_of(values, axis=1, keepdims=True, dtype=np.float64)
    apart = np.abs(values - middle(values, axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    n_times = values.shape[1]
    n_parts = min(_WIDTH, n_times)
    longer = n_times % n_parts  # parts that have one time step more than the others
    sizes = np.full(n_parts, n_times // n_parts)
    sizes[:longer] += 1
    starts = np.cumsum(sizes) - sizes
    sums = np.add.reduceat(np.where(is_missing, 0.0, apart).sum(axis=0, dtype=np.float64), starts)
    counts = np.add.reduceat((~is_missing).sum(axis=0), starts)
    levels = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    top = np.nanmax(levels)
    heights = np.zeros(len(levels)) if not top > 0 else levels / top * (len(BARS) - 1)
    return "".join(" " if np.isnan(height) else BARS[round(float(height))] for height in heights)


def usual_period(values: Array) -> float | None:
    """Return the period of values (C, T), or else the median of those stretches that have one, if they are not few."""
    whole = dominant_period(values)
    n_stretches = values.shape[1] // _STRETCH
    if whole is not None or not n_stretches:
        return whole
    places = np.unique(np.linspace(0, n_stretches - 1, min(n_stretches, _STRETCHES)).astype(int)) * _STRETCH
    periods = [dominant_period(values[:, at : at + _STRETCH]) for at in places]
    found = [period for period in periods if period is not None]
    share, number = _REPEATING
    return float(np.median(found)) if len(found) >= max(number, share * len(periods)) else None


def dominant_period(values: Array) -> float | None:
    """Return the time steps after which values (C, T) repeat most clearly, by their autocorrelation; None if none.

    The first high peak after the autocorrelation has been negative counts if it is high again near twice that lag:
    noise that only wanders has one peak by chance, but seldom two.
    """
    n_times = min(values.shape[1], _LOOKED_AT)
    first = (values.shape[1] - n_times) // 2
    x = _flat(values[:, first : first + n_times])
    if n_times < _FEWEST or not len(x):
        return None
    spectrum = np.fft.rfft(x, 2 * n_times, axis=1)
    sums = np.fft.irfft((spectrum * spectrum.conj()).real, axis=1)[:, : n_times // 2 + 1].mean(axis=0)
    correlation = sums / (n_times - np.arange(len(sums)))  # for lags up to a half of the recording
    negative = np.flatnonzero(correlation < 0)
    if not len(negative):
        return None
    half = len(correlation) // 2  # so that twice the lag is there as well
    highest = correlation[negative[0] : half].max(initial=0.0)
    if highest < _CLEAR:
        return None
    # The top of the first hill that is as high: noise puts small peaks on its slopes.
    foot = int(negative[0] + np.argmax(correlation[negative[0] :] >= _AS_HIGH * highest))
    below = np.flatnonzero(correlation[foot:] < highest / 2)
    if not len(below):
        return None
    lag = int(foot + np.argmax(correlation[foot : foot + below[0]]))
    near = max(1, lag // 8)
    again = correlation[2 * lag - near : 2 * lag + near + 1].max(initial=0.0)
    if lag >= half or again < correlation[lag] / 2:
        return None
    # The peak lies between time steps: the top of the parabola through it and its neighbours.
    left, middle, right = correlation[lag - 1 : lag + 2]
    bend = left - 2 * middle + right
    return float(lag + np.clip((left - right) / (2 * bend), -0.5, 0.5)) if bend < 0 else float(lag)


def _flat(values: Array) -> NDArray[np.float64]:
    """Return the channels that change, without missing values and trend, with standard deviation 1."""
    time = np.arange(values.shape[1])
    rows = []
    for channel in values.astype(np.float64):
        known = ~np.isnan(channel)
        if known.sum() < _FEWEST:
            continue
        x = np.interp(time, time[known], channel[known])
        x = x - np.polyval(np.polyfit(time, x, 1), time)
        if (spread := x.std()) > 1e-9 * max(1e-30, np.abs(channel[known]).max()):
            rows.append(x / spread)
    return np.array(rows).reshape(-1, values.shape[1])


def suggest_windows(rows: Sequence[Inspected], reading: Reading | None = None) -> Suggestion:
    """Suggest window, stride, scale and more for inspected recordings; what else a reading says stays."""
    sound = [row for row in rows if not row.problem and row.rows]
    if not sound:
        raise InputError(f"None of the {len(rows)} recording(s) could be read, so nothing can be suggested.")
    said = reading or Reading()
    rates = [row.rate for row in sound if row.rate is not None]
    rate = float(np.median(rates)) if len(rates) == len(sound) else None
    window, steps, reason = _window(sound, rate)
    stride, stride_reason = _stride(sound, steps)
    common = tuple(name for name in sound[0].channels if all(name in row.channels for row in sound))
    asked = "those asked for" if said.channels else "all columns of numbers"
    shared = any(set(row.channels) != set(common) for row in sound)
    found: dict[str, tuple[Any, str]] = {
        "channels": (common or None, "those that all recordings have" if shared else asked),
        "window": (window, reason),
        "stride": (stride, stride_reason),
        "scale": _scale(sound),
    }
    if rate is not None and any(abs(one - rate) > SAME_RATE * rate for one in rates):
        differ = f"the rates differ, {min(rates):g} to {max(rates):g} per second; this is the median."
        found["rate"] = float(f"{rate:.4g}"), differ
    if lacking := [row.missing for row in sound if row.missing]:
        count = f"{len(lacking)} of {len(sound)} recordings miss values, up to {max(lacking):.1%} of one."
        found["missing"] = "interpolate", count
    left = None if "rate" in found else _left_out(sound, steps, stride)
    settled = said.replace(**{key: value for key, (value, _) in found.items() if value is not None})
    return Suggestion(settled, {key: why for key, (_, why) in found.items() if why}, left)


def names_sentence(names: Collection[str], pattern: str | None = None) -> str:
    """Say what the parts of names are, by a pattern or else by what they have in common; "" where that is nothing."""
    found = pattern or suggest_pattern(names)
    if found is None:
        return ""
    meant = NamePattern(found)
    read = [fields for name in names if (fields := meant.fields_of(name)) is not None]
    values = {field: sorted({one[field] for one in read}) for field in meant.fields}
    said = "; ".join(f"{field}: {listed(texts[:_NAMED])} ({len(texts)} in all)" for field, texts in values.items())
    if pattern is not None:
        return f"{len(read)} of {len(names)} files are called like this. {said}."
    remedy = "Give the parts names of your own, and say which is the label and which the group, as in --names"
    own = iter(("activity", "subject"))  # as their names are, so that it can be pasted
    example = re.sub(r"\{(\w+)\}", lambda field: f"{{{next(own, field[1])}}}", found)
    group = " --group subject" if len(values) > 1 else ""
    return f"files are called like {found}. {said}. {remedy} '{example}' --label activity{group}."


def _left_out(rows: Sequence[Inspected], length: int, stride: str) -> LeftOut:
    """Count the time steps that lie in no such window, as they are cut."""
    step = time_steps(stride, None, length)
    cut = [n for row in rows for n in row.stretches if len(row.stretches) > 1 or row.others or n >= length]
    between = sum(n for n in cut if n < length)
    tail = sum((n - length) % step for n in cut if n >= length)
    return LeftOut(sum(row.rows for row in rows), between, sum(row.others for row in rows), tail)


def _window(rows: Sequence[Inspected], rate: float | None) -> tuple[str | int, int, str]:
    """Return the window as text or time steps, its time steps, and why."""
    # Periods are compared in seconds where all rates are known, because these may differ.
    periodic = [row for row in rows if row.period is not None]
    periods = [row.period / row.rate * rate if rate and row.rate else row.period for row in periodic if row.period]
    if 2 * len(periods) >= len(rows):
        period = float(np.median(periods))
        steps = round(_REPEATS * period)
        length = f"{period / rate:.3g} s" if rate else f"{period:.3g} time steps"
        reason = (
            f"{len(periods)} of {len(rows)} recordings repeat, at least in parts, after {length}; a window "
            f"holds {_REPEATS} such periods"
        )
    else:
        steps = _COMMON
        seldom = f" in more than {len(periods)} of {len(rows)} recordings" if periods else ""
        reason = f"no period found{seldom}; {_COMMON} time steps are only a common size to start from"
    least = max(_SHORTEST, min(_LEAST_FAST, round(_LEAST_SECONDS * rate))) if rate else _SHORTEST
    if steps < least:
        steps = least
        reason += f", made longer to {least} time steps, because slower changes tell more"
    # What one recording in ten is shorter than: the others give at least one window.
    most = max(1, int(np.quantile([max(row.stretches) for row in rows], 0.1)))
    if steps > most:
        steps = most
        reason += f", shortened to {most} time steps so that nine in ten recordings are long enough"
    if rate is None:
        return steps, steps, f"{reason}. The rate is not known, so it is counted in time steps."
    text = seconds_text(steps / rate)
    return text, time_steps(text, rate), f"{reason}."


def _stride(rows: Sequence[Inspected], steps: int) -> tuple[str, str]:
    def count(share: float) -> int:
        stride = max(1, round(share * steps))
        return sum(max(0, (length - steps) // stride + 1) for row in rows for length in row.stretches)

    half = count(0.5)
    if half < _FEW:
        return "25%", f"at 50% there would be only {half} windows; more overlap makes {count(0.25)}."
    if half > _MANY:
        return "100%", f"at 50% there would be {half} windows; without overlap {count(1.0)} hold all values once."
    return "50%", f"an event at the border of one window is in the middle of the next; this makes {half} windows."


def _scale(rows: Sequence[Inspected]) -> tuple[str | None, str]:
    channels = rows[0].channels
    alike = [row for row in rows if row.channels == channels]
    means, stds = np.array([row.means for row in alike]), np.array([row.stds for row in alike])  # (recordings, C)
    within = np.median(stds, axis=0)
    moving = within > 0
    if not moving.any():
        return None, "no channel changes in most recordings, so there is nothing to scale."
    shift = np.array([np.ptp(np.quantile(level, [0.1, 0.9])) for level in means.T])[moving] / within[moving]
    low, high = np.quantile(stds[:, moving], [0.1, 0.9], axis=0)
    sizes = (high / np.maximum(low, 1e-9 * within[moving])).max()
    # One channel whose level tells, as load or temperature do, is no reason to take the level from all.
    if len(alike) > 1 and (least := int(np.argmin(shift))) >= 0 and shift[least] > _SHIFTED and sizes <= _ALIKE:
        name = [c for c, is_moving in zip(channels, moving, strict=True) if is_moving][least]
        return "case", (
            f"the level of {name}{' and of all other channels' * (len(shift) > 1)} differs between recordings by "
            f"{shift[least]:.1f} times what it varies within one, and the size does not; scaled by itself, each window "
            "shows its shape. Where the level matters, use dataset."
        )
    ratio = within[moving].max() / within[moving].min()
    return "dataset", (
        f"the channels differ in size by a factor of {ratio:.3g}; one z-score per channel evens them out, and keeps "
        "differences between windows. Where gain and offset are accidents, use case."
    )


def extreme_places(values: Array, n: int) -> NDArray[np.intp]:
    """Return the time steps (C, n) of the least and the greatest of n / 2 stretches of (C, T), T > n, n even.

    They are in the order of time, and one comes twice where it is both. Missing values count only where a stretch has
    no other.
    """
    n_times = values.shape[1]
    size = -(-n_times // (n // 2))
    # Every time step is in some stretch, and all stretches have one size: a few time steps are in two of them.
    index = (np.arange(n // 2 * size) * n_times // (n // 2 * size)).reshape(n // 2, size)
    parts = values[:, index]  # (C, n / 2, size)
    lost = ~np.isfinite(parts)
    low, high = np.where(lost, np.inf, parts).argmin(axis=2), np.where(lost, -np.inf, parts).argmax(axis=2)
    ends = np.sort(np.stack([low, high], axis=2), axis=2)
    places: NDArray[np.intp] = np.take_along_axis(index[None], ends, axis=2).reshape(len(values), -1)
    return places


def stretched(values: Array, n: int) -> Array:
    """Return exactly n values per channel, n even: of more, the least and the greatest of n / 2 stretches."""
    n_times = values.shape[1]
    if n_times <= n:
        return values[:, np.arange(n) * n_times // n]
    return np.take_along_axis(values, extreme_places(values, n), axis=1)


def decimate(values: Array, most: int) -> Array:
    """Return (C, at most `most`) values that look the same: the least and the greatest of each stretch, in order."""
    return values if values.shape[1] <= most else stretched(values, most)
