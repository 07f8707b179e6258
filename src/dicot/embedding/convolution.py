"""Dilated convolution of cases with many kernels of nine taps at once."""

import torch.nn.functional as F
from torch import Tensor

N_TAPS = 9
REACH = N_TAPS // 2  # taps on either side of the middle
WIDEST = 9  # channels up to which one product of all taps and channels takes less time than adding up channels first


def convolve(x: Tensor, taps: Tensor, channels: Tensor, dilation: int) -> Tensor:
    """Compute (B, C, T) -> (B, K, T) for kernels `taps` (K, 9), with zeros around a case.

    channels: (K, C), how often each kernel adds up each channel
    """
    if x.shape[1] > WIDEST:
        return depthwise(channels @ x, taps, dilation)
    margin, n_times = REACH * dilation, x.shape[2]
    taken = F.pad(x, (margin, margin)).unfold(2, n_times, dilation)  # (B, C, 9, T)
    # All taps side by side, (B, 9 C, T), and all kernels in one product: a CPU's dilated convolution is slower.
    windows = taken.transpose(1, 2).flatten(1, 2)
    weight = (taps.unsqueeze(2) * channels.unsqueeze(1)).flatten(1)  # (K, 9 C)
    return weight @ windows


def depthwise(mixed: Tensor, taps: Tensor, dilation: int) -> Tensor:
    """Convolve what each kernel is given with that kernel, (B, K, T) -> (B, K, T)."""
    return F.conv1d(mixed, taps.unsqueeze(1), padding=REACH * dilation, dilation=dilation, groups=len(taps))


def long_enough(x: Tensor) -> Tensor:
    """Continue cases (..., T) of fewer than 9 time steps with zeros to 9."""
    return F.pad(x, (0, max(0, N_TAPS - x.shape[-1])))


def each_by_its_own(mixed: Tensor, taps: Tensor, dilation: int) -> Tensor:
    """Convolve each row (K, T) with a kernel of its own, `taps` (K, 9), by products, which a CPU is fast at."""
    margin, n_times = REACH * dilation, mixed.shape[1]
    windows = F.pad(mixed, (margin, margin)).unfold(1, n_times, dilation)  # (K, 9, T)
    return (taps.unsqueeze(1) @ windows).squeeze(1)
