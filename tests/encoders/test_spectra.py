"""Products of spectra in C against complex ones in double precision, and a convolution by them."""

import pytest
import torch

from dicot.encoders.inception import spectra, spectral

compiled = pytest.mark.skipif(spectra.library() is None, reason="there is no C compiler here")


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
    dspectrum, dkernel = spectra.multiply_backward(dproduct, spectrum, kernel)
    for ours, wanted in [
        (spectra.multiply(spectrum, kernel), exact),
        (dspectrum, torch.stack([v.grad.real, v.grad.imag], dim=1)),
        (dkernel, torch.stack([w.grad.real, w.grad.imag])),
    ]:
        torch.testing.assert_close(ours.double(), wanted, rtol=1e-4, atol=1e-4)


@compiled
def test_the_number_of_threads_changes_no_bit():
    torch.manual_seed(0)
    spectrum, kernel = torch.randn(9, 2, 70, 32), torch.randn(2, 9, 32, 64)
    dproduct, n_threads = torch.randn(9, 2, 70, 64), torch.get_num_threads()
    results = []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            gradients = spectra.multiply_backward(dproduct, spectrum, kernel)
            results.append([spectra.multiply(spectrum, kernel), *gradients])
    finally:
        torch.set_num_threads(n_threads)
    for others in results[1:]:
        assert all(torch.equal(one, other) for one, other in zip(results[0], others, strict=True))


@compiled
@pytest.mark.parametrize("n_times", [30, 170])
def test_a_convolution_is_the_same_with_and_without_them(n_times, monkeypatch):
    """170 time steps are two segments."""
    torch.manual_seed(n_times)
    v, taps, dy = torch.randn(n_times, 3, 32), torch.randn(10, 32, 64), torch.randn(n_times, 3, 64)
    results = []
    for mkl in (False, True):
        monkeypatch.setattr(torch.backends.mkl, "is_available", lambda mkl=mkl: mkl)
        assert spectra.serve(v, 64) is not mkl
        y, saved = spectral.forward(v, taps, 4)
        results.append([y, *spectral.backward(dy, saved, 10, 4)])
    for ours, wanted in zip(*results, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-3)


def test_what_does_not_fit_goes_the_usual_way():
    v = torch.zeros(3, 2, 32)
    assert not spectra.serve(v.double(), 64) and not spectra.serve(v, 16) and not spectra.serve(v[..., :4], 64)
