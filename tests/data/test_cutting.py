"""Cutting recordings into windows."""

from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import InputError, LeftOutWarning, ShortRecordingWarning
from dicot.data import Windows, split_groups


def slide(recordings: Any, window: Any, stride: Any, **options: Any) -> Any:
    return Windows.from_array(recordings, window=window, stride=stride, **options)


def ramp(channels: int, times: int, start: int = 0) -> np.ndarray:
    return np.arange(start, start + channels * times, dtype=np.float32).reshape(channels, times)


def test_one_recording() -> None:
    windows = slide(ramp(2, 7), 3, 2)
    np.testing.assert_array_equal(windows.x[:, 0], [[0, 1, 2], [2, 3, 4], [4, 5, 6]])
    np.testing.assert_array_equal(windows.x[:, 1], [[7, 8, 9], [9, 10, 11], [11, 12, 13]])
    assert windows.x.flags.c_contiguous
    assert windows.y is None
    assert windows.group.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(slide(ramp(2, 7).T, 3, 2, layout="ntc").x, windows.x)
    np.testing.assert_array_equal(slide(ramp(1, 7)[0], 3, 2).x, windows.x[:, :1])


def test_the_tail_is_dropped_or_covered() -> None:
    assert slide(ramp(1, 8), 3, 2).x[:, 0, 0].tolist() == [0, 2, 4]
    assert slide(ramp(1, 8), 3, 2, keep_tail=True).x[:, 0].tolist()[-1] == [5, 6, 7]
    assert len(slide(ramp(1, 7), 3, 2, keep_tail=True)) == 3  # no tail, no extra window


def test_several_recordings_of_unequal_length() -> None:
    windows = slide([ramp(1, 5), ramp(1, 3, 100)], 3, 1, y=["walk", "run"], group=["ann", "bob"])
    assert windows.x[:, 0, 0].tolist() == [0, 1, 2, 100]
    assert windows.y.tolist() == ["walk"] * 3 + ["run"]
    assert windows.group.tolist() == ["ann"] * 3 + ["bob"]
    assert slide(np.stack([ramp(1, 5), ramp(1, 5)]), 5, 5).group.tolist() == [0, 1]


def test_majority_labels_with_ties_to_the_smallest() -> None:
    steps = np.array([9, 9, 1, 1, 5, 5])
    assert slide(ramp(1, 6), 4, 1, y=steps).y.tolist() == [1, 1, 1]
    assert slide(ramp(1, 6), 3, 3, y=steps).y.tolist() == [9, 5]
    mixed = slide([ramp(1, 6), ramp(1, 4)], 2, 2, y=[steps, 7], group=["a", ["b", "b", "c", "c"]])
    assert mixed.y.tolist() == [9, 1, 5, 7, 7]
    assert mixed.group.tolist() == ["a", "a", "a", "b", "c"]
    assert slide(ramp(1, 4), 2, 2, y="walk").y.tolist() == ["walk", "walk"]


def test_majority_agrees_with_counting() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 200)
    windows = slide(rng.standard_normal((2, 200)), 17, 3, y=labels)
    expected = [np.bincount(labels[i : i + 17]).argmax() for i in range(0, 200 - 16, 3)]
    np.testing.assert_array_equal(windows.y, expected)


def test_a_recording_shorter_than_a_window_is_left_out_with_a_warning() -> None:
    tracks = [ramp(1, 8), ramp(1, 5, 100), ramp(1, 7, 200)]
    with pytest.warns(UserWarning, match=r"recording 1 \(5 time steps\)"):
        windows = slide(tracks, 6, 2, y=["a", "b", "c"], group=[7, 8, 9], keep_tail=True)
    assert windows.x[:, 0, 0].tolist() == [0, 2, 200, 201]
    assert (windows.y.tolist(), windows.group.tolist()) == (["a", "a", "c", "c"], [7, 7, 9, 9])
    with pytest.warns(UserWarning, match="recording 1"):
        assert slide(tracks, 6, 2).group.tolist() == [0, 0, 2]


