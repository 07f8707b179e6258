"""BatchNorm with ReLU, and pooling, forwards and backwards on rows of channels, by PyTorch's own operators.

`kernels` (GPU) and `native` (CPU) have the same four functions, faster; `training.row_operations` chooses. `padded` has
them for cases that end before their tensor does.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

aten = torch.ops.aten


class Normed(NamedTuple):
    """What the backward pass of BatchNorm and ReLU needs."""

    x: Sequence[Tensor]  # input rows (M, C), whole or in parts
    y: Tensor  # (M, C) behind ReLU
    statistics: Tensor  # (2 or more, C): mean, 1 / standard deviation


def norm_forward(parts: Sequence[Tensor], norm: nn.BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
    """Compute relu(BatchNorm(x) + added) of rows (M, C) that come in parts.

    The running statistics move as if `bias` had been added to x.
    """
    assert norm.running_mean is not None and norm.num_batches_tracked is not None
    x = torch.cat(list(parts), dim=1) if len(parts) > 1 else parts[0]
    momentum = next_momentum(norm)
    norm.num_batches_tracked.add_(1)
    image, mean, rstd = aten.native_batch_norm(
        _as_image(x), norm.weight, norm.bias, norm.running_mean, norm.running_var, True, momentum, norm.eps
    )
    norm.running_mean.add_(bias, alpha=momentum)
    y = _as_rows(image)
    return Normed([x], (y if added is None else y.add_(added)).relu_(), torch.stack([mean, rstd]))


def norm_backward(
    dy: Tensor, saved: Normed, norm: nn.BatchNorm1d, widths: Sequence[int], masked: bool = True
) -> tuple[Sequence[Tensor], Tensor, Tensor]:
    """Return the gradients of the rows, in parts of these widths, of scale and of shift.

    With masked=False, dy is the gradient in front of ReLU already.
    """
    dpre = aten.threshold_backward(dy, saved.y, 0) if masked else dy
    (x,), (mean, rstd) = saved.x, saved.statistics
    dx, dweight, dbias = aten.native_batch_norm_backward(
        _as_image(dpre), _as_image(x), norm.weight, None, None, mean, rstd, True, norm.eps, [True, True, True]
    )
    return torch.split(_as_rows(dx), list(widths), dim=1), dweight, dbias


def pool_forward(u: Tensor) -> tuple[Tensor, Tensor | None]:
    """Take the largest of three neighbouring time steps of (T, B, C), and of each two, which `pool_backward` needs.

    pairs[t] = max(u[t], u[t + 1]), then y[t] = max(pairs[t - 1], pairs[t]): no index of 8 bytes per value is saved.
    """
    if len(u) == 1:
        return u.clone(), None
    pairs = torch.maximum(u[:-1], u[1:])
    y = torch.empty_like(u)
    y[0], y[-1] = pairs[0], pairs[-1]
    torch.maximum(pairs[:-1], pairs[1:], out=y[1:-1])
    return y, pairs


def pool_backward(dy: Tensor, u: Tensor, pairs: Tensor | None) -> Tensor:
    """Return the gradient of u, which goes to the first of equal values; dy is overwritten."""
    if pairs is None:
        return dy
    later = _to_the_later(dy[1:-1], pairs)
    dpairs = dy[1:]  # the gradient of pairs[t] overwrites dy[t + 1]
    dpairs[:-1] -= later
    dpairs[1:] += later
    dpairs[0] += dy[0]
    later = _to_the_later(dpairs, u)
    du = torch.empty_like(u)
    torch.sub(dpairs, later, out=du[:-1])
    du[-1] = 0
    du[1:] += later
    return du


def _to_the_later(dlarger: Tensor, x: Tensor) -> Tensor:
    """Return what x[t + 1] gets of the gradient of max(x[t], x[t + 1]): all where it is larger, else nothing."""
    passed: Tensor = aten.threshold_backward(dlarger, x[1:] - x[:-1], 0)
    return passed


def next_momentum(norm: nn.BatchNorm1d) -> float:
    """Return the next batch's share in the running statistics; without a momentum they are plain averages."""
    assert norm.num_batches_tracked is not None
    return 1 / (1 + float(norm.num_batches_tracked)) if norm.momentum is None else norm.momentum


def _as_image(rows: Tensor) -> Tensor:
    """View (M, C) as an image (1, C, M, 1) with channels stored last, for which these operators are fast."""
    return rows.view(1, len(rows), 1, -1).permute(0, 3, 1, 2)


def _as_rows(image: Tensor) -> Tensor:
    return image.permute(0, 2, 3, 1).flatten(0, 2)
