"""Long series thinned out for drawing: no extreme is lost."""

import numpy as np

from dicot.data.thinning import decimate, stretched


def test_decimation_keeps_every_extreme() -> None:
    rng = np.random.default_rng(0)
    for n_times, most in ((1001, 1000), (5000, 100), (997, 10), (64, 64)):
        values = rng.normal(size=(2, n_times))
        values[0, rng.integers(n_times)] = 100
        values[1, rng.integers(n_times)] = -100
        drawn = decimate(values, most)
        assert drawn.shape == (2, min(n_times, most))
        assert (drawn.max(axis=1) == values.max(axis=1)).all() and (drawn.min(axis=1) == values.min(axis=1)).all()
    ramp = np.arange(1000.0)[None]
    assert (np.diff(decimate(ramp, 100)[0]) >= 0).all()  # in the order of time
    values = np.full((1, 500), np.nan)
    values[0, 123] = 7
    assert np.nanmax(decimate(values, 20)) == 7 and np.isnan(decimate(values, 20)).sum() == 18
    assert stretched(np.arange(3.0)[None], 6).tolist() == [[0, 0, 1, 1, 2, 2]]
