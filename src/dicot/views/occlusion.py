"""A part of the time axis set to zero. Start and length are numbers, or 0-d tensors on the device of x."""

import torch
from torch import Tensor


def subsequence(x: Tensor, start: int | Tensor, length: int | Tensor) -> Tensor:
    """(B, C, T) with everything outside the interval [start, start + length) set to zero."""
    return x * _inside(x, start, length)


def cutout(x: Tensor, start: int | Tensor, length: int | Tensor) -> Tensor:
    """(B, C, T) with the interval [start, start + length) set to zero."""
    return x * ~_inside(x, start, length)


def _inside(x: Tensor, start: int | Tensor, length: int | Tensor) -> Tensor:
    step = torch.arange(x.shape[-1], device=x.device)  # (T,)
    return (step >= start) & (step < start + length)
