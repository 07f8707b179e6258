"""Time stamps: read as seconds, put in order, divided at gaps, and values interpolated between them."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.core.settings import how_to_set
from dicot.data.cases import Array
from dicot.data.labels import is_number
from dicot.data.timeunits import SINCE_1970, UNITS, assumed_unit, no_date

GAP = 1.5  # times the usual step: what is longer is a gap, unless time stamps catch up
SAME_RATE = 0.02  # share by which the rates of two recordings may differ and still count as one
OTHER_RATE = 0.1  # share by which the rate of a stretch may differ from that of its recording
_STEPS = 63  # that tell a rate
_AROUND = 1024  # steps on either side that tell the mean step
_EVEN = 1.2  # the longest by the shortest step of what is even: less than the root of `GAP`, see `_rate_changes`
_FEW = 16  # time stamps on either side that tell whether those behind a long step are late
_LOOKS = 4  # the most times that gaps are looked for, each time without those that were found
_NONE = np.array([], dtype=np.intp)
_MANY, _MOST_TIMES = 10**6, 1000  # time steps that resampling may make of any number, or of each
_ON_GRID = 1e-3  # of a step: time stamps that are this close to even ones are left alone
_ZONE = re.compile(r"[:T]\d+.*(Z|[+-]\d\d(:?\d\d)?)$")  # of a date in ISO 8601
Seconds = NDArray[np.float64]
Where = Callable[[int], str]  # a row by number -> "line 7", for errors


def row_name(row: int) -> str:
    """Name a row by its number, as an error does where the file has no lines."""
    return f"row {row}"


def to_seconds(
    column: Array, lost: NDArray[np.bool_], *, unit: str | None = None, where: Where = row_name
) -> tuple[Seconds, str | None]:
    """Return time stamps (T,) in seconds, and for dates the first of them as ISO text, from which the seconds count.

    Numbers are in `unit`, or without it in the one that `assumed_unit` chooses. From 1e9 seconds on they count since
    1970, and are dates as well.
    Text must be ISO 8601, all with a zone or all without. `lost` tells which are missing; those are refused.
    """
    if column.dtype.kind == "f":
        lost = lost | ~np.isfinite(column)
    if lost.any():
        raise InputError(f"{where(int(np.argmax(lost)))} has no time stamp. Fill it in or drop the row.")
    if column.dtype.kind == "O" and all(isinstance(v, Real) for v in column):
        column = np.array(column.tolist())
    if column.dtype.kind in "iuf":
        return _from_numbers(column, unit)
    if unit is not None:
        raise InputError(f"The unit {unit!r} is for time stamps that are numbers; these are not. Leave it out.")
    if column.dtype.kind == "m":
        return column / np.timedelta64(1, "s"), None
    if column.dtype.kind == "M":
        first = column.min()
        return (column - first) / np.timedelta64(1, "s"), str(np.datetime_as_string(first))
    return _from_text(column, where)


def _from_numbers(column: Array, unit: str | None) -> tuple[Seconds, str | None]:
    unit = unit or assumed_unit(column).unit
    first = column.min()
    if first / UNITS[unit] < SINCE_1970:
        return column.astype(np.float64) / UNITS[unit], None
    # Subtracted before they are divided: whole nanoseconds since 1970 have more digits than float64.
    try:
        origin = datetime.fromtimestamp(float(first / UNITS[unit]), UTC).isoformat()
    except (ValueError, OverflowError, OSError) as error:  # beyond the year 9999
        raise no_date(first, unit) from error
    return (column - first).astype(np.float64) / UNITS[unit], origin


def _from_text(column: Array, where: Where) -> tuple[Seconds, str]:
    """Read dates, as text or as Python's own."""
    cells = [cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in column.tolist()]
    # In UTC, so that an hour of summer time is neither lost nor doubled.
    dates = pd.to_datetime(pd.Series(cells, dtype=object), format="ISO8601", utc=True, errors="coerce")
    if dates.isna().any():
        row = int(np.argmax(dates.isna()))
        numbers = [isinstance(cell, Real) or is_number(str(cell)) for cell in cells]
        if 2 * sum(numbers) > len(cells) and not all(numbers):  # what is wrong is the text among numbers
            row = numbers.index(False)
        raise InputError(
            f"{where(row)}: {str(cells[row])!r} is no time stamp. Write seconds as numbers, or dates in ISO 8601 such "
            "as 2026-03-01T12:30:00.250."
        )
    zoned = np.array([has_zone(cell) if isinstance(cell, str) else cell.tzinfo is not None for cell in cells])
    if zoned.any() and not zoned.all():
        row = int(np.argmax(zoned != zoned[0]))
        raise InputError(
            f"{where(row)}: {str(cells[row])!r} and the time stamp of {where(0)} must both have a zone, or neither. "
            "Write all in one form."
        )
    since = (dates - dates.min()).to_numpy()
    return since / np.timedelta64(1, "s"), pd.Timestamp(cells[int(np.argmin(since))]).isoformat()


