import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicot.nets.losses import adjacent_block


def slow(z: np.ndarray, tau: float, positive: str) -> float:
    """Eq. 1 with loops."""
    if positive == "both":
        return slow(z, tau, "previous") + slow(z, tau, "next")
    n_cases, k, _ = z.shape
    targets = [max(j - 1, 0) for j in range(k)]
    if positive == "next":
        targets = [min(j + 1, k - 1) for j in range(k)]
    if positive == "shuffled":
        order = torch.randperm(k, generator=torch.Generator().manual_seed(42))
        targets = torch.tensor(targets)[order].tolist()
    total = 0.0
    for case in z:
        for j in range(k):
            logits = [float(case[j] @ case[p]) / tau for p in range(k)]
            top = max(logits)
            total -= logits[targets[j]] - top - math.log(sum(math.exp(v - top) for v in logits))
    return total / (n_cases * k)


@pytest.mark.parametrize("positive", ["previous", "next", "both", "shuffled"])
@given(st.integers(1, 4), st.integers(1, 8), st.integers(0, 1000))
def test_matches_the_slow_form(positive, n_cases, k, seed):
    z = np.random.default_rng(seed).normal(size=(n_cases, k, 5))
    got = adjacent_block(torch.from_numpy(z), 0.5, positive).item()
    assert got == pytest.approx(slow(z, 0.5, positive), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 7])
@pytest.mark.parametrize(("positive", "times"), [("previous", 1), ("next", 1), ("both", 2), ("shuffled", 1)])
def test_equal_embeddings_give_log_k(k, positive, times):
    z = torch.full((3, k, 4), 0.3, dtype=torch.float64)
    assert adjacent_block(z, 0.07, positive).item() == pytest.approx(times * math.log(k), abs=1e-12)


def test_perfect_neighbours_give_no_loss_and_wrong_ones_a_large_one():
    # Block 1 points at block 0 far more than at itself; block 0 is its own target.
    z = torch.tensor([[[10.0, 0.0], [1.0, 0.0]]])
    assert adjacent_block(z, 0.1).item() == pytest.approx(0, abs=1e-6)
    assert adjacent_block(z, 0.1, "next").item() > 100
