"""Convolution of very short cases as one dense map.

With edges repeated, a kernel that is longer than the case reaches every time step from every other one, and most taps
fall on the two ends. With the taps that read the same time step added up, T products per output are left.
"""

import torch
from torch import Tensor

from dicot.nets.encoders.inception import products
from dicot.nets.encoders.inception.constants import constant


@constant(most=64)
def folding(n_times: int, n_taps: int, left: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return (T * T, taps): 1 where the tap of output t reads time step s, rows in the order (t, s)."""
    t, j = torch.arange(n_times).unsqueeze(1), torch.arange(n_taps)
    source = (t + j - left).clamp(0, n_times - 1)  # (T, taps)
    fold = torch.zeros(n_times, n_times, n_taps)
    fold[t, source, j] = 1
    return fold.flatten(0, 1).to(device, dtype)


def forward(v: Tensor, taps: Tensor, left: int) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Convolve (T, B, C) with taps (n, C, O) -> (T, B, O), and what `backward` needs."""
    n_times, n_cases, width = v.shape
    fold = folding(n_times, len(taps), left, v.dtype, v.device)
    dense = products.mm(fold, taps.reshape(len(taps), -1)).view(n_times, n_times * width, -1)  # (t, (s, C), O)
    rows = v.transpose(0, 1).reshape(n_cases, -1)  # (B, (s, C))
    return products.bmm(rows.expand(n_times, -1, -1), dense), (rows, dense)


def backward(dy: Tensor, saved: tuple[Tensor, ...], n_taps: int, left: int) -> tuple[Tensor, Tensor]:
    """Return the gradients of v and of the taps."""
    rows, dense = saved
    n_times, n_cases, n_out = dy.shape
    fold = folding(n_times, n_taps, left, dy.dtype, dy.device)
    drows = products.summed_bmm(dy, dense.transpose(1, 2))
    ddense = products.bmm(rows.T.expand(n_times, -1, -1), dy)
    dtaps = products.mm(fold.T, ddense.view(n_times * n_times, -1)).view(n_taps, -1, n_out)
    return drows.view(n_cases, n_times, -1).transpose(0, 1).contiguous(), dtaps
