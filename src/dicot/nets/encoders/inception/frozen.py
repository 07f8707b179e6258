"""InceptionTime with fixed weights, for cases of one length: BatchNorm folded into the kernels, no gradients.

Time comes first, (T, B, C). The three convolutions of a module are one, whose spectrum is computed once.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.nets.encoders.base import exact, same_margins, scale_and_shift
from dicot.nets.encoders.inception.convolution import filtered, joined, spectra, transforms
from dicot.nets.encoders.inception.rows import largest_of_three

LONGEST_SEGMENT = 64  # outputs; shorter segments overlap too much, longer ones make the transforms dear


class Affine(NamedTuple):
    """A linear map of rows (..., C) -> (..., O) with a shift: weight (C, O) and bias (O,)."""

    weight: Tensor
    bias: Tensor

    def after(self, other: "Affine") -> "Affine":
        return Affine(other.weight @ self.weight, other.bias @ self.weight + self.bias)

    def scaled(self, scale: Tensor, shift: Tensor) -> "Affine":
        return Affine(self.weight * scale, self.bias * scale + shift)

    def to(self, like: Tensor) -> "Affine":
        return Affine(self.weight.to(like).contiguous(), self.bias.to(like))

    def __call__(self, u: Tensor) -> Tensor:
        rows = torch.addmm(self.bias, u.flatten(0, 1), self.weight)
        return rows.view(*u.shape[:2], -1)


def affine(conv: nn.Conv1d) -> Affine:
    """Return a convolution of one tap as an affine map."""
    assert conv.bias is not None
    return Affine(exact(conv.weight)[..., 0].T, exact(conv.bias))


class FrozenModule:
    """An InceptionModule for cases of one length.

    `source` is the linear map in front of the module where its convolutions read that map's input.
    """

    def __init__(self, module: Any, n_times: int, like: Tensor, source: Affine | None = None) -> None:
        convs = module.convolutions()
        taps = joined([exact(conv.weight) for conv in convs])
        n_taps, _, n_out = taps.shape  # outputs of the convolutions; those of the pooled branch follow
        scale, shift = scale_and_shift(module.bn)
        bias = torch.cat([exact(conv.bias) for conv in convs])

        narrow = affine(module.bottleneck)
        self.narrow = (narrow if source is None else narrow.after(source)).to(like)
        n_segments = math.ceil(n_times / LONGEST_SEGMENT)
        margin = same_margins(n_taps)[0]
        self.transforms = transforms(n_times, n_taps, margin, n_segments, like.dtype, like.device)
        # In double precision up to here, and then once rounded.
        precise = transforms(n_times, n_taps, margin, n_segments, taps.dtype, taps.device)
        self.spectra = spectra(taps * scale[:n_out], precise).to(like)
        self.bias = (bias * scale[:n_out] + shift[:n_out]).to(like)
        self.pooled = affine(module.poolconv).scaled(scale[n_out:], shift[n_out:]).to(like)

    def __call__(self, source: Tensor, u: Tensor) -> Tensor:
        """`source` (T, B, C') is what the convolutions read, `u` (T, B, C) what is pooled."""
        convolved, _ = filtered(self.narrow(source), self.spectra, self.transforms)
        convolved += self.bias
        pooled = self.pooled(largest_of_three(u))
        return torch.cat([convolved, pooled], dim=2).relu_()


class FrozenBlock:
    """An InceptionBlock for cases of one length."""

    def __init__(self, block: Any, n_times: int, like: Tensor, source: Affine | None = None) -> None:
        conv, norm = block.residual
        residual = affine(conv).scaled(*scale_and_shift(norm))
        self.residual = (residual if source is None else residual.after(source)).to(like)
        self.first = FrozenModule(block.module0, n_times, like, source)
        self.second = FrozenModule(block.module1, n_times, like)
        self.third = FrozenModule(block.module2, n_times, like)

    def __call__(self, source: Tensor, u: Tensor) -> Tensor:
        h = self.first(source, u)
        h = self.second(h, h)
        h = self.third(h, h)
        h += self.residual(source)
        return h.relu_()


class FrozenInception:
    """Computes what an InceptionTime computes in eval mode with the weights it has now, for cases of one length."""

    def __init__(self, encoder: Any, n_times: int) -> None:
        self.n_times, self.check_shape = n_times, encoder.check_shape
        like = encoder.input.weight.detach()[:0]
        entry = affine(encoder.input)
        self.entry = entry.to(like)
        # The input projection is linear and so are most maps behind it: few channels go through both at once.
        self.is_joint = encoder.n_channels < len(entry.bias)
        self.block0 = FrozenBlock(encoder.block0, n_times, like, entry if self.is_joint else None)
        self.block1 = FrozenBlock(encoder.block1, n_times, like)

    @torch.inference_mode()
    def __call__(self, x: Tensor) -> Tensor:
        """Compute the features, (B, C, T) -> (B, F, T)."""
        self.check_shape(x.shape)
        if x.shape[2] != self.n_times:
            raise InputError(f"Frozen for cases of {self.n_times} time steps; got {x.shape[2]}.")
        source = x.permute(2, 0, 1).contiguous()
        u = self.entry(source)
        h = self.block0(source if self.is_joint else u, u)
        return self.block1(h, h).permute(1, 2, 0)