def has_zone(date: str) -> bool:
    """Tell whether a date in ISO 8601 says its zone."""
    return bool(_ZONE.search(date))


def utc_times(origin: str | None, seconds: Seconds) -> NDArray[np.datetime64]:
    """Return times that count from a date as UTC, in microseconds; a date without a zone is taken for UTC."""
    if origin is None:
        return np.full(len(seconds), np.datetime64("NaT", "us"))
    first = _utc(origin).tz_convert(None).to_datetime64().astype("M8[us]")
    times: NDArray[np.datetime64] = first + np.round(seconds * 1e6).astype("m8[us]")
    return times


EPOCH = "1970-01-01"


def seconds_since(origin: str | None, time: float | str) -> float:
    """Return a time in seconds as a recording counts them, whose first date is `origin`; dates are ISO 8601."""
    if not isinstance(time, str):
        return time
    if origin is None:
        raise InputError(f"{time!r} is a date, and the recording has no dates. Give the range in seconds.")
    return float((_utc(time) - _utc(origin)).total_seconds())


def _utc(text: str) -> pd.Timestamp:
    return pd.to_datetime(text, format="ISO8601", utc=True)


def time_order(times: Seconds) -> NDArray[np.intp] | None:
    """Return the order of time, None where rows have it already; rows of one time stamp stay as they came."""
    if (times[1:] >= times[:-1]).all():
        return None
    return np.argsort(times, kind="stable")


def check_stamps(values: Any, n: int, what: str) -> Seconds:
    """Return time stamps in seconds that came as an array: n numbers that increase."""
    stamps = np.asarray(values)
    if stamps.shape != (n,) or stamps.dtype.kind not in "iuf":
        raise InputError(
            f"{what} must be {n} numbers, a time in seconds for each time step; got {stamps.shape} of "
            f"{stamps.dtype}. Convert dates to seconds first."
        )
    stamps = stamps.astype(np.float64)
    wrong = np.flatnonzero(~(np.diff(stamps, prepend=-np.inf) > 0) | ~np.isfinite(stamps))
    if len(wrong):
        raise InputError(
            f"{what} must increase and be finite; time step {wrong[0]} is at {stamps[wrong[0]]:g} s. Sort the "
            "recording by time, and drop what is double or unknown."
        )
    return stamps


class Stretch(NamedTuple):
    """Time steps of one rate without a gap."""

    rows: slice
    rate: float | None  # time steps per second, as far as the rate does not change; None where there are no two
    part: int  # counts up where the rate changes


def stretches(times: Seconds, gap: float = GAP) -> list[Stretch]:
    """Divide increasing time stamps (T,) at gaps and where the rate changes; docs/choosing.md says by which rules."""
    steps = np.diff(times)
    if len(steps) and steps.max() <= min((1 + gap) / 2, _EVEN) * steps.min():
        # No step is long enough for a gap or for another rate: of thousands of short recordings most are like this.
        whole = slice(0, len(times))
        return [Stretch(whole, rate_of(times, [whole]), 0)]
    out: list[Stretch] = []
    for part, (first, stop) in enumerate(pairwise([0, *_rate_changes(steps, gap), len(times)])):
        cuts = first + 1 + _gaps(times[first:stop], steps[first : stop - 1], gap)
        runs = _runs(first, cuts, stop)
        rate = rate_of(times, runs)
        if gap > GAP:
            # A lost row that the gap bridges makes the mean step longer, but not the rate lower.
            lost = first + 1 + _gaps(times[first:stop], steps[first : stop - 1], GAP)
            rate = rate_of(times, _runs(first, lost, stop)) or rate
        out += [Stretch(run, rate, part) for run in runs]
    return out


