import math

import numpy as np
import pytest
import torch

from dicot.methods.infots import pooled_contrast, segment_contrast


def cross_entropy(positive: float, negatives: list[float]) -> float:
    top = max([positive, *negatives])
    return math.log(sum(math.exp(v - top) for v in [positive, *negatives])) + top - positive


def slow_local(z: np.ndarray, k: int, start: int) -> float:
    """One case (T, F) with loops."""
    m = len(z) // k
    pooled = [z[start + i * m : start + (i + 1) * m].max(axis=0) for i in range(k)]
    total = 0.0
    for i in range(k):
        negatives = [j for j in range(k) if abs(i - j) >= 2]
        if i == 0:
            negatives.remove(2)
        if i == k - 1:
            negatives.remove(k - 3)
        assert len(negatives) == k - 3
        positive = i + 1 if i < k - 1 else k - 2
        total += cross_entropy(pooled[i] @ pooled[positive], [pooled[i] @ pooled[j] for j in negatives])
    return total / k


def slow_global(z1: np.ndarray, z2: np.ndarray) -> float:
    """(B, T, F) twice, with loops."""
    pooled = [z.max(axis=0) for z in (*z1, *z2)]
    n = len(pooled)
    total = 0.0
    for i in range(n):
        partner = (i + n // 2) % n
        negatives = [pooled[i] @ pooled[j] for j in range(n) if j not in (i, partner)]
        total += cross_entropy(pooled[i] @ pooled[partner], negatives)
    return total / n


@pytest.mark.parametrize(("n_cases", "n_times"), [(1, 4), (2, 1), (5, 9)])
def test_global_loss_matches_the_slow_form(n_cases, n_times):
    z1, z2 = np.random.default_rng(0).normal(size=(2, n_cases, n_times, 6))
    ours = pooled_contrast(*(torch.from_numpy(z).transpose(1, 2) for z in (z1, z2)))
    assert ours.item() == pytest.approx(slow_global(z1, z2), rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(("n_times", "k", "start"), [(8, 4, 0), (16, 8, 0), (23, 8, 7), (30, 5, 0), (45, 9, 0)])
def test_local_loss_matches_the_slow_form(n_times, k, start):
    z = np.random.default_rng(1).normal(size=(3, n_times, 4))
    ours = segment_contrast(torch.from_numpy(z).transpose(1, 2), k, start)
    assert ours.item() == pytest.approx(np.mean([slow_local(case, k, start) for case in z]), rel=1e-10)


def test_constant_features_give_the_log_of_the_candidates():
    z = torch.ones(3, 4, 20, dtype=torch.float64)
    assert pooled_contrast(z, z).item() == pytest.approx(math.log(5))
    assert segment_contrast(z, 8).item() == pytest.approx(math.log(6))
    assert segment_contrast(z, 4).item() == pytest.approx(math.log(2))
    assert pooled_contrast(z[:1], z[:1]).item() == 0
