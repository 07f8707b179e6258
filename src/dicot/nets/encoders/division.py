"""The passes of an encoder divided among ranks: each encodes its share of the cases, and all get the features of all.

Whatever calls the encoder has the whole batch before and after it, on every rank the same. So nothing else needs to
know of ranks: views draw the numbers that they draw in one process, losses compare all cases, and gradients are those
of the whole batch on every rank.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from dicot.core.errors import InputError
from dicot.nets.encoders.base import Encoder
from dicot.nets.encoders.synchronised import Exchange, in_one_piece, mean_statistics

LEAST = 2  # cases of a share; fewer could leave BatchNorm a single value
TOLERANCE = 0.01  # of the largest feature: what rounding may change, even in TF32


class _Spread(torch.autograd.Function):
    """Tensors as they are; each gradient is the sum of those of all ranks, by one exchange."""

    @staticmethod
    def forward(ctx: Any, ranks: Exchange, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.ranks = ranks
        ctx.set_materialize_grads(False)  # a weight that is not used has no gradient, and must not be decayed
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        present = [gradient for gradient in gradients if gradient is not None]
        if not present:
            return None, *gradients
        flat = ctx.ranks.total(torch.cat([gradient.reshape(-1) for gradient in present]))
        totals = iter(flat.split([gradient.numel() for gradient in present]))
        return None, *(None if gradient is None else next(totals).view_as(gradient) for gradient in gradients)


class _Gathered(torch.autograd.Function):
    """The features of all cases from those of each rank's share.

    Every rank goes on to compute the same of them, so that the gradient of its own share is all that it needs.
    """

    @staticmethod
    def forward(ctx: Any, mine: Tensor, ranks: Exchange, n_cases: int) -> Tensor:
        ctx.share = ranks.share(n_cases)
        sizes = [part.stop - part.start for part in (ranks.share(n_cases, rank) for rank in range(ranks.world))]
        padded = mine.new_zeros(max(sizes), *mine.shape[1:])  # an exchange is of equal shapes
        padded[: len(mine)] = mine
        everybodys = ranks.gather(padded)
        return _laid_out(torch.cat([part[:size] for part, size in zip(everybodys, sizes, strict=True)]), mine)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dall: Tensor) -> tuple[Tensor, None, None]:
        return dall[ctx.share], None, None


def _laid_out(x: Tensor, like: Tensor) -> Tensor:
    """x with its axes in the order in memory that another tensor has: what draws for it draws in that order."""
    order = sorted(range(x.dim()), key=like.stride, reverse=True)
    back = [order.index(axis) for axis in range(x.dim())]
    return x.permute(order).contiguous().permute(back)


class DividedEncoder:
    """Stands in for `forward` and `embed` of an encoder while it is divided."""

    def __init__(self, encoder: Encoder, ranks: Exchange) -> None:
        self.encoder, self.ranks = encoder, ranks
        self.inside = False  # a pass calls another one, as `embed` does `forward`: the first is divided

    def forward(self, x: Tensor, keep: Tensor | None = None, length: Tensor | None = None) -> Tensor:
        given = [tensor for tensor in (keep, length) if tensor is not None]
        if length is not None:
            raise InputError("Cases that end before their tensor does cannot be divided among ranks. Cut them instead.")
        return self._pass(type(self.encoder).forward, x, given)

    def embed(self, x: Tensor) -> Tensor:
        return self._pass(type(self.encoder).embed, x, [])

    def _pass(self, compute: Callable[..., Tensor], x: Tensor, given: Sequence[Tensor]) -> Tensor:
        encoder, ranks, n_cases = self.encoder, self.ranks, len(x)
        if self.inside or n_cases < LEAST * ranks.world:  # so few are encoded by every rank
            return compute(encoder, x, *given)
        part = ranks.share(n_cases)
        self.inside = True
        try:
            with ExitStack() as stack:
                if torch.is_grad_enabled():
                    x = stack.enter_context(_spread_weights(encoder, ranks, x))
                norms = ranks.synchronised and encoder.training
                stack.enter_context(in_one_piece(encoder, ranks, part, n_cases, norms=norms))
                mine = compute(encoder, x[part], *(tensor[part] for tensor in given))
            if encoder.training and not ranks.synchronised:
                mean_statistics(encoder, ranks)
        finally:
            self.inside = False
        features: Tensor = _Gathered.apply(mine, ranks, n_cases)  # type: ignore[no-untyped-call]
        return features


@contextmanager
def _spread_weights(encoder: Encoder, ranks: Exchange, x: Tensor) -> Iterator[Tensor]:
    """Replace the weights by tensors whose gradients are summed over the ranks; give x, likewise where it has one."""
    places = [
        (module._parameters, name, parameter)
        for module in encoder.modules()
        for name, parameter in module._parameters.items()
        if parameter is not None and parameter.requires_grad
    ]
    weights = {id(parameter): parameter for _, _, parameter in places}  # one may be in several places
    inputs = [*weights.values(), *([x] if x.requires_grad else [])]
    if not inputs:
        yield x
        return
    spread: tuple[Tensor, ...] = _Spread.apply(ranks, *inputs)  # type: ignore[no-untyped-call]
    by_id = dict(zip(weights, spread, strict=False))
    try:
        for table, name, parameter in places:
            table[name] = by_id[id(parameter)]  # type: ignore[assignment]
        yield spread[-1] if x.requires_grad else x
    finally:
        for table, name, parameter in places:
            table[name] = parameter


@contextmanager
def divided(network: nn.Module, ranks: Exchange) -> Iterator[None]:
    """Divide the passes of every encoder in a network among the ranks, until the end of the context."""
    encoders = outermost_encoders(network)
    try:
        for encoder in encoders:
            division = DividedEncoder(encoder, ranks)
            encoder.__dict__.update(forward=division.forward, embed=division.embed)
        yield
    finally:
        for encoder in encoders:
            for name in ("forward", "embed"):
                encoder.__dict__.pop(name, None)


def outermost_encoders(network: nn.Module) -> list[Encoder]:
    """Return the encoders of a network that are not a part of another one."""
    found = [module for module in network.modules() if isinstance(module, Encoder)]
    inner = {id(part) for encoder in found for part in encoder.modules() if part is not encoder}
    return [encoder for encoder in found if id(encoder) not in inner]


@torch.no_grad()
def check_divisible(encoder: Encoder, x: Tensor, ranks: Exchange, reseed: Callable[[], None]) -> None:
    """Refuse an encoder whose features of a case depend on other cases, or on draws, in another way than is known here.

    It encodes a few cases x (B, C, T) as it does in training, in one piece and divided, from the same random state each
    time, and is left as it was.
    """
    before = {name: buffer.clone() for name, buffer in encoder.named_buffers()}
    results = []
    for way in (in_one_piece(encoder, ranks, slice(0, len(x)), len(x), norms=False), divided(encoder, ranks)):
        reseed()
        with way:
            results.append(encoder(x))
        for name, buffer in encoder.named_buffers():
            buffer.copy_(before[name])
    whole, parts = results
    # In units of the largest feature; what is not finite is told by the loss.
    off = float((whole - parts).abs().max() / whole.abs().max().clamp(min=torch.finfo(whole.dtype).tiny))
    if off > TOLERANCE:
        raise InputError(
            f"{encoder.describe()} cannot be trained by several processes: encoded in {ranks.world} parts, a batch has "
            f"features that differ by {off:.0%} of the largest. Cases may depend on each other by BatchNorm alone, and "
            "draws may be those of nn.Dropout alone. Train it in one process, or change the module."
        )
