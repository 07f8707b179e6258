"""Features without any learning: the lower bound that every embedding has to beat."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dicot.errors import InputError

Floats = NDArray[np.floating[Any]]

MAX_FLAT = 20_000
MAX_STEPS = 512


def _shape(X: Floats) -> tuple[int, int]:
    """Channels and time steps of a collection."""
    if X.ndim != 3 or 0 in X.shape:
        raise InputError(f"X must have shape (cases, channels, time) with none of them 0; got {X.shape}.")
    return X.shape[1], X.shape[2]


def _same(what: str, fitted: int | None, got: int) -> None:
    if fitted is None:
        raise InputError("transform was called before fit. Call fit first.")
    if fitted != got:
        raise InputError(f"X must have {fitted} {what} as in fit; got {got}.")


class RawMean:
    """(N, C, T) -> (N, C): the mean of every channel over time, the authors' "raw data" (D-35)."""

    channels_: int | None = None

    def fit(self, X: Floats, y: object = None) -> Self:
        self.channels_, _ = _shape(X)
        return self

    def transform(self, X: Floats) -> Floats:
        channels, _ = _shape(X)
        _same("channels", self.channels_, channels)
        means: Floats = X.mean(axis=2)
        return means


class RawFlat:
    """(N, C, T) -> (N, C*T): all values side by side (D-35).

    Above 20,000 values per case, time is averaged down to at most 512 steps; `fit` warns when that happens.
    """

    channels_: int | None = None
    length_: int | None = None

    def fit(self, X: Floats, y: object = None) -> Self:
        self.channels_, self.length_ = channels, length = _shape(X)
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
        channels, length = _shape(X)
        _same("channels", self.channels_, channels)
        _same("time steps", self.length_, length)
        steps = self._steps(channels, length)
        if steps < length:
            edges = np.arange(steps + 1) * length // steps  # segments differ by at most one time step
            X = np.add.reduceat(X, edges[:-1], axis=2) / np.diff(edges).astype(X.dtype)
        return X.reshape(len(X), -1)


RAW_FEATURES: dict[str, type[RawMean] | type[RawFlat]] = {"raw-mean": RawMean, "raw-flat": RawFlat}
