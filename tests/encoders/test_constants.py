"""Constants are made once, and whoever records keeps what was given out."""

import gc
import weakref

import torch

from dicot.encoders.constants import constant, held


def counting(most: int):
    made: list[int] = []

    @constant(most)
    def matrix(n: int, device: torch.device) -> torch.Tensor:
        made.append(n)
        return torch.full((n,), float(n), device=device)

    return matrix, made


def test_made_once_until_others_push_it_out():
    matrix, made = counting(2)
    place = torch.device("cpu")
    assert matrix(1, place) is matrix(1, place)
    for n in (2, 3, 1):
        matrix(n, place)
    assert made == [1, 2, 3, 1]
    matrix.cache_clear()
    matrix(1, place)
    assert made[-1] == 1 and len(made) == 5


def test_what_was_given_out_in_a_recording_outlives_the_cache():
    matrix, _ = counting(1)
    place = torch.device("cpu")
    with held() as kept:
        inside = weakref.ref(matrix(1, place))
    outside = weakref.ref(matrix(2, place))
    matrix(3, place)
    gc.collect()
    assert inside() is not None and outside() is None
    kept.clear()
    gc.collect()
    assert inside() is None
