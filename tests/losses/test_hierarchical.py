import math

import numpy as np
import pytest
import torch

from dicot.nets import hierarchy as chunking
from dicot.nets.hierarchy import hierarchical_contrast


def slow_pair(view1: np.ndarray, view2: np.ndarray) -> float:
    """(n, F) twice: each vector finds itself in the other view among the 2n - 1 others."""
    n, everything = len(view1), [*view1, *view2]
    if n == 1:
        return 0.0
    total = 0.0
    for row in range(2 * n):
        scores = {j: float(everything[row] @ everything[j]) for j in range(2 * n) if j != row}
        top = max(scores.values())
        total -= scores[(row + n) % (2 * n)] - top - math.log(sum(math.exp(s - top) for s in scores.values()))
    return total / (2 * n)


def slow_hierarchy(z1: np.ndarray, z2: np.ndarray, alpha: float, unit: int) -> float:
    """(B, F, T) twice, level by level with loops."""
    total, depth = 0.0, 0
    while True:
        n_cases, _, n_times = z1.shape
        total += alpha * np.mean([slow_pair(z1[:, :, t], z2[:, :, t]) for t in range(n_times)])
        if n_times > 1 and depth >= unit:
            total += (1 - alpha) * np.mean([slow_pair(z1[b].T, z2[b].T) for b in range(n_cases)])
        depth += 1
        if n_times == 1:
            return total / depth
        pooled = [[np.maximum(z[..., 2 * t], z[..., 2 * t + 1]) for t in range(n_times // 2)] for z in (z1, z2)]
        z1, z2 = (np.stack(steps, axis=-1) for steps in pooled)


def views(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(2, *shape)))
    return z[0].clone().requires_grad_(), z[1].clone().requires_grad_()


@pytest.mark.parametrize("shape", [(3, 5, 13), (4, 6, 8), (1, 4, 9), (2, 3, 2), (5, 3, 1)])
@pytest.mark.parametrize(("alpha", "unit"), [(0.5, 0), (0.25, 1), (0.0, 0), (1.0, 0), (0.7, 5)])
def test_matches_the_slow_form(shape, alpha, unit):
    z1, z2 = views(*shape)
    loss = hierarchical_contrast(z1, z2, alpha=alpha, temporal_unit=unit)
    assert loss.item() == pytest.approx(slow_hierarchy(z1.detach().numpy(), z2.detach().numpy(), alpha, unit))
    loss.backward()
    assert z1.grad is not None and torch.isfinite(z1.grad).all()


def test_equal_vectors_give_logarithms():
    z = torch.ones(3, 4, 4, dtype=torch.float64)
    instance, temporal = math.log(5), [math.log(7), math.log(3)]  # 2B - 1 and 2T - 1 candidates
    expected = (0.5 * 3 * instance + 0.5 * sum(temporal)) / 3
    assert hierarchical_contrast(z, z).item() == pytest.approx(expected)


@pytest.mark.parametrize("limit", [1, 150, 2 * 26**2, 10**9])
def test_chunks_do_not_change_loss_or_gradient(limit, monkeypatch):
    results = []
    for allowed in (10**9, limit):
        monkeypatch.setattr(chunking, "LIMIT", allowed)
        z1, z2 = views(5, 4, 13)
        loss = hierarchical_contrast(z1, z2)
        loss.backward()
        results.append((loss.detach(), z1.grad, z2.grad))
    for whole, chunked in zip(*results, strict=True):
        torch.testing.assert_close(chunked, whole, rtol=1e-12, atol=1e-14)
