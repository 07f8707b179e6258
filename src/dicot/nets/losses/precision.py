"""Similarities and softmax stay in float32 or wider, whatever the encoder computes in."""

import torch
from torch import Tensor


def wide(z: Tensor) -> Tensor:
    """z itself, or as float32 where it is a half precision."""
    return z.float() if z.dtype in (torch.float16, torch.bfloat16) else z


def wide_dtype(z: Tensor) -> torch.dtype:
    """The type of `wide(z)`."""
    return torch.promote_types(z.dtype, torch.float32)
