"""Views: tensor -> tensor, no parameters. What a method looks at instead of the whole case.

Sub-blocks are overlapping parts of a case (Di-COT). A distorted copy still shows the same thing: every case draws for
itself, on its device, and all its channels share what happens along time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dicot.core.errors import InputError


@dataclass(frozen=True)
class Blocks:
    """Where the sub-blocks of a case lie: block j covers time steps [starts[j], starts[j] + length)."""

    length: int
    starts: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def extent(self) -> int:
        """Time steps of all blocks together."""
        return len(self.starts) * self.length


def paper_blocks(n_times: int, k: int, overlap: float) -> Blocks:
    """The rule of the paper's appendix, made safe for training: length at least 2, stride at least 1 (D-04).

    `round` rounds half to even. The count may differ from k and may even be 1 (D-03); the tail may stay unused.
    """
    length = min(n_times, max(2, 2 * round(n_times / (1 + (k - 1) * (1 - overlap)) / 2)))
    stride = max(1, round(length * (1 - overlap)))
    return Blocks(length, tuple(range(0, n_times - length + 1, stride)))


def exact_blocks(n_times: int, k: int, overlap: float) -> Blocks:
    """Exactly k distinct blocks that reach both ends of the case (D-69); k is lowered to T // 2 when T < 2 k."""
    k = min(k, n_times // 2)
    length = max(2, round(n_times / (1 + (k - 1) * (1 - overlap))))
    length = min(length, n_times - k + 1)  # a very high overlap would make two blocks start together
    starts = np.round(np.linspace(0, n_times - length, k)).astype(int)
    return Blocks(length, tuple(starts.tolist()))


ROUNDINGS = {"paper": paper_blocks, "exact": exact_blocks}


def block_layout(n_times: int, k: int, overlap: float, rounding: str = "paper") -> Blocks:
    """Sub-blocks of a case of `n_times` time steps; T = 2 and 3 become blocks of length 1 (D-68)."""
    return Blocks(1, tuple(range(n_times))) if n_times < 4 else ROUNDINGS[rounding](n_times, k, overlap)


def cut_blocks(x: Tensor, blocks: Blocks) -> Tensor:
    """(B, C, T) -> (B, k, C, L)."""
    return torch.stack([x[..., start : start + blocks.length] for start in blocks.starts], dim=1)


def scale(x: Tensor, mean: float, std: float | Tensor, *, per_step: bool = False) -> Tensor:
    """x (B, C, T) times factors N(mean, std^2): one per case and channel, or one per case and time step."""
    shape = (x.shape[0], 1, x.shape[2]) if per_step else (x.shape[0], x.shape[1], 1)
    return x * (mean + std * torch.randn(shape, dtype=x.dtype, device=x.device))


def shift(x: Tensor, sigma: float | Tensor) -> Tensor:
    """x (B, C, T) plus one number N(0, sigma^2) per case and channel; sigma is a number or a tensor (C, 1)."""
    return x + sigma * torch.randn(*x.shape[:2], 1, dtype=x.dtype, device=x.device)


def jitter(x: Tensor, sigma: float | Tensor) -> Tensor:
    """x (B, C, T) plus noise N(0, sigma^2); sigma is a number or a tensor (C, 1)."""
    return x + sigma * torch.randn_like(x)


def permute(x: Tensor, max_segments: int) -> Tensor:
    """Cut each case of x (B, C, T) into 1 to max_segments - 1 segments of time and shuffle them, channels together.

    The cuts are distinct time steps out of 0 .. T - 3; a cut at 0 leaves the first segment empty.
    """
    n_cases, _, n_times = x.shape
    most_cuts = min(max_segments - 2, n_times - 2)
    if most_cuts < 1:
        return x
    n_cuts = torch.randint(max_segments - 1, (n_cases, 1), device=x.device)  # beyond most_cuts: clipped below
    candidates = torch.rand(n_cases, n_times - 2, device=x.device).topk(most_cuts, dim=1).indices
    chosen = torch.arange(most_cuts, device=x.device) < n_cuts  # (B, most_cuts)
    cuts = torch.zeros(n_cases, n_times, dtype=torch.bool, device=x.device).scatter(1, candidates, chosen)
    rank = torch.rand(n_cases, most_cuts + 1, device=x.device).argsort(dim=1)
    return x.gather(2, segment_order(cuts, rank).unsqueeze(1).expand_as(x))


def segment_order(cuts: Tensor, rank: Tensor) -> Tensor:
    """(B, T): which time step each place takes, once the segments that begin at the True of `cuts` (B, T) are
    put in the order of their rank (B, segments)."""
    segment = cuts.long().cumsum(dim=1)  # (B, T); without a cut at 0 the first segment has number 0
    return rank.gather(1, segment).argsort(dim=1, stable=True)


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
    time = torch.linspace(0, 1, x.shape[2], dtype=x.dtype, device=x.device)
    return read_between(x, (start + kept * time) * (x.shape[2] - 1))


def stretch(x: Tensor, n_times: int) -> Tensor:
    """Bring cases (B, C, T) to n_times time steps by linear interpolation."""
    return torch.nn.functional.interpolate(x, n_times, mode="linear", align_corners=True)


def drop_channels(x: Tensor, probability: float, value: float | Tensor = 0.0) -> Tensor:
    """Set channels of each case of x (B, C, T) by chance to `value`, a number or (C, 1), but never all of them."""
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
        ends = tuple(self.mask) if isinstance(self.mask, Sequence) else (self.mask, self.mask)
        if len(ends) != 2 or not 0 <= ends[0] <= ends[1] <= 1:
            raise InputError(
                f"mask must be a share of the time or a range (low, high) with 0 <= low <= high <= 1; got {self.mask}."
            )

    def __call__(self, x: Tensor, mean: float | Tensor, std: float | Tensor) -> Tensor:
        """Distort every case of x (B, C, T); mean and std are those of the channels in the training set, (C, 1).

        Scaling and dropped channels go by the mean, so that nothing depends on where the zero of a unit is: degrees
        Celsius give the same views as kelvins.
        """
        shortest, longest = self.mask if isinstance(self.mask, Sequence) else (self.mask, self.mask)
        if self.noise:
            x = jitter(x, self.noise * std)
        if self.scale:
            x = scale(x - mean, 1.0, self.scale) + mean
        if longest:
            x = hide_stretch(x, shortest, longest)
        if self.crop:
            x = crop_and_resample(x, self.crop)
        if self.offset:
            x = shift(x, self.offset * std)
        if self.channel_drop:
            x = drop_channels(x, self.channel_drop, mean)
        return x
