import math

import numpy as np
import pytest
import torch

from dicot.methods.catt import MAX_ENTRIES, adjacent_step

FORMS = ["two_sided", "next"]
ANY_FORM = pytest.mark.parametrize("form", FORMS)
MASKED_OR_NOT = pytest.mark.parametrize("masked", [False, True])


def dense(z: torch.Tensor, tau: float, form: str, masked: bool) -> torch.Tensor:
    """The sheet's formulas by the whole matrix, for autograd."""
    n_times = z.shape[1]
    u = torch.nn.functional.normalize(z.flatten(0, 1), dim=-1)
    e = (u @ u.T / tau).exp() * (1 - torch.eye(len(u), dtype=z.dtype))
    c, a = e.sum(0), e.diagonal(-1)
    inside = (torch.arange(1, len(u)) % n_times != 0) | torch.tensor(not masked)
    a = a * inside
    if form == "next":
        return -(a[inside] / (c[:-1] - a)[inside]).log().mean()
    num = a[:-1] + a[1:]
    den = (c[:-2] - a[:-1]) + (c[1:-1] - a[:-1] - a[1:])
    return -(num / den).log().mean()


def draw(n_cases: int, n_times: int, dim: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_cases, n_times, dim))


@ANY_FORM
@MASKED_OR_NOT
@pytest.mark.parametrize(("tau", "atol"), [(0.1, 1e-12), (0.02, 1e-9)])  # the dense form loses digits to differences
@pytest.mark.parametrize("max_entries", [1, 21, 50, 100, 21 * 20, MAX_ENTRIES, None])
def test_loss_and_gradient_are_the_dense_ones_whatever_the_block(form, masked, max_entries, tau, atol):
    z = torch.from_numpy(draw(3, 7)).requires_grad_()
    loss = adjacent_step(z, tau, form, mask_boundaries=masked, max_entries=max_entries)
    expected = dense(z, tau, form, masked)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    (got,), (wanted,) = (torch.autograd.grad(value, z) for value in (loss, expected))
    torch.testing.assert_close(got, wanted, rtol=1e-10, atol=atol)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
@pytest.mark.parametrize("side", [37, 513, 2048])  # of a tile: less than a block, one more than one, all 1,500 at once
def test_on_a_gpu_loss_and_gradient_are_those_in_float64(side):
    z = torch.from_numpy(draw(3, 500, 16)).requires_grad_()
    expected = adjacent_step(z, 0.1)
    (wanted,) = torch.autograd.grad(expected, z)
    on_gpu = z.detach().float().cuda().requires_grad_()
    losses = [adjacent_step(on_gpu, 0.1, max_entries=side**2) for _ in range(2)]
    first, second = (torch.autograd.grad(loss, on_gpu)[0] for loss in losses)
    assert torch.equal(first, second)
    assert losses[0].item() == losses[1].item() == pytest.approx(expected.item(), rel=1e-6)
    torch.testing.assert_close(first.cpu().double(), wanted, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("tau", [0.5, 0.05])
@pytest.mark.parametrize("shape", [(2, 5), (1, 3), (5, 2)])
def test_equal_steps_have_closed_forms_and_no_gradient(shape, tau, masked):
    n_cases, n_times = shape
    n = n_cases * n_times
    z = torch.full((*shape, 4), 0.3, dtype=torch.float64, requires_grad=True)
    two_sided = adjacent_step(z, tau, mask_boundaries=masked)
    onward = adjacent_step(z, tau, "next", mask_boundaries=masked)
    if not masked or n_cases == 1:
        assert two_sided.item() == pytest.approx(math.log((2 * n - 5) / 2), abs=1e-12)
    assert onward.item() == pytest.approx(math.log(n - 2), abs=1e-12)
    for loss in (two_sided, onward):
        (gradient,) = torch.autograd.grad(loss, z)
        assert gradient.abs().max() < 1e-12


@ANY_FORM
@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 2)])
def test_fewer_than_three_steps_give_zero_with_a_graph(shape, form):
    z = torch.randn(*shape, 4, requires_grad=True)
    loss = adjacent_step(z, 0.1, form)
    loss.backward()
    assert loss.item() == 0 and torch.equal(z.grad, torch.zeros_like(z))


@ANY_FORM
def test_zero_steps_count_as_orthogonal_and_get_no_gradient(form):
    z = torch.from_numpy(draw(2, 5))
    z[0, 2] = 0
    z[1] = 0
    z.requires_grad_()
    loss = adjacent_step(z, 0.5, form, max_entries=30)
    assert loss.item() == pytest.approx(dense(z, 0.5, form, False).item(), rel=1e-10)
    loss.backward()
    assert torch.equal(z.grad[0, 2], torch.zeros(5)) and torch.equal(z.grad[1], torch.zeros(5, 5))
    assert z.grad[0, 0].abs().max() > 0
