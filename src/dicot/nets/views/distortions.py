"""Distorted copies of whole cases that still show the same thing: what two views of a case may differ in.

Every case draws for itself, on its device, and all its channels share what happens along time. Scaling and noise are in
`dicot.nets.views.augmentation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dicot.core.errors import InputError
from dicot.nets.views.augmentation import jitter, scale


def shift(x: Tensor, sigma: float | Tensor) -> Tensor:
    """x (B, C, T) plus one number N(0, sigma^2) per case and channel; sigma is a number or a tensor (C, 1)."""
    return x + sigma * torch.randn(*x.shape[:2], 1, dtype=x.dtype, device=x.device)


def hide_stretch(x: Tensor, shortest: float, longest: float) -> Tensor:
    """Set one stretch of time of each case of x (B, C, T) to the mean over time of the channel.

    Its length is a share of T, uniform from `shortest` to `longest`. Its middle is anywhere, and what reaches over an
    end of the case is cut off.
    """
    n_times = x.shape[2]
    length = (shortest + (longest - shortest) * _uniform(x, 1, 1)) * n_times
    middle = _uniform(x, 1, 1) * n_times
    time = torch.arange(n_times, dtype=x.dtype, device=x.device) + 0.5  # the middle of each time step
    return torch.where((time - middle).abs() < length / 2, x.mean(dim=2, keepdim=True), x)


def crop_and_resample(x: Tensor, most: float) -> Tensor:
    """Cut off a share of each case of x (B, C, T), uniform from 0 to `most`, and stretch the rest back to T."""
    kept = 1 - most * _uniform(x, 1)
    start = _uniform(x, 1) * (1 - kept)
    return read_between(x, (start + kept * _unit_time(x)) * (x.shape[2] - 1))


def drop_channels(x: Tensor, probability: float, value: float | Tensor = 0.0) -> Tensor:
    """Set channels of each case of x (B, C, T) to `value`, a number or a tensor (C, 1), but never all of them.

    Each is dropped with this probability; of a case that would lose all its channels one stays.
    """
    if x.shape[1] == 1:
        return x
    draw = _uniform(x, x.shape[1], 1)
    keep = (draw >= probability) | (draw == draw.amax(dim=1, keepdim=True))
    return torch.where(keep, x, value)


def read_between(x: Tensor, places: Tensor) -> Tensor:
    """Read each case of x (B, C, T) at its own fractional time steps (B, L), 0 to T - 1, by linear interpolation."""
    n_cases, n_channels, n_times = x.shape
    before = places.floor().clamp(0, max(0, n_times - 2))
    left = before.long().unsqueeze(1).expand(n_cases, n_channels, -1)
    right = (left + 1).clamp(max=n_times - 1)
    return torch.lerp(x.gather(2, left), x.gather(2, right), (places - before).unsqueeze(1))


def _uniform(x: Tensor, *shape: int) -> Tensor:
    """(B, *shape) uniform in [0, 1), drawn where x is."""
    return torch.rand(len(x), *shape, dtype=x.dtype, device=x.device)


def _unit_time(x: Tensor) -> Tensor:
    """(T,) from 0 to 1."""
    return torch.linspace(0, 1, x.shape[2], dtype=x.dtype, device=x.device)


@dataclass(frozen=True)
class Distortion:
    """How strong each part of a chain of distortions is. A part of strength 0 is left out, and draws nothing.

    noise, offset: standard deviations, in units of that of the channel in the training set.
    scale: standard deviation of the factors around 1, one per case and channel.
    mask: length of the stretch of time that is hidden, as a share of T: a range or one number.
    crop: the largest share of the time that is cut off. channel_drop: probability, for cases of two or more channels.
    """

    noise: float = 0.3
    scale: float = 0.3
    offset: float = 0.3
    mask: float | Sequence[float] = (0.1, 0.35)
    crop: float = 0.4
    channel_drop: float = 0.15

    def __post_init__(self) -> None:
        if not isinstance(self.mask, float | int):
            object.__setattr__(self, "mask", tuple(self.mask))
        for name in ("noise", "scale", "offset"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} must be 0 or more; got {getattr(self, name)}.")
        for name in ("crop", "channel_drop"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} must be 0 or more and below 1; got {getattr(self, name)}.")
        ends = self.masked
        if len(ends) != 2 or not 0 <= ends[0] <= ends[1] <= 1:
            raise InputError(
                f"mask must be a share of the time or a range (low, high) with 0 <= low <= high <= 1; got {self.mask}."
            )

    @property
    def masked(self) -> tuple[float, ...]:
        """Both ends of the range of `mask`."""
        return (self.mask, self.mask) if isinstance(self.mask, float | int) else tuple(self.mask)

    def __call__(self, x: Tensor, mean: float | Tensor, std: float | Tensor) -> Tensor:
        """Distort every case of x (B, C, T); mean and std are those of the channels in the training set, (C, 1).

        Scaling and dropped channels go by the mean, so that nothing depends on where the zero of a unit is: degrees
        Celsius give the same views as kelvins.
        """
        if self.noise:
            x = jitter(x, self.noise * std)
        if self.scale:
            x = scale(x - mean, 1.0, self.scale) + mean
        if self.masked[1]:
            x = hide_stretch(x, *self.masked)
        if self.crop:
            x = crop_and_resample(x, self.crop)
        if self.offset:
            x = shift(x, self.offset * std)
        if self.channel_drop:
            x = drop_channels(x, self.channel_drop, mean)
        return x
