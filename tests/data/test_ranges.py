"""Ranges: which label a window takes."""

from dicot.data.ranges import labels_of_windows


def test_a_window_takes_the_label_that_covers_more_than_half_of_it() -> None:
    for ranges, label in (
        ([(0, 15.1, "walk"), (15.1, 30, "sit")], "walk"),
        ([(0, 15, "walk"), (15, 30, "sit")], None),
        ([(14, 18, "walk")], None),
        ([], None),
        ([(10, 13, "walk"), (17, 20, "walk")], "walk"),  # ranges of one label count together,
        ([(10, 14, "walk"), (11, 14, "walk"), (10, 15, "walk")], None),  # and time counts once
        ([(10, 20, "day"), (12, 18, "walk")], "walk"),  # the later one counts
        ([(12, 18, "walk"), (10, 20, "day")], "day"),
        ([(10, 20, "day"), (12, 17, "walk")], None),
    ):
        assert labels_of_windows(ranges, [10.0], [20.0]) == [label], ranges
