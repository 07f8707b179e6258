"""Several kernels over one input as one convolution with fixed weights, prepared once for cases of one length.

For inference: nothing is saved for a backward pass, the kernels' spectra are computed once, and a case is cut into
short segments whose inputs overlap. Transforms are matrix products as in `spectral`; the edges that replicate padding
repeats are folded into the matrices of the first and last segments, so that no padded copy is made.
"""

import math
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from dicot.nets.encoders.inception import folded, halves, kernels
from dicot.nets.encoders.inception.scratch import Scratch
from dicot.nets.encoders.inception.spectral import interleaved
from dicot.nets.encoders.padding import same_margins

LONGEST_SEGMENT = 64  # outputs; shorter segments overlap too much, longer ones make the transforms dear
LONGEST_DENSE = 12  # time steps up to which a dense map takes fewer products
HALVES = (torch.bfloat16, torch.float16)


class FilterBank(Protocol):
    """A convolution prepared for cases of one length."""

    @property
    def bias(self) -> Tensor | None:
        """Return the bias (O,) that the caller still has to add, if any."""

    def __call__(self, v: Tensor, scratch: Scratch, largest: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Convolve (T, B, C) -> (T, B, O), in memory of `scratch`, and say what to multiply cases by (B,), or None.

        largest (B,) may say what the largest absolute values of the cases are.
        """


def filter_bank(taps: Tensor, bias: Tensor, n_times: int, like: Tensor) -> FilterBank:
    """Prepare a convolution for cases of n_times in the type of `like`; taps (n, C, O) and bias (O,) are float64."""
    if like.dtype in HALVES:
        return Direct(taps, bias, n_times, like)
    if halves.serve(like, n_times) and kernels.serve(like, *taps.shape[1:]):
        return Halved(taps, bias, n_times, like)
    return (Dense if n_times <= LONGEST_DENSE else Spectral)(taps, bias, n_times, like)


class Direct:
    """Tap by tap, as one product per time step whose rows overlap in memory: a case's window is never copied.

    More arithmetic than the other forms and the least memory traffic: for half precisions, whose arithmetic is nearly
    free on a GPU and whose spectra would be too coarse.
    """

    def __init__(self, taps: Tensor, bias: Tensor, n_times: int, like: Tensor) -> None:
        self.n_taps, self.left = len(taps), same_margins(len(taps))[0]
        self.kernel = taps.flatten(0, 1).to(like).contiguous()  # ((n, C), O)
        self.bias = bias.to(like)

    def __call__(self, v: Tensor, scratch: Scratch, largest: Tensor | None = None) -> tuple[Tensor, None]:
        n_times, n_cases, width = v.shape
        padded = scratch.take("padded", n_cases, n_times + self.n_taps - 1, width)
        by_case, first, stop = v.transpose(0, 1), self.left, self.left + n_times
        padded[:, :first], padded[:, first:stop], padded[:, stop:] = by_case[:, :1], by_case, by_case[:, -1:]
        y = scratch.take("convolved", n_times, n_cases, len(self.bias))
        return torch.bmm(_windows(padded, self.n_taps), self.kernel.expand(n_times, -1, -1), out=y), None


class Halved:
    """Tap by tap in float32 by matrix units that multiply halves (see `halves`).

    The small products come first: the units cut off what is below the last bit of a sum, so the fewer terms follow a
    large one, the better.
    """

    def __init__(self, taps: Tensor, bias: Tensor, n_times: int, like: Tensor) -> None:
        self.n_taps, self.left = len(taps), same_margins(len(taps))[0]
        whole, rest, self.unit = halves.in_parts(taps)
        self.small, self.large = torch.cat([rest, whole], dim=1).flatten(0, 1), whole.flatten(0, 1)
        self.bias = bias.to(like)

    def __call__(self, v: Tensor, scratch: Scratch, largest: Tensor | None = None) -> tuple[Tensor, Tensor]:
        n_times, n_cases, width = v.shape
        room = n_cases, n_times + self.n_taps - 1
        both = scratch.take("both", *room, 2 * width, dtype=torch.float16)
        whole = scratch.take("whole", *room, width, dtype=torch.float16)
        factors = scratch.take("factors", n_cases)
        largest = halves.largest_of_cases(v) if largest is None else largest
        halves.split_into(v, largest, self.unit, both, whole, factors, left=self.left)
        y = scratch.take("convolved", n_times, n_cases, len(self.bias))
        small, large = (kernel.expand(n_times, -1, -1) for kernel in (self.small, self.large))
        halves.multiply_into(y, _windows(both, self.n_taps), small)
        halves.multiply_into(y, _windows(whole, self.n_taps), large, add=True)
        return y, factors


def _windows(padded: Tensor, n_taps: int) -> Tensor:
    """View (B, T + n - 1, C) as the n time steps that each output reads, (T, B, n C); they overlap in memory."""
    n_cases, n_padded, width = padded.shape
    return padded.as_strided((n_padded - n_taps + 1, n_cases, n_taps * width), (width, padded.stride(0), 1))


class Dense:
    """Every time step from every other one: the cheapest form for very short cases (see `folded`)."""

    def __init__(self, taps: Tensor, bias: Tensor, n_times: int, like: Tensor) -> None:
        n_taps, width, n_out = taps.shape
        fold = folded.folding(n_times, n_taps, same_margins(n_taps)[0], taps.dtype, taps.device)
        dense = fold @ taps.view(n_taps, -1)
        self.dense = dense.view(n_times, n_times * width, n_out).to(like)  # (t, (s, C), O)
        self.bias = bias.to(like)

    def __call__(self, v: Tensor, scratch: Scratch, largest: Tensor | None = None) -> tuple[Tensor, None]:
        n_times, n_cases, _ = v.shape
        rows = v.transpose(0, 1).reshape(n_cases, -1).expand(n_times, -1, -1)  # (B, (s, C)) for each t
        y = scratch.take("convolved", n_times, n_cases, len(self.bias))
        return torch.bmm(rows, self.dense, out=y), None


class Segment(NamedTuple):
    reads: slice
    analysis: Tensor  # (4 f, time steps read)
    writes: slice


class Spectral:
    """By the convolution theorem. Real and imaginary parts are rows of their own; f frequencies, period P."""

    bias = None  # is added at frequency 0

    def __init__(self, taps: Tensor, bias: Tensor, n_times: int, like: Tensor) -> None:
        n_taps, width, n_out = taps.shape
        n_outputs = math.ceil(n_times / math.ceil(n_times / LONGEST_SEGMENT))
        period = n_outputs + n_taps - 1
        step = torch.arange(period, device=taps.device)
        turns = step[: period // 2 + 1].unsqueeze(1) * step % period
        angle = turns.double() * (2 * math.pi / period)
        real, imag = angle.cos(), -angle.sin()  # of exp(-i angle), (f, P)
        # Correlation: Y = V conj(W), so (Re, Im) Y = (Re, Im) V * Re W + (Im, -Re) V * Im W
        analysis = torch.cat([interleaved(real, imag), interleaved(imag, -real)])
        self.segments = _segments(analysis, n_times, n_outputs, same_margins(n_taps)[0], like)
        mirrored = torch.full_like(real[:, :1], 2)  # a frequency and its mirror image
        mirrored[0] = 1
        if period % 2 == 0:
            mirrored[-1] = 1
        synthesis = interleaved(mirrored * real, mirrored * imag)[:, :n_outputs].T / period  # (S, 2 f)
        self.synthesis = synthesis.to(like).contiguous()
        spectra = torch.cat([real, imag])[:, :n_taps] @ taps.view(n_taps, -1)
        # Real parts over imaginary ones, so that one product takes both: many small products cost by their number.
        self.spectra = torch.cat([*spectra.view(2, len(real), width, n_out)], dim=1).to(like)  # (f, (2, C), O)
        self.constant = (bias * period).to(like)  # one row there is every time step

    def __call__(self, v: Tensor, scratch: Scratch, largest: Tensor | None = None) -> tuple[Tensor, None]:
        n_times, n_cases, _ = v.shape
        n_segments, width, (n_freq, _, n_out) = len(self.segments), v.shape[2], self.spectra.shape
        rows = v.flatten(1)
        parts = scratch.take("spectrum", 4 * n_freq, n_segments, n_cases * width)
        for number, segment in enumerate(self.segments):
            torch.mm(segment.analysis, rows[segment.reads], out=parts[:, number])
        n_rows = 2 * n_segments * n_cases
        spectrum = scratch.take("side by side", n_freq, n_rows, 2 * width)
        torch.cat([*parts.view(2, n_freq, n_rows, width)], dim=2, out=spectrum)
        product = torch.bmm(spectrum, self.spectra, out=scratch.take("product", n_freq, n_rows, n_out))
        product[0, : n_segments * n_cases] += self.constant
        parts = product.view(2 * n_freq, n_segments, -1)
        y = scratch.take("convolved", n_times, n_cases * n_out)
        for number, segment in enumerate(self.segments):
            to = y[segment.writes]
            torch.mm(self.synthesis[: len(to)], parts[:, number], out=to)
        return y.view(n_times, n_cases, n_out), None


def _segments(analysis: Tensor, n_times: int, n_outputs: int, left: int, like: Tensor) -> list[Segment]:
    """Cut the outputs into runs of n_outputs. Columns that read beyond the case are added to those of its ends."""
    period = analysis.shape[1]
    inner = analysis.to(like)
    segments = []
    for start in range(0, n_times, n_outputs):
        first, stop = start - left, start - left + period
        before, after = max(-first, 0), max(stop - n_times, 0)
        matrix = inner
        if before or after:
            cut = analysis[:, before : period - after].clone()
            cut[:, 0] += analysis[:, :before].sum(dim=1)
            cut[:, -1] += analysis[:, period - after :].sum(dim=1)
            matrix = cut.to(like)
        reads, writes = slice(first + before, stop - after), slice(start, min(start + n_outputs, n_times))
        segments.append(Segment(reads, matrix, writes))
    return segments
