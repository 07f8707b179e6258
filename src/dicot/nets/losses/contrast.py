"""Softmax contrast between two views of the same vectors, the piece that several methods share."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from dicot.nets.losses.precision import wide

# Bounded memory for losses that compare all pairs within groups.


# Pairwise similarities held at once: 0.5 GiB in float32 per copy, of which forward and backward hold about three.
LIMIT = 2**27


def mean_over_groups(loss_of: Callable[[Tensor, Tensor], Tensor], z1: Tensor, z2: Tensor) -> Tensor:
    """`loss_of`, a mean over the groups of (G, n, F) twice, without more than LIMIT similarities (2n x 2n per group).

    Above the limit the groups are taken in chunks and each chunk's similarities are computed again in the backward
    pass, since kept ones would add up to the same memory. A single group is never divided.
    """
    n_groups, n, _ = z1.shape
    chunk = max(1, LIMIT // (2 * n) ** 2)
    if n_groups <= chunk:
        return loss_of(z1, z2)
    parts = []
    for start in range(0, n_groups, chunk):
        part1, part2 = z1[start : start + chunk], z2[start : start + chunk]
        loss = checkpoint(loss_of, part1, part2, use_reentrant=False, preserve_rng_state=False)
        parts.append(loss * (len(part1) / n_groups))
    return torch.stack(parts).sum()


# TS2Vec's hierarchy: an instance and a temporal loss at every level of max-pooling along time.


# Two groups of vectors (G, n, F) and the pooling depth of the level -> scalar.
LevelLoss = Callable[[Tensor, Tensor, int], Tensor]


def hierarchical_contrast(z1: Tensor, z2: Tensor, *, alpha: float = 0.5, temporal_unit: int = 0) -> Tensor:
    """TS2Vec's loss on aligned features (B, F, T) of two views; `alpha` is the share of the instance loss.

    The temporal loss begins at pooling depth `temporal_unit`. Time and memory of the first level, which dominates:
    O(T B^2 + B T^2), the memory bounded by `dicot.nets.losses.contrast`.
    """
    return over_levels(z1, z2, hard_level, hard_level, alpha=alpha, temporal_unit=temporal_unit)


def hard_level(z1: Tensor, z2: Tensor, depth: int) -> Tensor:
    """Each vector has one positive, itself in the other view; the same at every depth."""
    return mean_over_groups(paired_contrast, z1, z2)


def over_levels(
    z1: Tensor, z2: Tensor, instance: LevelLoss, temporal: LevelLoss, *, alpha: float, temporal_unit: int
) -> Tensor:
    """Mean over the floor(log2 T) + 1 levels of alpha instance + (1 - alpha) temporal on features (B, F, T).

    `instance` gets one group per time step, (T, B, F), `temporal` one per case, (B, T, F). The last level, a single
    time step, has no temporal term. Pooling drops an odd last step.
    """
    terms, depth = [], 0
    while z1.shape[-1] > 1:
        if alpha > 0:
            terms.append(alpha * instance(z1.permute(2, 0, 1), z2.permute(2, 0, 1), depth))
        if alpha < 1 and depth >= temporal_unit:
            terms.append((1 - alpha) * temporal(z1.transpose(1, 2), z2.transpose(1, 2), depth))
        z1, z2, depth = F.max_pool1d(z1, 2), F.max_pool1d(z2, 2), depth + 1
    terms.append(alpha * instance(z1.permute(2, 0, 1), z2.permute(2, 0, 1), depth))
    return torch.stack(terms).sum() / (depth + 1)


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
    return contrast(z1, z2, paired_targets(n, z1.dtype, z1.device))


def paired_targets(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(2n, 2n): 1 for the same vector in the other view, else 0."""
    return torch.eye(2 * n, dtype=dtype, device=device).roll(n, 0)


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
