"""The largest of three neighbouring time steps, on (T, B, C) tensors; of equal values the first one wins."""

import torch
from torch import Tensor

from dicot.encoders.pictures import as_picture, as_rows

aten = torch.ops.aten
WINDOW = ([3, 1], [1, 1], [1, 0])  # kernel, stride, padding


def forward(u: Tensor) -> tuple[Tensor, Tensor]:
    """(T, B, C) -> (T, B, C), and which time step won."""
    largest, winner = aten.max_pool2d_with_indices(as_picture(u.flatten(1)), *WINDOW)
    return as_rows(largest).view_as(u), winner


def backward(dy: Tensor, u: Tensor, winner: Tensor) -> Tensor:
    du = aten.max_pool2d_with_indices_backward(
        as_picture(dy.flatten(1)), as_picture(u.flatten(1)), *WINDOW, [1, 1], False, winner
    )
    return as_rows(du).view_as(u)
