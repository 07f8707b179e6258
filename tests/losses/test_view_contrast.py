"""Two views must find each other, with and without candidates of earlier steps."""

import math

import numpy as np
import pytest
import torch

from dicot.nets.losses.view_contrast import view_contrast


def slow(z1, z2, temperature, queue=None, barred=None) -> float:
    """One row after the other, by the formula."""

    def cosine(a, b):
        return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))

    total = 0.0
    for here, there in ((z1, z2), (z2, z1)):
        for i, own in enumerate(here):
            candidates = [cosine(own, other) for other in there]
            if queue is not None:
                allowed = [j for j in range(queue.shape[1]) if barred is None or not barred[i, j]]
                candidates += [cosine(own, queue[:, j]) for j in allowed]
            chances = [math.exp(value / temperature) for value in candidates]
            total -= math.log(chances[i] / sum(chances))
    return total / (2 * len(z1))


def vectors(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("n_cases", [2, 7])
@pytest.mark.parametrize("size", [0, 1, 9])
def test_matches_the_slow_form(n_cases, size):
    torch.manual_seed(0)
    z1, z2 = 3 * vectors(n_cases, 5), vectors(n_cases, 5)
    queue = torch.nn.functional.normalize(vectors(5, size), dim=0) if size else None
    barred = torch.rand(n_cases, size) < 0.4 if size else None
    for some in (None, barred):
        expected = slow(z1, z2, 0.2, queue, some)
        assert view_contrast(z1, z2, 0.2, queue, some).item() == pytest.approx(expected, rel=1e-10)


def test_values_one_can_verify():
    far = torch.eye(4, dtype=torch.float64)
    assert view_contrast(far, far, 0.2).item() == pytest.approx(math.log(1 + 3 * math.exp(-5)))
    same = torch.ones(4, 3, dtype=torch.float64)
    assert view_contrast(same, same, 0.2).item() == pytest.approx(math.log(4))
    assert view_contrast(same, same, 0.2, same.T[:, :2] / math.sqrt(3)).item() == pytest.approx(math.log(6))


def test_a_queue_of_barred_keys_is_no_queue_and_gradients_stay_finite():
    torch.manual_seed(0)
    z1, z2 = vectors(3, 4).requires_grad_(), vectors(3, 4)
    plain = view_contrast(z1, z2, 0.2)
    barred = view_contrast(z1, z2, 0.2, torch.zeros(4, 6, dtype=torch.float64), torch.ones(3, 6, dtype=torch.bool))
    torch.testing.assert_close(barred, plain)
    gradients = [torch.autograd.grad(loss, z1)[0] for loss in (plain, barred)]
    assert torch.isfinite(gradients[0]).all() and gradients[0].abs().max() > 0
    torch.testing.assert_close(*gradients)


def test_half_precision_is_computed_in_float32():
    z1, z2 = (torch.from_numpy(np.random.default_rng(i).normal(size=(6, 8)).astype(np.float32)) for i in (0, 1))
    plain = view_contrast(z1, z2, 0.2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(view_contrast(z1, z2, 0.2), plain)
    assert view_contrast(z1.bfloat16(), z2.bfloat16(), 0.2).dtype == torch.float32