def test_time_first_is_noticed() -> None:
    walk = ramp(6, 200).T
    with pytest.raises(InputError, match='200 channel.*6 time steps.*layout="ntc"'):
        slide(walk, 50, 50)
    with pytest.raises(InputError, match='layout="nct"'):
        slide(walk.T, 50, 50, layout="ntc")
    with pytest.warns(UserWarning, match='200 channels of 6 time steps.*layout="ntc"'):
        slide(walk, 3, 3)
    assert slide(walk, 50, 50, layout="ntc").x.shape == (4, 6, 50)


@pytest.mark.parametrize("unlabelled", [None, np.nan, ""])
def test_windows_of_recordings_that_are_labelled_in_part(unlabelled: Any) -> None:
    def of(y: list[Any], **arguments: Any) -> list[Any]:
        found = slide([ramp(1, 8), ramp(1, 4)], 4, 4, y=y, **arguments).y
        return ["" if v == "" or v != v else v for v in found.tolist()]

    u = unlabelled
    assert of([["a", u, "b", "b", u, u, u, "c"], u]) == ["b", "", ""]
    assert of([[u, u, "b", "a", "c", u, "c", "d"], "e"]) == ["a", "c", "e"]  # half is enough; ties: the smallest
    assert of([[3, u, 2, 2, u, u, u, 1], u]) == [2, "", ""]
    assert of([[u] * 8, 5]) == ["", "", 5]
    assert of([u, u]) == ["", "", ""]
    with pytest.raises(InputError, match=r"group\[0\].*time steps? 1\b"):
        of([1, 2], group=[["a", u, *"abcdef"], "b"])


def test_missing_and_infinite_values() -> None:
    track = ramp(1, 5)
    track[0, 2] = np.nan
    with pytest.raises(InputError, match="'0' has no value in channel .*2"):
        slide(track, 2, 2)
    assert slide(track, 5, 1, missing="interpolate").x.tolist() == [[[0, 1, 2, 3, 4]]]
    track[0, 2] = np.inf
    with pytest.raises(InputError, match="Recording 0.*inf"):
        slide(track, 2, 2, missing="zero")


def test_split_groups() -> None:
    windows = slide([ramp(1, 4), ramp(1, 6), ramp(1, 2)], 2, 2)
    train, test = split_groups(windows, [1])
    assert train.group.tolist() == [0, 0, 2]
    assert test.group.tolist() == [1, 1, 1]
    assert len(train) + len(test) == len(windows)
    for bad in ([7], [], [0, 1, 2]):
        with pytest.raises(InputError, match=r"\[0, 1, 2\]"):
            split_groups(windows, bad)
    with pytest.raises(InputError, match="groups"):
        split_groups(type(windows)(windows.x), [0])


def test_windows_keep_what_tells_large_numbers_apart():
    track = np.arange(40).reshape(2, 20) + 10**9
    windows = slide(track, 10, 10)
    assert np.array_equal(windows.x[1] - 10**9, track[:, 10:] - 10**9)


def test_windows_know_their_recording_and_their_time() -> None:
    windows = slide(
        [ramp(2, 8), ramp(2, 5)], 4, 2, rate=50, channels=["acc_x", "acc_y"], names=["walk", "run"], keep_tail=True
    )
    assert windows.recording.tolist() == ["walk", "walk", "walk", "run", "run"]
    np.testing.assert_allclose(windows.start, [0, 0.04, 0.08, 0, 0.02])
    np.testing.assert_allclose(windows.end, windows.start + 0.08)
    assert (windows.channels, windows.rate) == (("acc_x", "acc_y"), 50.0)


def test_without_a_rate_windows_count_time_steps() -> None:
    windows = slide([ramp(1, 8), ramp(1, 5)], 4, 3)
    assert windows.recording.tolist() == ["0", "0", "1"]
    assert (windows.start.tolist(), windows.end.tolist()) == ([0, 3, 0], [4, 7, 4])
    assert windows.rate is None and windows.channels is None


