"""A running average of an encoder's weights, kept beside the one that trains."""

import copy

import torch
from torch import Tensor, nn

from dicot.encoders import Encoder


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
        for average, parameter in zip(self.encoder.parameters(), live.parameters(), strict=True):
            average.add_((parameter - average) / self.n_averaged.to(average.dtype))
        for kept, buffer in zip(self.encoder.buffers(), live.buffers(), strict=True):
            kept.copy_(buffer)
