"""TS2Vec's hierarchy on features of which only the first time steps count, how many is known to the device alone.

The same numbers as `nets.losses.contrast` gives for the features cut to that length, by operations whose shapes do not
depend on it: one CUDA graph serves all lengths.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from dicot.nets.losses import contrast
from dicot.nets.losses.precision import wide, wide_dtype

LEFT_OUT = -1e30  # the similarity of what is no candidate: its probability is 0, its product with a target of 0 too

# Number of vectors n of a view and the pooling depth of the level -> targets (2n, 2n), their diagonal zero.
LevelTargets = Callable[[int, int], Tensor]


def padded_hierarchical_contrast(
    z1: Tensor, z2: Tensor, length: Tensor, *, alpha: float = 0.5, temporal_unit: int = 0
) -> Tensor:
    """`contrast.hierarchical_contrast` of the first `length` time steps; cost and memory are those of all T."""
    targets = partial(contrast.paired_targets, dtype=wide_dtype(z1), device=z1.device)
    return over_padded_levels(
        z1, z2, length, targets(len(z1)), lambda n, _: targets(n), alpha=alpha, temporal_unit=temporal_unit
    )


def over_padded_levels(
    z1: Tensor,
    z2: Tensor,
    length: Tensor,
    instance: Tensor,
    temporal: LevelTargets,
    *,
    alpha: float,
    temporal_unit: int,
) -> Tensor:
    """What `contrast.over_levels` computes of the first `length` time steps of features (B, F, T).

    `instance` are targets (2B, 2B) as `contrast.contrast` takes them, `temporal` gives those of each level. The others'
    features must be finite, and get no gradient.
    """
    with torch.autocast(z1.device.type, enabled=False):
        levels = [wide(torch.cat([z1.permute(2, 0, 1), z2.permute(2, 0, 1)], dim=1))]  # (T, 2B, F)
        while len(levels[-1]) > 1:
            levels.append(_Pool.apply(levels[-1]))  # type: ignore[no-untyped-call]
        n_times, n_both, width = levels[0].shape
        inside, shares = _inside(length, n_times, levels[0].dtype)

        # The groups of all levels have the same size, that of the batch.
        of_instances = torch.cat([shares[depth, : len(z)] for depth, z in enumerate(levels)]) * (alpha / n_both)
        itself = torch.eye(n_both, dtype=inside.dtype, device=inside.device) * LEFT_OUT
        terms = [_padded_contrast(torch.cat(levels), instance.to(inside.dtype), itself, of_instances)]

        by_column = torch.stack([inside, (1 - inside) * LEFT_OUT, shares * ((1 - alpha) / n_both)])
        every_case = inside.new_ones(n_both // 2)
        # Where a single time step of a level counts, it has one candidate: its loss is 0, as if there were no term.
        for depth, z in enumerate(levels[:-1]):
            if alpha < 1 and depth >= temporal_unit:
                n = len(z)
                counts, hidden, of_anchors = by_column[:, depth, :n].repeat(1, 2)
                targets = temporal(n, depth).to(inside.dtype) * (of_anchors.unsqueeze(1) * counts)
                mask = hidden.repeat(2 * n, 1).fill_diagonal_(LEFT_OUT)
                by_case = z.view(n, 2, -1, width).permute(2, 1, 0, 3).reshape(-1, 2 * n, width)
                terms.append(_padded_contrast(by_case, targets, mask, every_case))
        return torch.stack(terms).sum()


def _inside(length: Tensor, n_times: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Which time steps (columns) of every level (rows) count, and their shares in the mean over time and levels.

    A level is half as long as the one before and drops an odd last step.
    """
    depth = torch.arange(n_times.bit_length(), device=length.device)
    lengths = (length >> depth).unsqueeze(1)
    inside = (torch.arange(n_times, device=length.device) < lengths).to(dtype)
    return inside, inside / (lengths.clamp(min=1) * (lengths > 0).sum())


def _padded_contrast(z: Tensor, targets: Tensor, mask: Tensor, shares: Tensor) -> Tensor:
    loss: Tensor = _PaddedContrast.apply(z, targets, mask, shares)  # type: ignore[no-untyped-call]
    return loss


class _PaddedContrast(torch.autograd.Function):
    """Cross-entropy of each vector's softmax over the others of its group (G, m, F) against targets (m, m).

    Summed over vectors, and over groups by their shares (G,). `mask` (m, m) is LEFT_OUT for what is no candidate, the
    diagonal included, else 0; targets are 0 there. The gradient is computed together with the loss: no similarities are
    kept or computed again then, and no more than `contrast.LIMIT` of them are held at once.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, targets: Tensor, mask: Tensor, shares: Tensor) -> Tensor:
        weights = targets.sum(dim=1, keepdim=True)
        chunk = max(1, contrast.LIMIT // len(targets) ** 2)
        parts = [
            _loss_and_gradient(part, targets, weights, mask, of_part)
            for part, of_part in zip(torch.split(z, chunk), torch.split(shares, chunk), strict=True)
        ]
        losses, gradients = zip(*parts, strict=True)
        ctx.save_for_backward(gradients[0] if len(parts) == 1 else torch.cat(gradients))
        return losses[0] if len(parts) == 1 else torch.stack(losses).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dloss: Tensor) -> tuple[Tensor, None, None, None]:
        (dz,) = ctx.saved_tensors
        return dz * dloss, None, None, None


def _loss_and_gradient(
    z: Tensor, targets: Tensor, weights: Tensor, mask: Tensor, shares: Tensor
) -> tuple[Tensor, Tensor]:
    logits = torch.baddbmm(mask, z, z.transpose(1, 2))
    log_p = logits.log_softmax(dim=-1)
    loss = (torch.mul(log_p, targets, out=logits).sum(dim=(1, 2)) * -shares).sum()
    number = torch.finfo(z.dtype)
    p = F.threshold(log_p.exp_(), number.tiny / number.eps, 0.0, inplace=True)  # denormals, as `contrast` has it
    p.mul_(weights).sub_(targets)
    both = torch.add(p, p.transpose(1, 2), out=logits)  # a similarity is that of two vectors
    return loss, (both @ z).mul_(shares.view(-1, 1, 1))


class _Pool(torch.autograd.Function):
    """The larger of each two neighbouring time steps of (T, ...), as max_pool1d: of equal values the first one won."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        stop = len(z) // 2 * 2
        ctx.save_for_backward(z)
        return torch.maximum(z[:stop:2], z[1:stop:2])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dlarger: Tensor) -> Tensor:
        (z,) = ctx.saved_tensors
        stop = len(z) // 2 * 2
        dz = torch.zeros_like(z)
        later = torch.ops.aten.threshold_backward(dlarger, z[1:stop:2] - z[:stop:2], 0)
        dz[1:stop:2] = later
        torch.sub(dlarger, later, out=dz[:stop:2])
        return dz
