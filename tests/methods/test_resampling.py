import numpy as np
import pytest
import torch
from scipy.interpolate import PchipInterpolator

from dicot.methods.infots import interpolate, warped_time


def test_interpolate_reads_between_steps_and_stops_at_the_ends():
    x = torch.tensor([[[0.0, 10.0, 40.0]]])
    position = torch.tensor([[-1.0, 0.0, 0.25, 1.5, 2.0, 7.0]])
    assert interpolate(x, position).tolist() == [[[0.0, 0.0, 2.5, 25.0, 40.0, 40.0]]]


@pytest.mark.parametrize("n_times", [2, 5, 40, 301])
@pytest.mark.parametrize("n_speeds", [2, 3, 100])
def test_time_map_is_pchip(n_times, n_speeds):
    speeds = np.random.default_rng(0).uniform(1, 10, size=(3, n_speeds))
    ours = warped_time(torch.from_numpy(speeds), n_times).numpy()
    for row, got in zip(speeds, ours, strict=True):
        knots = np.concatenate([[0], row.cumsum()]) / row.sum() * (n_times - 1)
        there = PchipInterpolator(np.linspace(0, n_times - 1, n_speeds + 1), knots)(np.arange(n_times))
        np.testing.assert_allclose(got, there, atol=1e-10)
