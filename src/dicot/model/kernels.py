"""Fixed kernels beside an encoder: what convolutions that nobody trains see of a case, counted without rounding.

Features that count time steps would turn a difference in the last bit into one of 1/T, and matrix products are rounded
in another way by every library and processor. So cases are put on a grid on which every sum of products is exact in
float64: then all ways to compute it come to the same bits. For float32 there are functions in C (kernels.c) and CUDA
(kernels.cu), which never write a convolution to memory; PyTorch's operators do the work where these cannot be compiled.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import log2
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.core.errors import InputError
from dicot.core.machine_code import CFile, KernelFile, Size
from dicot.data.cases import Collection

C = CFile("dicot.model", "kernels.c")
CUDA = KernelFile("dicot.model", "kernels.cu", {"shares": "PiiiPiPPiPiPiPP", "contests": "PPiiiiPPiPiPPP"})
WARP, WARPS = 32, 8  # of a block
N_TAPS = 9
REACH = N_TAPS // 2  # taps on either side of the middle
WIDEST = 9  # channels up to which one product of all taps and channels takes less time than adding up channels first
# A grid's step is the last bit of this multiple of a case's largest value: values have up to 39 binary digits, and sums
# of |taps| times channels below 2^4 with ten digits after the point, as the contests', or below 2^14 without, as the
# bank's, fit into the 53 of float64. float32 keeps 24 digits: values down to 1/8,000 of the largest stay as they are.
ROOM = 2.0**15

N_KERNELS = 84  # ways to choose three taps of nine
MOST_FEATURES = 9_996
MOST_DILATIONS = 32  # per kernel
MOST_CHANNELS = 9  # that a kernel of the bank adds up
GOLDEN = (5**0.5 + 1) / 2

N_GROUPS = 16  # at each dilation on the cases, and as many on their first difference
PER_GROUP = 8
FEWEST_MIXED, MOST_MIXED = 2, 8  # channels that a group adds up
GRID = 2**-10  # taps are multiples of it, which TF32 does not round: for a constant they give 0 in that precision too
NOTHING = 2e-6  # what a kernel may give for a constant that float32 has rounded, relative to the case's largest value


def on_grid(x: Tensor) -> Tensor:
    """Round cases (..., C, T) to a grid, as float64; where a value is not finite none of its case is."""
    x = x.double()
    room = x.abs().amax(dim=(-2, -1), keepdim=True) * ROOM
    return (x + room) - room


def convolve(x: Tensor, taps: Tensor, channels: Tensor, dilation: int) -> Tensor:
    """Compute (B, C, T) -> (B, K, T) for kernels `taps` (K, 9), with zeros around a case.

    channels: (K, C), how often each kernel adds up each channel
    """
    if x.shape[1] > WIDEST:
        return each_by_its_own(channels @ x, taps, dilation)
    margin, n_times = REACH * dilation, x.shape[2]
    taken = F.pad(x, (margin, margin)).unfold(2, n_times, dilation)  # (B, C, 9, T)
    # All taps side by side, (B, 9 C, T), and all kernels in one product: a CPU's dilated convolution is slower.
    windows = taken.transpose(1, 2).flatten(1, 2)
    weight = (taps.unsqueeze(2) * channels.unsqueeze(1)).flatten(1)  # (K, 9 C)
    return weight @ windows


def long_enough(x: Tensor) -> Tensor:
    """Continue cases (..., T) of fewer than 9 time steps with zeros to 9."""
    return F.pad(x, (0, max(0, N_TAPS - x.shape[-1])))


def each_by_its_own(mixed: Tensor, taps: Tensor, dilation: int) -> Tensor:
    """Convolve each row (..., K, T) with a kernel of its own, `taps` (K, 9), by products, which a CPU is fast at."""
    margin, n_times = REACH * dilation, mixed.shape[-1]
    windows = F.pad(mixed, (margin, margin)).unfold(-1, n_times, dilation)  # (..., K, 9, T)
    return (taps.unsqueeze(1) @ windows).squeeze(-2)


class ChannelLists(NamedTuple):
    """Which channels each kernel adds up, as lists; -1 after the last one."""

    own: Tensor  # (..., most) int32
    often: Tensor  # (..., most)


def channel_lists(channels: Tensor) -> ChannelLists:
    counts = channels.cpu()
    most = max(1, int((counts > 0).sum(dim=-1).max()))
    own = (counts > 0).to(torch.int8).argsort(dim=-1, descending=True, stable=True)[..., :most]
    often = counts.gather(-1, own)
    return ChannelLists(own.masked_fill(often == 0, -1).int().contiguous().to(channels.device), often.to(channels))


def _is_compiled(x: Tensor) -> bool:
    """Tell whether there are functions in C or CUDA for such cases (B, C, T)."""
    if x.dtype != torch.float32:
        return False
    return CUDA.on(x.device) is not None if x.is_cuda else x.device.type == "cpu" and C.library is not None


def _largest(x: Tensor) -> Tensor:
    return x.abs().amax(dim=(1, 2))


def _nothing(x: Tensor) -> Tensor:
    """Return what a kernel may give for a constant, (B, C, T) -> (B,)."""
    return NOTHING * x.abs().amax(dim=2).sum(dim=1)


def _warps(count: int) -> tuple[Size, Size]:
    return (-(-count // WARPS), 1, 1), (WARP, WARPS, 1)


def kernels() -> Tensor:
    taps = torch.full((N_KERNELS, N_TAPS), -1.0, dtype=torch.float64)
    for row, chosen in zip(taps, combinations(range(N_TAPS), 3), strict=True):
        row[list(chosen)] = 2
    return taps


@dataclass(frozen=True, eq=False)
class Bank:
    """A fitted bank of MiniRocket's kernels (Dempster et al., KDD 2021).

    There are 84 kernels of 9 taps, six of them -1 and three 2, at D dilations spread over the length of the training
    cases; number d gives counts[d] features for each kernel. A feature is the share of time steps at which a
    convolution exceeds a bias, a quantile of what the kernel gives for a training case.

    channels: (D, 84, C), 1 for the channels that a kernel adds up at a dilation, else 0
    biases: (84, sum of counts)
    taps: the kernels, on the device and in the type of the others
    """

    dilations: tuple[int, ...]
    counts: tuple[int, ...]
    channels: Tensor
    biases: Tensor
    taps: Tensor

    @classmethod
    def fit(cls, x: Collection, n_features: int = 24 * N_KERNELS, *, seed: int = 0) -> "Bank":
        """Choose dilations by the length of the training cases (N, C, T), biases by cases that are drawn by the seed.

        There are n_features rounded down to a multiple of 84. Only cases that are drawn are read, one at a time.
        """
        n_cases, n_channels, n_times = x.shape
        rng = np.random.default_rng([seed, N_KERNELS])
        dilations, counts = _dilations(max(n_times, N_TAPS), n_features // N_KERNELS)
        taps = kernels()
        quantiles = torch.arange(1, sum(counts) * N_KERNELS + 1, dtype=torch.float64) * GOLDEN % 1
        channels, biases, first = [], [], 0
        for dilation, count in zip(dilations, counts, strict=True):
            chosen = _channels(n_channels, rng)
            drawn = rng.integers(n_cases, size=N_KERNELS).tolist()  # a case for each kernel
            cases = (on_grid(torch.from_numpy(np.array(x[i : i + 1])))[0] for i in drawn)
            mixed = torch.stack([row @ case for row, case in zip(chosen, cases, strict=True)])  # (84, T)
            y = each_by_its_own(long_enough(mixed), taps, dilation)
            levels = quantiles[first : first + count * N_KERNELS].view(N_KERNELS, count)
            biases.append(_quantiles(y, levels))
            channels.append(chosen)
            first += count * N_KERNELS
        return cls(dilations, counts, torch.stack(channels).float(), torch.cat(biases, dim=1).float(), taps.float())

    @property
    def n_features(self) -> int:
        return self.biases.numel()

    @property
    def n_channels(self) -> int:
        return self.channels.shape[2]

    @property
    def width(self) -> int:
        return N_KERNELS * (2 + max(self.counts))  # convolutions are float64

    def to(self, like: Tensor) -> "Bank":
        """Return the bank for cases on the device and of the type of `like`."""
        if (self.biases.device, self.biases.dtype) == (like.device, like.dtype):
            return self  # with the lists that it has made
        return replace(self, channels=self.channels.to(like), biases=self.biases.to(like), taps=self.taps.to(like))

    def transform(self, x: Tensor) -> Tensor:
        """Compute (B, C, T) -> (B, n_features) where the bank is (see `to`); a case does not depend on the others.

        T may be another one than at fit. Cases of fewer than 9 time steps are continued with zeros to 9.
        """
        x = long_enough(x)
        if _is_compiled(x):
            return self._counted(x)
        exact, features, first = on_grid(x), [], 0
        for number, (dilation, count) in enumerate(zip(self.dilations, self.counts, strict=True)):
            biases = self.biases[:, first : first + count].T.unsqueeze(2)
            y = convolve(exact, self.taps.double(), self.channels[number].double(), dilation)  # (B, 84, T)
            features.append(_shares(y, biases, dilation, number).flatten(1))
            first += count
        return torch.cat(features, dim=1)

    def _counted(self, x: Tensor) -> Tensor:
        """Do the same in C or CUDA."""
        n_dilations, n_kernels, most = self._lists.own.shape
        x, total = x.contiguous(), self.biases.shape[1]
        out = x.new_empty(len(x), total * n_kernels)
        if not x.is_cuda:
            own = (self._layout, self._lists.own, most, self.taps, self.biases)
            C.call("shares", x, *x.shape, n_dilations, *own, total, out)
            return out
        CUDA.launch(
            "shares", x.device, *_warps(len(x) * n_dilations * n_kernels), x, *x.shape, self._layout, n_dilations,
            *self._lists, most, self.taps, n_kernels, self.biases, total, _largest(x), out,
        )  # fmt: skip
        return out

    @cached_property
    def _layout(self) -> Tensor:
        """(D, 3): each dilation, how many biases it has, and the number of the first."""
        first = np.cumsum([0, *self.counts[:-1]]).tolist()
        rows = list(zip(self.dilations, self.counts, first, strict=True))
        return torch.tensor(rows, dtype=torch.int32, device=self.channels.device)

    @cached_property
    def _lists(self) -> ChannelLists:
        return channel_lists(self.channels)

    def tensors(self) -> dict[str, Tensor]:
        layout = torch.tensor([self.dilations, self.counts])
        return {"layout": layout, "channels": self.channels.to(torch.uint8), "biases": self.biases}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Bank":
        layout, channels, biases = (tensors[name] for name in ("layout", "channels", "biases"))
        dilations, counts = (tuple(row) for row in layout.tolist())
        wanted = [N_KERNELS, sum(counts), len(dilations), N_KERNELS]
        if [*biases.shape, *channels.shape[:-1]] != wanted or layout.is_floating_point() or layout.min() < 1:
            raise InputError("the bank's dilations, biases and channels do not fit together")  # C goes through memory
        return cls(dilations, counts, channels.float(), biases, kernels().float())


def _dilations(n_times: int, per_kernel: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return dilations, evenly spread on a logarithmic scale up to the length, and how many features each one gives."""
    n_dilations = min(per_kernel, MOST_DILATIONS)
    largest = np.log2((n_times - 1) / (N_TAPS - 1))
    dilations, often = np.unique(np.logspace(0, largest, n_dilations, base=2).astype(int), return_counts=True)
    counts = (often * (per_kernel / n_dilations)).astype(int)
    for i in range(per_kernel - int(counts.sum())):
        counts[i % len(counts)] += 1
    return tuple(dilations.tolist()), tuple(counts.tolist())


