"""Policies for length, missing values and scale, against values worked out by hand."""

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.cases import (
    Scale,
    interpolate,
    pad,
    resample,
    scale_each_case,
)
from dicot.data.cases import zero as zero_missing
from dicot.data.conversion import convert

NAN = np.nan


def f32(values: object) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_pad_and_resample_one_case() -> None:
    case = f32([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(pad(case, 5), [[1, 2, 3, 0, 0], [4, 5, 6, 0, 0]])
    np.testing.assert_array_equal(pad(case, 2), [[1, 2], [4, 5]])
    np.testing.assert_array_equal(resample(case, 5), [[1, 1.5, 2, 2.5, 3], [4, 4.5, 5, 5.5, 6]])
    np.testing.assert_array_equal(resample(case, 2), [[1, 3], [4, 6]])
    np.testing.assert_array_equal(resample(f32([[7]]), 3), [[7, 7, 7]])
    assert resample(case, 3) is case


def test_cases_get_the_longest_or_the_shortest_length_by_default() -> None:
    cases = [f32([[1, 2, 3]]), f32([[4, 5]])]
    np.testing.assert_array_equal(convert(cases, unequal="pad").whole(), [[[1, 2, 3]], [[4, 5, 0]]])
    np.testing.assert_array_equal(convert(cases, unequal="crop").whole(), [[[1, 2]], [[4, 5]]])
    np.testing.assert_array_equal(convert(cases, unequal="resample").whole(), [[[1, 2, 3]], [[4, 4.5, 5]]])
    assert convert(cases, unequal="pad", length=7).whole().shape == (2, 1, 7)


def test_interpolate_extends_edges_and_leaves_an_empty_channel() -> None:
    case = f32([[NAN, 1, NAN, NAN, 4, NAN], [NAN] * 6])
    np.testing.assert_array_equal(interpolate(case), [[1, 1, 2, 3, 4, 4], [NAN] * 6])
    np.testing.assert_array_equal(zero_missing(case), [[0, 1, 0, 0, 4, 0], [0] * 6])
    assert np.isnan(case).sum() == 10  # the input is left alone


def test_scale_uses_its_own_statistics_and_spares_constant_channels() -> None:
    x = f32([[[0, 2], [0.1, 0.1]], [[4, 6], [0.1, 0.1]]])
    scale = Scale.fit(x)
    np.testing.assert_allclose(scale.mean, [3, 0.1], rtol=1e-6)
    np.testing.assert_allclose(scale.std, [np.sqrt(5), 1])
    other = f32([[[3, 3 + np.sqrt(5)], [1.1, 0.1]]])
    np.testing.assert_allclose(scale(other), [[[0, 1], [1, 0]]], atol=1e-6)
    assert scale(other).dtype == np.float32
    with pytest.raises(InputError, match="2 channel"):
        scale(f32([[[1, 2]]]))
    with pytest.raises(InputError, match="without NaN"):
        Scale.fit(f32([[[NAN, 1]]]))


def test_scale_each_case() -> None:
    x = f32([[[1, 3], [5, 5]], [[10, 30], [0.1, 0.1]]])
    np.testing.assert_array_equal(scale_each_case(x), [[[-1, 1], [0, 0]], [[-1, 1], [0, 0]]])
