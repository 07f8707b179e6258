"""Bounded memory for losses that compare all pairs within groups."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

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
