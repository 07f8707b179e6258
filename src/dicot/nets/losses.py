"""Losses: embeddings -> scalar, no parameters. Embeddings are float32 or wider, as every encoder gives them."""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

SHUFFLE_SEED = 42  # the authors'
# Which blocks are the positives of each block, each with a loss of its own (D-08).
POSITIVES = {"previous": ("previous",), "next": ("next",), "both": ("previous", "next"), "shuffled": ("shuffled",)}


def adjacent_block(z: Tensor, temperature: float, positive: str = "previous") -> Tensor:
    """Di-COT's loss (paper Eq. 1) on sub-block embeddings z (B, k, F): pick the neighbour among the own blocks.

    The similarity of a block with itself stays among the logits, and the first block's target is itself.
    Time O(B k^2 F), memory O(B k^2), independent of T.
    """
    n_cases, k, _ = z.shape
    logits = (z @ z.transpose(1, 2) / temperature).reshape(n_cases * k, k)
    losses = [F.cross_entropy(logits, _neighbours(kind, k, z.device).repeat(n_cases)) for kind in POSITIVES[positive]]
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
    """NT-Xent on zi, zj (B, F): each vector must find its partner among the 2B - 1 others. Time O(B^2 F)."""
    return -_partner_log_p(zi, zj, temperature, cosine).mean()


def poly_nt_xent(zi: Tensor, zj: Tensor, temperature: float = 0.2, *, cosine: bool = True) -> Tensor:
    """TF-C's variant: NT-Xent + B (1/B - pt), pt the partner's probability averaged over all 2B (2B - 1) entries."""
    log_p = _partner_log_p(zi, zj, temperature, cosine)
    n_rows = len(log_p)
    pt = log_p.exp().sum() / (n_rows * (n_rows - 1))
    return -log_p.mean() + (n_rows / 2) * (2 / n_rows - pt)


def _partner_log_p(zi: Tensor, zj: Tensor, temperature: float, cosine: bool) -> Tensor:
    """(2B,): log probability of each row's partner."""
    log_p = log_p_of_others(torch.cat([zi, zj]), temperature, cosine=cosine)
    return torch.cat([log_p.diagonal(len(zi)), log_p.diagonal(-len(zi))])


def log_p_of_others(z: Tensor, temperature: float, *, cosine: bool = True) -> Tensor:
    """Log softmax of each row's similarity with the other rows of z (N, F): (N, N), -inf on the diagonal."""
    z = F.normalize(z, dim=-1, eps=1e-8) if cosine else z  # a zero vector is similar to nothing
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    return (z @ z.T / temperature).masked_fill(itself, float("-inf")).log_softmax(dim=-1)


def view_contrast(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    """InfoNCE between views z1, z2 (B, F): each vector must find its partner by cosine similarity, both ways.

    Unlike NT-Xent's, the candidates are those of the other view alone, B of them. Time O(B^2 F), memory O(B^2).
    """
    pairs = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T
    # (B,) each: the log probability of the partner, which is on the diagonal.
    directions = [(way / temperature).log_softmax(dim=1).diagonal() for way in (pairs, pairs.T)]
    return -torch.cat(directions).mean()
