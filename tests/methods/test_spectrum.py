import cmath
import math

import numpy as np
import pytest
import torch
from tests.losses.test_hierarchy import slow_contrast

from dicot.methods.cost import frequency_contrast, spectrum
from dicot.methods.tfc import distort_spectrum, magnitude_spectrum


@pytest.mark.parametrize("n_times", [1, 2, 7, 12])
def test_spectrum_is_the_transform_along_time_of_each_channel(n_times):
    x = torch.randn(2, 3, n_times, dtype=torch.float64)
    got = magnitude_spectrum(x)
    for b in range(2):
        for c in range(3):
            for f in range(n_times):
                terms = (x[b, c, t].item() * cmath.exp(-2j * math.pi * f * t / n_times) for t in range(n_times))
                assert got[b, c, f].item() == pytest.approx(abs(sum(terms)), abs=1e-12)


def test_a_tenth_of_the_bins_is_removed_and_another_raised():
    torch.manual_seed(0)
    spectrum = torch.ones(20, 2, 1000, dtype=torch.float64)
    removed = distort_spectrum(spectrum, 0.1, 0)
    assert (removed == 1).double().mean().item() == pytest.approx(0.1, abs=0.01)
    added = distort_spectrum(spectrum, 0, 0.1) - 2 * spectrum
    hit = added[added > 0]
    assert len(hit) / added.numel() == pytest.approx(0.1, abs=0.01)
    assert hit.max() <= 0.1 and hit.mean().item() == pytest.approx(0.05, abs=0.002)
    assert added.dtype == torch.float64


def test_the_maximum_is_that_of_the_batch_or_of_the_case():
    torch.manual_seed(0)
    spectrum = torch.ones(2, 1, 5000)
    spectrum[1] *= 1000
    spectrum[:, :, 0] *= 2
    most = (distort_spectrum(spectrum, 0, 1) - 2 * spectrum).amax(dim=(1, 2))
    assert most.tolist() == pytest.approx([200, 200], rel=0.02)
    own = (distort_spectrum(spectrum, 0, 1, per_sample=True) - 2 * spectrum).amax(dim=(1, 2))
    assert own.tolist() == pytest.approx([0.2, 200], rel=0.02)


def slow_spectrum(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(B, D, T), the transform as a sum over time steps."""
    n_cases, n_features, n_times = s.shape
    shape = (n_cases, n_times // 2 + 1, n_features)
    amplitude, phase = np.empty(shape), np.empty(shape)
    scaled = s / np.linalg.norm(s, axis=1, keepdims=True)
    for b, f, d in np.ndindex(*shape):
        c = sum(scaled[b, d, t] * cmath.exp(-2j * math.pi * f * t / n_times) for t in range(n_times))
        imag = 0.0 if f in (0, n_times / 2) else c.imag  # exactly real; rounding would turn pi into -pi
        amplitude[b, f, d] = math.hypot(c.real + 1e-6, imag + 1e-6)
        phase[b, f, d] = math.atan2(imag, c.real + 1e-6)
    return amplitude, phase


@pytest.mark.parametrize("n_times", [1, 2, 7, 10])
def test_spectrum_and_losses_match_the_slow_form(n_times):
    views = np.random.default_rng(n_times).normal(size=(2, 3, 4, n_times))
    slow = [slow_spectrum(view) for view in views]
    tensors = [torch.from_numpy(view) for view in views]
    for tensor, expected in zip(tensors, slow, strict=True):
        for got, want in zip(spectrum(tensor), expected, strict=True):
            np.testing.assert_allclose(got.numpy(), want, atol=1e-9)
    for part, loss in enumerate(frequency_contrast(*tensors)):
        first, second = slow[0][part], slow[1][part]
        expected = np.mean(
            [slow_contrast(first[:, f], second[:, f], np.eye(len(first))) for f in range(first.shape[1])]
        )
        assert loss.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_case_has_finite_gradients(value):
    s = torch.full((2, 4, 8), value, requires_grad=True)
    amplitude, phase = frequency_contrast(s, s)
    (amplitude + phase).backward()
    assert torch.isfinite(s.grad).all()
    if value == 0:
        assert not spectrum(s)[1].any()  # atan2(0, 1e-6)
