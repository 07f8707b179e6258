"""Raw features: exact values and refusals."""

from itertools import pairwise

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.judge.classical import RawFlat, RawMean

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_raw_mean_is_the_mean_of_each_channel():
    assert RawMean().fit(X).transform(X).tolist() == [[1.5, 5.5, 9.5], [13.5, 17.5, 21.5]]


def test_raw_flat_keeps_every_value():
    out = RawFlat().fit(X).transform(X)
    assert out.tolist() == X.reshape(2, 12).tolist()
    assert out.dtype == np.float32


@pytest.mark.parametrize("length", [20_480, 20_491, 30_000])
def test_raw_flat_averages_long_series_and_says_so(length):
    x = np.random.default_rng(0).normal(size=(2, 1, length))
    model = RawFlat()
    with pytest.warns(UserWarning, match=f"1 x {length} .*512"):
        model.fit(x)
    out = model.transform(x)
    edges = [i * length // 512 for i in range(513)]
    expected = np.array([[case[0, a:b].mean() for a, b in pairwise(edges)] for case in x])
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-14)


def test_raw_flat_at_the_limit_is_left_alone():
    x = np.zeros((1, 20, 1000), np.float32)
    assert RawFlat().fit(x).transform(x).shape == (1, 20_000)
    many_channels = np.zeros((1, 50, 500), np.float32)  # above the limit, but already below 512 time steps
    assert RawFlat().fit(many_channels).transform(many_channels).shape == (1, 25_000)


def test_raw_flat_refuses_another_shape_but_raw_mean_does_not_mind_the_length():
    with pytest.raises(InputError, match=r"\(3, 4\).*\(2, 3, 3\)"):
        RawFlat().fit(X).transform(X[:, :, :3])
    assert RawMean().fit(X).transform(X[:, :, :3]).shape == (2, 3)
