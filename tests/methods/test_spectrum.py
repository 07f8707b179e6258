import cmath
import math

import pytest
import torch

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


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_case_has_finite_gradients(value):
    s = torch.full((2, 4, 8), value, requires_grad=True)
    amplitude, phase = frequency_contrast(s, s)
    (amplitude + phase).backward()
    assert torch.isfinite(s.grad).all()
    if value == 0:
        assert not spectrum(s)[1].any()  # atan2(0, 1e-6)
