"""TS2Vec's hierarchy: an instance and a temporal loss at every level of max-pooling along time."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.losses.chunking import mean_over_groups
from dicot.losses.contrast import paired_contrast

# Two groups of vectors (G, n, F) and the pooling depth of the level -> scalar.
LevelLoss = Callable[[Tensor, Tensor, int], Tensor]


def hierarchical_contrast(z1: Tensor, z2: Tensor, *, alpha: float = 0.5, temporal_unit: int = 0) -> Tensor:
    """TS2Vec's loss on aligned features (B, F, T) of two views; `alpha` is the share of the instance loss.

    The temporal loss begins at pooling depth `temporal_unit`. Time and memory of the first level, which dominates:
    O(T B^2 + B T^2), the memory bounded by `dicot.losses.chunking`.
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
