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
    shape_: tuple[int, ...] | None = None  # channels that `fit` saw, and time steps where they must be the same

    def __init__(self, *, random_state: int = 0) -> None:
        self.random_state = random_state

    @abstractmethod
    def fit(self, X: Floats, y: object = None) -> Self:
        """Look at the training cases (N, C, T) once."""

    @abstractmethod
    def transform(self, X: Floats) -> Floats:
        """Map (N, C, T) to (N, F); a case's row does not depend on the other cases."""

    def check_as_in_fit(self, X: Floats) -> None:
        """Refuse another number of channels or time steps than `fit` saw: the features would be others."""
        if self.shape_ is None or X.shape[1 : 1 + len(self.shape_)] != self.shape_:
            raise InputError(f"X must have the shape (cases, *{self.shape_}) as in fit; got {X.shape}.")
