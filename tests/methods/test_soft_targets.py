import math

import numpy as np
import pytest
import torch

from dicot.nets.hierarchy import contrast, hierarchical_contrast, paired_contrast, soft_targets, time_lag_weights

CPU = torch.device("cpu")


def slow_soft(view1: np.ndarray, view2: np.ndarray, weights: np.ndarray) -> float:
    """(n, F) twice: every candidate j of anchor i counts with weights[i, j]."""
    n, everything = len(view1), [*view1, *view2]
    total = 0.0
    for row in range(2 * n):
        scores = {j: float(everything[row] @ everything[j]) for j in range(2 * n) if j != row}
        log_sum = math.log(sum(math.exp(s) for s in scores.values()))
        total -= sum(weights[row % n, j % n] * (score - log_sum) for j, score in scores.items())
    return total / (2 * n)


def slow_lags(n: int, tau: float) -> np.ndarray:
    v = np.array([[2 / (1 + math.exp(min(abs(s - t) * tau, 700))) for s in range(n)] for t in range(n)])
    v[v < 1e-6] = 0
    return v


def slow_hierarchy(z1, z2, weights, tau_temp, lambda_, unit) -> float:
    total, depth = 0.0, 0
    while True:
        n_cases, _, n_times = z1.shape
        lags = slow_lags(n_times, tau_temp * 2**depth) if tau_temp else np.eye(n_times)
        total += lambda_ * np.mean([slow_soft(z1[:, :, t], z2[:, :, t], weights) for t in range(n_times)])
        if n_times > 1 and depth >= unit:
            total += (1 - lambda_) * np.mean([slow_soft(z1[b].T, z2[b].T, lags) for b in range(n_cases)])
        depth += 1
        if n_times == 1:
            return total / depth
        even = n_times // 2 * 2
        z1, z2 = (np.maximum(z[..., 0:even:2], z[..., 1:even:2]) for z in (z1, z2))


def draw(*shape: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    weights = rng.uniform(0, 0.5, size=(shape[0], shape[0]))
    np.fill_diagonal(weights, 1)
    return rng.normal(size=shape), rng.normal(size=shape), weights


@pytest.mark.parametrize("shape", [(3, 4, 7), (4, 5, 8), (1, 3, 5), (2, 3, 2), (3, 4, 1)])
@pytest.mark.parametrize(("tau_temp", "lambda_", "unit"), [(1.0, 0.5, 0), (2.5, 0.3, 1), (0.0, 0.5, 0)])
def test_matches_the_slow_form(shape, tau_temp, lambda_, unit):
    z1, z2, weights = draw(*shape)
    for given, slow in ((torch.from_numpy(weights), weights), (None, np.eye(shape[0]))):
        views, settings = (torch.from_numpy(z1), torch.from_numpy(z2)), {"tau_temp": tau_temp, "temporal_unit": unit}
        ours = hierarchical_contrast(*views, case_weights=given, alpha=lambda_, **settings)
        assert ours.item() == pytest.approx(slow_hierarchy(z1, z2, slow, tau_temp, lambda_, unit), abs=1e-12)


def test_the_identity_is_the_hard_loss():
    z1, z2 = (torch.from_numpy(z) for z in draw(4, 6, 5)[:2])
    torch.testing.assert_close(contrast(z1, z2, soft_targets(torch.eye(6))), paired_contrast(z1, z2))
    soft = hierarchical_contrast(z1, z2, case_weights=torch.eye(4), tau_temp=1e9)  # every lag but 0 weighs nothing
    torch.testing.assert_close(soft, hierarchical_contrast(z1, z2))


@pytest.mark.parametrize(("n_times", "tau"), [(1, 1.0), (6, 0.1), (40, 1.0), (30, 1000.0)])
def test_time_lag_weights(n_times, tau):
    ours = time_lag_weights(n_times, tau, torch.float64, CPU)
    np.testing.assert_allclose(ours, slow_lags(n_times, tau), rtol=1e-12)
    assert torch.equal(ours.diagonal(), torch.ones(n_times, dtype=torch.float64))
