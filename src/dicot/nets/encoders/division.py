"""The passes of an encoder divided among ranks: each encodes its share of the cases, and all get the features of all.

Whatever calls the encoder has the whole batch before and after it, on every rank the same. So nothing else needs to
know of ranks: views draw the numbers that they draw in one process, and losses compare all cases. Inside, BatchNorm
takes mean and variance over the cases of all ranks, and dropout draws for all and keeps its own part.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from dicot.core.errors import InputError
from dicot.core.processes.ranks import Ranks
from dicot.nets.encoders.base import Encoder

LEAST = 2  # cases of a share; fewer could leave BatchNorm a single value
TOLERANCE = 0.01  # of the largest feature: what rounding may change, even in TF32
DIVISION = "division"  # the attribute of a BatchNorm by which it knows the other ranks


class Division:
    """What the layers of an encoder know of the pass that is under way."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks
        self.part: slice | None = None  # this rank's share of the cases; None while no pass is divided
        self.n_cases = 0  # of all ranks

    def __call__(
        self,
        encoder: Encoder,
        compute: Callable[..., Tensor],
        x: Tensor,
        keep: Tensor | None = None,
        length: Tensor | None = None,
    ) -> Tensor:
        """Encode this rank's share, and return the features of all cases; a few are encoded by every rank."""
        if self.part is not None or length is not None or len(x) < LEAST * self.ranks.world:
            given = {"keep": keep, "length": length}
            return compute(encoder, x, **{name: value for name, value in given.items() if value is not None})
        if x.requires_grad:  # every rank has the gradient of its share times the number of ranks
            x = x.view_as(x)
            x.register_hook(lambda dx: self.ranks.total(dx) / self.ranks.world)  # type: ignore[no-untyped-call]
        self.part, self.n_cases = self.ranks.share(len(x)), len(x)
        try:
            mine = compute(encoder, x[self.part], *([] if keep is None else [keep[self.part]]))
        finally:
            self.part = None
        return self._gather(mine, len(x))

    def _gather(self, mine: Tensor, n_cases: int) -> Tensor:
        """The features of all cases from those of each rank's share.

        Every rank goes on to compute the same of them, so that the gradient of its own share is all that it needs;
        times the number of ranks, because gradients are averaged in the end.
        """
        shares = [self.ranks.share(n_cases, rank) for rank in range(self.ranks.world)]
        sizes = [share.stop - share.start for share in shares]
        padded = mine.new_zeros(max(sizes), *mine.shape[1:])  # an exchange is of equal shapes
        padded[: len(mine)] = mine.detach()
        whole = torch.cat([part[:size] for part, size in zip(self.ranks.gather(padded), sizes, strict=True)])
        if mine.requires_grad:
            mine.register_hook(lambda dmine: dmine * self.ranks.world)  # type: ignore[no-untyped-call]
            whole[self.ranks.share(n_cases)] = mine
        # Axes in the order in memory that they have in one process: what draws for it draws in that order.
        order = sorted(range(whole.dim()), key=mine.stride, reverse=True)
        return whole.permute(order).contiguous().permute([order.index(axis) for axis in range(whole.dim())])

    def norm(self, norm: _BatchNorm, x: Tensor) -> Tensor:
        """Compute BatchNorm of x (B, C, ...), with the statistics of all ranks where it would take its own."""
        if self.part is None or (not norm.training and norm.running_mean is not None):
            return type(norm).forward(norm, x)
        rows = x.movedim(1, -1)
        weight = x.new_ones(x.shape[1]) if norm.weight is None else norm.weight
        bias = x.new_zeros(x.shape[1]) if norm.bias is None else norm.bias
        y: Tensor = _Norm.apply(rows.reshape(-1, x.shape[1]), weight, bias, norm, self.ranks)  # type: ignore[no-untyped-call]
        return y.view(rows.shape).movedim(-1, 1)

    def dropout(self, layer: nn.Dropout, x: Tensor) -> Tensor:
        """Drop what the whole batch would drop of this part of it."""
        if self.part is None or not layer.training:
            return type(layer).forward(layer, x)
        ones = torch.ones(self.n_cases, *x.shape[1:], dtype=x.dtype, device=x.device)
        return x * type(layer).forward(layer, ones)[self.part]


class Normalised(NamedTuple):
    """What the gradient of BatchNorm needs."""

    centred: Tensor  # (M, C) rows of this rank without the mean over those of all
    rstd: Tensor  # (C,)
    n_rows: Tensor  # () of all ranks


