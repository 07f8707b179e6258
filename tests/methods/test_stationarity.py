import math
import warnings

import numpy as np
import pytest

from dicot.methods.tnc import adf_epsilon, adf_table


@pytest.fixture
def adfuller():
    return pytest.importorskip("statsmodels.tsa.stattools", reason="the extra 'adf' is not installed").adfuller


def slow(x: np.ndarray, t: int, width: int, adfuller) -> int:
    """The rule to the letter, without leaving out tests that cannot change the answer."""
    means = []
    for reach in (width, 2 * width, 3 * width):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p = [float(adfuller(channel[max(0, t - reach) : min(x.shape[1], t + reach)])[1]) for channel in x]
            means.append(sum(0.01 if math.isnan(v) else v for v in p) / len(p))
        except ValueError:
            means.append(0.6)
    return next((i + 1 for i, mean in enumerate(means) if mean >= 0.01), 3)


def noise_then_walk(rng: np.random.Generator, n_times: int) -> np.ndarray:
    noise = rng.normal(size=n_times)
    noise[n_times // 2 :] = np.cumsum(noise[n_times // 2 :])
    return noise


def test_matches_the_slow_form(adfuller):
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(12):
        x = np.stack([noise_then_walk(rng, 200) for _ in range(2)])
        t = int(rng.integers(20, 180))
        got = adf_epsilon(x, t, 12)
        assert got == slow(x, t, 12, adfuller)
        seen.add(got)
    assert len(seen) > 1, "the cases do not tell the rules apart"


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
