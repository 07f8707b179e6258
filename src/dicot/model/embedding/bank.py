"""A fixed bank of dilated kernels: what convolutions that nobody trains see of a case, counted.

The kernels, dilations and biases are MiniRocket's (Dempster et al., KDD 2021), as tensor operations on any device: 84
kernels of 9 taps, six of them -1 and three 2, at dilations spread over the length of the training cases. A feature is
the share of time steps at which a convolution exceeds a bias, a quantile of what the kernel gives for a training case.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from dicot.core.errors import InputError
from dicot.data.cases import Collection
from dicot.model.embedding import counting
from dicot.model.embedding.counting import N_TAPS, REACH, convolve, each_by_its_own, long_enough, on_grid

N_KERNELS = 84  # ways to choose three taps of nine
MOST_FEATURES = 9_996
MOST_DILATIONS = 32  # per kernel
MOST_CHANNELS = 9  # that a kernel adds up
GOLDEN = (5**0.5 + 1) / 2


def kernels() -> Tensor:
    """Return the kernels (84, 9)."""
    taps = torch.full((N_KERNELS, N_TAPS), -1.0, dtype=torch.float64)
    for row, chosen in zip(taps, combinations(range(N_TAPS), 3), strict=True):
        row[list(chosen)] = 2
    return taps


@dataclass(frozen=True, eq=False)
class Bank:
    """A fitted bank: D dilations, of which number d gives counts[d] features for each kernel.

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
            mixed = torch.stack([row @ on_grid(_case(x, i)) for row, i in zip(chosen, drawn, strict=True)])  # (84, T)
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
        """How many numbers for each time step of a case are in memory at once."""
        return N_KERNELS * (2 + max(self.counts))  # convolutions are float64

    def to(self, like: Tensor) -> "Bank":
        """Return the bank for cases on the device and of the type of `like`."""
        if (self.biases.device, self.biases.dtype) == (like.device, like.dtype):
            return self
        return Bank(self.dilations, self.counts, *(part.to(like) for part in (self.channels, self.biases, self.taps)))

    def transform(self, x: Tensor) -> Tensor:
        """Compute (B, C, T) -> (B, n_features) where the bank is (see `to`); a case does not depend on the others.

        T may be another one than at fit. Cases of fewer than 9 time steps are continued with zeros to 9.
        """
        x = long_enough(x)
        if counting.is_compiled(x):
            return counting.shares(x, self._layout, self._lists, self.taps, self.biases)
        exact, features, first = on_grid(x), [], 0
        for number, (dilation, count) in enumerate(zip(self.dilations, self.counts, strict=True)):
            biases = self.biases[:, first : first + count].T.unsqueeze(2)
            y = convolve(exact, self.taps.double(), self.channels[number].double(), dilation)  # (B, 84, T)
            features.append(_shares(y, biases, dilation, number).flatten(1))
            first += count
        return torch.cat(features, dim=1)

    @cached_property
    def _layout(self) -> Tensor:
        """(D, 3): each dilation, how many biases it has, and the number of the first."""
        first = np.cumsum([0, *self.counts[:-1]]).tolist()
        rows = list(zip(self.dilations, self.counts, first, strict=True))
        return torch.tensor(rows, dtype=torch.int32, device=self.channels.device)

    @cached_property
    def _lists(self) -> counting.ChannelLists:
        return counting.channel_lists(self.channels)

    def tensors(self) -> dict[str, Tensor]:
        """Return what a file keeps of the bank."""
        layout = torch.tensor([self.dilations, self.counts])
        return {"layout": layout, "channels": self.channels.to(torch.uint8), "biases": self.biases}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Bank":
        """Make a bank of what `tensors` gave."""
        layout, channels, biases = (tensors[name] for name in ("layout", "channels", "biases"))
        whole = layout.dim() == 2 and len(layout) == 2 and layout.shape[1] > 0 and layout.dtype == torch.int64
        if not whole or not (layout > 0).all():
            raise InputError("the bank's dilations and their numbers of features are not whole numbers from 1")
        dilations, counts = (tuple(row.tolist()) for row in layout)
        shapes = (N_KERNELS, sum(counts)), (len(dilations), N_KERNELS)
        if biases.shape != shapes[0] or channels.dim() != 3 or channels.shape[:2] != shapes[1]:
            raise InputError(f"the bank's biases {tuple(biases.shape)} and channels {tuple(channels.shape)} do not fit")
        if biases.dtype != torch.float32 or not biases.isfinite().all():
            raise InputError("the bank's biases are not finite numbers")
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


def _case(x: Collection, i: int) -> Tensor:
    """Return one case, (C, T)."""
    return torch.from_numpy(np.array(x[i : i + 1], np.float64))[0]


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
