import pytest
import torch

from dicot.methods.cost import distort, jitter, scale, shift


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_scale_and_shift_are_one_number_per_case_and_channel():
    x = torch.randn(4, 3, 10, dtype=torch.float64)
    for change in (scale(x, 0.5, 1.0) / x, shift(x, 0.5, 1.0) - x):
        torch.testing.assert_close(change, change[..., :1].expand_as(change))
        assert len(change[..., 0].unique()) == 12


def test_strengths():
    x = torch.ones(4000, 2, 5, dtype=torch.float64)
    scaled, shifted, jittered = (change(x, 0.3, 1.0) for change in (scale, shift, jitter))
    for out, correlated in ((scaled, True), (shifted, True), (jittered, False)):
        assert out.mean().item() == pytest.approx(1, abs=0.02)
        assert out.std().item() == pytest.approx(0.3, rel=0.05)
        assert torch.equal(out[..., 0], out[..., 1]) == correlated


@pytest.mark.parametrize("change", [scale, shift, jitter])
def test_each_case_draws_its_own_chance(change):
    x = torch.ones(4000, 2, 3)
    touched = (change(x, 0.5, 0.3) != x).any(dim=2)  # (B, C)
    assert torch.equal(touched[:, 0], touched[:, 1]), "a case is changed in all its channels or in none"
    assert touched.float().mean().item() == pytest.approx(0.3, abs=0.03)


def test_the_three_draws_are_independent():
    x = torch.ones(8000, 1, 4)
    out = distort(x)
    assert (out == x).all(dim=2).float().mean().item() == pytest.approx(0.125, abs=0.015)
    assert (out.var(dim=2) > 0.001).float().mean().item() == pytest.approx(0.5, abs=0.03)  # jittered
