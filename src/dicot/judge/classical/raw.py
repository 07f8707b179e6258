"""Features without any learning: the lower bound that every embedding has to beat."""

import warnings
from typing import Self

import numpy as np

from dicot.judge.classical.base import Classical, Floats

MAX_FLAT = 20_000
MAX_STEPS = 512


class RawMean(Classical):
    """(N, C, T) -> (N, C): the mean of every channel over time, the authors' "raw data" (D-35)."""

    # Of a case scaled by itself every mean is 0 but for rounding, which a probe would blow up to features.
    scaled = False

    def fit(self, X: Floats, y: object = None) -> Self:
        self.shape_ = X.shape[1:2]
        return self

    def transform(self, X: Floats) -> Floats:
        self.check_as_in_fit(X)
        means: Floats = X.mean(axis=2)
        return means


class RawFlat(Classical):
    """(N, C, T) -> (N, C*T): all values side by side (D-35).

    Above 20,000 values per case, time is averaged down to at most 512 steps; `fit` warns when that happens.
    """

    def fit(self, X: Floats, y: object = None) -> Self:
        self.shape_ = channels, length = X.shape[1:]
        self.steps_ = min(length, MAX_STEPS) if channels * length > MAX_FLAT else length
        if self.steps_ < length:
            warnings.warn(
                f"raw-flat: {channels} x {length} values per case exceed {MAX_FLAT}; "
                f"time is averaged down to {MAX_STEPS} steps.",
                stacklevel=2,
            )
        return self

    def transform(self, X: Floats) -> Floats:
        self.check_as_in_fit(X)
        length = X.shape[2]
        if self.steps_ < length:
            edges = np.arange(self.steps_ + 1) * length // self.steps_  # segments differ by at most one time step
            X = np.add.reduceat(X, edges[:-1], axis=2) / np.diff(edges).astype(X.dtype)
        return X.reshape(len(X), -1)
