import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dicot.methods.tnc import (
    close_centres,
    cut_windows,
    distant_centres,
    distant_range,
    drawn_between,
    reference_range,
    shortest_case,
)


def slow_close(normal: float, t: int, epsilon: int, n_times: int, width: int) -> int:
    return max(width // 2 + 1, min(int(t + normal * epsilon * width), n_times - width // 2))


def slow_distant_range(t: int, epsilon: int, n_times: int, width: int) -> tuple[int, int]:
    delta = 5 * epsilon * width
    if t > n_times / 2:
        return width // 2, max(t - delta, width // 2)
    return min(t + delta, n_times - width - 1), n_times - width // 2 - 1


@st.composite
def places(draw):
    width = draw(st.integers(2, 40))
    n_times = draw(st.integers(shortest_case(width), 12 * width))
    return n_times, width, draw(st.integers(1, 3)), draw(st.integers(0, 10_000))


@given(places())
def test_centres_match_the_slow_form_and_windows_stay_inside(place):
    n_times, width, epsilon, seed = place
    rng, half = np.random.default_rng(seed), width // 2
    low, high = reference_range(n_times, width)
    t = rng.integers(low, high + 1, size=5)
    normal, uniform = 2 * rng.normal(size=(5, 7)), rng.uniform(size=(5, 7))
    at = torch.from_numpy(t), torch.full((5,), epsilon), n_times, width
    close, distant = close_centres(torch.from_numpy(normal), *at), distant_centres(torch.from_numpy(uniform), *at)
    for b in range(5):
        first, last = slow_distant_range(int(t[b]), epsilon, n_times, width)
        assert [int(end[b]) for end in distant_range(*at)] == [first, last]
        assert half <= first <= last < n_times - half
        for j in range(7):
            assert close[b, j] == slow_close(normal[b, j], int(t[b]), epsilon, n_times, width)
            assert distant[b, j] == first + int(uniform[b, j] * (last - first + 1))
    for centres in (torch.from_numpy(t)[:, None], close, distant):
        assert centres.min() >= half and centres.max() + half <= n_times


@pytest.mark.parametrize(
    ("n_times", "width", "ends"), [(41, 10, (20, 20)), (40, 10, (5, 34)), (8, 2, (1, 6)), (9, 2, (4, 4))]
)
def test_reference_range_falls_back_to_the_whole_case(n_times, width, ends):
    assert reference_range(n_times, width) == ends
    got = drawn_between(torch.rand(2000), *ends)
    assert got.dtype == torch.long and set(got.tolist()) == set(range(ends[0], ends[1] + 1))


@pytest.mark.parametrize("width", [2, 5, 6])
def test_windows_are_cut_around_their_centres(width):
    x, half = torch.randn(3, 2, 20, dtype=torch.float64), width // 2
    centres = torch.randint(half, 20 - half + 1, (3, 4))
    got = cut_windows(x, centres, width)
    assert got.shape == (3, 4, 2, 2 * half) and got.dtype == x.dtype
    for b in range(3):
        for j in range(4):
            assert torch.equal(got[b, j], x[b, :, centres[b, j] - half : centres[b, j] + half])
