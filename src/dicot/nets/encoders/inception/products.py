"""Matrix products of a training step in C (products.c), where PyTorch has no library that is fast at small ones.

A convolution of short cases has dozens of frequencies, each with a product of small matrices. MKL takes them all in one
call. Without it, as on ARM, PyTorch hands them one by one to a library that is made for large ones. It takes up to ten
times as long as the arithmetic does, and its threads wait for each other; here each thread has its own part.
"""

import torch
from torch import Tensor

from dicot.core.machine_code import CFile

C = CFile("dicot.nets.encoders.inception", "products.c")
COLUMNS = 32  # widths are multiples of it: whole tiles in products.c on any processor


def serve(like: Tensor, *widths: int) -> bool:
    """Say whether to multiply matrices of this kind, whose results have these numbers of columns, here."""
    fit = like.device.type == "cpu" and like.dtype == torch.float32 and not any(width % COLUMNS for width in widths)
    return fit and not torch.backends.mkl.is_available() and C.library is not None  # type: ignore[no-untyped-call]


def _serve_threads(like: Tensor, width: int) -> bool:
    return torch.get_num_threads() > 1 and serve(like, width)


def mm(a: Tensor, b: Tensor) -> Tensor:
    """Multiply (m, k) by (k, n)."""
    if not _serve_threads(a, b.shape[1]):
        return a @ b
    return _product(a[None], b[None], a.new_empty(1, len(a), b.shape[1]))[0]


def addmm(bias: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Multiply (m, k) by (k, n) and add bias (n,)."""
    if not _serve_threads(a, b.shape[1]):
        return torch.addmm(bias, a, b)
    return _product(a[None], b[None], a.new_empty(1, len(a), b.shape[1]), bias)[0]


def addmm_(c: Tensor, a: Tensor, b: Tensor) -> None:
    """Add the product of (m, k) and (k, n) to c."""
    if _serve_threads(a, b.shape[1]):
        _product(a[None], b[None], c[None], add=True)
    else:
        c.addmm_(a, b)


def bmm(a: Tensor, b: Tensor) -> Tensor:
    """Multiply each of (i, m, k) by each of (i, k, n)."""
    if not serve(a, b.shape[2]):
        return torch.bmm(a, b)
    return _product(a, b, a.new_empty(*a.shape[:2], b.shape[2]))


def summed_bmm(a: Tensor, b: Tensor) -> Tensor:
    """Multiply each of (i, m, k) by each of (i, k, n), and add them up -> (m, n)."""
    if not serve(a, b.shape[2]):
        return torch.bmm(a, b).sum(dim=0)
    return _product(a, b, a.new_empty(1, a.shape[1], b.shape[2]))[0]


def _product(a: Tensor, b: Tensor, c: Tensor, bias: Tensor | None = None, add: bool = False) -> Tensor:
    """Multiply items; where c has one for several, they are added up."""
    (n_items, m, depth), n = a.shape, b.shape[2]
    a, b = _readable(a), _readable(b)
    c_item = m * n if len(c) == n_items else 0
    C.call("product", *_strided(a), *_strided(b), bias, add, c, c_item, n_items, m, n, depth)
    return c


def _readable(items: Tensor) -> Tensor:
    """Copy matrices of which neither rows nor columns lie in one piece, as one column of several does."""
    return items if 1 in items.stride()[1:] else items.contiguous()


def _strided(items: Tensor) -> tuple[int, int, int, int]:
    item, row, column = items.stride()
    return items.data_ptr(), row, column, item


def multiply(spectrum: Tensor, kernel: Tensor) -> Tensor:
    """Multiply (f, 2, n, C) by the conjugate of kernel (2, f, C, O) -> (f, 2, n, O); 2 is real and imaginary part."""
    n_freq, _, n_rows, width = spectrum.shape
    product = spectrum.new_empty(n_freq, 2, n_rows, kernel.shape[-1])
    C.call("multiply", spectrum, kernel, product, n_freq, n_rows, width, kernel.shape[-1])
    return product


def multiply_backward(dproduct: Tensor, spectrum: Tensor, kernel: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of both."""
    dspectrum, dkernel = torch.empty_like(spectrum), torch.empty_like(kernel)
    sizes = len(spectrum), *spectrum.shape[2:], kernel.shape[-1]
    C.call("multiply_backward", dproduct, spectrum, kernel, dspectrum, dkernel, *sizes)
    return dspectrum, dkernel
