"""Convolution of cases (T, B, C) that keeps their length and repeats their edges, as matrix products.

Very short cases go through one dense map: with edges repeated, a kernel that is longer than the case reaches every time
step from every other one, and most taps fall on the two ends. With the taps that read the same time step added up, T
products per output are left.

Longer cases go by the convolution theorem. The product of two spectra takes P / 2 + 1 small matrix products per segment
of P time steps, where a convolution takes one per tap. With kernels of 10, 20 and 40 taps that is about a third of the
arithmetic. Every Fourier transform along time is one product with a fixed matrix, and the edges that replicate padding
repeats are part of that matrix.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dicot.nets.encoders.base import same_margins

R = TypeVar("R")
LONGEST_SEGMENT = 160  # outputs; longer cases are cut into equal segments, whose inputs overlap
SHORTEST_SEGMENT = 100  # where a number of segments is looked for that divides the case
_collectors: list[list[object]] = []


class Convolution(torch.autograd.Function):
    """Convolve (T, B, C) with kernels (O, C, n), each with its own n -> (T, B, sum of O)."""

    @staticmethod
    def forward(ctx: Any, v: Tensor, *kernels: Tensor) -> Tensor:
        taps = joined(kernels)
        left = same_margins(len(taps))[0]
        compute = _dense_forward if _is_short(len(v), len(taps)) else _spectral_forward
        y, saved = compute(v, taps, left)
        ctx.save_for_backward(*saved)
        ctx.n_taps, ctx.left, ctx.kernels = len(taps), left, [kernel.shape for kernel in kernels]
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, ...]:
        compute = _dense_backward if _is_short(len(dy), ctx.n_taps) else _spectral_backward
        dv, dtaps = compute(dy.contiguous(), ctx.saved_tensors, ctx.n_taps, ctx.left)
        return dv, *(part.permute(2, 1, 0) for part in _parts(dtaps, ctx.kernels))


def convolve(v: Tensor, kernels: Sequence[Tensor]) -> Tensor:
    """Convolve (T, B, C) with kernels (O, C, n), each with its own n -> (T, B, sum of O)."""
    y: Tensor = Convolution.apply(v, *kernels)  # type: ignore[no-untyped-call]
    return y


def _is_short(n_times: int, n_taps: int) -> bool:
    """Choose by arithmetic: a dense map takes T products per output, the spectral form 4 (T + n) / T or so."""
    return n_times**2 <= 3 * (n_times + n_taps - 1)


def joined(kernels: Sequence[Tensor]) -> Tensor:
    """Join kernels (O, C, n) of several lengths into taps (longest n, C, sum of O) that read the same time steps."""
    if len(kernels) == 1:
        return kernels[0].permute(2, 1, 0)
    n_taps = max(kernel.shape[2] for kernel in kernels)
    n_out = sum(len(kernel) for kernel in kernels)
    taps = kernels[0].new_zeros(n_taps, kernels[0].shape[1], n_out)
    for part, kernel in zip(_parts(taps, [kernel.shape for kernel in kernels]), kernels, strict=True):
        part.copy_(kernel.permute(2, 1, 0))
    return taps


def _parts(taps: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
    """View each kernel among the joined taps: the shorter ones read the middle of what the longest one reads."""
    parts = []
    column = 0
    for n_out, _, n_taps in shapes:
        start = same_margins(len(taps))[0] - same_margins(n_taps)[0]
        parts.append(taps[start : start + n_taps, :, column : column + n_out])
        column += n_out
    return parts


def constant(most: int) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Cache the `most` latest results of a function of hashable arguments, the last of which is a device.

    While a CUDA graph is being captured, results are made on another stream: the graph only reads them, and does not
    make them again at every replay.
    """

    def decorate(build: Callable[..., R]) -> Callable[..., R]:
        @lru_cache(most)
        def made(*args: Any) -> R:
            if args[-1].type != "cuda" or not torch.cuda.is_current_stream_capturing():
                return build(*args)
            stream = _free_stream(args[-1])
            with torch.cuda.stream(stream):
                value = build(*args)
            stream.synchronize()  # replays read it from other streams
            return value

        @wraps(build)
        def get(*args: Any) -> R:
            value = made(*args)
            for collector in _collectors:
                collector.append(value)
            return value

        get.cache_clear = made.cache_clear  # type: ignore[attr-defined]
        return get

    return decorate


