"""Spectra multiplied frequency by frequency in C (spectra.c), where PyTorch has no fast way to do so.

A convolution of short cases has dozens of frequencies, each with a product of small matrices. MKL takes them all in one
call. Without it PyTorch hands them one by one to a library that is made for large ones, which takes up to ten times as
long as the arithmetic does.
"""

import ctypes
from functools import lru_cache

import torch
from torch import Tensor

from dicot.encoders.inception.compiled import address, compiled

COLUMNS = 32  # both widths are multiples of it: whole tiles in spectra.c on any processor


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """Load the compiled functions, or return None where they cannot be compiled."""
    return compiled("dicot.encoders.inception", "spectra.c")


def serve(v: Tensor, n_out: int) -> bool:
    """Say whether to multiply the spectra of v (..., C) with kernels (C, n_out) here."""
    fit = v.device.type == "cpu" and v.dtype == torch.float32 and v.shape[-1] % COLUMNS == n_out % COLUMNS == 0
    return fit and not torch.backends.mkl.is_available() and library() is not None


def multiply(spectrum: Tensor, kernel: Tensor) -> Tensor:
    """Multiply (f, 2, n, C) by the conjugate of kernel (2, f, C, O) -> (f, 2, n, O); 2 is real and imaginary part."""
    n_freq, _, n_rows, width = spectrum.shape
    product = spectrum.new_empty(n_freq, 2, n_rows, kernel.shape[-1])
    _call("multiply", [spectrum, kernel, product], n_freq, n_rows, width, kernel.shape[-1])
    return product


def multiply_backward(dproduct: Tensor, spectrum: Tensor, kernel: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of both."""
    dspectrum, dkernel = torch.empty_like(spectrum), torch.empty_like(kernel)
    n_freq, _, n_rows, width = spectrum.shape
    tensors = [dproduct, spectrum, kernel, dspectrum, dkernel]
    _call("multiply_backward", tensors, n_freq, n_rows, width, kernel.shape[-1])
    return dspectrum, dkernel


def _call(name: str, tensors: list[Tensor], *sizes: int) -> None:
    getattr(library(), name)(*map(address, tensors), *map(ctypes.c_long, sizes), torch.get_num_threads())
