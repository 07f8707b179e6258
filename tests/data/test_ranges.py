"""Ranges: which label a window takes."""

from dicot.data.ranges import Range, labels_of_windows


def label_of(*ranges: tuple[float, float, str], window: tuple[float, float] = (10.0, 20.0)) -> object:
    return labels_of_windows([Range("a", *one) for one in ranges], ["a"], [window[0]], [window[1]])[0]


def test_a_window_takes_the_label_that_covers_more_than_half_of_it() -> None:
    assert label_of((0, 15.1, "walk"), (15.1, 30, "sit")) == "walk"
    assert label_of((0, 15, "walk"), (15, 30, "sit")) is None
    assert label_of((14, 19.5, "walk")) == "walk"
    assert label_of((14, 18, "walk")) is None
    assert label_of() is None


def test_ranges_of_one_label_count_together_and_time_counts_once() -> None:
    assert label_of((10, 13, "walk"), (17, 20, "walk")) == "walk"
    assert label_of((10, 14, "walk"), (11, 14, "walk"), (10, 15, "walk")) is None
    assert label_of((10, 12, "walk"), (0, 50, "walk"), (11, 13, "walk")) == "walk"


def test_where_ranges_overlap_the_later_one_counts() -> None:
    assert label_of((10, 20, "day"), (12, 18, "walk")) == "walk"
    assert label_of((12, 18, "walk"), (10, 20, "day")) == "day"
    assert label_of((10, 20, "day"), (12, 16, "walk")) == "day"
    assert label_of((10, 20, "day"), (12, 17, "walk")) is None


def test_windows_of_several_recordings_each_take_their_own_ranges() -> None:
    ranges = [Range("b", 0, 2, "x"), Range("a", 2, 4, "y"), Range("c", 0, 9, "z")]
    places = ["a", "b", "a", "b"], [0, 0, 2, 2], [2, 2, 4, 4]
    assert labels_of_windows(ranges, *places) == [None, "x", "y", None]
