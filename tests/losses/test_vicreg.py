"""Variance, invariance and covariance, against the formula and against values one can verify."""

import math

import pytest
import torch

from dicot.nets.losses.vicreg import SHIFT, vicreg


def slow(z1, z2, invariance, variance, covariance) -> float:
    n, width = z1.shape
    total = (
        invariance
        * sum((float(a) - float(b)) ** 2 for a, b in zip(z1.flatten(), z2.flatten(), strict=True))
        / n
        / width
    )
    for z in (z1, z2):
        columns = [[float(v) for v in column] for column in z.T]
        means = [sum(column) / n for column in columns]

        def cov(i, j, columns=columns, means=means):
            pairs = zip(columns[i], columns[j], strict=True)
            return sum((a - means[i]) * (b - means[j]) for a, b in pairs) / (n - 1)

        spread = sum(max(0.0, 1 - math.sqrt(cov(i, i) + SHIFT)) for i in range(width)) / width
        mixed = sum(cov(i, j) ** 2 for i in range(width) for j in range(width) if i != j) / width
        total += 0.5 * variance * spread + 0.5 * covariance * mixed
    return total


@pytest.mark.parametrize(("n_cases", "width"), [(2, 3), (9, 1), (6, 5)])
def test_matches_the_slow_form(n_cases, width):
    torch.manual_seed(0)
    z1, z2 = 0.7 * torch.randn(n_cases, width).double(), torch.randn(n_cases, width).double()
    for weights in ((25.0, 25.0, 1.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)):
        got = vicreg(z1, z2, invariance=weights[0], variance=weights[1], covariance=weights[2])
        assert got.item() == pytest.approx(slow(z1, z2, *weights), rel=1e-9, abs=1e-12)


def test_views_that_agree_and_spread_in_all_directions_cost_nothing():
    z = torch.tensor([[2.0, 2.0], [2.0, -2.0], [-2.0, 2.0], [-2.0, -2.0]])
    assert vicreg(z, z).item() == 0
    assert vicreg(torch.zeros(4, 2), torch.zeros(4, 2)).item() == pytest.approx(25 * (1 - math.sqrt(SHIFT)))


def test_a_constant_batch_has_a_finite_gradient():
    z = torch.zeros(4, 3, requires_grad=True)
    vicreg(z, torch.randn(4, 3)).backward()
    assert torch.isfinite(z.grad).all()


def test_half_precision_is_computed_in_float32():
    z1, z2 = torch.randn(6, 8), torch.randn(6, 8)
    plain = vicreg(z1, z2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(vicreg(z1, z2), plain)
    assert vicreg(z1.half(), z2.half()).dtype == torch.float32
