"""Exact counts: dilated convolutions of cases with many kernels of nine taps, without any rounding.

Features that count time steps would turn a difference in the last bit into one of 1/T, and matrix products are rounded
in another way by every library and processor. So cases are put on a grid on which every sum of products is exact in
float64: then all ways to compute it come to the same bits.

Here are the convolution by PyTorch's operators, and what the bank and the contests count of it in C (native.c) and in
CUDA (counting.cu), for float32. These never write a convolution to memory.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.core.machine_code import CFile, KernelFile, Size

C = CFile("dicot.model.embedding", "native.c")
CUDA = KernelFile("dicot.model.embedding", "counting.cu", {"shares": "PiiiPiPPiPiPiPP", "contests": "PPiiiiPPiPiPPP"})
WARP, WARPS = 32, 8  # of a block
N_TAPS = 9
REACH = N_TAPS // 2  # taps on either side of the middle
WIDEST = 9  # channels up to which one product of all taps and channels takes less time than adding up channels first;
# also the most that a group of contests adds up in C
# A grid's step is the last bit of this multiple of a case's largest value: values have up to 39 binary digits, and sums
# of |taps| times channels below 2^4 with ten digits after the point, as the contests', or below 2^14 without, as the
# bank's, fit into the 53 of float64. float32 keeps 24 digits: values down to 1/8,000 of the largest stay as they are.
ROOM = 2.0**15


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
    """Turn counts (..., C) into lists."""
    counts = channels.cpu()
    most = max(1, int((counts > 0).sum(dim=-1).max()))
    own = (counts > 0).to(torch.int8).argsort(dim=-1, descending=True, stable=True)[..., :most]
    often = counts.gather(-1, own)
    return ChannelLists(own.masked_fill(often == 0, -1).int().contiguous().to(channels.device), often.to(channels))


def is_compiled(x: Tensor) -> bool:
    """Tell whether there are functions in C or CUDA for such cases (B, C, T)."""
    if x.dtype != torch.float32:
        return False
    return CUDA.on(x.device) is not None if x.is_cuda else x.device.type == "cpu" and C.library is not None


def shares(x: Tensor, layout: Tensor, channels: ChannelLists, taps: Tensor, biases: Tensor) -> Tensor:
    """Compute the features of `Bank.transform`, (B, C, T) -> (B, n_features), for at least 9 time steps.

    layout: (D, 3) int32: a dilation, how many biases it has, and the number of the first
    """
    n_dilations, n_kernels, most = channels.own.shape
    x, total = x.contiguous(), biases.shape[1]
    out = x.new_empty(len(x), total * n_kernels)
    if not x.is_cuda:
        C.call("shares", x, *x.shape, n_dilations, layout, channels.own, most, taps, biases, total, out)
        return out
    CUDA.launch(
        "shares", x.device, *_warps(len(x) * n_dilations * n_kernels), x, *x.shape, layout, n_dilations,
        channels.own, channels.often, most, taps, n_kernels, biases, total, _largest(x), out,
    )  # fmt: skip
    return out


def contests(x: Tensor, channels: ChannelLists, taps: Tensor, nothing: float) -> Tensor:
    """Compute the features of `Contests.transform`, (B, C, T) -> (B, n_features), for at least 9 time steps.

    nothing: what counts as none, relative to the largest values of the channels
    """
    n_dilations, _, n_groups, most = channels.own.shape
    x, out = x.contiguous(), x.new_empty(len(x), 2 * taps[..., 0].numel())
    if not x.is_cuda:
        C.call("contests", x, *x.shape, n_dilations, n_groups, *channels, most, taps, nothing, out)
        return out
    both = (x, x.diff(dim=2))
    largest = torch.stack([_largest(values) for values in both])
    none = nothing * torch.stack([on_grid(values).abs().amax(dim=2).sum(dim=1) for values in both])
    CUDA.launch(
        "contests", x.device, *_warps(len(x) * n_dilations * 2 * n_groups), *both, *x.shape, n_dilations, *channels,
        most, taps, n_groups, largest, none, out,
    )  # fmt: skip
    return out


def _largest(x: Tensor) -> Tensor:
    return x.abs().amax(dim=(1, 2))


def _warps(count: int) -> tuple[Size, Size]:
    return (-(-count // WARPS), 1, 1), (WARP, WARPS, 1)
