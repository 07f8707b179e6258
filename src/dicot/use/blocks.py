"""Blocks of time as units: stretches of a recording that a comparison exchanges as a whole."""

import math

import numpy as np
from numpy.typing import NDArray

from dicot.data.cases import Array
from dicot.data.reading import seconds_of
from dicot.use.projection import principal_components

LENGTHS = ("1s", "2s", "5s", "10s", "30s", "1min", "2min", "5min", "10min", "30min", "1h", "2h", "6h", "12h", "24h")
ENOUGH = 10  # blocks on each side of a comparison
LONGER = 20  # times as long as windows stay alike, so that blocks are nearly independent
ALIKE = math.exp(-1)  # correlation of two windows below which they no longer count as alike
COMPONENTS = 8  # principal components in which windows are compared


def blocks_of(recording: Array, start: Array, seconds: float) -> Array:
    """Return for each window the block that it begins in, as text; blocks follow each other in every recording.

    A stretch at the end that is shorter than half a block belongs to the block before it.
    """
    start = np.asarray(start, np.float64)
    names, number = np.unique(recording, return_inverse=True)
    first = np.full(len(names), np.inf)
    last = np.full(len(names), -np.inf)
    np.minimum.at(first, number, start)
    np.maximum.at(last, number, start)
    blocks_of_recording = np.maximum(1, np.round((last - first) / seconds)).astype(int)
    block = np.minimum((start - first[number]) // seconds, blocks_of_recording[number] - 1).astype(int)
    return np.array([f"{name} {place}" for name, place in zip(names[number], block, strict=True)])


def seconds_alike(x: Array, recording: Array, start: Array) -> float:
    """Return how many seconds apart windows of a recording are before they are no longer alike; inf if they stay so.

    The correlation is that of the leading principal components, taken within each recording and averaged.
    """
    z = principal_components(np.asarray(x, np.float32))[:, :COMPONENTS].astype(np.float64)
    steps: list[float] = []
    by_lag: dict[int, list[float]] = {}  # correlations of all recordings
    for name in np.unique(recording):
        rows = np.flatnonzero(recording == name)
        rows = rows[np.argsort(start[rows], kind="stable")]
        if len(rows) < 4:
            continue
        steps.append(float(np.median(np.diff(start[rows]))))
        for lag, correlation in enumerate(_autocorrelation(z[rows]), 1):
            by_lag.setdefault(lag, []).append(float(correlation))
    for lag, correlations in by_lag.items():
        if np.mean(correlations) < ALIKE:
            return lag * float(np.median(steps))
    return math.inf


def block_text(seconds: float) -> str:
    """Write how long a block lasts, rounded up, as `--unit` takes it: 40s, 57min or 9.5h."""
    for unit, length in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length or seconds == length:
            parts = 1 if seconds >= 10 * length else 10
            return f"{math.ceil(seconds / length * parts - 1e-9) / parts:g}{unit}"
    return f"{seconds:.3g}s"


def _autocorrelation(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the correlation of rows (N, D) with those 1, 2, ... N / 4 later, by the components with most variance."""
    centred = z - z.mean(axis=0)
    power = float((centred**2).sum()) or 1.0
    lags = range(1, max(2, len(z) // 4))
    return np.array([(centred[lag:] * centred[:-lag]).sum() / power for lag in lags])


def suggested_block(sides: list[tuple[Array, Array]], least: float) -> str | None:
    """Return the longest usual length of blocks of which each side has enough; None where it is below `least` seconds.

    `sides` are recording and start of the windows of the reference, and of the new ones.
    """
    for length in reversed(LENGTHS):
        seconds = seconds_of(length, "--unit")
        if seconds < least:
            return None
        if all(len(np.unique(blocks_of(*side, seconds))) >= ENOUGH for side in sides):
            return length
    return None
