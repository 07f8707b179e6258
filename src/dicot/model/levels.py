"""Levels: what z-scoring takes away from a channel, as numbers of their own."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dicot.core.errors import InputError
from dicot.data.cases import Array
from dicot.nets.encoders.universal import NO_SPREAD, join_channels, joined_dim, lifts

PER_CHANNEL = 6
LITTLE = 1e-5  # difference of logarithms that may be rounding
END = 8  # the trend is the mean of the last eighth minus that of the first


@dataclass(frozen=True)
class Levels:
    """Mean, largest and smallest value, trend, log deviation and roughness of every channel, joined as an encoder's.

    n_channels: 0 for any number.
    squashed: the first four as asinh, so that no unit is too large for vectors that nothing was fitted for
    """

    n_channels: int
    squashed: bool = False

    @property
    def n_features(self) -> int:
        return joined_dim(self.n_channels, PER_CHANNEL)

    @property
    def width(self) -> int:
        return 2 * self.n_channels

    def to(self, like: Tensor) -> "Levels":
        """Return the same: nothing lies on a device."""
        return self

    def transform(self, x: Tensor, offsets: Tensor | None = None) -> Tensor:
        """Compute (B, C, T) -> (B, n_features); a case does not depend on the others.

        offsets: (B, C), what was subtracted from the channels because float32 could not hold it beside the signal
        """
        mean, largest, smallest = x.mean(dim=2), x.amax(dim=2), x.amin(dim=2)
        part = max(1, x.shape[2] // END)
        centred = x - mean.unsqueeze(2)  # of large values that change little, means are too coarse for a difference
        trend = centred[..., -part:].mean(dim=2) - centred[..., :part].mean(dim=2)
        least = NO_SPREAD * torch.maximum(largest.abs(), smallest.abs()) + torch.finfo(x.dtype).tiny
        if offsets is not None:
            mean, largest, smallest = (level + offsets for level in (mean, largest, smallest))
        units = torch.stack([mean, largest, smallest, trend], dim=2)
        lift = lifts(x)
        deviation = (x * lift).std(dim=2, correction=0) / lift.squeeze(2) + least
        change = x.diff(dim=2) if x.shape[2] > 1 else torch.zeros_like(x)
        roughness = ((change * lift).std(dim=2, correction=0) / lift.squeeze(2) + least) / deviation
        logs = torch.stack([deviation.log(), roughness.log()], dim=2)
        found = torch.cat([units.asinh() if self.squashed else units, logs], dim=2)
        return join_channels(found, self.n_channels, floor=0.0)  # a floor would hide what small units have to tell

    def differing(self, z: Array) -> Array:
        """Tell which of the numbers (N, n_features) differ by more than rounding, as means of z-scored cases do not."""
        own = z.reshape(len(z), -1, PER_CHANNEL).astype(np.float64)  # of each channel, or of their mean and deviation
        beside = own.shape[1] == self.n_channels
        size = np.abs(own[..., 1:3]).max(axis=(0, 2) if beside else None).reshape(-1, 1)
        units, logs = np.split(own.std(axis=0), [4], axis=1)
        differ: Array = np.concatenate([units > NO_SPREAD * size, logs > LITTLE], axis=1).ravel()
        return differ

    def tensors(self) -> dict[str, Tensor]:
        return {"form": torch.tensor([self.n_channels, int(self.squashed)])}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Levels":
        form = tensors["form"].tolist()
        if len(form) != 2 or not form[0] >= 0:
            raise InputError(f"the levels' form {form} is not a number of channels and a flag")
        return cls(form[0], bool(form[1]))
