"""What windows are judged by: their vectors, the level and range of each channel, or both."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import lookup
from dicot.data.cases import Array
from dicot.model.fewlabels import StandardScale

BOTH, VECTOR, LEVELS = "both", "vector", "levels"
FEATURES = dict.fromkeys((BOTH, VECTOR, LEVELS))
END = 8  # the trend is the mean of the last eighth minus that of the first
TINY = 1e-9


def level_statistics(windows: Iterable[Array]) -> NDArray[np.float32]:
    """Return mean, largest and smallest value, trend, log deviation and roughness of each channel (N, 6 C).

    An encoder looks at shapes and brings every channel to one scale; how high a peak was is told by these.
    """
    found = []
    for window in windows:  # (C, T)
        x = np.asarray(window, np.float64)
        n_ends = max(1, x.shape[1] // END)
        least = TINY * np.abs(x).max(axis=1) + np.finfo(np.float32).tiny
        deviation = x.std(axis=1) + least
        step = least
        if x.shape[1] > 1:
            step = np.diff(x, axis=1).std(axis=1) + least
        trend = x[:, -n_ends:].mean(axis=1) - x[:, :n_ends].mean(axis=1)
        roughness = np.log(step / deviation)
        statistics = [x.mean(axis=1), x.max(axis=1), x.min(axis=1), trend, np.log(deviation), roughness]
        found.append(np.concatenate(statistics))
    return np.array(found, np.float32)


def judged_by(kind: str, x: Array, levels: Any, normal: Any, *others: tuple[Array, Any]) -> list[Array]:
    """Return the features of windows x (N, F), and of others: each part standardised by the normal ones, both alike.

    levels : (N, L) of `level_statistics`; not needed for "vector"
    normal : which windows of x are normal, of booleans or rows
    """
    lookup(FEATURES, kind, "features")
    parts = {VECTOR: (0,), LEVELS: (1,), BOTH: (0, 1)}[kind]
    scales = {part: StandardScale((x, levels)[part][normal]) for part in parts}
    features = []
    for windows in [(x, levels), *others]:
        scaled = [scales[part](windows[part]) for part in parts]
        features.append(np.hstack(scaled).astype(np.float32))
    return features
