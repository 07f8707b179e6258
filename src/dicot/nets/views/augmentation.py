"""Distorted copies of whole cases: scaled, jittered, cut and shuffled in time. Every case draws for itself."""

import torch
from torch import Tensor


def scale(x: Tensor, mean: float, std: float, *, per_step: bool = False) -> Tensor:
    """x (B, C, T) times factors N(mean, std^2): one per case and channel, or one per case and time step."""
    shape = (x.shape[0], 1, x.shape[2]) if per_step else (x.shape[0], x.shape[1], 1)
    return x * (mean + std * torch.randn(shape, dtype=x.dtype, device=x.device))


def jitter(x: Tensor, sigma: float | Tensor) -> Tensor:
    """x (B, C, T) plus noise N(0, sigma^2); sigma is a number or a tensor (C, 1)."""
    return x + sigma * torch.randn_like(x)


def permute(x: Tensor, max_segments: int) -> Tensor:
    """Cut each case of x (B, C, T) into 1 to max_segments - 1 segments of time and shuffle them, channels together.

    The cuts are distinct time steps out of 0 .. T - 3; a cut at 0 leaves the first segment empty.
    """
    n_cases, _, n_times = x.shape
    most_cuts = min(max_segments - 2, n_times - 2)
    if most_cuts < 1:
        return x
    n_cuts = torch.randint(max_segments - 1, (n_cases, 1), device=x.device)  # beyond most_cuts: clipped below
    candidates = torch.rand(n_cases, n_times - 2, device=x.device).topk(most_cuts, dim=1).indices
    chosen = torch.arange(most_cuts, device=x.device) < n_cuts  # (B, most_cuts)
    cuts = torch.zeros(n_cases, n_times, dtype=torch.bool, device=x.device).scatter(1, candidates, chosen)
    rank = torch.rand(n_cases, most_cuts + 1, device=x.device).argsort(dim=1)
    return x.gather(2, segment_order(cuts, rank).unsqueeze(1).expand_as(x))


def segment_order(cuts: Tensor, rank: Tensor) -> Tensor:
    """(B, T): which time step each place takes, once the segments that begin at the True of `cuts` (B, T) are
    put in the order of their rank (B, segments)."""
    segment = cuts.long().cumsum(dim=1)  # (B, T); without a cut at 0 the first segment has number 0
    return rank.gather(1, segment).argsort(dim=1, stable=True)
