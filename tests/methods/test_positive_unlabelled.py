import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicot.methods.tnc import positive_unlabelled, share_told_apart


def bce(logit: float, target: int) -> float:
    p = 1 / (1 + math.exp(-logit))
    return -math.log(p if target else 1 - p)


def slow(close: np.ndarray, distant: np.ndarray, w_pu: float) -> float:
    positive = sum(bce(d, 1) for d in close.flat) / close.size
    unlabelled = sum(w_pu * bce(d, 1) + (1 - w_pu) * bce(d, 0) for d in distant.flat) / distant.size
    return (positive + unlabelled) / 2


@given(st.integers(1, 4), st.integers(1, 6), st.floats(0, 1), st.integers(0, 1000))
def test_matches_the_slow_form(n_cases, m, w_pu, seed):
    close, distant = 3 * np.random.default_rng(seed).normal(size=(2, n_cases, m))
    got = positive_unlabelled(torch.from_numpy(close), torch.from_numpy(distant), w_pu).item()
    assert got == pytest.approx(slow(close, distant, w_pu), rel=1e-12)


@pytest.mark.parametrize("w_pu", [0.0, 0.05, 1.0])
def test_closed_forms(w_pu):
    zero = torch.zeros(2, 3, dtype=torch.float64)
    assert positive_unlabelled(zero, zero, w_pu).item() == pytest.approx(math.log(2), rel=1e-14)
    # Perfectly sure and right: what is left is the weight of the distant windows that might be neighbours.
    assert positive_unlabelled(zero + 800, zero - 800, w_pu).item() == pytest.approx(800 * w_pu / 2)


def test_the_best_logit_of_a_distant_pair_is_the_log_odds_of_the_weight():
    w_pu = 0.2
    distant = torch.full((1, 4), math.log(w_pu / (1 - w_pu)), dtype=torch.float64, requires_grad=True)
    positive_unlabelled(torch.zeros_like(distant), distant, w_pu).backward()
    assert distant.grad.abs().max().item() < 1e-15


def test_share_told_apart():
    close, distant = torch.tensor([[1.0, -1.0], [2.0, 3.0]]), torch.tensor([[-1.0, 1.0], [2.0, 3.0]])
    assert share_told_apart(close, distant).item() == (3 / 4 + 1 / 4) / 2
    assert share_told_apart(torch.zeros(2), torch.zeros(2)).item() == 0, "undecided is on neither side"
