import math

import numpy as np
import pytest
import torch

from dicot.nets.hierarchy import contrast, paired_contrast


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
    assert paired_contrast(a, b).item() == pytest.approx(temporal, rel=1e-10)
    assert paired_contrast(a.transpose(0, 1), b.transpose(0, 1)).item() == pytest.approx(instance, rel=1e-10)


def test_equal_vectors_give_the_log_of_the_others():
    z = torch.ones(2, 3, 4, dtype=torch.float64)
    assert paired_contrast(z, z).item() == pytest.approx(math.log(5))
    assert paired_contrast(z.transpose(0, 1), z.transpose(0, 1)).item() == pytest.approx(math.log(3))


def stepwise(z1: torch.Tensor, z2: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The same by autograd's own steps."""
    z = torch.cat([z1, z2], dim=1)
    own = torch.eye(z.shape[1], dtype=torch.bool)
    log_p = (z @ z.transpose(1, 2)).masked_fill(own, -torch.inf).log_softmax(-1)
    return -(log_p.masked_fill(own, 0) * targets).sum() / (len(z) * len(targets))


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])  # even, usual, and saturated
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 2, 3), (4, 1, 2)])
def test_loss_and_gradient_equal_the_steps_of_autograd(shape, scale):
    torch.manual_seed(0)
    z1, z2 = ((scale * torch.randn(shape, dtype=torch.float64)).requires_grad_() for _ in range(2))
    targets = torch.rand(2 * shape[1], 2 * shape[1], dtype=torch.float64).fill_diagonal_(0)
    losses = [way(z1, z2, targets) for way in (contrast, stepwise)]
    torch.testing.assert_close(*losses, rtol=1e-12, atol=1e-12)
    for ours, expected in zip(*(torch.autograd.grad(3 * loss, (z1, z2)) for loss in losses), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-10)


def test_no_denormal_number_enters_the_gradient(monkeypatch):
    """Next to a similarity of 100 one of 5 has the probability exp(-95), which float32 holds as a denormal number."""
    z = torch.tensor([[10.0, 0.0], [0.5, 9.9875]]).unsqueeze(0).requires_grad_()
    left = []
    product = torch.Tensor.__matmul__
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda a, b: left.append(a) or product(a, b))
    contrast(z, z, torch.eye(4).roll(2, 0)).backward()
    sizes = left[-1].abs()
    assert len(left) == 2 and sizes.shape == (1, 4, 4)
    assert not ((sizes > 0) & (sizes < torch.finfo(torch.float32).tiny)).any()


def test_a_single_candidate_gives_zero_with_a_gradient():
    z = torch.randn(1, 1, 4, requires_grad=True)
    paired_contrast(z, z).backward()
    assert torch.equal(z.grad, torch.zeros_like(z))
