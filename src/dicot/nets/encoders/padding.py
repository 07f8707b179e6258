"""Length-preserving convolution with edge values repeated, and the rule for very short series."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def same_margins(kernel: int) -> tuple[int, int]:
    """Return how many samples to add on the left and on the right; an even kernel takes the extra one on the right."""
    left = (kernel - 1) // 2
    return left, kernel - 1 - left


def repeat_edges(x: Tensor, left: int, right: int) -> Tensor:
    """Repeat the outermost values, (..., T) -> (..., left + T + right).

    As torch's replicate padding, whose backward pass on a GPU adds up in an order that changes from run to run.
    """
    edges = x[..., :1].expand(*x.shape[:-1], left), x[..., -1:].expand(*x.shape[:-1], right)
    return torch.cat([edges[0], x, edges[1]], dim=-1)


def same_conv(conv: nn.Conv1d, x: Tensor) -> Tensor:
    """Apply an unpadded convolution so that (B, C, T) keeps its length; works down to T = 1."""
    y: Tensor = conv(repeat_edges(x, *same_margins(conv.kernel_size[0])))
    return y


def at_least_five(x: Tensor) -> tuple[Tensor, slice]:
    """Zero-pad (B, C, T < 5) on both sides to 5 time steps; the slice cuts features back to T."""
    n_times = x.shape[-1]
    missing = max(0, 5 - n_times)
    left = missing // 2
    padded = F.pad(x, (left, missing - left)) if missing else x
    return padded, slice(left, left + n_times)
