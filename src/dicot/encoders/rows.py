"""BatchNorm with ReLU, and pooling, forwards and backwards on rows of channels, by PyTorch's own operators.

`kernels` answers the same four functions faster on a GPU.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

aten = torch.ops.aten
WINDOW = ([3, 1], [1, 1], [1, 0])  # kernel, stride and padding of the pooling


class Normed(NamedTuple):
    """What the backward pass of BatchNorm and ReLU needs."""

    x: Sequence[Tensor]  # input rows (M, C), whole or in parts of equally many columns
    y: Tensor  # (M, C) behind ReLU
    statistics: Tensor  # (2 or more, C): mean, 1 / standard deviation


def norm_forward(parts: Sequence[Tensor], norm: nn.BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
    """relu(BatchNorm(x) + added) of rows (M, C) that come in parts of equally many columns.

    The running statistics move as if `bias` had been added to x.
    """
    assert norm.running_mean is not None and norm.num_batches_tracked is not None
    x = torch.cat(list(parts), dim=1) if len(parts) > 1 else parts[0]
    momentum = next_momentum(norm)
    norm.num_batches_tracked.add_(1)
    picture, mean, rstd = aten.native_batch_norm(
        _as_picture(x), norm.weight, norm.bias, norm.running_mean, norm.running_var, True, momentum, norm.eps
    )
    norm.running_mean.add_(bias, alpha=momentum)
    y = _as_rows(picture)
    return Normed([x], (y if added is None else y.add_(added)).relu_(), torch.stack([mean, rstd]))


def norm_backward(
    dy: Tensor, kept: Normed, norm: nn.BatchNorm1d, n_parts: int = 1, masked: bool = True
) -> tuple[Sequence[Tensor], Tensor, Tensor]:
    """Gradients of the rows, in parts, of the scale and of the shift; not `masked`: dy is already that before ReLU."""
    dpre = aten.threshold_backward(dy, kept.y, 0) if masked else dy
    (x,), (mean, rstd) = kept.x, kept.statistics
    dx, dweight, dbias = aten.native_batch_norm_backward(
        _as_picture(dpre), _as_picture(x), norm.weight, None, None, mean, rstd, True, norm.eps, [True, True, True]
    )
    return _as_rows(dx).chunk(n_parts, dim=1), dweight, dbias


def pool_forward(u: Tensor) -> tuple[Tensor, Tensor | None]:
    """The largest of three neighbouring time steps of (T, B, C), and which one it was: of equal ones the first."""
    largest, winner = aten.max_pool2d_with_indices(_as_picture(u.flatten(1)), *WINDOW)
    return _as_rows(largest).view_as(u), winner


def pool_backward(dy: Tensor, u: Tensor, winner: Tensor | None) -> Tensor:
    du = aten.max_pool2d_with_indices_backward(
        _as_picture(dy.flatten(1)), _as_picture(u.flatten(1)), *WINDOW, [1, 1], False, winner
    )
    return _as_rows(du).view_as(u)


def next_momentum(norm: nn.BatchNorm1d) -> float:
    """The share of the coming batch in the running statistics; without a momentum they are plain averages."""
    assert norm.num_batches_tracked is not None
    return 1 / (1 + float(norm.num_batches_tracked)) if norm.momentum is None else norm.momentum


def _as_picture(rows: Tensor) -> Tensor:
    """(M, C) as one picture (1, C, M, 1) with channels stored last, for which these operators are fast; no copy."""
    return rows.view(1, len(rows), 1, -1).permute(0, 3, 1, 2)


def _as_rows(picture: Tensor) -> Tensor:
    return picture.permute(0, 2, 3, 1).flatten(0, 2)
