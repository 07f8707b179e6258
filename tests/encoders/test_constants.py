"""Constants are made once, and live as long as a CUDA graph that reads them."""

import gc
import weakref

import torch

from dicot.nets.encoders.inception.constants import collect_constants, constant


def counting(most: int):
    made: list[int] = []

    @constant(most)
    def matrix(n: int, device: torch.device) -> torch.Tensor:
        made.append(n)
        return torch.full((n,), float(n), device=device)

    return matrix, made


def test_made_once_until_others_push_it_out():
    matrix, made = counting(2)
    device = torch.device("cpu")
    assert matrix(1, device) is matrix(1, device)
    for n in (2, 3, 1):
        matrix(n, device)
    assert made == [1, 2, 3, 1]
    matrix.cache_clear()
    matrix(1, device)
    assert made[-1] == 1 and len(made) == 5


def test_collected_constants_outlive_the_cache():
    matrix, _ = counting(1)
    device = torch.device("cpu")
    with collect_constants() as collected:
        inside = weakref.ref(matrix(1, device))
    outside = weakref.ref(matrix(2, device))
    matrix(3, device)
    gc.collect()
    assert inside() is not None and outside() is None
    collected.clear()
    gc.collect()
    assert inside() is None
