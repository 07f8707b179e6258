"""Long series thinned out for drawing: the least and the greatest value of each stretch, so that no spike is lost."""

import numpy as np
from numpy.typing import NDArray

from dicot.data.policies import Array


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