def normalise(rows: Tensor, norm: _BatchNorm, ranks: Ranks, added: Tensor | float = 0.0) -> Normalised:
    """Take mean and variance over the rows (M, C) of all ranks, and move the running statistics of `norm`.

    They move as if `added` had been added to the rows. Each rank's own deviations are put together by one exchange: no
    difference of large sums of squares is taken.
    """
    var, mean = torch.var_mean(rows, dim=0, correction=0)
    table = ranks.gather(torch.cat([rows.new_full((1,), len(rows)), mean, var * len(rows)]))
    counts, means, squares = torch.split(table, [1, len(mean), len(mean)], dim=1)
    n_rows = counts.sum()
    mean = (means * counts).sum(dim=0) / n_rows
    var = (squares + (means - mean).square() * counts).sum(dim=0) / n_rows
    if norm.running_mean is not None and norm.running_var is not None and norm.num_batches_tracked is not None:
        with torch.no_grad():
            norm.num_batches_tracked.add_(1)
            share = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
            norm.running_mean.lerp_((mean + added).to(norm.running_mean.dtype), share)
            norm.running_var.lerp_((var * (n_rows / (n_rows - 1))).to(norm.running_var.dtype), share)
    return Normalised(rows - mean, (var + norm.eps).rsqrt(), n_rows)


def norm_gradients(dy: Tensor, saved: Normalised, weight: Tensor, ranks: Ranks) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of this rank's rows, and its part of those of BatchNorm's weight and bias."""
    centred, rstd, n_rows = saved
    own = torch.stack([dy.sum(dim=0), (dy * centred).sum(dim=0) * rstd])
    dshift, dweight = ranks.total(own) / n_rows
    dx = torch.addcmul(dy - dshift, centred, dweight * rstd, value=-1).mul_(weight * rstd)
    return dx, own[1], own[0]


class _Norm(torch.autograd.Function):
    """BatchNorm in train mode on rows (M, C), of which each rank has some."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, norm: _BatchNorm, ranks: Ranks) -> Tensor:
        found = normalise(rows, norm, ranks)
        ctx.save_for_backward(*found, weight)
        ctx.ranks = ranks
        return torch.addcmul(bias, found.centred, weight * found.rstd)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        *found, weight = ctx.saved_tensors
        return *norm_gradients(dy, Normalised(*found), weight, ctx.ranks), None, None


@contextmanager
def divided(network: nn.Module, ranks: Ranks) -> Iterator[None]:
    """Divide the passes of every encoder in a network among the ranks, until the end of the context."""
    changed: list[nn.Module] = []
    try:
        for encoder in outermost_encoders(network):
            division = Division(ranks)
            for name in ("forward", "embed"):
                encoder.__dict__[name] = partial(division, encoder, getattr(type(encoder), name))
            changed.append(encoder)
            for module in encoder.modules():
                if isinstance(module, _BatchNorm):
                    module.__dict__.update({"forward": partial(division.norm, module), DIVISION: division})
                elif isinstance(module, nn.Dropout):
                    module.__dict__["forward"] = partial(division.dropout, module)
                changed.append(module)
        yield
    finally:
        for module in changed:
            for name in ("forward", "embed", DIVISION):
                module.__dict__.pop(name, None)


def outermost_encoders(network: nn.Module) -> list[Encoder]:
    """Return the encoders of a network that are not a part of another one."""
    found = [module for module in network.modules() if isinstance(module, Encoder)]
    inner = {id(part) for encoder in found for part in encoder.modules() if part is not encoder}
    return [encoder for encoder in found if id(encoder) not in inner]


@torch.no_grad()
def check_divisible(network: nn.Module, x: Tensor, ranks: Ranks, reseed: Callable[[], None]) -> None:
    """Refuse an encoder whose features of a case depend on other cases, or on draws, in another way than is known here.

    A copy encodes a few cases x (B, C, T) as in training, in one piece and divided, from the same random state.
    """
    for encoder in outermost_encoders(network):
        reseed()
        whole = deepcopy(encoder)(x)
        reseed()
        copy = deepcopy(encoder)
        with divided(copy, ranks):
            parts = copy(x)
        # In units of the largest feature; what is not finite is told by the loss.
        off = float((whole - parts).abs().max() / whole.abs().max().clamp(min=torch.finfo(whole.dtype).tiny))
        if off > TOLERANCE:
            raise InputError(
                f"{encoder.describe()} cannot be trained by several processes: encoded in {ranks.world} parts, a batch "
                f"has features that differ by {off:.0%} of the largest. Cases may depend on each other by BatchNorm "
                "alone, and draws may be those of nn.Dropout alone. Train it in one process, or change the module."
            )
