import numpy as np
import pytest

from dicot.methods.tnc import adf_epsilon, adf_table


@pytest.fixture
def adfuller():
    return pytest.importorskip("statsmodels.tsa.stattools", reason="the extra 'adf' is not installed").adfuller


def test_white_noise_is_stationary_and_a_random_walk_is_not(adfuller):
    noise = np.random.default_rng(1).normal(size=(1, 400))
    assert adf_epsilon(noise, 200, 40) == 3
    assert adf_epsilon(np.cumsum(noise, axis=1), 200, 40) == 1


def test_table_is_the_function_at_each_case_and_centre(adfuller):
    x = np.random.default_rng(2).normal(size=(3, 1, 120)).cumsum(axis=2)[:, :, ::2].astype(np.float32)
    x[0] = np.random.default_rng(3).normal(size=(1, 60))
    centres = np.array([20, 31])
    got = adf_table(x, centres, 10)
    assert got.tolist() == [[adf_epsilon(case, t, 10) for t in (20, 31)] for case in x]
    assert len(np.unique(got)) > 1
