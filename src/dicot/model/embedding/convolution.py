"""Dilated convolution of cases with many kernels of nine taps at once, without any rounding.

Features that count time steps would turn a difference in the last bit into one of 1/T, and matrix products are rounded
in another way by every library and processor. So cases are put on a grid on which every sum of products is exact in
float64: then all ways to compute it come to the same bits.
"""

import torch.nn.functional as F
from torch import Tensor

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
