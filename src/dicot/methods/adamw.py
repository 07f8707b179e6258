"""AdamW for the few tensors that a method trains beside the encoder, with all of its state in buffers."""

import math

import torch
from torch import Tensor, nn

BETAS = (0.9, 0.999)
EPSILON = 1e-8
WEIGHT_DECAY = 0.01


def adamw(
    value: Tensor, gradient: Tensor, mean: Tensor, square: Tensor, number: int, lr: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Update number `number` (from 1) with torch's default settings: the new value and the new moments."""
    mean = torch.lerp(mean, gradient, 1 - BETAS[0])
    square = BETAS[1] * square + (1 - BETAS[1]) * gradient.square()
    size = lr / (1 - BETAS[0] ** number)
    spread = square.sqrt() / math.sqrt(1 - BETAS[1] ** number) + EPSILON
    return value * (1 - lr * WEIGHT_DECAY) - size * mean / spread, mean, square


class SelfOptimised(nn.Module):
    """A tensor and its AdamW moments, as buffers: checkpoints hold them, the run's optimiser does not see them."""

    value: Tensor
    mean: Tensor
    square: Tensor

    def __init__(self, value: Tensor) -> None:
        super().__init__()
        self.register_buffer("value", value)
        self.register_buffer("mean", torch.zeros_like(value))
        self.register_buffer("square", torch.zeros_like(value))

    def leaf(self) -> Tensor:
        """The value as the start of a graph."""
        return self.value.detach().requires_grad_()

    @torch.no_grad()
    def step(self, gradient: Tensor, number: int, lr: float) -> None:
        updated = adamw(self.value, gradient, self.mean, self.square, number, lr)
        for kept, new in zip((self.value, self.mean, self.square), updated, strict=True):
            kept.copy_(new)
