"""TS2Vec's hierarchy of contrasts: an instance and a temporal loss at every level of max-pooling along time.

SoftCLT's is the same with graded targets instead of one positive. Where only the device knows how many of the first
time steps count, the same numbers come from operations whose shapes do not depend on it: one CUDA graph serves all
lengths.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

# Pairwise similarities held at once: 0.5 GiB in float32 per copy, of which forward and backward hold about three.
LIMIT = 2**27
SMALLEST_LAG_WEIGHT = 1e-6  # smaller ones are set to 0
LEFT_OUT = -1e30  # the similarity of what is no candidate: its probability is 0, its product with a target of 0 too


def hierarchical_contrast(
    z1: Tensor,
    z2: Tensor,
    *,
    alpha: float = 0.5,
    temporal_unit: int = 0,
    case_weights: Tensor | None = None,
    tau_temp: float = 0.0,
    length: Tensor | None = None,
) -> Tensor:
    """Mean over the floor(log2 T) + 1 levels of alpha instance + (1 - alpha) temporal loss on features (B, F, T).

    The temporal loss begins at pooling depth `temporal_unit`; the last level, a single time step, has none. Pooling
    drops an odd last step. Time and memory of the first level, which dominates: O(T B^2 + B T^2), the memory bounded
    by LIMIT.

    case_weights: grades the other cases, (B, B), as SoftCLT does; None takes the hard loss.
    tau_temp: grades time lags, with tau_temp 2^depth at deeper levels, where a step stands for 2^depth of the first
    one's; 0 takes the hard loss.
    length: with this number on the device only so many of the first time steps count. The others' features must be
    finite, and get no gradient. Cost and memory are those of all T.
    """
    cases = None if case_weights is None else soft_targets(case_weights)

    def lags(n_times: int, depth: int) -> Tensor | None:
        if tau_temp == 0:
            return None
        return soft_targets(time_lag_weights(n_times, tau_temp * 2**depth, z1.dtype, z1.device))

    if length is not None:
        return _over_padded_levels(z1, z2, length, cases, lags, alpha, temporal_unit)
    terms, depth = [], 0
    while z1.shape[-1] > 1:
        if alpha > 0:
            terms.append(alpha * _level(z1.permute(2, 0, 1), z2.permute(2, 0, 1), cases))
        if alpha < 1 and depth >= temporal_unit:
            terms.append((1 - alpha) * _level(z1.transpose(1, 2), z2.transpose(1, 2), lags(z1.shape[-1], depth)))
        z1, z2, depth = F.max_pool1d(z1, 2), F.max_pool1d(z2, 2), depth + 1
    terms.append(alpha * _level(z1.permute(2, 0, 1), z2.permute(2, 0, 1), cases))
    return torch.stack(terms).sum() / (depth + 1)


def time_lag_weights(n_times: int, tau: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(T, T): 2 / (1 + exp(tau |t - t'|)), 1 on the diagonal."""
    time = torch.arange(n_times, dtype=dtype, device=device)
    weights = 2 * torch.sigmoid(-tau * (time.unsqueeze(1) - time).abs())
    return torch.where(weights < SMALLEST_LAG_WEIGHT, 0, weights)


def soft_targets(weights: Tensor) -> Tensor:
    """(n, n) -> (2n, 2n): the same in both views, 0 for the vector itself. The identity gives `paired_targets`."""
    return weights.repeat(2, 2).fill_diagonal_(0)