@contextmanager
def collect_constants() -> Iterator[list[object]]:
    """List every constant that is used inside; as long as the list lives, their memory does."""
    collector: list[object] = []
    _collectors.append(collector)
    try:
        yield collector
    finally:
        _collectors[:] = [other for other in _collectors if other is not collector]


def _free_stream(device: torch.device) -> Any:
    """Return a stream that is not being captured: PyTorch hands out 32 in turn, the present one among them."""
    while True:
        stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(stream):
            if not torch.cuda.is_current_stream_capturing():
                return stream


@constant(most=64)
def folding(n_times: int, n_taps: int, left: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return (T * T, taps): 1 where the tap of output t reads time step s, rows in the order (t, s)."""
    t, j = torch.arange(n_times).unsqueeze(1), torch.arange(n_taps)
    source = (t + j - left).clamp(0, n_times - 1)  # (T, taps)
    fold = torch.zeros(n_times, n_times, n_taps)
    fold[t, source, j] = 1
    return fold.flatten(0, 1).to(device, dtype)


def _dense_forward(v: Tensor, taps: Tensor, left: int) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Convolve (T, B, C) with taps (n, C, O) -> (T, B, O), and what the gradient needs."""
    n_times, n_cases, width = v.shape
    fold = folding(n_times, len(taps), left, v.dtype, v.device)
    dense = (fold @ taps.reshape(len(taps), -1)).view(n_times, n_times * width, -1)  # (t, (s, C), O)
    rows = v.transpose(0, 1).reshape(n_cases, -1)  # (B, (s, C))
    return torch.bmm(rows.expand(n_times, -1, -1), dense), (rows, dense)


def _dense_backward(dy: Tensor, saved: tuple[Tensor, ...], n_taps: int, left: int) -> tuple[Tensor, Tensor]:
    """Return the gradients of v and of the taps."""
    rows, dense = saved
    n_times, n_cases, n_out = dy.shape
    fold = folding(n_times, n_taps, left, dy.dtype, dy.device)
    drows = torch.bmm(dy, dense.transpose(1, 2)).sum(dim=0)
    ddense = torch.bmm(rows.T.expand(n_times, -1, -1), dy)
    dtaps = (fold.T @ ddense.view(n_times * n_times, -1)).view(n_taps, -1, n_out)
    return drows.view(n_cases, n_times, -1).transpose(0, 1).contiguous(), dtaps


class Transforms(NamedTuple):
    """Fixed matrices for cases of one length. Real and imaginary parts are rows of their own; f frequencies."""

    # None for one segment; a row of them all is a place in a segment, then the segment.
    source: Tensor | None  # (P * segments,) the time step that each input reads
    sent: Tensor | None  # (S * segments,) the time step that each output is
    order: Tensor | None  # (T,) the output that is each time step
    analysis: Tensor  # (T or P, 2 f): the spectrum as (Re, Im); on a GPU also as (Im, -Re), 4 f
    kernel: Tensor  # (taps, 2 f): the real part of the taps' spectrum, then its imaginary part
    synthesis: Tensor  # (S, 2 f): from (Re, Im) per frequency back to the S outputs of a segment

    @property
    def n_frequencies(self) -> int:
        return self.kernel.shape[1] // 2


def fourier(period: int, n_outputs: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return exp(-i angle) as real and imaginary part (f, P), and the way back from (Re, Im), (n_outputs, 2 f)."""
    position = torch.arange(period)
    frequency = position[: period // 2 + 1].unsqueeze(1)
    angle = (frequency * position % period).double() * (2 * math.pi / period)
    real, imag = angle.cos(), -angle.sin()
    mirrored = torch.full_like(real[:, :1], 2)  # a frequency and its mirror image
    mirrored[0] = 1
    if period % 2 == 0:
        mirrored[-1] = 1
    return real, imag, interleaved(mirrored * real, mirrored * imag)[:, :n_outputs].T / period


def interleaved(a: Tensor, b: Tensor) -> Tensor:
    """Put rows in the order a[0], b[0], a[1], b[1], ..."""
    return torch.stack([a, b], dim=1).flatten(0, 1)


@constant(most=512)
def transforms(
    n_times: int, n_taps: int, left: int, n_segments: int, dtype: torch.dtype, device: torch.device
) -> Transforms:
    """Make the matrices for y[t] = sum_j w[j] v[t + j - left]; an index outside 0 .. T - 1 reads the nearest end."""
    n_outputs = math.ceil(n_times / n_segments)
    period = n_outputs + n_taps - 1
    period += (2, 1, 0, 0)[period % 4]  # an even number of frequencies: matrix units read four values at a time
    real, imag, synthesis = fourier(period, n_outputs)
    position = torch.arange(period)
    first = n_outputs * torch.arange(n_segments) - left
    source = (first + position.unsqueeze(1)).clamp(0, n_times - 1)  # (P, segments)
    v_real, v_imag = real, imag
    if n_segments == 1:  # the edges folded in: no padded copy is made
        fold = torch.zeros(period, n_times, dtype=torch.float64)
        fold[position, source[:, 0]] = 1
        v_real, v_imag = real @ fold, imag @ fold
    analysis = interleaved(v_real, v_imag)
    if device.type == "cuda":  # a few more products for fewer passes over memory
        analysis = torch.cat([analysis, interleaved(v_imag, -v_real)])
    kernel = torch.cat([real, imag])[:, :n_taps]
    matrices = [matrix.to(device, dtype).contiguous() for matrix in (analysis.T, kernel.T, synthesis)]
    if n_segments == 1:
        return Transforms(None, None, None, *matrices)
    sent = torch.arange(n_segments * n_outputs).view(n_segments, n_outputs).T.flatten()
    indices = [source.flatten(), sent, sent.argsort()[:n_times]]
    return Transforms(*(index.to(device) for index in indices), *matrices)


def _transforms_for(like: Tensor, n_taps: int, left: int) -> Transforms:
    """Return the matrices for `like` (T, B, ...), in equal segments where a number of them divides the case."""
    n_times = len(like)
    fewest = math.ceil(n_times / LONGEST_SEGMENT)
    near = range(fewest, max(fewest, n_times // SHORTEST_SEGMENT) + 1)
    n_segments = next((number for number in near if n_times % number == 0), fewest)
    return transforms(n_times, n_taps, left, n_segments, like.dtype, like.device)


def _spectral_forward(v: Tensor, taps: Tensor, left: int) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Convolve (T, B, C) with taps (n, C, O) -> (T, B, O), and what the gradient needs."""
    fixed = _transforms_for(v, len(taps), left)
    kernel = spectra(taps, fixed)
    y, spectrum = filtered(v, kernel, fixed)
    return y, (spectrum, kernel)


def spectra(taps: Tensor, fixed: Transforms) -> Tensor:
    """Transform taps (n, C, O) -> (2, f, C, O): real parts, then imaginary ones."""
    n_taps, width, n_out = taps.shape
    return (fixed.kernel.T @ taps.reshape(n_taps, -1)).view(2, fixed.n_frequencies, width, n_out)


def filtered(v: Tensor, kernel: Tensor, fixed: Transforms) -> tuple[Tensor, Tensor]:
    """Convolve (T, B, C) by the kernels' spectra -> (T, B, O), and the spectrum of v."""
    n_times, n_cases, width = v.shape
    _, n_freq, _, n_out = kernel.shape
    segments = v if fixed.source is None else v.index_select(0, fixed.source)
    spectrum = _both_forms(fixed, segments.reshape(len(fixed.analysis), -1)).view(2, n_freq, -1, width)
    # Correlation: Y = V conj(W), so (Re, Im) Y = (Re, Im) V * Re W + (Im, -Re) V * Im W.
    product = torch.bmm(spectrum[0], kernel[0]).baddbmm_(spectrum[1], kernel[1])  # (f, 2 segments B, O)
    y = fixed.synthesis @ product.view(2 * n_freq, -1)
    if fixed.order is not None:  # rows are fetched, which is faster than a transposed copy
        y = y.view(-1, n_cases * n_out).index_select(0, fixed.order)
    return y.view(n_times, n_cases, n_out), spectrum


def _spectral_backward(dy: Tensor, saved: tuple[Tensor, ...], n_taps: int, left: int) -> tuple[Tensor, Tensor]:
    """Return the gradients of v and of the taps."""
    spectrum, kernel = saved
    n_times, n_cases, n_out = dy.shape
    width = spectrum.shape[-1]
    fixed = _transforms_for(dy, n_taps, left)
    n_freq, n_outputs = fixed.n_frequencies, len(fixed.synthesis)
    if fixed.sent is not None:
        missing = len(fixed.sent) - n_times
        padded = torch.cat([dy, dy.new_zeros(missing, n_cases, n_out)]) if missing else dy
        dy = padded.reshape(-1, n_cases * n_out).index_select(0, fixed.sent)
    dproduct = (fixed.synthesis.T @ dy.reshape(n_outputs, -1)).view(n_freq, -1, n_out)
    dspectrum, dkernel = torch.empty_like(spectrum), torch.empty_like(kernel)
    for part in range(2):
        torch.bmm(dproduct, kernel[part].transpose(1, 2), out=dspectrum[part])
        torch.bmm(spectrum[part].transpose(1, 2), dproduct, out=dkernel[part])
    dv = _both_forms_backward(fixed, dspectrum.view(2, n_freq, 2, -1))
    if fixed.source is not None:
        dv = _overlap_add(dv.view(len(dv), -1, n_cases * width), n_outputs, n_times, n_taps, left)
    dtaps = fixed.kernel @ dkernel.view(2 * n_freq, -1)
    return dv.view(n_times, n_cases, width), dtaps.view(n_taps, width, n_out)


def _both_forms(fixed: Transforms, v: Tensor) -> Tensor:
    """Transform (T or P, R) -> (2, f, 2, R): the spectrum as (Re, Im) and as (Im, -Re)."""
    spectrum = v.new_empty(2, fixed.n_frequencies, 2, v.shape[1])
    n_rows = fixed.analysis.shape[1]
    torch.mm(fixed.analysis.T, v, out=spectrum.view(-1, v.shape[1])[:n_rows])
    if n_rows == 2 * fixed.n_frequencies:
        spectrum[1, :, 0] = spectrum[0, :, 1]
        torch.neg(spectrum[0, :, 0], out=spectrum[1, :, 1])
    return spectrum


def _both_forms_backward(fixed: Transforms, dspectrum: Tensor) -> Tensor:
    """Return the gradient of v; dspectrum is overwritten."""
    n_rows = fixed.analysis.shape[1]
    if n_rows == 2 * fixed.n_frequencies:
        direct, turned = dspectrum
        direct[:, 1] += turned[:, 0]
        direct[:, 0] -= turned[:, 1]
    return fixed.analysis @ dspectrum.view(-1, dspectrum.shape[-1])[:n_rows]


def _overlap_add(dsegments: Tensor, n_outputs: int, n_times: int, n_taps: int, left: int) -> Tensor:
    """Sum the gradients of the segments' inputs (P, segments, R) that read the same time step -> (T, R).

    The last n_taps - 1 inputs of a segment are the first ones of the next, and the ends were read many times.
    """
    _, n_segments, n_values = dsegments.shape
    n_inputs = n_outputs + n_taps - 1  # what lies behind them up to the period is read by no output
    assert n_taps <= n_outputs, "a segment overlaps with its neighbours only"
    padded = dsegments.new_zeros(n_segments * n_outputs + n_taps - 1, n_values)
    padded[: n_segments * n_outputs].view(n_segments, n_outputs, -1).copy_(dsegments[:n_outputs].transpose(0, 1))
    tails = padded.as_strided(
        (n_segments, n_taps - 1, n_values), (n_outputs * n_values, n_values, 1), n_outputs * n_values
    )
    tails.add_(dsegments[n_outputs:n_inputs].transpose(0, 1))
    dv = padded[left : left + n_times]
    dv[0] += padded[:left].sum(dim=0)
    dv[-1] += padded[left + n_times :].sum(dim=0)
    return dv
