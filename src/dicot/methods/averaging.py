"""A running average of an encoder's weights, beside the encoder that trains."""

import copy

import torch
from torch import Tensor, nn

from dicot.nets.encoders import Encoder


class AveragedEncoder(nn.Module):
    """The equal-weight average of all iterates; BatchNorm statistics are the live encoder's."""

    n_averaged: Tensor

    def __init__(self, live: Encoder) -> None:
        super().__init__()
        self.encoder = copy.deepcopy(live).requires_grad_(False)
        self.register_buffer("n_averaged", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def update(self, live: Encoder) -> None:
        """Take one more iterate in: avg <- avg + (live - avg) / (n + 1); the first one replaces the average."""
        self.n_averaged.add_(1)
        averages: list[Tensor] = list(self.encoder.parameters())
        # All tensors by one call each: on a GPU three launches instead of three per tensor.
        steps = list(torch._foreach_sub(list(live.parameters()), averages))
        torch._foreach_div_(steps, self.n_averaged.to(averages[0].dtype))
        torch._foreach_add_(averages, steps)
        torch._foreach_copy_(list(self.encoder.buffers()), list(live.buffers()))