def _runs(first: int, cuts: Array, stop: int) -> list[slice]:
    return [slice(start, end) for start, end in pairwise([first, *cuts.tolist(), stop])]


def _rate_changes(steps: Seconds, gap: float) -> list[int]:
    """Return the rows where a stretch of another rate begins: the median of many steps changes by a factor there."""
    factor = max(GAP, gap)
    usual = np.median(steps) if len(steps) else 0.0
    # Of two medians that differ by the factor, one lies as far as its root from that of all steps.
    unusual = (steps > usual * np.sqrt(factor)) | (steps * np.sqrt(factor) < usual)
    counts = np.cumsum(np.pad(unusual, (_STEPS, 0)))
    if not (counts[_STEPS:] - counts[:-_STEPS] >= _STEPS // 4).any():
        return []
    from scipy.ndimage import median_filter

    half = _STEPS // 2
    medians = median_filter(np.pad(steps, _STEPS, mode="symmetric"), _STEPS)
    places = np.arange(1, len(steps))  # of the first step of a new rate
    before, behind = medians[places - 1 - half + _STEPS], medians[places + half + _STEPS]
    change = np.where(behind > factor * before, 1, np.where(before > factor * behind, -1, 0))
    rows = []
    places, change = places[change != 0], change[change != 0]
    # Those that are far apart, or of another kind, are changes of their own.
    ends = np.flatnonzero((np.diff(places) >= _STEPS) | (np.diff(change) != 0)) + 1
    for near in np.split(places, ends) if len(places) else []:
        old, new = before[near[0] - 1], behind[near[-1] - 1]
        # The place that leaves the most steps on the side of the rate that they are nearer to.
        like_old = (steps[near[0] : near[-1]] - np.sqrt(old * new)) * (old - new) > 0
        first = int(near[0] + np.argmax(np.cumsum([0, *np.where(like_old, 1, -1)])))
        rows.append(first + int(steps[first] > gap * new))  # behind a gap, where the new rate begins with one
    return rows


def _gaps(times: Seconds, steps: Seconds, gap: float) -> Array:
    """Return the long steps behind which time stamps stay late; where they catch up, one or a few only came late."""
    usual = np.median(steps) if len(steps) else 0.0
    long = np.flatnonzero(steps > (1 + gap) / 2 * usual)  # under jitter the step of a lost one may look shorter
    if not len(long):
        return long
    kept, found = np.abs(steps - usual) <= (min(gap, 2.0) - 1) * usual, _NONE
    for _ in range(_LOOKS):
        sums, counts = (np.concatenate([[0], np.cumsum(np.where(kept, what, 0))]) for what in (steps, 1))
        low, high = np.maximum(0, long - _AROUND), np.minimum(len(steps), long + _AROUND + 1)
        n_kept = counts[high] - counts[low]
        mean = np.where(n_kept > 0, (sums[high] - sums[low]) / np.maximum(1, n_kept), usual)
        # The rows between the gaps before and behind, of those that were found so far.
        start = np.concatenate([[0], found + 1])[np.searchsorted(found, long)]
        stop = np.concatenate([found, [len(steps)]])[np.searchsorted(found, long, "right")]
        due = np.minimum(np.floor(steps[long] / mean + 0.5) - 1, _STEPS // 2).astype(np.intp)  # that may have come late
        again = np.minimum(long + 1 + due, stop)
        even = (
            times[again]
            + _off(times, again, 1, stop - again, mean)
            - times[long]
            - _off(times, long, -1, long - start, mean)
        )
        before, found = found, long[even - (again - long) * mean > (gap - 1) * mean]
        # Long steps beside each other that took each other for gaps: the longest of them may be one alone.
        lost = np.setdiff1d(before, found)
        groups = np.split(lost, np.flatnonzero(np.diff(lost) > _FEW) + 1)
        longest = [group[np.argmax(steps[group])] for group in groups if len(group) > 1]
        found = np.union1d(found, np.array(longest, dtype=np.intp))
        if np.array_equal(before, found):
            break
        kept = np.ones(len(steps), dtype=bool)
        kept[found] = False
    return found


def _off(times: Seconds, rows: Array, towards: int, there: Array, step: Seconds) -> Seconds:
    """Return how much later rows should have come by the up to so many rows that are `there` beside them.

    By the mean of the middle half: an outlier does not count, and jitter evens out better than in the median.
    """
    few = np.arange(_FEW)
    known = few <= there[:, None]
    beside = times[np.where(known, rows[:, None] + towards * few, rows[:, None])] - times[rows][:, None]
    late = np.sort(np.where(known, beside - towards * few * step[:, None], np.inf), axis=1)
    count, number = known.sum(axis=1), np.arange(len(rows))
    first, stop = count // 4, count - count // 4
    sums = np.cumsum(np.where(np.isinf(late), 0.0, late), axis=1)
    off: Seconds = (sums[number, stop - 1] - sums[number, first] + late[number, first]) / (stop - first)
    return off


def is_other_rate(rate: float | None, usual: float) -> bool:
    """Tell whether a stretch has another rate than the windows."""
    return rate is not None and abs(rate - usual) > OTHER_RATE * usual


def usual_rate(times: Seconds, found: Sequence[Stretch]) -> float | None:
    """Return the rate that most time steps have; None where no stretch has two."""
    rated = [stretch for stretch in found if stretch.rate is not None]
    n_parts = len({stretch.part for stretch in rated})
    if n_parts == 1:
        return rated[0].rate
    if n_parts > 1:
        rates, rows = np.array([(one.rate, one.rows.stop - one.rows.start) for one in rated]).T
        order = np.argsort(rates)
        sums = np.concatenate([[0], np.cumsum(rows[order])])
        low = np.searchsorted(rates[order], rates * (1 - OTHER_RATE), "left")
        high = np.searchsorted(rates[order], rates * (1 + OTHER_RATE), "right")
        most = float(rates[np.argmax(sums[high] - sums[low])])  # of several the first in time
        rated = [one for one in rated if not is_other_rate(one.rate, most)]
    return rate_of(times, [one.rows for one in rated])


def rate_of(times: Seconds, runs: Sequence[slice]) -> float | None:
    """Return time steps per second without the gaps between runs; None where no run has two."""
    n_steps = sum(run.stop - run.start - 1 for run in runs)
    if not n_steps:
        return None
    # By the mean step: the median of 2 and 3 ms, as 400 Hz is written in whole milliseconds, is neither's rate.
    rate = n_steps / sum(times[run.stop - 1] - times[run.start] for run in runs)
    return float(f"{rate:.9g}")  # 50, and not the 49.99999999999 that sums of 0.02 make


def even_grid(times: Seconds, rate: float) -> Seconds:
    """Return even time stamps from the first to at most the last; the same ones where they are even already."""
    wanted = (times[-1] - times[0]) * rate
    if not wanted <= max(_MANY, _MOST_TIMES * len(times)):
        raise InputError(
            f"At a rate of {rate:g} per second, {len(times)} time steps from {times[0]:g} to {times[-1]:g} s would "
            f"become {wanted:.3g}. Check the rate, and the unit of the time stamps: {how_to_set('unit', 'ms')}."
        )
    n_times = int(np.floor(wanted + _ON_GRID)) + 1
    grid = times[0] + np.arange(n_times) / rate
    same = n_times == len(times) and bool(np.abs(grid - times).max() * rate <= _ON_GRID)
    return times if same else grid


def interpolate_at(grid: Seconds, times: Seconds, values: Array) -> Array:
    """Interpolate values (C, T) linearly, (C, len(grid)); beside a missing value the result is missing."""
    if grid is times:
        return values
    out = np.stack([np.interp(grid, times, channel) for channel in values])
    return out.astype(values.dtype, copy=False)


def nearest(grid: Seconds, times: Seconds) -> NDArray[np.intp]:
    """Return for each time of the grid the position of the nearest time stamp, of two the earlier."""
    return np.searchsorted((times[1:] + times[:-1]) / 2, grid)
