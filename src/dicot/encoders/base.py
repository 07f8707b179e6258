"""The one interface every encoder answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dicot.errors import InputError, is_whole


class Encoder(nn.Module, ABC):
    """Maps a batch of cases (B, C, T) to features per time step (B, F, T); T is free, C is fixed."""

    def __init__(self, n_channels: int, dim: int) -> None:
        super().__init__()
        for name, value in (("n_channels", n_channels), ("dim", dim)):
            if not is_whole(value, 1):
                raise InputError(f"{name} must be a whole number, 1 or more; got {value!r}.")
        self.n_channels = n_channels
        self.dim = dim

    @abstractmethod
    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """(B, C, T) -> (B, F, T); where the boolean `keep` (B, T) is False the projected input is set to zero."""

    def config(self) -> Mapping[str, Any]:
        """The constructor arguments that make an encoder of the same shape."""
        return {"n_channels": self.n_channels, "dim": self.dim}

    def embed(self, x: Tensor) -> Tensor:
        """(B, C, T) -> (B, F): the mean over time of the features, in the mode the module is in."""
        features: Tensor = self(x)
        return features.mean(dim=-1)

    def frozen(self, n_times: int, dtype: torch.dtype | None = None) -> Callable[[Tensor], Tensor]:
        """What `forward` computes in eval mode with the weights as they are, for many batches of cases of n_times.

        Here the encoder itself, in the mode it is in; an encoder that can prepare its weights for the task does so.
        With a `dtype` its convolutions are computed in that type, and what it gives may be of that type too.
        """
        if dtype is None:
            return self

        def rounded(x: Tensor) -> Tensor:
            with torch.autocast(x.device.type, dtype):
                features: Tensor = self(x)
                return features

        return rounded

    def fresh(self) -> "Encoder":
        """An encoder of the same shape with new weights."""
        return type(self)(**self.config())

    def check_input(self, x: Tensor | np.ndarray) -> None:
        """Say it in words before a convolution or BatchNorm says it in shapes."""
        if x.ndim != 3 or x.shape[1] != self.n_channels:
            raise InputError(f"This encoder takes (batch, {self.n_channels} channels, time); got {tuple(x.shape)}.")
        if self.training and x.shape[0] * x.shape[2] == 1:
            raise InputError("BatchNorm cannot train on one time step of one case. Use a larger batch or longer cases.")
