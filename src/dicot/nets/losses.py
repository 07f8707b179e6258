"""Losses: embeddings -> scalar, no parameters.

Similarities and softmax stay in float32 or wider, whatever the encoder computes in.
"""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.core.errors import lookup

SHUFFLE_SEED = 42  # the authors'
# Which blocks are the positives of each block, each with a loss of its own (D-08).
POSITIVES = {"previous": ("previous",), "next": ("next",), "both": ("previous", "next"), "shuffled": ("shuffled",)}


def wide(z: Tensor) -> Tensor:
    """z itself, or as float32 where it is a half precision."""
    return z.float() if z.dtype in (torch.float16, torch.bfloat16) else z


def unit(z: Tensor) -> Tensor:
    """(B, D) -> (B, D) rows of length 1, in float32 or wider."""
    with torch.autocast(z.device.type, enabled=False):
        return F.normalize(wide(z), dim=1)


def adjacent_block(z: Tensor, temperature: float, positive: str = "previous") -> Tensor:
    """Di-COT's loss (paper Eq. 1) on sub-block embeddings z (B, k, F): pick the neighbour among the own blocks.

    The similarity of a block with itself stays among the logits, and the first block's target is itself.
    Time O(B k^2 F), memory O(B k^2), independent of T. z is not normalised, so similarities leave the range of float16.
    """
    kinds = lookup(POSITIVES, positive, "positive")
    with torch.autocast(z.device.type, enabled=False):
        z = wide(z)
        n_cases, k, _ = z.shape
        logits = (z @ z.transpose(1, 2) / temperature).reshape(n_cases * k, k)
        losses = [F.cross_entropy(logits, _neighbours(kind, k, z.device).repeat(n_cases)) for kind in kinds]
    return torch.stack(losses).sum()


def _neighbours(kind: str, k: int, device: torch.device) -> Tensor:
    """(k,): the positive of each block; "shuffled" is a permutation of the previous ones."""
    block = torch.arange(k, device=device)
    if kind == "next":
        return (block + 1).clamp(max=k - 1)
    if kind == "shuffled":
        for place, number in enumerate(_shuffled(k)):
            block[place].fill_(number)  # no copy from the host, so that a CUDA graph can capture it
    return (block - 1).clamp(min=0)


@cache
def _shuffled(k: int) -> list[int]:
    """One fixed permutation per k: torch's, by a generator of seed 42 (D-104)."""
    order: list[int] = torch.randperm(k, generator=torch.Generator().manual_seed(SHUFFLE_SEED)).tolist()
    return order


def nt_xent(zi: Tensor, zj: Tensor, temperature: float = 0.2, *, cosine: bool = True) -> Tensor:
    """NT-Xent on zi, zj (B, F): each vector must find its partner among the 2B - 1 others, by mean cross-entropy.

    Time O(B^2 F), memory O(B^2).
    """
    return -_partner_log_p(zi, zj, temperature, cosine).mean()


def poly_nt_xent(zi: Tensor, zj: Tensor, temperature: float = 0.2, *, cosine: bool = True) -> Tensor:
    """TF-C's variant: NT-Xent + B (1/B - pt), pt the partner's probability averaged over all 2B (2B - 1) entries."""
    log_p = _partner_log_p(zi, zj, temperature, cosine)
    n_rows = len(log_p)
    pt = log_p.exp().sum() / (n_rows * (n_rows - 1))
    return -log_p.mean() + (n_rows / 2) * (2 / n_rows - pt)


def _partner_log_p(zi: Tensor, zj: Tensor, temperature: float, cosine: bool) -> Tensor:
    """(2B,): log probability of each row's partner."""
    with torch.autocast(zi.device.type, enabled=False):
        z = wide(torch.cat([zi, zj]))
        z = F.normalize(z, dim=-1, eps=1e-8) if cosine else z
        itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
        log_p = (z @ z.T / temperature).masked_fill(itself, float("-inf")).log_softmax(dim=-1)
        return torch.cat([log_p.diagonal(len(zi)), log_p.diagonal(-len(zi))])


def view_contrast(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    """InfoNCE between views z1, z2 (B, F): each vector must find its partner by cosine similarity, both ways.

    Unlike NT-Xent's, the candidates are those of the other view alone, B of them. Time O(B^2 F), memory O(B^2).
    """
    with torch.autocast(z1.device.type, enabled=False):
        pairs = unit(z1) @ unit(z2).T
        # (B,) each: the log probability of the partner, which is on the diagonal.
        directions = [(way / temperature).log_softmax(dim=1).diagonal() for way in (pairs, pairs.T)]
        return -torch.cat(directions).mean()
