"""Baselines without a network: cases in, features out, nothing learned by gradient. Only some of aeon's load torch."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.core.errors import InputError, need_extra
from dicot.data import Scale, check_collection
from dicot.data.cases import pieces

Floats = NDArray[np.floating[Any]]

MAX_FLAT, MAX_STEPS = 20_000, 512  # values of a case side by side, and its time steps where there are more
N_KERNELS = 10_000  # rounded down to a multiple of MiniRocket's 84 kernels: 9,996 features
KERNEL = 9  # time steps of one
BANDS = 64  # of a spectrum
TINY, FAINT = 1e-12, 1e-6  # a deviation that counts as none, and what of a whole is lost in float32's rounding


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
        aeon = _aeon("convolution_based", "MiniRocket")
        self._fitted = aeon.MiniRocket(n_kernels=N_KERNELS, random_state=self.random_state).fit(_long_enough(X))

    def features(self, X: Floats) -> Floats:
        # numba starts its threads by setting OpenMP's count for the whole process, torch included; leaving restores it.
        with threadpool_limits(1, user_api="openmp"):
            return np.asarray(self._fitted.transform(_long_enough(X)), np.float32)


class HydraMultiRocket(Classical):
    """(N, C, T) -> (N, F): Hydra's contests beside MultiRocket's 49,728 features, standardised (needs aeon).

    Of Dempster et al., DMKD 2023, and Tan et al., DMKD 2022; as in aeon's MultiRocketHydraClassifier, by statistics of
    the training cases. Hydra has 1,024 features for every doubling of the time steps above 9. Series shorter than 10
    are padded with zeros at the end. 200 to 240 kB per case; the first call of all compiles for a minute. Its authors
    classify with ridge.
    """

    random = True

    def look(self, X: Floats) -> None:
        super().look(X)
        aeon = _aeon("convolution_based", "Hydra-MultiRocket")
        X = _long_enough(X, KERNEL + 1)  # MultiRocket's kernels see the differences too
        X = np.repeat(X, 2, axis=0) if len(X) == 1 else X  # aeon cannot fit one case
        with _process_left_alone():
            self._hydra = aeon.HydraTransformer(random_state=self.random_state).fit(X)
            self._rocket = aeon.MultiRocket(random_state=self.random_state).fit(X)
        contests, rocket = self._parts(X)
        deviation, absent = contests.std(axis=0, ddof=1, dtype=np.float64), np.mean(contests == 0, axis=0)
        self._mean = contests.mean(axis=0, dtype=np.float64).astype(np.float32)
        # What rarely wins counts less. What never varied is left as it is: aeon would multiply it by 1e8.
        self._scale = np.where(deviation > 0, deviation + absent**4 + 1e-8, 1).astype(np.float32)
        self._scaler = StandardScaler().fit(rocket)

    def features(self, X: Floats) -> Floats:
        contests, rocket = self._parts(_long_enough(X, KERNEL + 1))
        contests = np.where(contests == 0, 0, (contests - self._mean) / self._scale)
        return np.hstack([contests, self._scaler.transform(rocket)]).astype(np.float32, copy=False)

    def _parts(self, X: Floats) -> tuple[Floats, Floats]:
        """Return the roots of Hydra's counts, and MultiRocket's features."""
        with threadpool_limits(1, user_api="openmp"):
            # Case by case: all at once takes a thousand times the memory of X, and is no faster.
            contests = np.concatenate([np.asarray(self._hydra.transform(X[i : i + 1])) for i in range(len(X))])
            return np.sqrt(np.maximum(contests, 0)), np.asarray(self._rocket.transform(X), np.float32)


class Quant(Classical):
    """(N, C, T) -> (N, F): quantiles of nested intervals of a case, its differences and its spectrum (needs aeon).

    Of Dempster et al., DMKD 2024. About 9 features for each value of a case. Series shorter than 3 are padded with
    zeros at the end. Its authors classify with extremely randomised trees.
    """

    def look(self, X: Floats) -> None:
        super().look(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # numpy's, about how aeon rounds a tensor
            self._fitted = _aeon("interval_based", "QUANT").QUANTTransformer().fit(_long_enough(X, 3))

    def features(self, X: Floats) -> Floats:
        with threadpool_limits(1, user_api="openmp"):
            return _piecewise(self._fitted.transform, _long_enough(X, 3))


class Catch22(Classical):
    """(N, C, T) -> (N, 24 C): 22 canonical characteristics of every channel, its mean and deviation (needs aeon).

    Of Lubba et al., DMKD 2019, by aeon's own code. What is not defined, as for a constant, is 0. Series shorter than 3
    are padded with zeros at the end.
    """

    scaled = False  # for the sake of mean and deviation, see RawMean
    any_length = True

    def look(self, X: Floats) -> None:
        super().look(X)
        self._fitted = _aeon("feature_based", "catch22").Catch22(catch24=True, replace_nans=True)

    def features(self, X: Floats) -> Floats:
        return _piecewise(self._fitted.fit_transform, _long_enough(X, 3).astype(np.float64))


class StatsSpectrum(Classical):
    """(N, C, T) -> (N, 71 C): 7 statistics of every channel and 64 bands of its spectrum, which cost next to nothing.

    Mean, log deviation, minimum, maximum, median, roughness (log of the deviation of differences to that of values),
    end minus start; log amplitudes of the z-scored channel. A case needs two time steps.
    """

    scaled = False  # for the sake of mean and deviation, see RawMean
    any_length = True

    def features(self, X: Floats) -> Floats:
        if X.shape[2] < 2:
            raise InputError("stats-spectrum needs cases of two time steps or more; X has one.")
        return _piecewise(_stats_and_spectrum, X)


def _stats_and_spectrum(X: Floats) -> Floats:
    x = np.ascontiguousarray(X, np.float64)
    mean, deviation = x.mean(axis=2), x.std(axis=2)
    unit = np.maximum(deviation, TINY)
    roughness = np.log(np.diff(x).std(axis=2) / unit + FAINT)
    levels = [mean, np.log(unit), x.min(axis=2), x.max(axis=2), np.median(x, axis=2), roughness, x[..., -1] - x[..., 0]]
    z = (x - mean[..., None]) / unit[..., None]
    amplitudes = np.abs(np.fft.rfft(z)[..., 1:]) / np.sqrt(x.shape[2])
    n = amplitudes.shape[2]
    # A band may cover a part of a frequency: the sum up to its end, less the sum up to its start.
    sums = np.pad(amplitudes.cumsum(axis=2), ((0, 0), (0, 0), (1, 0)))
    ends = np.linspace(0, n, BANDS + 1)
    whole = np.minimum(ends.astype(int), n - 1)
    upto = sums[..., whole] + (ends - whole) * amplitudes[..., whole]
    bands = np.log(np.maximum(np.diff(upto) * (BANDS / n), 0) + FAINT)
    side_by_side: Floats = np.concatenate([np.stack(levels, axis=2), bands], axis=2).reshape(len(x), -1)
    return side_by_side


def _piecewise(features: Callable[[Floats], Any], X: Floats) -> Floats:
    """Compute features of a few cases at a time, in float32: whatever it takes, memory holds it."""
    return np.concatenate([np.asarray(features(X[rows]), np.float32) for rows in pieces(X.shape)])


def _aeon(part: str, what: str) -> Any:
    try:
        return import_module(f"aeon.transformations.collection.{part}")
    except ImportError as error:
        raise need_extra("aeon", "aeon", what) from error


@contextmanager
def _process_left_alone() -> Iterator[None]:
    """Put back what a fit of aeon changes for the whole process: torch's threads, both random states."""
    import torch

    from dicot.core.device import PROCESS_WIDE

    with PROCESS_WIDE, torch.random.fork_rng(devices=[]):
        threads, state = torch.get_num_threads(), np.random.get_state()  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002
            torch.set_num_threads(threads)


def _long_enough(X: Floats, least: int = KERNEL) -> Floats:
    """Convert to float32 and pad to the length of a kernel, or another one."""
    return np.pad(X.astype(np.float32, copy=False), ((0, 0), (0, 0), (0, max(0, least - X.shape[2]))))


# The lower bound that stands beside every method.
RAW_FEATURES: dict[str, type[Classical]] = {"raw-mean": RawMean, "raw-flat": RawFlat}
# What the paper does not compare with; the suite of the preset does.
BEYOND_PAPER: dict[str, type[Classical]] = {
    "hydra-multirocket": HydraMultiRocket,
    "quant": Quant,
    "catch22": Catch22,
    "stats-spectrum": StatsSpectrum,
}
CLASSICAL: dict[str, type[Classical]] = {"minirocket": MiniRocket, **BEYOND_PAPER, **RAW_FEATURES}
