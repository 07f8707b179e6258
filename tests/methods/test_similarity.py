import numpy as np
import pytest
import torch

from dicot.methods import soft as module
from dicot.methods.soft import CaseSimilarity


def slow_similarity(x: np.ndarray) -> np.ndarray:
    """The rule on the full matrix, as it is written."""
    flat, n = x.reshape(len(x), -1), len(x)
    norms = np.linalg.norm(flat, axis=1)
    cosine = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if norms[i] > 0 and norms[j] > 0:
                cosine[i, j] = flat[i] @ flat[j] / (norms[i] * norms[j])
    distance = -cosine
    np.fill_diagonal(distance, min(distance[i, j] for i in range(n) for j in range(n) if i != j))
    low, high = distance.min(axis=0), distance.max(axis=0)
    span = np.where(high - low > 1e-14, high - low, np.inf)
    return 1 - (distance - low) / span


def cases(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 2, 7))


def fitted(x: np.ndarray) -> CaseSimilarity:
    similarity = CaseSimilarity()
    similarity.fit(x)
    return similarity


@pytest.mark.parametrize("n_cases", [2, 3, 11])
@pytest.mark.parametrize("block", [1, 4, 2048])
def test_slices_are_those_of_the_full_matrix(n_cases, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    x = cases(n_cases)
    x[0] = 0  # cosine undefined, taken as 0
    full = slow_similarity(x)
    similarity = fitted(x)
    for index in (np.arange(n_cases), np.arange(n_cases)[::-2].copy(), np.array([n_cases - 1])):
        ours = similarity(torch.from_numpy(x[index]), torch.from_numpy(index))
        np.testing.assert_allclose(ours, full[np.ix_(index, index)], atol=1e-13)
        assert torch.equal(ours.diagonal(), torch.ones(len(index), dtype=torch.float64))


def test_large_sets_are_estimated_with_a_warning(monkeypatch):
    x = cases(60)
    exact = fitted(x)
    monkeypatch.setattr(module, "EXACT_UP_TO", 50)
    monkeypatch.setattr(module, "SAMPLED_CASES", 20)
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="60 cases is estimated from 20 random ones .exact up to 50 cases"):
        estimate = fitted(x)
    assert (estimate.farthest <= exact.farthest).all() and estimate.closest >= exact.closest
    assert (estimate.farthest == exact.farthest).any()
    index = torch.arange(60)
    ours = estimate(torch.from_numpy(x), index)
    assert ours.min() >= 0 and ours.max() <= 1, "outside the estimated range it is clamped"
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="estimated"):
        again = fitted(x)
    assert torch.equal(again.farthest, estimate.farthest)