def paired_targets(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(2n, 2n): 1 for the same vector in the other view, else 0."""
    return torch.eye(2 * n, dtype=dtype, device=device).roll(n, 0)


def _level(z1: Tensor, z2: Tensor, targets: Tensor | None) -> Tensor:
    """The contrast of (G, n, F) twice without more than LIMIT similarities (2n x 2n per group); None: hard targets.

    Above the limit the groups are taken in chunks and each chunk's similarities are computed again in the backward
    pass, since kept ones would add up to the same memory. A single group is never divided.
    """
    loss_of = paired_contrast if targets is None else partial(contrast, targets=targets)
    n_groups, n, _ = z1.shape
    chunk = max(1, LIMIT // (2 * n) ** 2)
    if n_groups <= chunk:
        return loss_of(z1, z2)
    parts = []
    for part1, part2 in zip(torch.split(z1, chunk), torch.split(z2, chunk), strict=True):
        loss = checkpoint(loss_of, part1, part2, use_reentrant=False, preserve_rng_state=False)
        parts.append(loss * (len(part1) / n_groups))
    return torch.stack(parts).sum()


def paired_contrast(z1: Tensor, z2: Tensor) -> Tensor:
    """Each vector of a group (G, n, F) must find itself in the other view among the 2n - 1 others; 0 for n = 1."""
    n = z1.shape[1]
    if n == 1:
        return (z1 * 0).sum() + (z2 * 0).sum()
    return contrast(z1, z2, paired_targets(n, z1.dtype, z1.device))


def contrast(z1: Tensor, z2: Tensor, targets: Tensor) -> Tensor:
    """Mean over the 2n vectors of a group, and over groups (G, n, F), of the cross-entropy against targets (2n, 2n).

    Rows and columns run over view 1, then view 2; the vector itself is no candidate, and its target must be 0. Targets
    need not sum to one. Dot products without temperature or normalisation. Time O(G n^2 F), memory O(G n^2).
    """
    z = torch.cat([z1, z2], dim=1)
    loss: Tensor = _Contrast.apply(z, targets.to(z.dtype))  # type: ignore[no-untyped-call]
    return loss


class _Contrast(torch.autograd.Function):
    """Cross-entropy of each vector's softmax over the others of its group (G, m, F) against targets (m, m).

    By hand, because the steps of autograd would hold five arrays of all pairs instead of two, and because probabilities
    next to zero, of which a gradient without a temperature is full, would go into the matrix product as denormal
    numbers, on which a CPU is twenty times slower.
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
        p = _without_denormals((logits - total.unsqueeze(-1)).exp_())
        p.mul_(targets.sum(dim=1, keepdim=True)).sub_(targets)
        both = p + p.transpose(1, 2)  # a similarity is that of two vectors
        return (both @ z) * (dloss / (len(z) * len(targets))), None


def _without_denormals(p: Tensor) -> Tensor:
    number = torch.finfo(p.dtype)
    return F.threshold(p, number.tiny / number.eps, 0.0, inplace=True)


def _over_padded_levels(
    z1: Tensor,
    z2: Tensor,
    length: Tensor,
    cases: Tensor | None,
    lags: Callable[[int, int], Tensor | None],
    alpha: float,
    temporal_unit: int,
) -> Tensor:
    """What `hierarchical_contrast` computes of the first `length` time steps."""
    levels = [torch.cat([z1.permute(2, 0, 1), z2.permute(2, 0, 1)], dim=1)]  # (T, 2B, F)
    while len(levels[-1]) > 1:
        stop = len(levels[-1]) // 2 * 2
        earlier, later = levels[-1][:stop:2], levels[-1][1:stop:2]
        levels.append(torch.where(later > earlier, later, earlier))  # as max_pool1d: of equal values the first
    n_times, n_both, width = levels[0].shape
    # Which time steps (columns) of every level (rows) count, and their shares in the mean over time and levels.
    lengths = (length >> torch.arange(n_times.bit_length(), device=length.device)).unsqueeze(1)
    inside = (torch.arange(n_times, device=length.device) < lengths).to(levels[0].dtype)
    shares = inside / (lengths.clamp(min=1) * (lengths > 0).sum())
    paired = partial(paired_targets, dtype=inside.dtype, device=inside.device)

    # The groups of all levels have the same size, that of the batch.
    of_instances = torch.cat([shares[depth, : len(z)] for depth, z in enumerate(levels)]) * (alpha / n_both)
    itself = torch.eye(n_both, dtype=inside.dtype, device=inside.device) * LEFT_OUT
    cases = paired(n_both // 2) if cases is None else cases.to(inside.dtype)
    terms = [_PaddedContrast.apply(torch.cat(levels), cases, itself, of_instances)]  # type: ignore[no-untyped-call]

    by_column = torch.stack([inside, (1 - inside) * LEFT_OUT, shares * ((1 - alpha) / n_both)])
    every_case = inside.new_ones(n_both // 2)
    # Where a single time step of a level counts, it has one candidate: its loss is 0, as if there were no term.
    for depth, z in enumerate(levels[:-1]):
        if alpha < 1 and depth >= temporal_unit:
            n = len(z)
            counts, hidden, of_anchors = by_column[:, depth, :n].repeat(1, 2)
            graded = lags(n, depth)
            targets = (paired(n) if graded is None else graded) * (of_anchors.unsqueeze(1) * counts)
            mask = hidden.repeat(2 * n, 1).fill_diagonal_(LEFT_OUT)
            by_case = z.view(n, 2, -1, width).permute(2, 1, 0, 3).reshape(-1, 2 * n, width)
            terms.append(_PaddedContrast.apply(by_case, targets, mask, every_case))  # type: ignore[no-untyped-call]
    return torch.stack(terms).sum()


class _PaddedContrast(torch.autograd.Function):
    """Cross-entropy of each vector's softmax over the others of its group (G, m, F) against targets (m, m).

    Summed over vectors, and over groups by their shares (G,). `mask` (m, m) is LEFT_OUT for what is no candidate, the
    diagonal included, else 0; targets are 0 there. The gradient is computed together with the loss: no similarities are
    kept or computed again then, and no more than LIMIT of them are held at once.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, targets: Tensor, mask: Tensor, shares: Tensor) -> Tensor:
        weights = targets.sum(dim=1, keepdim=True)
        chunk = max(1, LIMIT // len(targets) ** 2)
        losses, gradients = [], []
        for part, of_part in zip(torch.split(z, chunk), torch.split(shares, chunk), strict=True):
            logits = torch.baddbmm(mask, part, part.transpose(1, 2))
            log_p = logits.log_softmax(dim=-1)
            losses.append((torch.mul(log_p, targets, out=logits).sum(dim=(1, 2)) * -of_part).sum())
            p = _without_denormals(log_p.exp_()).mul_(weights).sub_(targets)
            both = torch.add(p, p.transpose(1, 2), out=logits)  # a similarity is that of two vectors
            gradients.append((both @ part).mul_(of_part.view(-1, 1, 1)))
        ctx.save_for_backward(gradients[0] if len(gradients) == 1 else torch.cat(gradients))
        return losses[0] if len(losses) == 1 else torch.stack(losses).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dloss: Tensor) -> tuple[Tensor, None, None, None]:
        (dz,) = ctx.saved_tensors
        return dz * dloss, None, None, None
