"""Offsets: what a channel of a case has to be freed of before float32 can hold how it varies.

A network computes in float32, whose steps are as coarse as 64 at 1e9. A signal of amplitude 1 on such an offset becomes
one value. So the mean of such a channel is subtracted in float64 first, and travels beside the case for the features
that are about levels. Case by case: a channel whose variation float32 keeps is left as it is.
"""

from typing import NamedTuple

import numpy as np

from dicot.data.cases import Array, FloatArray

LOST = 1 / 512  # share of what a channel varies by within a case that rounding to float32 may take
HALF_STEP = 2.0**-24  # the most that rounding to float32 changes a number, relative to it
NOISE = 64 * float(
    np.finfo(np.float64).eps
)  # variation relative to the largest value that float64's own rounding makes
COARSE = 64  # steps of float32 that a channel varies by at least, or too little of it is left


class WithoutOffsets(NamedTuple):
    """Cases without the offsets that float32 could not have held."""

    values: FloatArray  # (n, C, T) float32
    offsets: Array  # (n, C) float64, 0 where nothing was subtracted


def lossy_offsets(exact: Array) -> Array:
    """Return the means of channels (n, C, T) whose variation float32 would lose, (n, C) float64, and 0 elsewhere."""
    low, high = exact.min(axis=2).astype(np.float64), exact.max(axis=2).astype(np.float64)
    size, spread = np.maximum(np.abs(low), np.abs(high)), high - low
    suspected = (spread > NOISE * size) & (HALF_STEP * size > LOST * spread)

    offsets = np.zeros(exact.shape[:2])
    for row, channel in np.argwhere(suspected):
        values = exact[row, channel].astype(np.float64)
        rounded = values.astype(np.float32).astype(np.float64)
        if np.abs(rounded - values).max() > LOST * spread[row, channel]:
            offsets[row, channel] = values.mean()
    return offsets


def varies(values: Array) -> Array:
    """Tell which channels of (n, C, T) vary by more than the rounding of the type that they came in, (n, C)."""
    low, high = values.min(axis=2).astype(np.float64), values.max(axis=2).astype(np.float64)
    size = np.maximum(np.abs(low), np.abs(high))
    noise = NOISE if values.dtype.kind != "f" or values.dtype.itemsize == 8 else COARSE * 2 * HALF_STEP
    larger: Array = high - low > noise * size
    return larger


def is_coarse(values: Array) -> Array:
    """Tell which channels of (n, C, T) in float32 vary, but by so few of its steps that they were lost before, (n, C).

    Whole numbers that float32 holds exactly were not rounded, however little they vary.
    """
    low, high = values.min(axis=2), values.max(axis=2)
    coarse: Array = (high > low) & ~varies(values)
    for row, channel in np.argwhere(coarse):
        series = values[row, channel]
        are_whole = (series == np.round(series)).all() and np.abs(series).max() < 1 / HALF_STEP
        coarse[row, channel] = not are_whole
    return coarse


def loses_stretches(values: Array, length: int = 64) -> bool:
    """Tell whether float32 would lose how a channel of a recording (C, T) varies somewhere, NaN where it has no value.

    Stretches of so many time steps are looked at: a window that loses something and is twice as long holds one that
    does.
    """
    n_times = values.shape[1]
    starts = np.arange(0, max(1, n_times - 1), length)
    for channel in values:
        known = np.isfinite(channel)
        rounded = channel.astype(np.float32).astype(np.float64)
        if (rounded[known] == channel[known]).all():
            continue
        low, high = _extremes(np.where(known, channel, np.inf), np.where(known, channel, -np.inf), starts)
        seen = np.isfinite(low)
        size, spread = np.maximum(np.abs(low[seen]), np.abs(high[seen])), high[seen] - low[seen]
        if ((spread > NOISE * size) & (HALF_STEP * size > LOST * spread)).any():
            return True
    return False


def _extremes(lower: Array, upper: Array, starts: Array) -> tuple[Array, Array]:
    """Return the least and the greatest value of each stretch, the first of the next one included."""
    low, high = np.minimum.reduceat(lower, starts), np.maximum.reduceat(upper, starts)
    following = starts[1:]
    low[:-1] = np.minimum(low[:-1], lower[following])
    high[:-1] = np.maximum(high[:-1], upper[following])
    return low, high


def offset_sentence(values: Array) -> str:
    """Say of a channel of a recording (T,) that it varies little on a large offset, and what to do; "" if it does not.

    NaN stands for a missing value.
    """
    known = values[np.isfinite(values)]
    if len(known) == 0:
        return ""
    size, spread = float(np.abs(known).max()), float(np.ptp(known.astype(np.float64)))
    if not NOISE * size < spread < HALF_STEP * size / LOST:
        return ""
    what = f"mean {known.mean(dtype=np.float64):.2g}, varies by {spread:.2g}"
    if known.dtype == np.float32 and is_coarse(known[None, None]).all():
        return f"{what}. The file has it in float32, which has rounded the signal away. Write it in float64."
    return (
        f"{what}. instant and dicot-base subtract the mean in float64. For other models use --set scale=case, or "
        "subtract it before."
    )
