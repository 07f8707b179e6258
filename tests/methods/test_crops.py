from dataclasses import astuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicot.methods.cost import distort
from dicot.methods.cropping import Crops, cut_crops, draw_crops, draw_shifts, shared_part

SEEDS = st.integers(0, 2**32)


@given(st.integers(8, 400), st.integers(0, 2), st.integers(8, 300), SEEDS)
def test_views_lie_inside_the_window_and_the_window_inside_the_case(n_times, unit, longest, seed):
    crops = draw_crops(n_times, np.random.default_rng(seed).integers, temporal_unit=unit, longest=longest)
    assert crops.n_times == min(n_times, longest)
    assert 0 <= crops.start <= n_times - crops.n_times
    assert 0 <= crops.outer_left <= crops.left < crops.right <= crops.outer_right <= crops.n_times
    assert crops.overlap == crops.right - crops.left >= 2 ** (unit + 1)
    low, high = crops.shifts
    assert low <= 0 < high  # shift 0 is always possible
    assert low + crops.outer_left == 0 and (high - 1) + crops.outer_right == crops.n_times
    assert hash(crops) == hash(Crops(*astuple(crops))), "a plan is hashable"
    assert all(type(value) is int for value in astuple(crops)[:-1])


@given(st.integers(2, 60), SEEDS)
def test_cut_by_hand(n_times, seed):
    rng = np.random.default_rng(seed)
    crops = draw_crops(n_times, rng.integers, longest=40)
    x = torch.randn(4, 3, n_times)
    shifts = draw_shifts(crops, 4, x.device)
    view1, view2 = cut_crops(x, crops, shifts)
    for b, offset in enumerate(shifts.tolist()):
        window = x[b, :, crops.start : crops.start + crops.n_times]
        assert torch.equal(view1[b], window[:, offset + crops.outer_left : offset + crops.right])
        assert torch.equal(view2[b], window[:, offset + crops.left : offset + crops.outer_right])
    first, second = shared_part(view1, view2, crops)
    assert torch.equal(first, second), "the shared steps are the same steps"
    assert first.shape == (4, 3, crops.overlap)


def test_every_length_place_and_shift_is_drawn():
    seen = [draw_crops(4, np.random.default_rng(seed).integers) for seed in range(600)]
    assert {(c.left, c.right) for c in seen} == {(a, b) for a in range(4) for b in range(a + 2, 5)}
    assert {(c.left, c.outer_left) for c in seen} == {(a, e) for a in range(3) for e in range(a + 1)}
    assert {(c.right, c.outer_right) for c in seen} == {(r, e) for r in range(2, 5) for e in range(r, 5)}
    crops = Crops(n_times=10, left=4, right=6, outer_left=3, outer_right=8)
    torch.manual_seed(0)
    shifts = draw_shifts(crops, 2000, torch.device("cpu"))
    assert sorted(set(shifts.tolist())) == [-3, -2, -1, 0, 1, 2]
    starts = {draw_crops(12, np.random.default_rng(seed).integers, longest=9).start for seed in range(100)}
    assert starts == {0, 1, 2, 3}


def test_the_distortions_of_cost_come_by_chance_and_have_their_strength():
    torch.manual_seed(0)
    x = torch.ones(4000, 2, 5, dtype=torch.float64)
    assert torch.equal(distort(x, 0.3, 0.0), x)
    seen = distort(x, 0.3, 1.0)
    assert seen.mean().item() == pytest.approx(1, abs=0.02)
    assert seen.std().item() == pytest.approx(0.3 * 3**0.5, rel=0.05), "scale, shift and jitter"
    assert seen.mean(dim=2).std().item() == pytest.approx(0.3 * 2.2**0.5, rel=0.05), "jitter alone is drawn per step"
    changed = (distort(x, 0.3, 0.5) != x).any(dim=2).all(dim=1)
    assert changed.double().mean().item() == pytest.approx(1 - 0.5**3, abs=0.02), "for each case apart"
