"""BatchNorm and dropout of an encoder whose batch is divided among ranks, as if it were in one piece.

Each rank has some of the cases. BatchNorm takes mean and variance over the cases of all, and dropout draws for all and
keeps its own part. Written by plain operations, for any device and type: a rank's own kernels know its own cases only.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from dicot.core.errors import InputError

EXCHANGE = "exchange"  # the attribute of a BatchNorm by which it knows the other ranks, during a pass


class Exchange(Protocol):
    """The ranks of a run, of which each takes a share of the cases, and what they tell each other."""

    @property
    def world(self) -> int:
        """Return how many there are."""

    @property
    def synchronised(self) -> bool:
        """Tell whether BatchNorm looks at the cases of all ranks."""

    def share(self, n_cases: int, rank: int | None = None) -> slice:
        """Return the cases that a rank encodes, this one where none is named."""

    def gather(self, mine: Tensor) -> Tensor:
        """Stack the tensors of all ranks, which have one shape, in the order of the ranks: (ranks, ...)."""

    def total(self, mine: Tensor) -> Tensor:
        """Add up the tensors of all ranks; every rank is given the same bits."""


class Moments(NamedTuple):
    """Of the rows of all ranks."""

    mean: Tensor  # (C,)
    var: Tensor  # (C,) divided by the number of rows
    n_rows: Tensor  # ()


def moments_of_all(rows: Tensor, exchange: Exchange) -> Moments:
    """Mean and variance of each column over the rows (M, C) of all ranks; M may differ.

    Each rank's own deviations are put together by one exchange: no difference of large sums of squares is taken.
    """
    var, mean = torch.var_mean(rows, dim=0, correction=0)
    n_rows = rows.new_full((1,), len(rows))
    table = exchange.gather(torch.cat([n_rows, mean, var * len(rows)]))
    counts, means, squares = torch.split(table, [1, len(mean), len(mean)], dim=1)
    count = counts.sum()
    mean = (means * counts).sum(dim=0) / count
    squares = squares + (means - mean).square() * counts
    return Moments(mean, squares.sum(dim=0) / count, count)


def move_statistics(norm: _BatchNorm, found: Moments, bias: Tensor | float = 0.0) -> None:
    """Move the running statistics of a BatchNorm as its own pass would, `bias` added to what was seen."""
    if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
        return
    with torch.no_grad():
        norm.num_batches_tracked.add_(1)
        share = 1 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
        norm.running_mean.lerp_((found.mean + bias).to(norm.running_mean.dtype), share)
        unbiased = found.var * (found.n_rows / (found.n_rows - 1).clamp(min=1))
        norm.running_var.lerp_(unbiased.to(norm.running_var.dtype), share)


def input_gradient(dy: Tensor, centred: Tensor, scale: Tensor, sums: Tensor, rstd: Tensor, count: Tensor) -> Tensor:
    """Gradient of the rows (M, C) of a rank; `scale` is BatchNorm's weight times `rstd`.

    `sums` (2, C), of dy and of dy times the normalised rows, are those of all ranks.
    """
    dshift, dweight = sums / count
    return torch.addcmul(dy - dshift, centred, dweight * rstd, value=-1).mul_(scale)


class _Norm(torch.autograd.Function):
    """BatchNorm in train mode on rows (M, C), of which each rank has some."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, norm: _BatchNorm, exchange: Exchange) -> Tensor:
        found = moments_of_all(rows, exchange)
        move_statistics(norm, found)
        rstd = (found.var + norm.eps).rsqrt()
        centred = rows - found.mean
        ctx.save_for_backward(centred, weight, rstd, found.n_rows)
        ctx.exchange = exchange
        return torch.addcmul(bias, centred, weight * rstd)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        centred, weight, rstd, count = ctx.saved_tensors
        own = torch.stack([dy.sum(dim=0), (dy * centred).sum(dim=0) * rstd])
        dx = input_gradient(dy, centred, weight * rstd, ctx.exchange.total(own), rstd, count)
        return dx, own[1], own[0], None, None


def _norm_forward(norm: _BatchNorm, exchange: Exchange, x: Tensor) -> Tensor:
    """Compute what `norm` computes of x (B, C, ...), with the statistics of all ranks where it would take its own."""
    if not norm.training and norm.running_mean is not None:
        return type(norm).forward(norm, x)
    rows = x.movedim(1, -1)
    affine = norm.weight is not None
    weight, bias = (norm.weight, norm.bias) if affine else (x.new_ones(x.shape[1]), x.new_zeros(x.shape[1]))
    y: Tensor = _Norm.apply(rows.reshape(-1, x.shape[1]), weight, bias, norm, exchange)  # type: ignore[no-untyped-call]
    return y.view(rows.shape).movedim(-1, 1)


def _dropout_forward(layer: nn.Dropout, part: slice, n_cases: int, x: Tensor) -> Tensor:
    """Drop what the whole batch of n_cases would drop of this part of it."""
    if not layer.training or layer.p == 0:
        return x
    if len(x) != part.stop - part.start or layer.p == 1 or layer.inplace:
        raise InputError(
            f"A dropout of {layer.p} on {tuple(x.shape)} cannot be divided among ranks: it must be below 1, not in "
            "place, and on one row per case. Train in one process, or without it."
        )
    kept = torch.empty(n_cases, *x.shape[1:], dtype=x.dtype, device=x.device).bernoulli_(1 - layer.p)
    return x * kept[part].div_(1 - layer.p)


@contextmanager
def in_one_piece(network: nn.Module, exchange: Exchange, part: slice, n_cases: int, *, norms: bool) -> Iterator[None]:
    """Let BatchNorm (with `norms`) and dropout act on a part of the n_cases of a batch as they would on the whole.

    Only during a pass: a copy of the network that somebody makes between two passes is as any other.
    """
    changed: list[nn.Module] = []
    try:
        for module in network.modules():
            if norms and isinstance(module, _BatchNorm):
                _set(module, partial(_norm_forward, module, exchange))
                module.__dict__[EXCHANGE] = exchange
            elif isinstance(module, nn.Dropout):
                _set(module, partial(_dropout_forward, module, part, n_cases))
            else:
                continue
            changed.append(module)
        yield
    finally:
        for module in changed:
            for name in ("forward", EXCHANGE):
                module.__dict__.pop(name, None)


def _set(module: nn.Module, forward: Callable[[Tensor], Tensor]) -> None:
    module.__dict__["forward"] = forward


def exchange_of(norm: nn.Module) -> Exchange | None:
    """Return the ranks that a BatchNorm takes its statistics over; None: this process alone."""
    found: Exchange | None = norm.__dict__.get(EXCHANGE)
    return found


def mean_statistics(network: nn.Module, exchange: Exchange) -> None:
    """Set the running statistics of every BatchNorm to their mean over the ranks, which have looked at other cases."""
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    buffers = [buffer for norm in norms for buffer in (norm.running_mean, norm.running_var) if buffer is not None]
    if not buffers:
        return
    with torch.no_grad():
        mean = exchange.total(torch.cat([buffer.flatten() for buffer in buffers])) / exchange.world
        for buffer, value in zip(buffers, torch.split(mean, [buffer.numel() for buffer in buffers]), strict=True):
            buffer.copy_(value.view_as(buffer))
