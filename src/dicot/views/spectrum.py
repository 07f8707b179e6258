"""The magnitude spectrum of a case, and a distorted copy of it (TF-C)."""

import torch
from torch import Tensor

AMPLITUDE = 0.1  # what is added to a bin is at most this share of the maximum


def magnitude_spectrum(x: Tensor) -> Tensor:
    """|FFT| along time of x (B, C, T), two-sided and unnormalised: (B, C, T)."""
    coefficients: Tensor = torch.fft.fft(x, dim=-1)  # D-22
    return coefficients.abs()


def distort_spectrum(spectrum: Tensor, remove: float, add: float, *, per_sample: bool = False) -> Tensor:
    """The sum of two copies of a spectrum (B, C, T), one with bins removed and one with amplitudes added.

    Each bin is hit with probability `remove` or `add`; what is added is uniform up to a tenth of the largest bin of
    the batch, or with `per_sample` of the case itself. The sum, about twice the spectrum, is the authors' form.
    """
    removed = spectrum * (torch.rand_like(spectrum) >= remove)
    largest = spectrum.amax(dim=(1, 2), keepdim=True) if per_sample else spectrum.amax()
    hit = torch.rand_like(spectrum) < add
    return removed + spectrum + hit * torch.rand_like(spectrum) * (AMPLITUDE * largest)
