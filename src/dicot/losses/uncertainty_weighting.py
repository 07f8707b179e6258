"""The sum of several losses whose weights are learned."""

import torch
from torch import Tensor


def uncertainty_weighted(losses: list[Tensor], weights: Tensor) -> Tensor:
    """sum_i loss_i / (2 w_i^2) + log(1 + w_i^2): the second term keeps the weights w (n,) from growing without end."""
    squares = weights.square()
    return (torch.stack(losses) * 0.5 / squares + torch.log1p(squares)).sum()
