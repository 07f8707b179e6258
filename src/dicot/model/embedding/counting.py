"""What the bank and the contests count, in CUDA (counting.cu): no convolution is ever written to memory.

Where the kernels cannot be compiled, and for other numbers than float32, PyTorch's operators do the work.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from dicot.core.gpu.kernels import KernelFile, Size
from dicot.model.embedding.convolution import on_grid

FILE = KernelFile("dicot.model.embedding", "counting.cu", {"shares": "PiiiPiPPiPiPiPP", "contests": "PPiiiiPPiPiPPP"})
WARP, WARPS = 32, 8  # of a block


class ChannelLists(NamedTuple):
    """Which channels each kernel adds up, as lists, on a GPU; -1 after the last one."""

    own: Tensor  # (..., most) int32
    often: Tensor  # (..., most)


def chosen(channels: Tensor, like: Tensor) -> ChannelLists | None:
    """Turn counts (..., C) into lists for cases as `like`; None where there are no kernels for these."""
    if not like.is_cuda or like.dtype != torch.float32 or FILE.on(like.device) is None:
        return None
    counts = channels.cpu()
    most = max(1, int((counts > 0).sum(dim=-1).max()))
    own = (counts > 0).to(torch.int8).argsort(dim=-1, descending=True, stable=True)[..., :most]
    often = counts.gather(-1, own)
    return ChannelLists(own.masked_fill(often == 0, -1).int().contiguous().to(like.device), often.contiguous().to(like))


def shares(x: Tensor, layout: Tensor, channels: ChannelLists, taps: Tensor, biases: Tensor) -> Tensor:
    """Compute the features of `Bank.transform`, (B, C, T) -> (B, n_features).

    layout: (D, 3) int32: a dilation, how many biases it has, and the number of the first
    """
    n_cases, (n_dilations, n_kernels, most) = len(x), channels.own.shape
    total = biases.shape[1]
    out = x.new_empty(n_cases, total * n_kernels)
    FILE.launch(
        "shares", x.device, *_warps(n_cases * n_dilations * n_kernels), x.contiguous(), *x.shape, layout, n_dilations,
        channels.own, channels.often, most, taps, n_kernels, biases, total, _largest(x), out,
    )  # fmt: skip
    return out


def contests(x: Tensor, steps: Tensor, channels: ChannelLists, taps: Tensor, nothing: float) -> Tensor:
    """Compute the features of `Contests.transform`, (B, C, T) -> (B, n_features).

    steps: the first difference; nothing: what counts as none, relative to the largest values of the channels
    """
    n_cases, (n_dilations, _, n_groups, most) = len(x), channels.own.shape
    out = x.new_empty(n_cases, 2 * taps[..., 0].numel())
    largest = torch.stack([_largest(values) for values in (x, steps)])
    none = nothing * torch.stack([on_grid(values).abs().amax(dim=2).sum(dim=1) for values in (x, steps)])
    FILE.launch(
        "contests", x.device, *_warps(n_cases * n_dilations * 2 * n_groups), x.contiguous(), steps.contiguous(),
        *x.shape, n_dilations, channels.own, channels.often, most, taps, n_groups, largest, none, out,
    )  # fmt: skip
    return out


def _largest(x: Tensor) -> Tensor:
    return x.abs().amax(dim=(1, 2))


def _warps(count: int) -> tuple[Size, Size]:
    return (-(-count // WARPS), 1, 1), (WARP, WARPS, 1)
