"""Softmax contrast between two views of the same vectors, the piece that several methods share."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from dicot.losses.precision import wide


class _Contrast(torch.autograd.Function):
    """Cross-entropy of each vector's softmax over the others of its group (G, m, F) against targets (m, m).

    The targets' diagonal is zero. By hand, because the steps of autograd would hold five arrays of all pairs instead of
    two, and because probabilities next to zero, of which a gradient without a temperature is full, would go into the
    matrix product as denormal numbers, on which a CPU is twenty times slower.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, targets: Tensor) -> Tensor:
        logits = z @ z.transpose(1, 2)
        wanted = (logits.mean(dim=0) * targets).sum()
        logits.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        total = logits.logsumexp(dim=-1)  # (G, m)
        ctx.save_for_backward(z, targets, logits, total)
        return ((total.mean(dim=0) * targets.sum(dim=1)).sum() - wanted) / len(targets)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dloss: Tensor) -> tuple[Tensor, None]:
        z, targets, logits, total = ctx.saved_tensors
        number = torch.finfo(z.dtype)
        p = (logits - total.unsqueeze(-1)).exp_()
        F.threshold(p, number.tiny / number.eps, 0.0, inplace=True)
        p.mul_(targets.sum(dim=1, keepdim=True)).sub_(targets)
        both = p + p.transpose(1, 2)  # a similarity is that of two vectors
        return (both @ z) * (dloss / (len(z) * len(targets))), None


def contrast(z1: Tensor, z2: Tensor, targets: Tensor) -> Tensor:
    """Mean over the 2n vectors of a group, and over groups (G, n, F), of the cross-entropy against targets (2n, 2n).

    Rows and columns run over view 1, then view 2; the vector itself is no candidate, and its target must be 0. Targets
    need not sum to one. Dot products without temperature or normalisation, in float32 or wider.
    """
    with torch.autocast(z1.device.type, enabled=False):
        z = wide(torch.cat([z1, z2], dim=1))
        loss: Tensor = _Contrast.apply(z, targets.to(z.dtype))  # type: ignore[no-untyped-call]
        return loss


def paired_contrast(z1: Tensor, z2: Tensor) -> Tensor:
    """Each vector of a group (G, n, F) must find itself in the other view among the 2n - 1 others; 0 for n = 1."""
    n = z1.shape[1]
    if n == 1:
        return (z1 * 0).sum() + (z2 * 0).sum()
    return contrast(z1, z2, torch.eye(2 * n, dtype=z1.dtype, device=z1.device).roll(n, 0))


def instance_contrast(z1: Tensor, z2: Tensor) -> Tensor:
    """TS2Vec's instance loss on (B, T, F): at every time step, tell the own series from the others.

    Time O(T B^2 F), memory O(T B^2).
    """
    return paired_contrast(z1.transpose(0, 1), z2.transpose(0, 1))


def temporal_contrast(z1: Tensor, z2: Tensor) -> Tensor:
    """TS2Vec's temporal loss on (B, T, F): in every series, tell the own time step from the others.

    Time O(B T^2 F), memory O(B T^2).
    """
    return paired_contrast(z1, z2)
