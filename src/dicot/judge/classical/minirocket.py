"""MiniRocket (Dempster et al., KDD 2021): what fixed convolutions see, counted; a strong baseline without training."""

from typing import Any, Self

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.core.errors import need_extra
from dicot.judge.classical.base import Classical, Floats

N_KERNELS = 10_000  # rounded down to a multiple of the 84 kernels: 9,996 features
MIN_LENGTH = 9  # of a kernel


class MiniRocket(Classical):
    """(N, C, T) -> (N, 9996): shares of time steps at which dilated convolutions exceed a bias (needs aeon; D-37).

    Fitted once, on the training cases alone: the biases are quantiles of convolutions of training cases drawn with
    `random_state`. Series shorter than 9 are padded with zeros at the end to 9 (D-38). 40 kB per case; the first
    call of a process compiles for some seconds. The method's authors classify with the protocol "ridge".
    """

    random = True

    def fit(self, X: Floats, y: object = None) -> Self:
        self.shape_ = X.shape[1:]
        self._fitted = _aeon_minirocket(self.random_state).fit(_long_enough(X))
        return self

    def transform(self, X: Floats) -> Floats:
        self.check_as_in_fit(X)
        # numba starts its threads by setting OpenMP's count for the whole process, torch included; leaving restores it.
        with threadpool_limits(1, user_api="openmp"):
            features: Floats = np.asarray(self._fitted.transform(_long_enough(X)), np.float32)
        return features


def _aeon_minirocket(seed: int) -> Any:
    try:
        from aeon.transformations.collection.convolution_based import MiniRocket as AeonMiniRocket
    except ImportError as error:
        raise need_extra("aeon", "aeon", "MiniRocket") from error
    return AeonMiniRocket(n_kernels=N_KERNELS, random_state=seed)


def _long_enough(X: Floats) -> Floats:
    """Convert to float32 and pad to the length of a kernel."""
    missing = max(0, MIN_LENGTH - X.shape[2])
    return np.pad(X.astype(np.float32, copy=False), ((0, 0), (0, 0), (0, missing)))
