"""Fixed kernels beside an encoder: what convolutions that nobody trains see of a case, counted without rounding.

Features that count time steps would turn a difference in the last bit into one of 1/T, and matrix products are rounded
in another way by every library and processor. So cases are put on a grid on which every sum of products is exact in
float64: then all ways to compute it come to the same bits. On a CPU there are functions in C for float32 (kernels.c),
which never write a convolution to memory. Elsewhere PyTorch's operators do the work.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import log2
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.core.native import NativeLibrary
from dicot.data.cases import Collection
from dicot.nets.encoders.base import as_number, is_exporting, larger

C = NativeLibrary("model/kernels.c")
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


class Convolutions(nn.Module):
    """Kernels of nine taps at several dilations: (B, C, T) -> (B, K, T) for each, in float64, with zeros around a case.

    taps: (D, K, 9), a row for each kernel
    channels: (D, K, C), how often each kernel adds up each channel
    """

    taps: Tensor
    channels: Tensor
    weights: Tensor

    def __init__(self, taps: Tensor, channels: Tensor, dilations: Sequence[int]) -> None:
        super().__init__()
        self.dilations = tuple(dilations)
        # Of many channels it takes less time to add them up first.
        self.is_narrow = channels.shape[2] <= WIDEST
        self.register_buffer("taps", taps, persistent=False)
        self.register_buffer("channels", channels, persistent=False)
        # All taps of all channels side by side: a CPU's dilated convolution is slower than one product.
        weights = taps.unsqueeze(3) * channels.unsqueeze(2)  # (D, K, 9, C)
        weights = weights.flatten(2) if self.is_narrow else weights[:0]
        self.register_buffer("weights", weights.float(), persistent=False)

    def forward(self, x: Tensor) -> Iterator[Tensor]:
        """Yield one dilation after the other, so that what is made of it stays in a processor's cache."""
        n_times = x.shape[2]
        furthest = REACH * max(self.dilations)
        padded = F.pad(x, (furthest, furthest))
        for number, dilation in enumerate(self.dilations):
            source = padded if self.is_narrow else self.channels[number].double() @ padded
            starts = [furthest + dilation * (tap - REACH) for tap in range(N_TAPS)]
            taken = [source[..., start : start + n_times] for start in starts]
            if self.is_narrow:
                yield self.weights[number].double() @ torch.cat(taken, dim=1)  # of (B, 9 C, T)
            else:
                of_tap = self.taps[number].double().T.unsqueeze(2)
                yield sum_of([of_tap[tap] * values for tap, values in enumerate(taken)])


def sum_of(tensors: Sequence[Tensor]) -> Tensor:
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total


def long_enough(x: Tensor) -> Tensor:
    """Continue cases (..., T) of fewer than 9 time steps with zeros to 9."""
    n_times = x.shape[-1]
    if not is_exporting():
        return x if n_times >= N_TAPS else F.pad(x, (0, N_TAPS - n_times))
    # Without a branch, for cases of any length.
    time = torch.arange(larger(n_times, N_TAPS), device=x.device)
    return torch.where(time < n_times, x.index_select(-1, time.clamp(max=n_times - 1)), 0.0)


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
    lists = own.masked_fill(often == 0, -1).int().contiguous()
    return ChannelLists(lists.to(channels.device), often.float().to(channels.device))


def _is_compiled(x: Tensor) -> bool:
    """Tell whether there are functions in C for such cases (B, C, T)."""
    return x.dtype == torch.float32 and x.device.type == "cpu" and C.library is not None


def _nothing(x: Tensor) -> Tensor:
    """Return what a kernel may give for a constant, (B, C, T) -> (B,)."""
    return NOTHING * x.abs().amax(dim=2).sum(dim=1)


def kernels() -> Tensor:
    taps = torch.full((N_KERNELS, N_TAPS), -1.0, dtype=torch.float64)
    for row, chosen in zip(taps, combinations(range(N_TAPS), 3), strict=True):
        row[list(chosen)] = 2
    return taps


