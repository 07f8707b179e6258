"""InceptionTime with fixed weights, on (T, B, C) tensors: BatchNorm folded into the kernels, no gradients."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.nets.encoders.base import Readers
from dicot.nets.encoders.inception import kernels
from dicot.nets.encoders.inception.convolution import joined
from dicot.nets.encoders.inception.filter_bank import filter_bank
from dicot.nets.encoders.inception.halves import HalvedMap, Projections, largest_of_cases
from dicot.nets.encoders.inception.scratch import Scratch
from dicot.nets.encoders.inception.single import single_network

NOBODY: Readers = {}
Added = tuple[Tensor | None, Tensor | None]  # to the output of a module, and what its cases are multiplied by before
NOTHING: Added = (None, None)


class Affine(NamedTuple):
    """A linear map of rows (M, C) -> (M, O) with a shift: weight (C, O) and bias (O,)."""

    weight: Tensor
    bias: Tensor

    def after(self, other: "Affine") -> "Affine":
        return Affine(other.weight @ self.weight, other.bias @ self.weight + self.bias)

    def scaled(self, scale: Tensor, shift: Tensor) -> "Affine":
        return Affine(self.weight * scale, self.bias * scale + shift)

    def to(self, like: Tensor) -> "Affine":
        return Affine(self.weight.to(like).contiguous(), self.bias.to(like))


def exact(parameter: Tensor) -> Tensor:
    """Copy a parameter in double precision, on a GPU or else on the host: not every device has it."""
    device = parameter.device if parameter.is_cuda else "cpu"
    return parameter.detach().to(device, torch.float64, copy=True)


def affine(conv: nn.Conv1d) -> Affine:
    """Return a convolution of one tap as an affine map."""
    assert conv.bias is not None
    return Affine(exact(conv.weight)[..., 0].T, exact(conv.bias))


def scale_and_shift(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor]:
    """Return BatchNorm in eval mode as scale * x + shift."""
    assert norm.running_mean is not None and norm.running_var is not None
    scale = exact(norm.weight) / (exact(norm.running_var) + norm.eps).sqrt()
    return scale, exact(norm.bias) - scale * exact(norm.running_mean)


def largest_of_three(u: Tensor, out: Tensor) -> Tensor:
    """Take the largest of three neighbouring time steps, (T, B, C) -> (T, B, C)."""
    if kernels.serve(u, u.shape[2]):
        return kernels.pool_into(u, out)
    out[0] = u[0]
    torch.maximum(u[1:], u[:-1], out=out[1:])
    torch.maximum(out[:-1], u[1:], out=out[:-1])
    return out


class FrozenModule:
    """An InceptionModule for cases of one length.

    `source` is the linear map in front of the module where its convolutions read that map's input. `lift` is added to
    the output, in front of ReLU, whose floor rises with it: no pass over the output is needed for it.
    """

    def __init__(
        self, module: Any, n_times: int, like: Tensor, source: Affine | None = None, lift: Tensor | None = None
    ) -> None:
        convs = [getattr(module, name) for name in module.branches]
        taps = joined([exact(conv.weight) for conv in convs])
        scale, shift = scale_and_shift(module.bn)
        floor = torch.zeros_like(shift) if lift is None else lift
        shift = shift + floor
        n = taps.shape[2]  # outputs of the convolutions; those of the pooled branch follow
        bias = torch.cat([exact(conv.bias) for conv in convs]) * scale[:n] + shift[:n]
        narrow = affine(module.bottleneck)
        self.narrow = (narrow if source is None else narrow.after(source)).to(like)
        self.bank = filter_bank(taps * scale[:n], bias, n_times, like)
        self.pool = affine(module.poolconv).scaled(scale[n:], shift[n:]).to(like)
        self.floor, self.pool_floor = floor[:n].to(like), floor[n:].to(like)
        self.lift = None if lift is None else lift.to(like)
        self.fused = kernels.serve(like, n, len(floor) - n)
        if self.fused:
            rest = torch.zeros_like(bias) if self.bank.bias is None else bias
            self.shift, self.lowest = torch.cat([rest, self.pool.bias.double()]).float(), floor.float()
        self.reads_input = source is None  # and not what another map made it of
        first = self.narrow.weight if self.reads_input else None
        served = self.fused and Projections.serve(like, n_times, first, self.pool.weight)
        self.projections = Projections(first, self.narrow.bias, self.pool.weight) if served else None

    def __call__(self, source: Tensor, u: Tensor, out: Tensor, scratch: Scratch, added: Added = NOTHING) -> Tensor:
        """`source` (T, B, C') is what the convolutions read, `u` (T, B, C) what is pooled.

        Where there are projections, `scratch` has the largest values of u's cases, and then those of the output, to
        which `added` has been added in front of one more ReLU.
        """
        n_times, n_cases, width = u.shape
        v = scratch.take("narrow", n_times, n_cases, len(self.narrow.bias))
        if self.projections is None or not self.reads_input:
            torch.addmm(self.narrow.bias, source.flatten(0, 1), self.narrow.weight, out=v.flatten(0, 1))
        if self.projections is not None:
            largest, largest_of_v = (scratch.take(name, n_cases) for name in ("largest", "largest of narrow"))
            z = scratch.take("projected", n_times, n_cases, len(self.pool.bias))
            self.projections(u, largest, v, largest_of_v, z)
            y, factors = self.bank(v, scratch, largest_of_v)
            return kernels.join_into(
                [y, z], self.shift, self.lowest, out, factors=factors, added=added, largest=largest
            )
        assert added is NOTHING
        y, factors = self.bank(v, scratch)
        pooled = largest_of_three(u, scratch.take("pooled", n_times, n_cases, width)).flatten(0, 1)
        if self.fused:
            z = scratch.take("projected", n_times, n_cases, len(self.pool.bias))
            torch.mm(pooled, self.pool.weight, out=z.flatten(0, 1))
            return kernels.join_into([y, z], self.shift, self.lowest, out, factors=factors)
        assert factors is None
        n_convolved = y.shape[2]
        y = y if self.bank.bias is None else y.add_(self.bank.bias)
        torch.maximum(y, self.floor, out=out[..., :n_convolved])
        rest = out.flatten(0, 1)[:, n_convolved:]
        torch.addmm(self.pool.bias, pooled, self.pool.weight, out=rest)
        torch.maximum(rest, self.pool_floor, out=rest)
        return out

    def note_largest(self, u: Tensor, scratch: Scratch) -> None:
        """Put the largest values of cases where projections look for them."""
        if self.projections is not None:
            scratch.take("largest", u.shape[1]).copy_(largest_of_cases(u))

    def tell(self, read: Callable[[Tensor], None] | None, out: Tensor, scratch: Scratch) -> None:
        """Tell of what a call has just given, without the lift."""
        if read is not None and self.lift is not None:
            out = torch.sub(out, self.lift, out=scratch.take("unlifted", *out.shape))
        _tell(read, out)


class FrozenBlock:
    """An InceptionBlock for cases of one length."""

    def __init__(self, block: Any, n_times: int, like: Tensor, source: Affine | None = None) -> None:
        residual = affine(block.residual.conv).scaled(*scale_and_shift(block.residual.bn))
        residual = residual if source is None else residual.after(source)
        self.residual = residual.to(like).weight
        self.first = FrozenModule(block.module0, n_times, like, source)
        self.second = FrozenModule(block.module1, n_times, like)
        self.third = FrozenModule(block.module2, n_times, like, lift=residual.bias)
        self.halved = HalvedMap(self.residual) if source is None and self.third.projections is not None else None

    def __call__(self, source: Tensor, u: Tensor, out: Tensor, scratch: Scratch, name: str, readers: Readers) -> Tensor:
        read = readers.get(f"{name}.module2")
        together = self.third.projections is not None and read is None  # the residual comes in with the third module
        residual = self._residual(source, out, scratch) if together else NOTHING
        h = self.first(source, u, out, scratch)
        self.first.tell(readers.get(f"{name}.module0"), h, scratch)
        h = self.second(h, h, scratch.take("between", *out.shape), scratch)
        self.second.tell(readers.get(f"{name}.module1"), h, scratch)
        h = self.third(h, h, out, scratch, residual)
        if not together:
            self.third.tell(read, h, scratch)
            h.flatten(0, 1).addmm_(source.flatten(0, 1), self.residual)
            h.relu_()
            self.third.note_largest(h, scratch)
        _tell(readers.get(name), h)
        return h

    def _residual(self, source: Tensor, out: Tensor, scratch: Scratch) -> Added:
        residual = scratch.take("residual", *out.shape)
        if self.halved is None:
            torch.mm(source.flatten(0, 1), self.residual, out=residual.flatten(0, 1))
            return residual, None
        largest, factors = (scratch.take(name, source.shape[1]) for name in ("largest", "residual factors"))
        self.halved(source, largest, residual, factors, scratch)
        return residual, factors


class FrozenInception:
    """Computes what an InceptionTime computes in eval mode with the weights it has now, for cases of one length.

    In the type of its weights, or in another one.
    """

    def __init__(self, encoder: Any, n_times: int, dtype: torch.dtype | None = None) -> None:
        self.n_times, self.dim, self.check_shape = n_times, encoder.dim, encoder.check_shape
        like = encoder.input.weight.detach()[:0].to(dtype or encoder.input.weight.dtype)
        self.scratch = Scratch(like)
        entry = affine(encoder.input)
        self.entry = entry.to(like)
        # The input projection is linear and so are most maps behind it: few channels go through both at once.
        self.joint = encoder.n_channels < len(entry.bias)
        self.block0 = FrozenBlock(encoder.block0, n_times, like, entry if self.joint else None)
        self.block1 = FrozenBlock(encoder.block1, n_times, like)
        self.single = single_network(self)

    @torch.inference_mode()
    def __call__(self, x: Tensor, readers: Readers = NOBODY) -> Tensor:
        """Compute the features, (B, C, T) -> (B, F, T), and tell readers of their layers (`Encoder.frozen_layers`)."""
        self.check_shape(x.shape)
        n_cases, n_channels, n_times = x.shape
        if n_times != self.n_times:
            raise InputError(f"Frozen for cases of {self.n_times} time steps; got {n_times}.")
        scratch = self.scratch
        if n_cases == 1 and self.single is not None and not readers:
            return self.single(x, scratch)
        source = scratch.take("source", n_times, n_cases, n_channels).copy_(x.permute(2, 0, 1))
        u = scratch.take("entry", n_times, n_cases, len(self.entry.bias))
        torch.addmm(self.entry.bias, source.flatten(0, 1), self.entry.weight, out=u.flatten(0, 1))
        _tell(readers.get("input"), u)
        self.block0.first.note_largest(u, scratch)
        h = scratch.take("features", n_times, n_cases, self.dim)
        h = self.block0(source if self.joint else u, u, h, scratch, "block0", readers)
        y = torch.empty_like(h)  # a new one: it belongs to the caller
        return self.block1(h, h, y, scratch, "block1", readers).permute(1, 2, 0)


def _tell(read: Callable[[Tensor], None] | None, h: Tensor) -> None:
    if read is not None:
        read(h.permute(1, 2, 0))
