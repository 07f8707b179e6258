import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.interpolate import PchipInterpolator

from dicot.methods.infots import interpolate, warped_time, window_slice, window_warp


def resized(x: torch.Tensor, n: int) -> torch.Tensor:
    """(C, L) -> (C, n) by torch's own half-pixel interpolation."""
    return F.interpolate(x.unsqueeze(0), n, mode="linear", align_corners=False)[0]


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(4, 2, 23, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_interpolate_reads_between_steps_and_stops_at_the_ends():
    x = torch.tensor([[[0.0, 10.0, 40.0]]])
    position = torch.tensor([[-1.0, 0.0, 0.25, 1.5, 2.0, 7.0]])
    assert interpolate(x, position).tolist() == [[[0.0, 0.0, 2.5, 25.0, 40.0, 40.0]]]


@pytest.mark.parametrize("length", [1, 2, 7, 12, 22, 23])
def test_slice_against_torch(x, length):
    starts = torch.tensor([0, 1, 23 - length, (23 - length) // 2]).clamp(max=23 - length)
    slow = [resized(case[:, s : s + length], 23) for case, s in zip(x, starts.tolist(), strict=True)]
    torch.testing.assert_close(window_slice(x, starts, length), torch.stack(slow))


@pytest.mark.parametrize("length", [2, 3, 7, 8, 20])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 1.3])
def test_warp_against_torch(x, length, scale):
    starts = torch.tensor([1, 2, 23 - length, 0])
    scales = torch.tensor([scale, 2.0, scale, 0.5], dtype=torch.float64)
    slow = []
    for case, s, factor in zip(x, starts.tolist(), scales.tolist(), strict=True):
        window = resized(case[:, s : s + length], int(length * factor))
        slow.append(resized(torch.cat([case[:, :s], window, case[:, s + length :]], dim=1), 23))
    torch.testing.assert_close(window_warp(x, starts, scales, length), torch.stack(slow))


@pytest.mark.parametrize("n_times", [2, 5, 40, 301])
@pytest.mark.parametrize("n_speeds", [2, 3, 100])
def test_time_map_is_pchip(n_times, n_speeds):
    speeds = np.random.default_rng(0).uniform(1, 10, size=(3, n_speeds))
    ours = warped_time(torch.from_numpy(speeds), n_times).numpy()
    for row, got in zip(speeds, ours, strict=True):
        knots = np.concatenate([[0], row.cumsum()]) / row.sum() * (n_times - 1)
        there = PchipInterpolator(np.linspace(0, n_times - 1, n_speeds + 1), knots)(np.arange(n_times))
        np.testing.assert_allclose(got, there, atol=1e-10)
