"""Two views must find each other."""

import math

import pytest
import torch

from dicot.nets.losses import view_contrast


def slow(z1, z2, temperature) -> float:
    """One row after the other, by the formula."""

    def cosine(a, b):
        return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))

    total = 0.0
    for here, there in ((z1, z2), (z2, z1)):
        for i, own in enumerate(here):
            candidates = [cosine(own, other) for other in there]
            chances = [math.exp(value / temperature) for value in candidates]
            total -= math.log(chances[i] / sum(chances))
    return total / (2 * len(z1))


def vectors(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("n_cases", [2, 7])
def test_matches_the_slow_form(n_cases):
    torch.manual_seed(0)
    z1, z2 = 3 * vectors(n_cases, 5), vectors(n_cases, 5)
    assert view_contrast(z1, z2, 0.2).item() == pytest.approx(slow(z1, z2, 0.2), rel=1e-10)


def test_values_one_can_verify():
    far = torch.eye(4, dtype=torch.float64)
    assert view_contrast(far, far, 0.2).item() == pytest.approx(math.log(1 + 3 * math.exp(-5)))
    same = torch.ones(4, 3, dtype=torch.float64)
    assert view_contrast(same, same, 0.2).item() == pytest.approx(math.log(4))
