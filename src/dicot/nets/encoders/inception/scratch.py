"""Memory that is used again from call to call."""

import math

import torch
from torch import Tensor


class Scratch:
    """One growing buffer per name: fresh memory costs a CPU more than the arithmetic on it.

    What was taken under a name is overwritten when the name is taken again.
    """

    def __init__(self, like: Tensor) -> None:
        self.like = like.detach()
        self.buffers: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        size = math.prod(shape)
        if name not in self.buffers or len(self.buffers[name]) < size:
            self.buffers[name] = self.like.new_empty(size, dtype=dtype)
        return self.buffers[name][:size].view(shape)
