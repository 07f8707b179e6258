"""Features without any learning: the lower bound that every embedding has to beat."""

import warnings
from typing import Self

import numpy as np

from dicot.judge.classical.base import Classical, Floats, channels_and_length, check_as_in_fit

MAX_FLAT = 20_000
MAX_STEPS = 512


class RawMean(Classical):
    """(N, C, T) -> (N, C): the mean of every channel over time, the authors' "raw data" (D-35)."""

    # Of a case scaled by itself every mean is 0 but for rounding, which a probe would blow up to features.
    scaled = False
    channels_: int | None = None

    def fit(self, X: Floats, y: object = None) -> Self:
        self.channels_, _ = channels_and_length(X)
        return self

    def transform(self, X: Floats) -> Floats:
        channels, _ = channels_and_length(X)
        check_as_in_fit("channels", self.channels_, channels)
        means: Floats = X.mean(axis=2)
        return means


class RawFlat(Classical):
    """(N, C, T) -> (N, C*T): all values side by side (D-35).

    Above 20,000 values per case, time is averaged down to at most 512 steps; `fit` warns when that happens.
    """

    channels_: int | None = None
    length_: int | None = None

    def fit(self, X: Floats, y: object = None) -> Self:
        self.channels_, self.length_ = channels, length = channels_and_length(X)
        if self._steps(channels, length) < length:
            warnings.warn(
                f"raw-flat: {channels} x {length} values per case exceed {MAX_FLAT}; "
                f"time is averaged down to {MAX_STEPS} steps.",
                stacklevel=2,
            )
        return self

    @staticmethod
    def _steps(channels: int, length: int) -> int:
        return min(length, MAX_STEPS) if channels * length > MAX_FLAT else length

    def transform(self, X: Floats) -> Floats:
        channels, length = channels_and_length(X)
        check_as_in_fit("channels", self.channels_, channels)
        check_as_in_fit("time steps", self.length_, length)
        steps = self._steps(channels, length)
        if steps < length:
            edges = np.arange(steps + 1) * length // steps  # segments differ by at most one time step
            X = np.add.reduceat(X, edges[:-1], axis=2) / np.diff(edges).astype(X.dtype)
        return X.reshape(len(X), -1)
