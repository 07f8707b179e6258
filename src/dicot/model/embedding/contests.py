"""Contests between random kernels: which one of a group fits a case best at each time step, and which one worst.

The kernels and groups are Hydra's (Dempster et al., 2023), as tensor operations on any device: at dilations 1, 2, 4,
8 and so on groups of 8 kernels of 9 random taps compete, half of the groups on the cases and half on their first
difference. A feature is the square root of how much a kernel wins by, or of how often it comes last, per time step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log2

import numpy as np
import torch
from torch import Tensor

from dicot.core.errors import InputError
from dicot.model.embedding import counting
from dicot.model.embedding.counting import N_TAPS, WIDEST, convolve, long_enough, on_grid

N_GROUPS = 16  # at each dilation on the cases, and as many on their first difference
PER_GROUP = 8
FEWEST_MIXED, MOST_MIXED = 2, 8  # channels that a group adds up
GRID = 2**-10  # taps are multiples of it, which TF32 does not round: for a constant they give 0 in that precision too
NOTHING = 2e-6  # what a kernel may give for a constant that float32 has rounded, relative to the case's largest value


@dataclass(frozen=True, eq=False)
class Contests:
    """Groups of kernels at D dilations, each twice as far as the one before.

    taps: (D, 2, G, 8, 9), for cases and for their first difference; those of a kernel have mean 0 and absolute sum 1
    channels: (D, 2, G, C), how often a group adds up a channel
    """

    taps: Tensor
    channels: Tensor

    @classmethod
    def draw(cls, n_channels: int, n_times: int, *, seed: int = 0, n_groups: int = N_GROUPS) -> "Contests":
        """Draw kernels and channels by the seed, for as many dilations as a kernel fits into n_times time steps."""
        rng = np.random.default_rng([seed, PER_GROUP])
        n_dilations = int(log2((max(n_times, N_TAPS) - 1) / (N_TAPS - 1))) + 1
        taps = rng.normal(size=(n_dilations, 2, n_groups, PER_GROUP, N_TAPS))
        taps -= taps.mean(axis=-1, keepdims=True)
        taps = np.round(taps / np.abs(taps).sum(axis=-1, keepdims=True) / GRID)
        largest = np.abs(taps).argmax(axis=-1)[..., None]
        rest = np.take_along_axis(taps, largest, axis=-1) - taps.sum(axis=-1, keepdims=True)
        np.put_along_axis(taps, largest, rest, axis=-1)  # their sum is 0 again
        n_mixed = min(max(n_channels // 2, FEWEST_MIXED), MOST_MIXED) if n_channels > 1 else 1
        drawn = rng.integers(n_channels, size=(n_dilations, 2, n_groups, n_mixed))
        channels = (drawn[..., None] == np.arange(n_channels)).sum(axis=-2)
        return cls(torch.from_numpy(taps * GRID).float(), torch.from_numpy(channels).float())

    @property
    def dilations(self) -> tuple[int, ...]:
        return tuple(2**number for number in range(len(self.taps)))

    @property
    def n_features(self) -> int:
        return 2 * self.taps[..., 0].numel()

    @property
    def n_channels(self) -> int:
        return self.channels.shape[3]

    @cached_property
    def _lists(self) -> counting.ChannelLists:
        return counting.channel_lists(self.channels)

    @property
    def width(self) -> int:
        """How many numbers for each time step of a case are in memory at once: convolutions, and who has won."""
        return 4 * self.taps[0, 0, ..., 0].numel()  # in float64

    def to(self, like: Tensor) -> "Contests":
        """Return the contests for cases on the device and of the type of `like`."""
        if (self.taps.device, self.taps.dtype) == (like.device, like.dtype):
            return self
        return Contests(self.taps.to(like), self.channels.to(like))

    def transform(self, x: Tensor) -> Tensor:
        """Compute (B, C, T) -> (B, n_features) where the kernels are (see `to`); a case does not depend on the others.

        T may be any. Cases of fewer than 9 time steps are continued with zeros to 9.
        """
        x = long_enough(x)
        if counting.is_compiled(x) and (x.is_cuda or self._lists.own.shape[-1] <= WIDEST):
            return counting.contests(x, self._lists, self.taps, NOTHING)
        both = (on_grid(x), on_grid(x.diff(dim=2)))
        nothing = [NOTHING * values.abs().amax(dim=2).sum(dim=1)[:, None, None] for values in both]  # (B, 1, 1)
        features: list[Tensor] = []
        for taps, channels, dilation in zip(self.taps, self.channels, self.dilations, strict=True):
            for series, values in enumerate(both):
                mixed = channels[series].unsqueeze(1).expand(-1, PER_GROUP, -1).flatten(0, 1)  # (8 G, C)
                y = convolve(values, taps[series].flatten(0, 1).double(), mixed.double(), dilation)
                features += _outcomes(y.reshape(len(x), -1, PER_GROUP, y.shape[2]), nothing[series])
        return torch.cat(features, dim=1).to(x.dtype).clamp_min_(0).sqrt_()

    def tensors(self) -> dict[str, Tensor]:
        """Return what a file keeps of the contests."""
        return {"taps": self.taps, "channels": self.channels.to(torch.uint8)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Contests":
        """Make contests of what `tensors` gave."""
        taps, channels = tensors["taps"], tensors["channels"]
        fit = taps.dim() == 5 and taps.shape[3:] == (PER_GROUP, N_TAPS) and taps.shape[1] == 2 and taps.numel() > 0
        if not fit or channels.dim() != 4 or channels.shape[:3] != taps.shape[:3] or channels.dtype != torch.uint8:
            raise InputError(f"the contests' taps {tuple(taps.shape)} and channels {tuple(channels.shape)} do not fit")
        if taps.dtype != torch.float32 or not taps.isfinite().all():
            raise InputError("the contests' taps are not finite numbers")
        return cls(taps, channels.float())


def _outcomes(y: Tensor, nothing: Tensor) -> tuple[Tensor, Tensor]:
    """Return by how much each kernel of y (B, G, 8, T) wins, and how often it comes last, per time step: (B, 8 G) each.

    Where the case is constant all kernels give 0, or nothing to speak of: nobody wins or comes last.
    """
    best, worst = y.amax(dim=2), y.amin(dim=2)  # (B, G, T)
    best = best.masked_fill(best.abs() <= nothing, 0.0)
    worst = worst.masked_fill(worst.abs() <= nothing, torch.nan)  # equal to nothing
    mark = torch.empty_like(y)
    won = torch.eq(y, best.unsqueeze(2), out=mark).mul_(best.unsqueeze(2)).mean(dim=3)
    lost = torch.eq(y, worst.unsqueeze(2), out=mark).mean(dim=3)
    return won.flatten(1), lost.flatten(1)
