"""The contract of a classical baseline: cases in, features out, nothing learned by gradient."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError

Floats = NDArray[np.floating[Any]]


class Classical(ABC):
    """Features that need no encoder. Every baseline takes a seed, so that all are made alike; most draw nothing."""

    random: ClassVar[bool] = False  # whether the seed makes a difference
    scaled: ClassVar[bool] = True  # whether it is given scaled cases where the encoder beside it sees such

    def __init__(self, *, random_state: int = 0) -> None:
        self.random_state = random_state

    @abstractmethod
    def fit(self, X: Floats, y: object = None) -> Self:
        """Look at the training cases (N, C, T) once."""

    @abstractmethod
    def transform(self, X: Floats) -> Floats:
        """Map (N, C, T) to (N, F); a case's row does not depend on the other cases."""


def channels_and_length(X: Floats) -> tuple[int, int]:
    """Return the numbers of channels and time steps of a collection."""
    if X.ndim != 3 or 0 in X.shape:
        raise InputError(f"X must have shape (cases, channels, time), each at least 1; got {X.shape}.")
    return X.shape[1], X.shape[2]


def check_as_in_fit(what: str, fitted: int | None, got: int) -> None:
    """Refuse another number of channels or time steps than `fit` saw."""
    if fitted is None:
        raise InputError("transform was called before fit. Call fit first.")
    if fitted != got:
        raise InputError(f"X must have {fitted} {what} as in fit; got {got}.")
