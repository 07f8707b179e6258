import math

import pytest
import torch

from dicot.methods.simmtm import uncertainty_weighted


def test_by_hand():
    losses = [torch.tensor(3.0, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)]
    got = uncertainty_weighted(losses, torch.tensor([1.3, -0.7], dtype=torch.float64))
    want = 0.5 / 1.69 * 3 + math.log(1 + 1.69) + 0.5 / 0.49 * 0.5 + math.log(1 + 0.49)
    assert got.item() == pytest.approx(want, rel=1e-12)


def test_the_best_weight_balances_both_terms():
    """0 = -L / w^3 + 2 w / (1 + w^2), so 2 w^4 = L (1 + w^2): for L = 1, w = 1."""
    weight = torch.ones(1, dtype=torch.float64, requires_grad=True)
    uncertainty_weighted([torch.tensor(1.0, dtype=torch.float64)], weight).backward()
    assert weight.grad.item() == pytest.approx(0, abs=1e-12)
