"""InceptionTime with fixed weights, for cases of one length: BatchNorm folded into the kernels, no gradients.

Time comes first, (T, B, C). The three convolutions of a module are one, prepared once: nothing is saved for a backward
pass, the kernels' spectra are computed once, and a case is cut into short segments whose inputs overlap.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.nets.encoders.base import exact, same_margins, scale_and_shift
from dicot.nets.encoders.inception.convolution import folding, fourier, interleaved, joined
from dicot.nets.encoders.inception.rows import cuda_serves, join_into, largest_of_three

LONGEST_SEGMENT = 64  # outputs; shorter segments overlap too much, longer ones make the transforms dear
LONGEST_DENSE = 12  # time steps up to which a dense map takes fewer products
HALVES = (torch.bfloat16, torch.float16)


class Scratch:
    """One growing buffer per name, overwritten at the next `take`: fresh memory costs more than arithmetic on it."""

    def __init__(self, like: Tensor) -> None:
        self.like = like.detach()
        self.buffers: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        size = math.prod(shape)
        if name not in self.buffers or len(self.buffers[name]) < size:
            self.buffers[name] = self.like.new_empty(size)
        return self.buffers[name][:size].view(shape)


def filter_bank(taps: Tensor, bias: Tensor, n_times: int, like: Tensor) -> "Direct | Dense | Spectral":
    """Prepare a convolution for cases of n_times in the type of `like`; taps (n, C, O) and bias (O,) are float64.

    It convolves (T, B, C) -> (T, B, O) in memory of a scratch. A `bias` (O,) that it has is still to be added.
    """
    if like.dtype in HALVES:
        return Direct(taps, bias, like)
    return (Dense if n_times <= LONGEST_DENSE else Spectral)(taps, bias, n_times, like)


class Direct:
    """Tap by tap, as one product per time step whose rows overlap in memory: a case's window is never copied.

    More arithmetic than the other forms and the least memory traffic: for half precisions, whose arithmetic is nearly
    free on a GPU and whose spectra would be too coarse.
    """

    def __init__(self, taps: Tensor, bias: Tensor, like: Tensor) -> None:
        self.n_taps, self.left = len(taps), same_margins(len(taps))[0]
        self.kernel = taps.flatten(0, 1).to(like).contiguous()  # ((n, C), O)
        self.bias = bias.to(like)

    def __call__(self, v: Tensor, scratch: Scratch) -> Tensor:
        n_times, n_cases, width = v.shape
        padded = scratch.take("padded", n_cases, n_times + self.n_taps - 1, width)
        by_case, first, stop = v.transpose(0, 1), self.left, self.left + n_times
        padded[:, :first], padded[:, first:stop], padded[:, stop:] = by_case[:, :1], by_case, by_case[:, -1:]
        windows = padded.as_strided((n_times, n_cases, self.n_taps * width), (width, padded.stride(0), 1))
        y = scratch.take("convolved", n_times, n_cases, len(self.bias))
        return torch.bmm(windows, self.kernel.expand(n_times, -1, -1), out=y)


class Dense:
    """Every time step from every other one: the cheapest form for very short cases (see `convolution`)."""

    def __init__(self, taps: Tensor, bias: Tensor, n_times: int, like: Tensor) -> None:
        n_taps, width, n_out = taps.shape
        fold = folding(n_times, n_taps, same_margins(n_taps)[0], taps.dtype, taps.device)
        dense = fold @ taps.view(n_taps, -1)
        self.dense = dense.view(n_times, n_times * width, n_out).to(like)  # (t, (s, C), O)
        self.bias = bias.to(like)

    def __call__(self, v: Tensor, scratch: Scratch) -> Tensor:
        n_times, n_cases, _ = v.shape
        rows = v.transpose(0, 1).reshape(n_cases, -1).expand(n_times, -1, -1)  # (B, (s, C)) for each t
        return torch.bmm(rows, self.dense, out=scratch.take("convolved", n_times, n_cases, len(self.bias)))


class Spectral:
    """By the convolution theorem (see `convolution`). Real and imaginary parts are rows of their own; f frequencies.

    The outputs are cut into segments, each with what it reads, its matrix (4 f, time steps read) and what it writes.
    The edges that replicate padding repeats are folded into the matrices of the first and last segments.
    """

    bias = None  # is added at frequency 0

    def __init__(self, taps: Tensor, bias: Tensor, n_times: int, like: Tensor) -> None:
        n_taps, width, n_out = taps.shape
        n_outputs = math.ceil(n_times / math.ceil(n_times / LONGEST_SEGMENT))
        period = n_outputs + n_taps - 1
        real, imag, synthesis = fourier(period, n_outputs, taps.device)
        # Correlation: Y = V conj(W), so (Re, Im) Y = (Re, Im) V * Re W + (Im, -Re) V * Im W
        analysis = torch.cat([interleaved(real, imag), interleaved(imag, -real)])
        inner = analysis.to(like)
        self.segments: list[tuple[slice, Tensor, slice]] = []
        for start in range(0, n_times, n_outputs):
            first = start - same_margins(n_taps)[0]
            before, after = max(-first, 0), max(first + period - n_times, 0)
            matrix = inner
            if before or after:  # columns that read beyond the case are added to those of its ends
                cut = analysis[:, before : period - after].clone()
                cut[:, 0] += analysis[:, :before].sum(dim=1)
                cut[:, -1] += analysis[:, period - after :].sum(dim=1)
                matrix = cut.to(like)
            reads, writes = slice(first + before, first + period - after), slice(start, min(start + n_outputs, n_times))
            self.segments.append((reads, matrix, writes))
        self.synthesis = synthesis.to(like).contiguous()  # (S, 2 f)
        spectra = torch.cat([real, imag])[:, :n_taps] @ taps.view(n_taps, -1)
        # Real parts over imaginary ones, so that one product takes both: many small products cost by their number.
        self.spectra = torch.cat([*spectra.view(2, len(real), width, n_out)], dim=1).to(like)  # (f, (2, C), O)
        self.constant = (bias * period).to(like)  # one row there is every time step

    def __call__(self, v: Tensor, scratch: Scratch) -> Tensor:
        n_times, n_cases, width = v.shape
        n_segments, (n_freq, _, n_out) = len(self.segments), self.spectra.shape
        rows = v.flatten(1)
        parts = scratch.take("spectrum", 4 * n_freq, n_segments, n_cases * width)
        for number, (reads, analysis, _) in enumerate(self.segments):
            torch.mm(analysis, rows[reads], out=parts[:, number])
        n_rows = 2 * n_segments * n_cases
        spectrum = scratch.take("side by side", n_freq, n_rows, 2 * width)
        torch.cat([*parts.view(2, n_freq, n_rows, width)], dim=2, out=spectrum)
        product = torch.bmm(spectrum, self.spectra, out=scratch.take("product", n_freq, n_rows, n_out))
        product[0, : n_segments * n_cases] += self.constant
        parts = product.view(2 * n_freq, n_segments, -1)
        y = scratch.take("convolved", n_times, n_cases * n_out)
        for number, (_, _, writes) in enumerate(self.segments):
            torch.mm(self.synthesis[: len(y[writes])], parts[:, number], out=y[writes])
        return y.view(n_times, n_cases, n_out)


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


def affine(conv: nn.Conv1d) -> Affine:
    """Return a convolution of one tap as an affine map."""
    assert conv.bias is not None
    return Affine(exact(conv.weight)[..., 0].T, exact(conv.bias))


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
        self.fused = cuda_serves(like, n, len(floor) - n)
        if self.fused:
            rest = torch.zeros_like(bias) if self.bank.bias is None else bias
            self.shift, self.lowest = torch.cat([rest, self.pool.bias.double()]).float(), floor.float()

    def __call__(self, source: Tensor, u: Tensor, out: Tensor, scratch: Scratch) -> Tensor:
        """`source` (T, B, C') is what the convolutions read, `u` (T, B, C) what is pooled."""
        n_times, n_cases, width = u.shape
        v = scratch.take("narrow", n_times, n_cases, len(self.narrow.bias))
        torch.addmm(self.narrow.bias, source.flatten(0, 1), self.narrow.weight, out=v.flatten(0, 1))
        y = self.bank(v, scratch)
        pooled = largest_of_three(u, scratch.take("pooled", n_times, n_cases, width)).flatten(0, 1)
        if self.fused:
            z = scratch.take("projected", n_times, n_cases, len(self.pool.bias))
            torch.mm(pooled, self.pool.weight, out=z.flatten(0, 1))
            return join_into([y, z], self.shift, self.lowest, out)
        n_convolved = y.shape[2]
        y = y if self.bank.bias is None else y.add_(self.bank.bias)
        torch.maximum(y, self.floor, out=out[..., :n_convolved])
        rest = out.flatten(0, 1)[:, n_convolved:]
        torch.addmm(self.pool.bias, pooled, self.pool.weight, out=rest)
        torch.maximum(rest, self.pool_floor, out=rest)
        return out


class FrozenBlock:
    """An InceptionBlock for cases of one length."""

    def __init__(self, block: Any, n_times: int, like: Tensor, source: Affine | None = None) -> None:
        residual = affine(block.residual.conv).scaled(*scale_and_shift(block.residual.bn))
        residual = residual if source is None else residual.after(source)
        self.residual = residual.to(like).weight
        self.first = FrozenModule(block.module0, n_times, like, source)
        self.second = FrozenModule(block.module1, n_times, like)
        self.third = FrozenModule(block.module2, n_times, like, lift=residual.bias)

    def __call__(self, source: Tensor, u: Tensor, out: Tensor, scratch: Scratch) -> Tensor:
        h = self.first(source, u, out, scratch)
        h = self.second(h, h, scratch.take("between", *out.shape), scratch)
        h = self.third(h, h, out, scratch)
        h.flatten(0, 1).addmm_(source.flatten(0, 1), self.residual)
        return h.relu_()


class FrozenInception:
    """Computes what an InceptionTime computes in eval mode with the weights it has now, for cases of one length."""

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

    @torch.inference_mode()
    def __call__(self, x: Tensor) -> Tensor:
        """Compute the features, (B, C, T) -> (B, F, T)."""
        self.check_shape(x.shape)
        n_cases, n_channels, n_times = x.shape
        if n_times != self.n_times:
            raise InputError(f"Frozen for cases of {self.n_times} time steps; got {n_times}.")
        scratch = self.scratch
        source = scratch.take("source", n_times, n_cases, n_channels).copy_(x.permute(2, 0, 1))
        u = scratch.take("entry", n_times, n_cases, len(self.entry.bias))
        torch.addmm(self.entry.bias, source.flatten(0, 1), self.entry.weight, out=u.flatten(0, 1))
        h = scratch.take("features", n_times, n_cases, self.dim)
        h = self.block0(source if self.joint else u, u, h, scratch)
        y = torch.empty_like(h)  # a new one: it belongs to the caller
        return self.block1(h, h, y, scratch).permute(1, 2, 0)
