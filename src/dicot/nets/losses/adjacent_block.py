"""Pick the neighbouring sub-block among the sub-blocks of the same case (Di-COT)."""

from collections.abc import Callable
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.core.errors import lookup
from dicot.nets.losses.precision import wide

SHUFFLE_SEED = 42  # the authors'


def _previous(k: int, device: torch.device) -> Tensor:
    return (torch.arange(k, device=device) - 1).clamp(min=0)


def _next(k: int, device: torch.device) -> Tensor:
    return (torch.arange(k, device=device) + 1).clamp(max=k - 1)


def _shuffled(k: int, device: torch.device) -> Tensor:
    """One fixed permutation of the "previous" targets per k: torch's, by a generator of seed 42 (D-104)."""
    target = torch.empty(k, dtype=torch.long, device=device)
    for row, column in enumerate(_shuffled_order(k)):
        target[row].fill_(max(column - 1, 0))  # no copy from the host, so that a CUDA graph can capture it
    return target


@cache
def _shuffled_order(k: int) -> tuple[int, ...]:
    return tuple(torch.randperm(k, generator=torch.Generator().manual_seed(SHUFFLE_SEED)).tolist())


# Which block is the positive of each block. "both" adds the two losses up (D-08).
POSITIVES: dict[str, tuple[Callable[[int, torch.device], Tensor], ...]] = {
    "previous": (_previous,),
    "next": (_next,),
    "both": (_previous, _next),
    "shuffled": (_shuffled,),
}


def adjacent_block(z: Tensor, temperature: float, positive: str = "previous") -> Tensor:
    """Di-COT's loss (paper Eq. 1) on sub-block embeddings z (B, k, F): pick the neighbour among the own blocks.

    The similarity of a block with itself stays among the logits, and the first block's target is itself.
    Time O(B k^2 F), memory O(B k^2), independent of T. Similarities are float32 or wider whatever z is:
    z is not normalised, so they leave the range of float16.
    """
    targets = lookup(POSITIVES, positive, "positive")
    with torch.autocast(z.device.type, enabled=False):
        z = wide(z)
        n_cases, k, _ = z.shape
        logits = (z @ z.transpose(1, 2) / temperature).reshape(n_cases * k, k)
        losses = [F.cross_entropy(logits, target(k, z.device).repeat(n_cases)) for target in targets]
    return torch.stack(losses).sum()