def _channels(n_channels: int, rng: np.random.Generator) -> Tensor:
    """Draw which channels each kernel adds up, (84, C): few more often than many."""
    largest = np.log2(min(n_channels, MOST_CHANNELS) + 1)
    sizes = (2 ** rng.uniform(0, largest, N_KERNELS)).astype(int)
    places = rng.random((N_KERNELS, n_channels)).argsort(axis=1).argsort(axis=1)
    return torch.from_numpy((places < sizes[:, None]).astype(np.float64))


def _quantiles(y: Tensor, levels: Tensor) -> Tensor:
    """Return quantiles of each row, (K, T) and (K, n) -> (K, n)."""
    ordered = torch.from_numpy(np.sort(y.numpy(), axis=1))  # much faster than torch's sort
    places = levels * (y.shape[1] - 1)
    below = places.floor()
    low, high = ordered.gather(1, below.long()), ordered.gather(1, places.ceil().long())
    return low.lerp(high, places - below)


def _shares(y: Tensor, biases: Tensor, dilation: int, number: int) -> Tensor:
    """Return the share of time steps at which y (B, 84, T) exceeds each of the biases (n, 84, 1), (B, n, 84).

    Every other kernel, and at the next dilation the others, counts only where it does not reach beyond the case; where
    it always does, because the case is shorter than those of the fit, it counts everywhere.
    """
    # Not booleans, whose mean takes several times as long on a CPU.
    room = biases.new_empty(len(y), len(biases), *y.shape[1:])
    above = torch.gt(y.unsqueeze(1), biases, out=room)
    shares = above.mean(dim=3)
    margin = REACH * dilation
    if y.shape[2] > 2 * margin:
        inner = slice((number + 1) % 2, None, 2)
        shares[..., inner] = above[..., inner, margin : y.shape[2] - margin].mean(dim=3)
    return shares


