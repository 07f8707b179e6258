"""Levels: what z-scoring takes away from a channel, as numbers of their own."""

import numpy as np
import torch
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.data.cases import Array
from dicot.nets.encoders.base import is_exporting, larger
from dicot.nets.encoders.universal import NO_SPREAD, join_channels, joined_dim, lifts

PER_CHANNEL = 6
LITTLE = 1e-5  # difference of logarithms that may be rounding
END = 8  # the trend is the mean of the last eighth minus that of the first


class Levels(nn.Module):
    """Mean, largest and smallest value, trend, log deviation and roughness of every channel, joined as an encoder's.

    n_channels: 0 for any number.
    squashed: the first four as asinh, so that no unit is too large for vectors that nothing was fitted for
    """

    form: Tensor  # what a file keeps: the two arguments as whole numbers

    def __init__(self, n_channels: int, squashed: bool = False) -> None:
        super().__init__()
        self.n_channels = n_channels
        self.squashed = squashed
        self.register_buffer("form", torch.tensor([n_channels, int(squashed)]))

    @classmethod
    def from_form(cls, form: Tensor) -> "Levels":
        numbers = form.tolist()
        if len(numbers) != 2 or not numbers[0] >= 0:
            raise InputError(f"the levels' form {numbers} is not a number of channels and a flag")
        return cls(numbers[0], bool(numbers[1]))

    @property
    def n_features(self) -> int:
        return joined_dim(self.n_channels, PER_CHANNEL)

    @property
    def width(self) -> int:
        return 2 * self.n_channels

    def forward(self, x: Tensor, offsets: Tensor | None = None) -> Tensor:
        """Compute (B, C, T) -> (B, n_features); a case does not depend on the others.

        offsets: (B, C), what was subtracted from the channels because float32 could not hold it beside the signal
        """
        n_times = x.shape[2]
        mean = x.mean(dim=2)
        largest = x.amax(dim=2)
        smallest = x.amin(dim=2)
        # Of large values that change little, means are too coarse for a difference.
        centred = x - mean.unsqueeze(2)
        part = larger(1, n_times // END)
        trend = centred[..., n_times - part :].mean(dim=2) - centred[..., :part].mean(dim=2)
        least = NO_SPREAD * torch.maximum(largest.abs(), smallest.abs()) + torch.finfo(x.dtype).tiny
        if offsets is not None:
            mean, largest, smallest = (level + offsets for level in (mean, largest, smallest))
        in_units = torch.stack([mean, largest, smallest, trend], dim=2)

        lift = lifts(x)
        deviation = _deviation(x, lift) + least
        roughness = (_deviation(_differences(x), lift) + least) / deviation
        logs = torch.stack([deviation.log(), roughness.log()], dim=2)

        levels = torch.cat([in_units.asinh() if self.squashed else in_units, logs], dim=2)
        # A floor under the deviation over channels would hide what small units have to tell.
        return join_channels(levels, self.n_channels, floor=0.0)

    def differing(self, z: Array) -> Array:
        """Tell which of the numbers (N, n_features) differ by more than rounding, as means of z-scored cases do not."""
        levels = z.reshape(len(z), -1, PER_CHANNEL).astype(np.float64)
        stand_side_by_side = levels.shape[1] == self.n_channels  # else there are their mean and deviation
        extremes = np.abs(levels[..., 1:3])
        size = extremes.max(axis=(0, 2) if stand_side_by_side else None).reshape(-1, 1)
        units, logs = np.split(levels.std(axis=0), [4], axis=1)
        differ: Array = np.concatenate([units > NO_SPREAD * size, logs > LITTLE], axis=1).ravel()
        return differ


def _deviation(x: Tensor, lift: Tensor) -> Tensor:
    """Return the standard deviation over time of values that are so small that their squares may be 0."""
    return (x * lift).std(dim=2, correction=0) / lift.squeeze(2)


def _differences(x: Tensor) -> Tensor:
    """Return the first difference (B, C, T - 1), a single 0 where there is one time step."""
    if not is_exporting():
        return x.diff(dim=2) if x.shape[2] > 1 else torch.zeros_like(x)
    # Without a branch: where there is one time step it is its own neighbour.
    last = x.shape[2] - 1
    earlier = torch.arange(larger(1, last), device=x.device)
    later = (earlier + 1).clamp(max=last)
    return x.index_select(2, later) - x.index_select(2, earlier)