def test_no_window_spans_a_gap() -> None:
    rng = np.random.default_rng(0)
    track = rng.standard_normal((2, 300)).astype(np.float32)
    times = np.cumsum(np.where(rng.random(300) < 0.03, 0.1, 0.02))
    labels = rng.integers(0, 3, 300)
    with pytest.warns(LeftOutWarning, match=r"6.7 % of rows \(20 of 300\)"):
        windows = slide(track, 10, 4, y=labels, times=times)
    # The slow reference: every stretch between gaps by itself.
    edges = [0, *(i for i in range(1, 300) if times[i] - times[i - 1] > 0.03), 300]
    places = [i for a, b in pairwise(edges) for i in range(a, b - 9, 4)]
    assert len(edges) > 5 and len(places) > 10
    np.testing.assert_array_equal(windows.x, [track[:, i : i + 10] for i in places])
    np.testing.assert_array_equal(windows.y, [np.bincount(labels[i : i + 10]).argmax() for i in places])
    np.testing.assert_allclose(windows.start, times[places], rtol=0, atol=1e-9)
    np.testing.assert_allclose(windows.end, times[places] + 0.2)
    assert windows.rate == pytest.approx(50)
    assert windows.group is not None and set(windows.group.tolist()) == {0}
    assert len(slide(track, 10, 4, times=times, gap=np.inf, rate=50)) == 73


def test_values_are_not_filled_in_across_a_gap() -> None:
    track = np.array([[0.0, 1.0, np.nan, np.nan, 10.0, 11.0]])
    windows = slide(track, 3, 3, times=[0, 1, 2, 100, 101, 102], missing="interpolate")
    assert windows.x[:, 0].tolist() == [[0, 1, 1], [10, 10, 11]]


def test_pieces_of_one_recording_share_its_name() -> None:
    with pytest.warns(LeftOutWarning, match=r"\(2 of 9\)"), pytest.warns(ShortRecordingWarning, match=r"short \(2 "):
        windows = slide([ramp(1, 5), ramp(1, 2), ramp(1, 2)], 4, 1, names=["night", "night", "short"])
    assert windows.recording is not None and windows.recording.tolist() == ["night", "night"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"channels": ["a"]}, "2 channel.*1"),
        ({"times": [np.arange(8), [0, 1, 2, 2, 3]]}, r"times\[1\].*time step 3 is at 2 s"),
        ({"times": [np.arange(8), [0, 1, np.nan, 2, 3]]}, r"times\[1\].*time step 2"),
        ({"times": [np.arange(8), np.arange(5) / 2]}, "one rate"),
        ({"times": [np.arange(8), np.arange(5)], "rate": 2}, r"times\[0\] have 1 .*2"),
    ],
)
def test_bad_identity(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        slide([ramp(2, 8), ramp(2, 5)], 3, 1, **arguments)


@pytest.mark.parametrize(("first", "rate"), [(0, 50), (-3, 50), (86_400 * 300, 50), (0, 4e6)])
def test_places_have_no_noise_of_float64(first: float, rate: float) -> None:
    """Ends are the last time stamp and a step, which float64 makes 8.959999999999999."""
    steps = np.arange(1, 600)
    for times in (first + steps / rate, first + np.cumsum(np.full(599, 1 / rate))):
        windows = slide(np.zeros((1, 599)), 7, 1, times=[times], rate=rate)
        exact = [float(Decimal(first) + Decimal(n) / Decimal(rate)) for n in range(1, 601)]
        assert windows.start.tolist() == exact[:593] and windows.end.tolist() == exact[7:]


def test_a_place_does_not_depend_on_the_other_windows() -> None:
    times = 1e6 - 2 + np.arange(300) / 30 + 1e-7
    whole, part = (slide(np.zeros((1, n)), 10, 10, times=[times[:n]]) for n in (300, 30))
    assert whole.start is not None and part.start is not None
    np.testing.assert_array_equal(whole.start[: len(part)], part.start)