class Bank(nn.Module):
    """A fitted bank of MiniRocket's kernels (Dempster et al., KDD 2021).

    There are 84 kernels of 9 taps, six of them -1 and three 2, at D dilations spread over the length of the training
    cases; number d gives counts[d] features for each kernel. A feature is the share of time steps at which a
    convolution exceeds a bias, a quantile of what the kernel gives for a training case.

    layout: (2, D), the dilations and their counts
    channels: (D, 84, C), 1 for the channels that a kernel adds up at a dilation, else 0
    biases: (84, sum of counts)
    taps: the kernels, (84, 9)
    """

    layout: Tensor
    channels: Tensor
    biases: Tensor
    taps: Tensor
    owners: Tensor
    is_inner: Tensor

    def __init__(self, layout: Tensor, channels: Tensor, biases: Tensor) -> None:
        super().__init__()
        dilations, counts = layout.tolist()
        self.dilations: tuple[int, ...] = tuple(dilations)
        self.counts: tuple[int, ...] = tuple(counts)
        self.register_buffer("layout", layout)
        self.register_buffer("channels", channels)
        self.register_buffer("biases", biases)
        self.register_buffer("taps", kernels().float(), persistent=False)
        taps = self.taps.expand(len(self.dilations), -1, -1)
        self.convolutions = Convolutions(taps, channels, self.dilations)
        owners = torch.repeat_interleave(torch.arange(len(counts)), layout[1])  # the dilation of each bias
        self.register_buffer("owners", owners, persistent=False)
        self.register_buffer("is_inner", (owners.unsqueeze(1) + torch.arange(N_KERNELS)) % 2 == 1, persistent=False)

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
        layout = torch.tensor([dilations, counts])
        return cls(layout, torch.stack(channels).to(torch.uint8), torch.cat(biases, dim=1).float())

    @property
    def n_features(self) -> int:
        return self.biases.numel()

    @property
    def n_channels(self) -> int:
        return self.channels.shape[2]

    @property
    def width(self) -> int:
        return N_KERNELS * (2 + max(self.counts))  # convolutions are float64

    def forward(self, x: Tensor) -> Tensor:
        """Compute (B, C, T) -> (B, n_features); a case does not depend on the others.

        T may be another one than at fit. Cases of fewer than 9 time steps are continued with zeros to 9.
        """
        x = long_enough(x)
        if _is_compiled(x) and not is_exporting():
            return self._counted(x)
        sides = self._sides(x)
        biases = torch.split_with_sizes(self.biases.T.double().unsqueeze(2), self.counts)  # (n, 84, 1) each
        counts = []
        for number, y in enumerate(self.convolutions(on_grid(x))):
            for bias in biases[number]:
                above = (y > bias).to(x.dtype)  # (B, 84, T)
                counts.append((above @ sides[number]).unsqueeze(1))  # (B, 1, 84, 2)
        # Counted first and divided then: counts are exact.
        shares = torch.cat(counts, dim=1) / sides.sum(dim=1)[self.owners].unsqueeze(1)
        # Every other kernel, and at the next dilation the others, counts inside only.
        chosen = torch.where(self.is_inner, shares[..., 1], shares[..., 0])
        return chosen.flatten(1)

    def _sides(self, x: Tensor) -> Tensor:
        """Tell for each dilation which time steps count, (D, T, 2): all of them, and those inside only.

        Inside is where a kernel does not reach beyond the case; where it always does, because the case is shorter than
        those of the fit, that is everywhere.
        """
        n_times = x.shape[2]
        time = torch.arange(n_times, device=x.device)
        margins = REACH * self.layout[0].unsqueeze(1)
        is_inside = (time >= margins) & (time < n_times - margins)
        is_counted = is_inside | (2 * margins >= n_times)
        return torch.stack([torch.ones_like(is_counted), is_counted], dim=2).to(x.dtype)

    def _counted(self, x: Tensor) -> Tensor:
        """Do the same in C."""
        _, n_channels, n_times = x.shape
        n_dilations, n_kernels, most = self._lists.own.shape
        n_biases = self.biases.shape[1]
        shares = x.new_empty(len(x), n_biases * n_kernels)
        C.call(
            "shares",
            x.contiguous(),
            shares,
            n_channels,
            n_times,
            n_dilations,
            self._layout,
            self._lists.own,
            most,
            self.taps,
            self.biases,
            n_biases,
        )
        return shares

    @cached_property
    def _layout(self) -> Tensor:
        """(D, 3): each dilation, how many biases it has, and the number of the first."""
        first = np.cumsum([0, *self.counts[:-1]]).tolist()
        rows = list(zip(self.dilations, self.counts, first, strict=True))
        return torch.tensor(rows, dtype=torch.int32, device=self.channels.device)

    @cached_property
    def _lists(self) -> ChannelLists:
        return channel_lists(self.channels)

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Bank":
        """Make a bank of what a file holds; the functions in C go through memory by it, so it has to fit together."""
        layout, channels, biases = (tensors[name] for name in ("layout", "channels", "biases"))
        dilations, counts = layout.tolist()
        wanted = [N_KERNELS, sum(counts), len(dilations), N_KERNELS]
        if [*biases.shape, *channels.shape[:-1]] != wanted or layout.is_floating_point() or layout.min() < 1:
            raise InputError("the bank's dilations, biases and channels do not fit together")
        return cls(layout, channels, biases)


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


