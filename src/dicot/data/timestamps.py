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
# Shares by which rates may differ and still count as one.
SAME_RATE = 0.02  # of two recordings
OTHER_RATE = 0.1  # of a stretch and its recording: a stretch of few steps tells its rate only roughly
# Steps whose median tells a rate; docs/choosing.md states the rules with these numbers.
_STEPS = 63
_AROUND = 1024  # steps on either side that tell the mean step
# The longest by the shortest step of what is even at a look: less than the root of GAP, see `_may_change`.
_EVEN = 1.2
_FEW = 16  # rows on either side that tell whether those behind a long step stay late
_LOOKS = 4  # the most times that gaps are looked for, each time without those that were found
# Time steps that resampling may make of any number, or of each: more come from a wrong rate or unit.
_MANY, _MOST_TIMES = 10**6, 1000
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
    if not _may_change(steps, factor):
        return []
    before, behind = _medians_beside(steps)
    change = np.where(behind > factor * before, 1, np.where(before > factor * behind, -1, 0))
    places = np.flatnonzero(change)
    if len(places) == 0:
        return []

    # The medians differ at several places around one change. Places that are far apart, or where the rate changes the
    # other way, belong to changes of their own.
    is_another = (np.diff(places) >= _STEPS) | (np.diff(change[places]) != 0)
    rows = []
    for around in np.split(places, np.flatnonzero(is_another) + 1):
        first, last = around[0], around[-1]
        rows.append(_row_of_change(steps[1:], first, last, before[first], behind[last], gap) + 1)
    return rows


def _may_change(steps: Seconds, factor: float) -> bool:
    """Tell whether a quarter of some neighbouring steps are unusual, without which no median of them is."""
    usual = np.median(steps) if len(steps) else 0.0
    # Of two medians that differ by the factor, one lies as far as its root from that of all steps.
    is_unusual = (steps > usual * np.sqrt(factor)) | (steps * np.sqrt(factor) < usual)
    counts = np.cumsum(np.pad(is_unusual, (_STEPS, 0)))
    return bool((counts[_STEPS:] - counts[:-_STEPS] >= _STEPS // 4).any())


def _medians_beside(steps: Seconds) -> tuple[Seconds, Seconds]:
    """Return for each step but the first the medians of the steps before it and of those from it on."""
    from scipy.ndimage import median_filter

    half = _STEPS // 2
    medians = median_filter(np.pad(steps, _STEPS, mode="symmetric"), _STEPS)
    places = np.arange(1, len(steps))
    return medians[places - 1 - half + _STEPS], medians[places + half + _STEPS]


def _row_of_change(steps: Seconds, first: int, last: int, old: float, new: float, gap: float) -> int:
    """Return where between two places the rate changes: most steps are then on the side that they are nearer to."""
    is_like_old = (steps[first:last] - np.sqrt(old * new)) * (old - new) > 0
    row = int(first + np.argmax(np.cumsum([0, *np.where(is_like_old, 1, -1)])))
    # Behind a gap the new rate begins with one.
    return row + int(steps[row] > gap * new)


def _gaps(times: Seconds, steps: Seconds, gap: float) -> Array:
    """Return the long steps behind which time stamps stay late; where they catch up, one or a few only came late."""
    usual = float(np.median(steps)) if len(steps) else 0.0
    # Under jitter the step of a lost row may look shorter than two, so half of what a gap has beyond one is enough.
    long_steps = np.flatnonzero(steps > (1 + gap) / 2 * usual)
    if not len(long_steps):
        return long_steps

    # Which gaps there are tells the mean step, and that tells which gaps there are: a few looks settle both.
    is_usual = np.abs(steps - usual) <= (min(gap, 2.0) - 1) * usual
    gaps = np.array([], dtype=np.intp)
    for _ in range(_LOOKS):
        mean_step = _mean_step(steps, is_usual, long_steps, usual)
        is_gap = _lateness(times, steps, long_steps, gaps, mean_step) > (gap - 1) * mean_step
        before, gaps = gaps, long_steps[is_gap]
        gaps = np.union1d(gaps, _longest_of_lost(steps, before, gaps))
        if np.array_equal(before, gaps):
            break
        is_usual = np.ones(len(steps), dtype=bool)
        is_usual[gaps] = False
    return gaps


def _mean_step(steps: Seconds, is_usual: NDArray[np.bool_], places: Array, usual: float) -> Seconds:
    """Return the mean of the usual steps around each of these; `usual` where there are none."""
    sums = np.concatenate([[0], np.cumsum(np.where(is_usual, steps, 0))])
    counts = np.concatenate([[0], np.cumsum(np.where(is_usual, 1, 0))])
    first = np.maximum(0, places - _AROUND)
    stop = np.minimum(len(steps), places + _AROUND + 1)
    n_usual = counts[stop] - counts[first]
    return np.where(n_usual > 0, (sums[stop] - sums[first]) / np.maximum(1, n_usual), usual)


def _lateness(times: Seconds, steps: Seconds, long_steps: Array, gaps: Array, mean_step: Seconds) -> Seconds:
    """Return by how much the rows behind each long step stay late, as the even grid of the rows before it has them.

    Only rows between the gaps before and behind are looked at, of those that were found so far.
    """
    first = np.concatenate([[0], gaps + 1])[np.searchsorted(gaps, long_steps)]
    stop = np.concatenate([gaps, [len(steps)]])[np.searchsorted(gaps, long_steps, "right")]
    # Rows that were due during the long step may have come late, right behind it.
    n_due = np.minimum(np.floor(steps[long_steps] / mean_step + 0.5) - 1, _STEPS // 2).astype(np.intp)
    behind = np.minimum(long_steps + 1 + n_due, stop)
    time_before = times[long_steps] + _off(times, long_steps, -1, long_steps - first, mean_step)
    time_behind = times[behind] + _off(times, behind, 1, stop - behind, mean_step)
    lateness: Seconds = time_behind - time_before - (behind - long_steps) * mean_step
    return lateness


def _longest_of_lost(steps: Seconds, before: Array, gaps: Array) -> Array:
    """Return the longest of neighbouring steps that were gaps before and are none now: it may be one alone.

    Long steps beside each other take each other for gaps.
    """
    lost = np.setdiff1d(before, gaps)
    neighbours = np.split(lost, np.flatnonzero(np.diff(lost) > _FEW) + 1)
    return np.array([group[np.argmax(steps[group])] for group in neighbours if len(group) > 1], dtype=np.intp)


def _off(times: Seconds, rows: Array, direction: int, n_beside: Array, step: Seconds) -> Seconds:
    """Return how far the rows beside these lie, on the whole, from where even steps would have them.

    As many rows are looked at as are beside each, but no more than a few. Their mean without the outer quarters counts:
    an outlier does not matter, and jitter evens out better than in the median.
    """
    few = np.arange(_FEW)
    is_beside = few <= n_beside[:, None]
    places = np.where(is_beside, rows[:, None] + direction * few, rows[:, None])
    distances = times[places] - times[rows][:, None]
    late = np.sort(np.where(is_beside, distances - direction * few * step[:, None], np.inf), axis=1)

    count, number = is_beside.sum(axis=1), np.arange(len(rows))
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
