import math

import numpy as np
import pytest
import torch

from dicot.methods.cost import queue_contrast, queue_logits
from dicot.nets.losses.queue import enqueued


def units(*shape: int) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(*shape, dtype=torch.float64), dim=-1)


def slow(q: np.ndarray, k: np.ndarray, queue: np.ndarray, tau: float) -> float:
    total = 0.0
    for own, key in zip(q, k, strict=True):
        logits = [float(own @ key) / tau] + [float(own @ queue[:, j]) / tau for j in range(queue.shape[1])]
        total += math.log(sum(math.exp(v) for v in logits)) - logits[0]
    return total / len(q)


@pytest.mark.parametrize(("n_cases", "size"), [(1, 1), (4, 7), (5, 3)])
def test_matches_the_slow_form(n_cases, size):
    torch.manual_seed(0)
    q, k, queue = units(n_cases, 6), units(n_cases, 6), units(size, 6).T
    assert queue_logits(q, k, queue, 0.07).shape == (n_cases, 1 + size)
    expected = slow(q.numpy(), k.numpy(), queue.numpy(), 0.07)
    assert queue_contrast(q, k, queue, 0.07).item() == pytest.approx(expected, rel=1e-10)


def test_equal_keys_give_the_log_of_their_number():
    q = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert queue_contrast(q, q, q.T.repeat(1, 9), 0.07).item() == pytest.approx(math.log(10))


def test_a_distant_queue_gives_no_loss():
    q = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert queue_contrast(q, q, -q.T, 0.07).item() == pytest.approx(math.exp(-2 / 0.07), rel=1e-2)


@pytest.mark.parametrize("size", [1, 4, 5, 12])
@pytest.mark.parametrize("n_keys", [1, 2, 4, 5, 13])
def test_the_ring_keeps_the_last_keys(size, n_keys):
    queue, pointer = torch.zeros(2, size), torch.tensor(0)
    expected, position = np.zeros((2, size)), 0
    for step in range(4):
        keys = torch.randn(n_keys, 2, generator=torch.Generator().manual_seed(step))
        queue, pointer = enqueued(queue, pointer, keys)
        for key in keys.numpy():  # one after the other, later ones overwriting
            expected[:, position] = key
            position = (position + 1) % size
    np.testing.assert_array_equal(queue.numpy(), expected.astype(np.float32))
    assert pointer.item() == position
