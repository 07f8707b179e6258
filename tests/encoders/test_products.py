"""Matrix products in C against complex ones in double precision, and a convolution by them."""

import pytest
import torch

from dicot.nets.encoders import InceptionTime
from dicot.nets.encoders.inception import convolution as products

compiled = pytest.mark.skipif(products.C.library is None, reason="there is no C compiler here")


def complex_of(real_and_imag: torch.Tensor, axis: int) -> torch.Tensor:
    return torch.complex(*real_and_imag.double().unbind(axis)).requires_grad_()


@compiled
@pytest.mark.parametrize(("n_freq", "n_rows", "width", "n_out"), [(1, 1, 32, 32), (5, 3, 32, 64), (7, 150, 64, 32)])
def test_products_and_gradients_are_those_of_complex_numbers(n_freq, n_rows, width, n_out):
    torch.manual_seed(n_rows)
    spectrum, kernel = torch.randn(n_freq, 2, n_rows, width), torch.randn(2, n_freq, width, n_out)
    dproduct = torch.randn(n_freq, 2, n_rows, n_out)
    v, w = complex_of(spectrum, 1), complex_of(kernel, 0)
    exact = torch.bmm(v, w.conj())
    exact = torch.stack([exact.real, exact.imag], dim=1)
    exact.backward(dproduct.double())
    dspectrum, dkernel = products.multiply_backward(dproduct, spectrum, kernel)
    for ours, wanted in [
        (products.multiply(spectrum, kernel), exact),
        (dspectrum, torch.stack([v.grad.real, v.grad.imag], dim=1)),
        (dkernel, torch.stack([w.grad.real, w.grad.imag])),
    ]:
        torch.testing.assert_close(ours.double(), wanted, rtol=1e-4, atol=1e-4)


def strided(*shape: int, turned: bool) -> torch.Tensor:
    """Random matrices, of which the rows lie side by side in memory, or the columns."""
    return torch.randn(*shape[:-2], shape[-1], shape[-2]).mT if turned else torch.randn(*shape)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@compiled
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("m", "depth", "n"), [(1, 1, 32), (7, 300, 64), (70, 9, 32), (6, 513, 96)])
def test_matrix_products_are_those_in_double_precision(m, depth, n, turned, monkeypatch):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    monkeypatch.setattr(torch, "addmm", None)  # nor does PyTorch do the work
    monkeypatch.setattr(torch, "bmm", None)
    torch.manual_seed(m)
    a, b = strided(3, m, depth, turned=turned[0]), strided(3, depth, n, turned=turned[1])
    bias, c = torch.randn(n), torch.randn(m, n)
    each = a.double() @ b.double()
    wanted = [each[0], each[1] + bias, each[2] + c, each, each.sum(dim=0)]
    products.addmm_(c, a[2], b[2])
    ours = [products.mm(a[0], b[0]), products.mm(a[1], b[1], bias), c, products.bmm(a, b), products.summed_bmm(a, b)]
    ours.append(products.bmm(a[0].expand(3, -1, -1), b))  # items may share a side
    wanted.append(a[0].double() @ b.double())
    for one, other in zip(ours, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


@compiled
def test_the_number_of_threads_changes_no_bit(monkeypatch):
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    torch.manual_seed(0)
    spectrum, kernel = torch.randn(9, 2, 70, 32), torch.randn(2, 9, 32, 64)
    dproduct, n_threads = torch.randn(9, 2, 70, 64), torch.get_num_threads()
    results = []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            gradients = products.multiply_backward(dproduct, spectrum, kernel)
            batch = [products.bmm(dproduct[:, 0].mT, spectrum[:, 1]), products.summed_bmm(dproduct[:, 0], kernel[0].mT)]
            results.append([products.multiply(spectrum, kernel), *gradients, *batch])
    finally:
        torch.set_num_threads(n_threads)
    for others in results[1:]:
        assert all(torch.equal(one, other) for one, other in zip(results[0], others, strict=True))


@compiled
@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dim", [4, 32])
@pytest.mark.parametrize("n_times", [8, 60])
def test_an_encoder_of_any_width_is_the_same_with_and_without_them(n_times, dim, monkeypatch):
    """The single column of a branch of a narrow encoder lies in memory neither as a row nor as a column."""
    torch.manual_seed(n_times)
    x, dy = torch.randn(32, 2, n_times), torch.randn(32, dim, n_times)
    encoder = InceptionTime(2, dim)
    results = []
    for mkl in (False, True):
        monkeypatch.setattr(torch.backends.mkl, "is_available", lambda mkl=mkl: mkl)
        encoder.zero_grad()
        y = encoder(x)
        y.backward(dy)
        results.append([y.detach(), *(parameter.grad.clone() for parameter in encoder.parameters())])
    for ours, wanted in zip(*results, strict=True):
        # Rounding turns a few of the largest values and ReLUs; in front of a BatchNorm a bias has no gradient but that.
        assert (ours - wanted).norm() <= 0.05 * wanted.norm() + 0.01
