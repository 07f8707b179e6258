"""Which of the ways to work on rows of channels to take: `kernels` on a GPU, `native` on a CPU, or `rows` anywhere."""

from types import ModuleType

import torch
from torch import Tensor

from dicot.encoders import kernels, native, rows


def rows_for(u: Tensor, width: int) -> ModuleType:
    """For rows like u, and parts of `width` columns."""
    if u.dtype != torch.float32 or width % 4 or u.shape[-1] % 4:
        return rows
    if u.is_cuda:
        return rows if kernels.compiled(u.device) is None else kernels
    fits = u.device.type == "cpu" and width * native.MOST_PARTS <= native.WIDEST
    return native if fits and native.library() is not None else rows