class Contests(nn.Module):
    """Contests of Hydra's kernels (Dempster et al., 2023): which of a group fits a case best at a time step, or worst.

    At D dilations, 1, 2, 4, 8 and so on, groups of 8 kernels of 9 random taps compete, half of the groups on the cases
    and half on their first difference. A feature is the square root of how much a kernel wins by, or of how often it
    comes last, per time step.

    taps: (D, 2, G, 8, 9), for cases and for their first difference; those of a kernel have mean 0 and absolute sum 1
    channels: (D, 2, G, C), how often a group adds up a channel
    """

    taps: Tensor
    channels: Tensor

    def __init__(self, taps: Tensor, channels: Tensor) -> None:
        super().__init__()
        self.register_buffer("taps", taps)
        self.register_buffer("channels", channels)
        each_kernel = channels.repeat_interleave(PER_GROUP, dim=2)  # (D, 2, 8 G, C)
        self.convolutions = nn.ModuleList(
            Convolutions(taps[:, series].flatten(1, 2), each_kernel[:, series], self.dilations) for series in range(2)
        )

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
        return cls(torch.from_numpy(taps * GRID).float(), torch.from_numpy(channels).to(torch.uint8))

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

    def forward(self, x: Tensor) -> Tensor:
        """Compute (B, C, T) -> (B, n_features); a case does not depend on the others.

        T may be any. Cases of fewer than 9 time steps are continued with zeros to 9.
        """
        x = long_enough(x)
        if _is_compiled(x) and not is_exporting():
            return self._counted(x)
        both = (x, x[..., 1:] - x[..., :-1])
        outcomes = [self._outcomes(on_grid(values), series) for series, values in enumerate(both)]
        features = torch.stack(outcomes, dim=2)  # (B, D, 2, 2, 8 G)
        return features.flatten(1).to(x.dtype).clamp_min(0).sqrt()

    def _outcomes(self, values: Tensor, series: int) -> Tensor:
        """Return by how much each kernel wins in cases or their differences, and how often it comes last."""
        nothing = _nothing(values)[:, None, None, None]
        outcomes = []
        for y in self.convolutions[series](values):
            groups = torch.unflatten(y, 1, (-1, PER_GROUP))  # (B, G, 8, T)
            outcomes.append(torch.stack(_won_and_lost(groups, nothing), dim=1))
        return torch.stack(outcomes, dim=1) / as_number(values.shape[2])  # (B, D, 2, 8 G)

    def _counted(self, x: Tensor) -> Tensor:
        """Do the same in C."""
        _, n_channels, n_times = x.shape
        n_dilations, _, n_groups, most = self._lists.own.shape
        outcomes = x.new_empty(len(x), self.n_features)
        C.call(
            "contests",
            x.contiguous(),
            outcomes,
            n_channels,
            n_times,
            n_dilations,
            n_groups,
            self._lists.own,
            self._lists.often,
            most,
            self.taps,
            NOTHING,
        )
        return outcomes

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "Contests":
        taps, channels = tensors["taps"], tensors["channels"]
        if taps.shape != (*channels.shape[:-1], PER_GROUP, N_TAPS) or taps.shape[1] != 2 or not taps.numel():
            raise InputError(f"the contests' taps {tuple(taps.shape)} and channels {tuple(channels.shape)} do not fit")
        return cls(taps, channels)


def _won_and_lost(y: Tensor, nothing: Tensor) -> tuple[Tensor, Tensor]:
    """Return by how much each kernel of y (B, G, 8, T) wins, and how often it comes last, (B, 8 G), added up over time.

    Where the case is constant all kernels give 0, or nothing to speak of: nobody wins or comes last.
    """
    best = y.amax(dim=2, keepdim=True)  # (B, G, 1, T)
    worst = y.amin(dim=2, keepdim=True)
    best = torch.where(best.abs() <= nothing, 0.0, best)
    worst = torch.where(worst.abs() <= nothing, torch.nan, worst)  # equal to nothing
    won = (y == best).double() @ best.transpose(2, 3)
    lost = (y == worst).float().sum(dim=3).double()
    return won.flatten(1), lost.flatten(1)
