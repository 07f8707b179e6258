"""Time stamps in seconds: put in order, divided at gaps that may be bridged, and values interpolated between them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.core.settings import how_to_set
from dicot.data.cases import Array

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
Seconds = NDArray[np.float64]


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


# Gaps that bridge 1, 2, 5 or 10 lost rows. More would be made up, not bridged.
WIDER_GAPS = (2.5, 3.5, 6.5, 11.5)
# The one that is told where rows lie in no window because one or two are lost here and there.
BRIDGED = 3.5
BRIDGE = f"--set gap={BRIDGED:g} --set resample=true"
_WORTH_BRIDGING = 0.1  # share of the rows between gaps from which on it is told


def is_worth_bridging(bridgeable: int, left_out: int) -> bool:
    """Tell whether many of the rows that are left out would be kept."""
    return bridgeable > 0 and bridgeable >= _WORTH_BRIDGING * left_out


def runs_with(times: Seconds, rate: float, gap: float) -> list[slice]:
    """Return the stretches of the usual rate between gaps that are as wide."""
    return [stretch.rows for stretch in stretches(times, gap) if not is_other_rate(stretch.rate, rate)]


def resampled_lengths(times: Seconds, rate: float, gap: float) -> tuple[int, ...]:
    """Return the time steps of each of these stretches once it is resampled, which fills in lost rows."""
    runs = runs_with(times, rate, gap)
    return tuple(round(float(times[run.stop - 1] - times[run.start]) * rate) + 1 for run in runs)
