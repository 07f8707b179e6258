"""Baselines without a network and without torch: cases in, features out, nothing learned by gradient."""

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.core.errors import InputError, need_extra
from dicot.data import Scale, check_collection

Floats = NDArray[np.floating[Any]]

MAX_FLAT, MAX_STEPS = 20_000, 512  # values of a case side by side, and its time steps where there are more
N_KERNELS = 10_000  # rounded down to a multiple of MiniRocket's 84 kernels: 9,996 features
KERNEL = 9  # time steps of one


class Classical(ABC):
    """Features that need no encoder. Every baseline takes a seed, so that all are made alike; most draw nothing."""

    random: ClassVar[bool] = False  # whether the seed makes a difference
    scaled: ClassVar[bool] = True  # whether it is given scaled cases where the encoder beside it sees such
    any_length: ClassVar[bool] = False  # whether `transform` takes other lengths than `fit` saw
    shape_: tuple[int, ...] | None = None  # channels that `fit` saw, and time steps where they must be the same

    def __init__(self, *, random_state: int = 0, scale: str | None = None) -> None:
        self.random_state, self.scale = random_state, scale

    def fit(self, X: Floats, y: object = None) -> Self:
        """Look at the training cases (N, C, T) once; with a `scale` at scaled ones, as the encoder beside it does."""
        self.scale_ = Scale.fit(X) if self.scale == "dataset" else self.scale
        self.look(check_collection(X, scale=self.scale_).x if self.scale else X)
        return self

    def transform(self, X: Floats) -> Floats:
        """Map (N, C, T) to (N, F); refuse channels or time steps that `fit` did not see: the features would differ."""
        if self.shape_ is None or X.shape[1 : 1 + len(self.shape_)] != self.shape_:
            raise InputError(f"X must have the shape (cases, *{self.shape_}) as in fit; got {X.shape}.")
        return self.features(check_collection(X, scale=self.scale_).x if self.scale else X)

    def look(self, X: Floats) -> None:
        """Learn what the features depend on."""
        self.shape_ = X.shape[1:2] if self.any_length else X.shape[1:]

    @abstractmethod
    def features(self, X: Floats) -> Floats:
        """Map (N, C, T) to (N, F); a case's row does not depend on the other cases."""


class RawMean(Classical):
    """(N, C, T) -> (N, C): the mean of every channel over time, the authors' "raw data" (D-35)."""

    # Of a case scaled by itself every mean is 0 but for rounding, which a probe would blow up to features.
    scaled = False
    any_length = True

    def features(self, X: Floats) -> Floats:
        means: Floats = X.mean(axis=2)
        return means


class RawFlat(Classical):
    """(N, C, T) -> (N, C*T): all values side by side (D-35).

    Above 20,000 values per case, time is averaged down to at most 512 steps; `fit` warns when that happens.
    """

    def look(self, X: Floats) -> None:
        super().look(X)
        channels, length = X.shape[1:]
        self.steps_ = min(length, MAX_STEPS) if channels * length > MAX_FLAT else length
        if self.steps_ < length:
            warnings.warn(
                f"raw-flat: {channels} x {length} values per case exceed {MAX_FLAT}; "
                f"time is averaged down to {MAX_STEPS} steps.",
                stacklevel=3,
            )

    def features(self, X: Floats) -> Floats:
        length = X.shape[2]
        if self.steps_ < length:
            edges = np.arange(self.steps_ + 1) * length // self.steps_  # segments differ by at most one time step
            X = np.add.reduceat(X, edges[:-1], axis=2) / np.diff(edges).astype(X.dtype)
        return X.reshape(len(X), -1)


class MiniRocket(Classical):
    """(N, C, T) -> (N, 9996): shares of time steps at which dilated convolutions exceed a bias (needs aeon; D-37).

    Of Dempster et al., KDD 2021. Fitted once, on the training cases alone: the biases are quantiles of convolutions of
    training cases drawn with `random_state`. Series shorter than 9 are padded with zeros at the end to 9 (D-38). 40 kB
    per case; the first call of a process compiles for some seconds. Its authors classify with the protocol "ridge".
    """

    random = True

    def look(self, X: Floats) -> None:
        super().look(X)
        try:
            from aeon.transformations.collection.convolution_based import MiniRocket as AeonMiniRocket
        except ImportError as error:
            raise need_extra("aeon", "aeon", "MiniRocket") from error
        self._fitted = AeonMiniRocket(n_kernels=N_KERNELS, random_state=self.random_state).fit(_long_enough(X))

    def features(self, X: Floats) -> Floats:
        # numba starts its threads by setting OpenMP's count for the whole process, torch included; leaving restores it.
        with threadpool_limits(1, user_api="openmp"):
            return np.asarray(self._fitted.transform(_long_enough(X)), np.float32)


def _long_enough(X: Floats) -> Floats:
    """Convert to float32 and pad to the length of a kernel."""
    return np.pad(X.astype(np.float32, copy=False), ((0, 0), (0, 0), (0, max(0, KERNEL - X.shape[2]))))


# The lower bound that stands beside every method.
RAW_FEATURES: dict[str, type[Classical]] = {"raw-mean": RawMean, "raw-flat": RawFlat}
CLASSICAL: dict[str, type[Classical]] = {"minirocket": MiniRocket, **RAW_FEATURES}
