"""Raw windows to cases inside an exported graph: missing values, lengths and scale, as `dicot.data` has them.

What numpy computes in float64 is computed in float64 here too, so that the network is given the same numbers. Nothing
here branches on the number of time steps: the graph takes windows of any length.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from dicot.data.conversion import LARGEST_VALUE
from dicot.data.offsets import COARSE, HALF_STEP, LOST, NOISE
from dicot.data.preparation import Preparation
from dicot.nets.encoders.base import as_number, larger, smaller


class PreparedWindows(NamedTuple):
    """What a network is given of raw windows."""

    x: Tensor  # (B, C, T) float32
    is_usable: Tensor  # (B, 1)
    offsets: Tensor | None  # (B, C) float32, what was subtracted from the channels; None where nothing ever is


class WindowPreparation(nn.Module):
    """A model's preparation of raw windows (B, C, T); they come in float64 if `is_double`.

    A window cannot be used where `transform` would refuse it: NaN without a policy for it, inf, huge values, nothing
    but NaN, and under "interpolate" a channel without any value.
    """

    mean: Tensor | None  # (C, 1)
    std: Tensor | None

    def __init__(self, preparation: Preparation, *, is_double: bool) -> None:
        super().__init__()
        self.missing = preparation.missing
        self.unequal = preparation.unequal
        self.scale = preparation.scale
        self.n_times = preparation.n_times
        self.is_double = is_double
        scale = preparation.statistics
        self.register_buffer("mean", None if scale is None else torch.from_numpy(scale.mean).double().unsqueeze(1))
        self.register_buffer("std", None if scale is None else torch.from_numpy(scale.std).double().unsqueeze(1))

    def forward(self, window: Tensor) -> PreparedWindows:
        has_values = _in_any(~window.isnan()) if self.missing != "error" else None
        x = self._of_one_length(self._filled(window))
        x, is_lost = self._scaled(x)
        offsets = None
        if is_lost is not None:
            subtracted = torch.where(is_lost, x.mean(dim=2, keepdim=True), 0.0)
            x = x - subtracted
            offsets = subtracted.squeeze(2).float()
        x = x.float()
        is_usable = ~_in_any(~(x.abs() <= LARGEST_VALUE))  # a comparison with NaN is false
        return PreparedWindows(x, is_usable if has_values is None else is_usable & has_values, offsets)

    def _filled(self, x: Tensor) -> Tensor:
        if self.missing == "error":
            return x
        is_gap = x.isnan()
        if self.missing == "zero":
            return torch.where(is_gap, 0.0, x)
        return torch.where(is_gap, interpolated(x, is_gap).to(x.dtype), x)

    def _of_one_length(self, x: Tensor) -> Tensor:
        n_times = x.shape[2]
        if self.unequal == "crop":
            return x[..., : smaller(n_times, self.n_times)]
        if self.unequal == "pad":
            time = torch.arange(larger(n_times, self.n_times))
            return torch.where(time < n_times, x.index_select(2, time.clamp(max=n_times - 1)), 0.0)
        if self.unequal == "resample":
            return resampled(x, self.n_times)
        return x

    def _scaled(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Scale windows, and tell of which channels float32 would lose how they vary; None where it never does."""
        if self.scale == "case":
            return z_scored(x), None
        if self.mean is None or self.std is None:
            return x, lost_in_float32(x) if self.is_double else None
        raw = x.double()
        x = (raw - self.mean) / self.std
        noise = NOISE if self.is_double else COARSE * 2 * HALF_STEP
        return x, varies(raw, noise) & lost_in_float32(x)


def interpolated(x: Tensor, is_gap: Tensor) -> Tensor:
    """Read NaN off the line between its neighbours in time, in float64; at the edges there is one neighbour.

    A channel without any value stays NaN.
    """
    n_times = x.shape[2]
    time = torch.arange(n_times).expand(x.shape)
    # The known time steps of a channel are numbered from 1; places[number] is where it is. Number 0 is for gaps.
    is_known = (~is_gap).long()
    number = is_known.cumsum(dim=2)  # of the known time step that was counted last
    places = torch.zeros(*x.shape[:2], n_times + 1, dtype=torch.int64)
    places = places.scatter(2, number * is_known, time)
    n_known = number[..., -1:]
    first = places.gather(2, torch.minimum(number, n_known).clamp(min=1))
    last = places.gather(2, torch.minimum(number + 1, n_known).clamp(min=1))

    low = x.gather(2, first).double()
    high = x.gather(2, last).double()
    slope = (high - low) / (last - first).clamp(min=1).double()
    return slope * (time - first).double() + low


def resampled(x: Tensor, length: int) -> Tensor:
    """Interpolate linearly onto `length` points, both ends included."""
    last = as_number(x.shape[2] - 1)
    places = torch.arange(length, dtype=torch.float64) * (last.double() / max(1, length - 1))
    left = torch.minimum(places.floor().long(), last)
    right = torch.minimum(left + 1, last)
    low = x.index_select(2, left).double()
    high = x.index_select(2, right).double()
    return (high - low) * (places - left.double()) + low


def z_scored(x: Tensor) -> Tensor:
    """Scale channels window by window to mean 0 and standard deviation 1, constant ones to 0; in float64."""
    is_constant = x.amax(dim=2, keepdim=True) == x.amin(dim=2, keepdim=True)
    exact = x.double()
    centred = exact - exact.mean(dim=2, keepdim=True)
    std = centred.square().mean(dim=2, keepdim=True).sqrt()
    scaled = centred / torch.where(is_constant | (std == 0), 1.0, std)
    return torch.where(is_constant, 0.0, scaled)


def lost_in_float32(x: Tensor) -> Tensor:
    """Tell of channels (B, C, T) in float64 whether float32 would lose how they vary, as `data.offsets` does."""
    spread = x.amax(dim=2, keepdim=True) - x.amin(dim=2, keepdim=True)
    error = (x.float().double() - x).abs().amax(dim=2, keepdim=True)
    return varies(x, NOISE) & (error > LOST * spread)


def varies(x: Tensor, noise: float) -> Tensor:
    """Tell of channels (B, C, T) in float64 whether they vary by more than noise of this size, relative to theirs."""
    high, low = x.amax(dim=2, keepdim=True), x.amin(dim=2, keepdim=True)
    return high - low > noise * torch.maximum(high.abs(), low.abs())


def _in_any(where: Tensor) -> Tensor:
    """Tell of every window whether something is true of any of its values, (B, C, T) -> (B, 1)."""
    return where.flatten(1).any(dim=1, keepdim=True)
