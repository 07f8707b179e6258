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
WIDEST = 9  # channels up to which one product of all taps and channels takes less time than adding up channels first
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


def c_serves(x: Tensor) -> bool:
    """Tell whether there are C functions for such cases (B, C, T)."""
    return x.device.type == "cpu" and x.dtype == torch.float32 and C.library is not None


def c_shares(
    x: Tensor, dilations: Tensor, counts: Tensor, starts: Tensor, chosen: Tensor, taps: Tensor, biases: Tensor
) -> Tensor:
    """Compute what `Bank.transform` does, for at least 9 time steps; see native.c for the lists of numbers (int32)."""
    out = x.new_empty(len(x), biases.numel())
    lists = (dilations, counts, starts, chosen, taps, biases, out)
    C.call("shares", x.contiguous(), *x.shape, len(dilations), *lists)
    return out


def c_contests(x: Tensor, taps: Tensor, channels: Tensor, nothing: float) -> Tensor:
    """Compute what `Contests.transform` does, for at least 9 time steps and groups that add up at most 9 channels."""
    out = x.new_empty(len(x), 2 * taps[..., 0].numel())
    n_dilations, _, n_groups = taps.shape[:3]
    C.call("contests", x.contiguous(), *x.shape, n_dilations, n_groups, taps, channels, nothing, out)
    return out


class ChannelLists(NamedTuple):
    """Which channels each kernel adds up, as lists, on a GPU; -1 after the last one."""

    own: Tensor  # (..., most) int32
    often: Tensor  # (..., most)


def chosen(channels: Tensor, like: Tensor) -> ChannelLists | None:
    """Turn counts (..., C) into lists for cases as `like`; None where there are no kernels for these."""
    if not like.is_cuda or like.dtype != torch.float32 or CUDA.on(like.device) is None:
        return None
    counts = channels.cpu()
    most = max(1, int((counts > 0).sum(dim=-1).max()))
    own = (counts > 0).to(torch.int8).argsort(dim=-1, descending=True, stable=True)[..., :most]
    often = counts.gather(-1, own)
    return ChannelLists(own.masked_fill(often == 0, -1).int().contiguous().to(like.device), often.contiguous().to(like))


def cuda_shares(x: Tensor, layout: Tensor, channels: ChannelLists, taps: Tensor, biases: Tensor) -> Tensor:
    """Compute the features of `Bank.transform`, (B, C, T) -> (B, n_features).

    layout: (D, 3) int32: a dilation, how many biases it has, and the number of the first
    """
    n_cases, (n_dilations, n_kernels, most) = len(x), channels.own.shape
    total = biases.shape[1]
    out = x.new_empty(n_cases, total * n_kernels)
    CUDA.launch(
        "shares", x.device, *_warps(n_cases * n_dilations * n_kernels), x.contiguous(), *x.shape, layout, n_dilations,
        channels.own, channels.often, most, taps, n_kernels, biases, total, _largest(x), out,
    )  # fmt: skip
    return out


def cuda_contests(x: Tensor, steps: Tensor, channels: ChannelLists, taps: Tensor, nothing: float) -> Tensor:
    """Compute the features of `Contests.transform`, (B, C, T) -> (B, n_features).

    steps: the first difference; nothing: what counts as none, relative to the largest values of the channels
    """
    n_cases, (n_dilations, _, n_groups, most) = len(x), channels.own.shape
    out = x.new_empty(n_cases, 2 * taps[..., 0].numel())
    largest = torch.stack([_largest(values) for values in (x, steps)])
    none = nothing * torch.stack([on_grid(values).abs().amax(dim=2).sum(dim=1) for values in (x, steps)])
    CUDA.launch(
        "contests", x.device, *_warps(n_cases * n_dilations * 2 * n_groups), x.contiguous(), steps.contiguous(),
        *x.shape, n_dilations, channels.own, channels.often, most, taps, n_groups, largest, none, out,
    )  # fmt: skip
    return out


def _largest(x: Tensor) -> Tensor:
    return x.abs().amax(dim=(1, 2))


def _warps(count: int) -> tuple[Size, Size]:
    return (-(-count // WARPS), 1, 1), (WARP, WARPS, 1)
