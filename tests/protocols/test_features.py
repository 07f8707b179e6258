"""What a protocol accepts, and what it says about the rest."""

import numpy as np

from dicot.judge.protocols import Features


def test_whole_numbers_as_floats_are_labels():
    assert Features(np.ones((3, 2)), np.array([2.0, 0.0, 1.0])).y.tolist() == [2, 0, 1]


def test_features_become_float64_and_keep_their_labels():
    f = Features(np.ones((3, 2), np.float32), np.array([2, 0, 1]))
    assert f.x.dtype == np.float64
    assert f.y.tolist() == [2, 0, 1]
    part = f.rows(np.array([2, 0]))
    assert part.y.tolist() == [1, 2]
    assert f.stored.dtype == part.stored.dtype == np.float32, "half the memory"
    assert Features(np.ones((3, 2), np.int8), f.y).stored.dtype == np.float64
