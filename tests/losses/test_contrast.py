import math

import numpy as np
import pytest
import torch

from dicot.losses.contrast import instance_contrast, other_log_probabilities, temporal_contrast


def slow_pair(group1: np.ndarray, group2: np.ndarray) -> float:
    """Both directions for one group, with loops."""
    everything = [*group1, *group2]
    n = len(group1)
    total = 0.0
    for row in range(2 * n):
        others = [j for j in range(2 * n) if j != row]
        logits = {j: float(everything[row] @ everything[j]) for j in others}
        top = max(logits.values())
        log_sum = top + math.log(sum(math.exp(v - top) for v in logits.values()))
        total -= logits[(row + n) % (2 * n)] - log_sum
    return total / (2 * n)


@pytest.mark.parametrize(("n_cases", "n_times"), [(1, 5), (3, 1), (2, 2), (4, 7)])
def test_both_losses_match_the_slow_form(n_cases, n_times):
    z1, z2 = np.random.default_rng(0).normal(size=(2, n_cases, n_times, 6))
    temporal = np.mean([slow_pair(a, b) for a, b in zip(z1, z2, strict=True)]) if n_times > 1 else 0
    instance = np.mean([slow_pair(z1[:, t], z2[:, t]) for t in range(n_times)]) if n_cases > 1 else 0
    a, b = torch.from_numpy(z1), torch.from_numpy(z2)
    assert temporal_contrast(a, b).item() == pytest.approx(temporal, rel=1e-10)
    assert instance_contrast(a, b).item() == pytest.approx(instance, rel=1e-10)


def test_equal_vectors_give_the_log_of_the_others():
    z = torch.ones(2, 3, 4, dtype=torch.float64)
    assert temporal_contrast(z, z).item() == pytest.approx(math.log(5))
    assert instance_contrast(z, z).item() == pytest.approx(math.log(3))


def test_a_row_leaves_itself_out_and_keeps_the_order():
    z1, z2 = torch.randn(1, 2, 3), torch.randn(1, 2, 3)
    everything = torch.cat([z1[0], z2[0]])
    row = other_log_probabilities(z1, z2)[0, 2]
    torch.testing.assert_close(row, (everything[[0, 1, 3]] @ everything[2]).log_softmax(0))


def test_a_single_candidate_gives_zero_with_a_gradient():
    z = torch.randn(1, 1, 4, requires_grad=True)
    temporal_contrast(z, z).backward()
    assert torch.equal(z.grad, torch.zeros_like(z))