@dataclass(frozen=True, eq=False)
class Contests:
    """Contests of Hydra's kernels (Dempster et al., 2023): which of a group fits a case best at a time step, or worst.

    At D dilations, 1, 2, 4, 8 and so on, groups of 8 kernels of 9 random taps compete, half of the groups on the cases
    and half on their first difference. A feature is the square root of how much a kernel wins by, or of how often it
    comes last, per time step.

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
    def _lists(self) -> ChannelLists:
        return channel_lists(self.channels)

    @property
    def width(self) -> int:
        """How many numbers for each time step of a case are in memory at once: convolutions, and who has won."""
        return 4 * self.taps[0, 0, ..., 0].numel()  # in float64

    def to(self, like: Tensor) -> "Contests":
        """Return the contests for cases on the device and of the type of `like`."""
        if (self.taps.device, self.taps.dtype) == (like.device, like.dtype):
            return self
        return replace(self, taps=self.taps.to(like), channels=self.channels.to(like))

    def transform(self, x: Tensor) -> Tensor:
        """Compute (B, C, T) -> (B, n_features) where the kernels are (see `to`); a case does not depend on the others.

        T may be any. Cases of fewer than 9 time steps are continued with zeros to 9.
        """
        x = long_enough(x)
        if _is_compiled(x):
            return self._counted(x)
        both = (on_grid(x), on_grid(x.diff(dim=2)))
        nothing = [_nothing(values)[:, None, None] for values in both]  # (B, 1, 1)
        features: list[Tensor] = []
        for taps, channels, dilation in zip(self.taps, self.channels, self.dilations, strict=True):
            for series, values in enumerate(both):
                mixed = channels[series].unsqueeze(1).expand(-1, PER_GROUP, -1).flatten(0, 1)  # (8 G, C)
                y = convolve(values, taps[series].flatten(0, 1).double(), mixed.double(), dilation)
                features += _outcomes(y.reshape(len(x), -1, PER_GROUP, y.shape[2]), nothing[series])
        return torch.cat(features, dim=1).to(x.dtype).clamp_min_(0).sqrt_()

    def _counted(self, x: Tensor) -> Tensor:
        """Do the same in C or CUDA."""
        n_dilations, _, n_groups, most = self._lists.own.shape
        x, out = x.contiguous(), x.new_empty(len(x), self.n_features)
        if not x.is_cuda:
            C.call("contests", x, *x.shape, n_dilations, n_groups, *self._lists, most, self.taps, NOTHING, out)
            return out
        both = (x, x.diff(dim=2))
        largest = torch.stack([_largest(values) for values in both])
        nothing = torch.stack([_nothing(on_grid(values)) for values in both])
        CUDA.launch(
            "contests", x.device, *_warps(len(x) * n_dilations * 2 * n_groups), *both, *x.shape, n_dilations,
            *self._lists, most, self.taps, n_groups, largest, nothing, out,
        )  # fmt: skip
        return out

    def tensors(self) -> dict[str, Tensor]:
        return {"taps": self.taps, "channels": self.channels.to(torch.uint8)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Contests":
        taps, channels = tensors["taps"], tensors["channels"]
        if taps.shape != (*channels.shape[:-1], PER_GROUP, N_TAPS) or taps.shape[1] != 2 or not taps.numel():
            raise InputError(f"the contests' taps {tuple(taps.shape)} and channels {tuple(channels.shape)} do not fit")
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
