"""The one interface every encoder answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from dicot.errors import InputError, is_whole

_KEPT = "_kept_frozen"  # attribute of an encoder


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

    @contextmanager
    def lend_frozen(
        self, n_times: int, dtype: torch.dtype | None = None
    ) -> Iterator[tuple[Callable[[Tensor], Tensor], dict[Any, Any]]]:
        """`frozen`, prepared once for as long as the weights stay what they are: for a single case that is most work.

        Lent to one caller at a time, because it works in memory of its own; a second one has another prepared. With it
        come notes, what its borrowers have found out about it.
        """
        wanted = (n_times, dtype, self._stamp())
        found, frozen, notes = self.__dict__.pop(_KEPT, (None, None, None))
        if found != wanted:
            frozen, notes = self.frozen(n_times, dtype), {}
        yield frozen, notes
        self.__dict__[_KEPT] = wanted, frozen, notes

    def forget_frozen(self) -> None:
        """Give back what `lend_frozen` keeps, with the memory it works in."""
        self.__dict__.pop(_KEPT, None)

    def _stamp(self) -> tuple[object, ...]:
        """Changes with the weights, as autograd counts it: what is written to `weight.data` goes unnoticed."""
        modules = self.modules()  # once, where parameters() and buffers() would each look for them
        tensors = (t for m in modules for t in (*m._parameters.values(), *m._buffers.values()) if t is not None)
        return tuple((t.device, t.dtype, t.data_ptr(), 0 if t.is_inference() else t._version) for t in tensors)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles go without what can be prepared again."""
        return {name: value for name, value in vars(self).items() if name != _KEPT}

    def fresh(self) -> "Encoder":
        """An encoder of the same shape with new weights."""
        return type(self)(**self.config())

    def check_shape(self, shape: Sequence[int]) -> None:
        """Say it in words before a convolution or BatchNorm says it in shapes."""
        if len(shape) != 3 or shape[1] != self.n_channels:
            raise InputError(f"This encoder takes (batch, {self.n_channels} channels, time); got {tuple(shape)}.")
        if self.training and shape[0] * shape[2] == 1:
            raise InputError("BatchNorm cannot train on one time step of one case. Use a larger batch or longer cases.")
