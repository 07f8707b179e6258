"""The hierarchy of contrasts, hard and graded, whole and padded; tests/golden has the authors' values."""

import math

import numpy as np
import pytest
import torch

from dicot.nets import hierarchy
from dicot.nets.hierarchy import contrast, hierarchical_contrast, paired_contrast, soft_targets


def views(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(2, *shape)))
    return z[0].clone().requires_grad_(), z[1].clone().requires_grad_()


@pytest.mark.parametrize(("alpha", "unit"), [(0.5, 0), (0.3, 1), (0.0, 0), (1.0, 0), (0.5, 4)])
@pytest.mark.parametrize("n_times", [1, 2, 8, 13])
@pytest.mark.parametrize("n_cases", [1, 4])
def test_with_a_length_it_is_the_loss_of_what_is_cut(n_cases, n_times, alpha, unit):
    """Whatever lies behind the end, its size included; it gets no gradient."""
    for length in range(1, n_times + 1):
        z1, z2 = views(n_cases, 3, n_times)
        for z in (z1, z2):
            z.data[..., length:] *= 1e4
        settings = {"alpha": alpha, "temporal_unit": unit}
        padded = hierarchical_contrast(z1, z2, **settings, length=torch.tensor(length))
        dpadded = torch.autograd.grad(padded, (z1, z2))
        cut = hierarchical_contrast(z1[..., :length], z2[..., :length], **settings)
        dcut = torch.autograd.grad(cut, (z1, z2))
        torch.testing.assert_close(padded, cut, rtol=1e-12, atol=1e-12)
        for mine, expected in zip(dpadded, dcut, strict=True):
            torch.testing.assert_close(mine, expected, rtol=1e-12, atol=1e-12)
            assert (mine[..., length:] == 0).all()


def test_equal_vectors_give_logarithms():
    z = torch.ones(3, 4, 4, dtype=torch.float64)
    instance, temporal = math.log(5), [math.log(7), math.log(3)]  # 2B - 1 and 2T - 1 candidates
    expected = (0.5 * 3 * instance + 0.5 * sum(temporal)) / 3
    assert hierarchical_contrast(z, z).item() == pytest.approx(expected)


@pytest.mark.parametrize("limit", [1, 150, 2 * 26**2, 10**9])
def test_chunks_do_not_change_loss_or_gradient(limit, monkeypatch):
    results = []
    for allowed in (10**9, limit):
        monkeypatch.setattr(hierarchy, "LIMIT", allowed)
        z1, z2 = views(5, 4, 13)
        loss = hierarchical_contrast(z1, z2)
        loss.backward()
        results.append((loss.detach(), z1.grad, z2.grad))
    for whole, chunked in zip(*results, strict=True):
        torch.testing.assert_close(chunked, whole, rtol=1e-12, atol=1e-14)


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


def test_the_identity_is_the_hard_loss_and_a_single_candidate_gives_zero_with_a_gradient():
    z1, z2 = views(4, 6, 5)
    torch.testing.assert_close(contrast(z1, z2, soft_targets(torch.eye(6))), paired_contrast(z1, z2))
    z = torch.randn(1, 1, 4, requires_grad=True)
    paired_contrast(z, z).backward()
    assert torch.equal(z.grad, torch.zeros_like(z))
