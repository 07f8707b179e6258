"""Convolution by the convolution theorem, with the Fourier transforms as matrix products.

The product of two spectra takes P / 2 + 1 small matrix products per segment of P time steps where a convolution takes
one per tap, about a third of the arithmetic with kernels of 10, 20 and 40 taps, all of it in large matrix products.
Time comes first, (T, B, C): then every transform along time is one product with a fixed matrix, and the edges that
replicate padding repeats are part of that matrix.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from dicot.nets.encoders.inception import products
from dicot.nets.encoders.inception.constants import constant

LONGEST_SEGMENT = 160  # outputs; longer cases are cut into equal segments, whose inputs overlap


class Transforms(NamedTuple):
    """Fixed matrices for cases of one length. Real and imaginary parts are rows of their own; f frequencies."""

    source: Tensor | None  # (P * segments,) the time step that each input of a segment reads; None for one segment
    analysis: Tensor  # (T or P, 2 f): the spectrum as (Re, Im) per frequency; on a GPU also as (Im, -Re), 4 f
    kernel: Tensor  # (taps, 2 f): the real part of the taps' spectrum, then its imaginary part
    synthesis: Tensor  # (S, 2 f): from (Re, Im) per frequency back to the S outputs of a segment

    @property
    def n_frequencies(self) -> int:
        return self.kernel.shape[1] // 2


@constant(most=512)
def transforms(n_times: int, n_taps: int, left: int, dtype: torch.dtype, device: torch.device) -> Transforms:
    """Make the matrices for y[t] = sum_j w[j] v[t + j - left]; an index outside 0 .. T - 1 reads the nearest end."""
    n_segments = math.ceil(n_times / LONGEST_SEGMENT)
    n_outputs = math.ceil(n_times / n_segments)
    period = n_outputs + n_taps - 1
    period += (2, 1, 0, 0)[period % 4]  # an even number of frequencies: matrix units read four values at a time
    position = torch.arange(period)
    frequency = torch.arange(period // 2 + 1)
    angle = (2 * math.pi / period) * (frequency.unsqueeze(1) * position % period).double()
    real, imag = angle.cos(), -angle.sin()  # of exp(-i angle), (f, P)

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
    weight = torch.full((len(frequency), 1), 2.0, dtype=torch.float64)  # a frequency and its mirror image
    weight[0] = 1
    if period % 2 == 0:
        weight[-1] = 1
    synthesis = interleaved(weight * real, weight * imag)[:, :n_outputs].T / period
    kernel = torch.cat([real, imag])[:, :n_taps]
    parts = (matrix.to(device, dtype).contiguous() for matrix in (analysis.T, kernel.T, synthesis))
    return Transforms(None if n_segments == 1 else source.flatten().to(device), *parts)


def forward(v: Tensor, taps: Tensor, left: int) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Convolve (T, B, C) with taps (n, C, O) -> (T, B, O), and what `backward` needs."""
    n_times, n_cases, width = v.shape
    fixed = transforms(n_times, len(taps), left, v.dtype, v.device)
    n_freq, n_outputs = fixed.n_frequencies, len(fixed.synthesis)
    segmented = v if fixed.source is None else v.index_select(0, fixed.source)
    segmented = segmented.view(len(fixed.analysis), -1)
    kernel = products.mm(fixed.kernel.T, taps.reshape(len(taps), -1)).view(2, n_freq, width, -1)
    if products.serve(v, width, taps.shape[2]):
        spectrum = products.mm(fixed.analysis.T, segmented).view(n_freq, 2, -1, width)
        product = products.multiply(spectrum, kernel)
    else:
        # Correlation: Y = V conj(W), so (Re, Im) Y = (Re, Im) V * Re W + (Im, -Re) V * Im W; both forms of V are saved.
        spectrum = _both_forms(fixed, segmented).view(2, n_freq, -1, width)
        product = torch.bmm(spectrum[0], kernel[0]).baddbmm_(spectrum[1], kernel[1])  # (f, 2 B segments, O)
    y = products.mm(fixed.synthesis, product.view(2 * n_freq, -1)).view(n_outputs, -1, n_cases, taps.shape[2])
    if fixed.source is not None:
        y = y.transpose(0, 1).reshape(-1, n_cases, taps.shape[2])[:n_times]
    return y.view(n_times, n_cases, -1), (spectrum, kernel)


def backward(dy: Tensor, saved: tuple[Tensor, ...], n_taps: int, left: int) -> tuple[Tensor, Tensor]:
    """Return the gradients of v and of the taps."""
    spectrum, kernel = saved
    n_times, n_cases, n_out = dy.shape
    width = spectrum.shape[-1]
    fixed = transforms(n_times, n_taps, left, dy.dtype, dy.device)
    n_freq, n_outputs = fixed.n_frequencies, len(fixed.synthesis)
    if fixed.source is not None:
        missing = -n_times % n_outputs
        padded = torch.cat([dy, dy.new_zeros(missing, n_cases, n_out)]) if missing else dy
        dy = padded.reshape(-1, n_outputs, n_cases * n_out).transpose(0, 1)
    dproduct = products.mm(fixed.synthesis.T, dy.reshape(n_outputs, -1)).view(n_freq, -1, n_out)
    if products.serve(spectrum, width, n_out):
        dspectrum, dkernel = products.multiply_backward(dproduct, spectrum, kernel)
        dv = products.mm(fixed.analysis, dspectrum.view(2 * n_freq, -1))
    else:
        dspectrum, dkernel = torch.empty_like(spectrum), torch.empty_like(kernel)
        for part in range(2):
            torch.bmm(dproduct, kernel[part].transpose(1, 2), out=dspectrum[part])
            torch.bmm(spectrum[part].transpose(1, 2), dproduct, out=dkernel[part])
        dv = _both_forms_backward(fixed, dspectrum.view(2, n_freq, 2, -1))
    if fixed.source is not None:
        dv = _overlap_add(dv.view(len(dv), -1, n_cases * width), n_outputs, n_times, n_taps, left)
    dtaps = products.mm(fixed.kernel, dkernel.view(2 * n_freq, -1))
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


def interleaved(a: Tensor, b: Tensor) -> Tensor:
    """Put rows in the order a[0], b[0], a[1], b[1], ..."""
    return torch.stack([a, b], dim=1).flatten(0, 1)
