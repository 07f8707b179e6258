"""Figures of a benchmark: well-formed, repeatable, every name in them, no two labels on one another."""

import itertools
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from dicot.errors import InputError
from dicot.report.critical_difference import critical_difference, friedman_text
from dicot.report.curves import power_curves, reference_curves
from dicot.report.figures import win_tie_loss
from dicot.report.placement import overlap, places, spread
from dicot.report.scatter import map_panels, paper_scatter, time_scatter

RNG = np.random.default_rng(0)
NAMES = ["dicot", "<b>", "a_very long name of a contender -> with settings", "random"]
ACCURACY = RNG.normal(70, 5, size=(20, 4)) + np.array([6, 5, 0, -8])

FIGURES = {
    "critical difference": lambda: critical_difference(ACCURACY, NAMES),
    "time": lambda: time_scatter({"dicot": (10.0, 80.0), "<b>": (11.0, 80.1)}, "average accuracy", ["dicot"]),
    "paper": lambda: paper_scatter({name: ([1.0, 2.0], [2.0, 2.0]) for name in NAMES[:2]}, "accuracy"),
    "curves": lambda: reference_curves({"dicot": [1.0, 2.0], "<b>": [2.0, np.nan]}, ["5", "all"], "cases", "accuracy"),
    "wins": lambda: win_tie_loss({"<b>": (3, 0, 1), "catt": (1, 1, 0)}, "dicot"),
    "maps": lambda: map_panels({n: (RNG.normal(size=(9, 2)), np.arange(9) % 3) for n in ("dicot", "<b>")}),
}


def words(svg):
    return " ".join(e.text for e in ET.fromstring(svg).iter() if e.text and e.text.strip())


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_figures_are_well_formed_and_name_their_contenders(draw):
    svg = draw()
    assert svg.startswith("<svg role=") and "<b>" not in svg
    assert "dicot" in words(svg) and "<b>" in words(svg)
    assert "mathdefault" not in svg  # a formula that was not set


def test_the_diagram_repeats_and_shows_ranks_and_both_tests():
    svg = FIGURES["critical difference"]()
    assert svg == FIGURES["critical difference"]()
    for text in ("Nemenyi, critical difference 1.05", "Wilcoxon, Holm's correction", "settings"):
        assert text in words(svg)
    ranks = {f"{rank:.2f}" for rank in (-ACCURACY).argsort(axis=1).argsort(axis=1).mean(axis=0) + 1}
    assert ranks <= set(words(svg).split())


def test_the_text_says_whether_ranks_differ_at_all():
    assert "the average ranks differ" in friedman_text(ACCURACY)
    alike = np.random.default_rng(1).normal(size=(12, 4))
    assert "do not differ beyond chance" in friedman_text(alike)
    assert "Too few methods" in friedman_text(ACCURACY[:, :2])


@pytest.mark.parametrize("crowd", ["spread out", "one spot"])
def test_labels_do_not_cover_one_another_or_the_points(crowd):
    rng = np.random.default_rng(2)
    points = [tuple(p) for p in rng.uniform(100, 300, size=(18, 2))]
    if crowd == "one spot":
        points = [(200 + x / 20, 150 + y / 20) for x, y in points]
    boxes = places(points, [(60.0, 10.0)] * 18, (0.0, 0.0, 420.0, 320.0))
    assert all(overlap(a, b) == 0 for a, b in itertools.combinations(boxes, 2))
    assert all(b[0] >= 0 and b[2] <= 420 and b[1] >= 0 and b[3] <= 320 for b in boxes)
    assert not any(b[0] < x < b[2] and b[1] < y < b[3] for b in boxes for x, y in points)


def test_heights_are_spread_in_order_and_no_further_than_needed():
    assert spread([1.0, 5.0], 1.0) == [1.0, 5.0]
    assert spread([2.0, 2.0, 2.0], 1.0) == [1.0, 2.0, 3.0]
    moved = spread([3.0, 0.0, 0.1, 0.2, 2.9], 1.0)
    assert np.argsort(moved, kind="stable").tolist() == [1, 2, 3, 4, 0]
    assert np.diff(np.sort(moved)).min() >= 1.0 - 1e-9
    assert spread([], 1.0) == []


def test_powers_of_ten_are_plain_numbers():
    assert {"10", "100"} <= set(words(power_curves({"a": ([8, 64], [5.0, 300.0])}, "batch size", "ms")).split())


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: critical_difference(ACCURACY, NAMES[:2]), r"got \(20, 4\) and 2 names"),
        (lambda: critical_difference(ACCURACY[:1], NAMES), "2 data sets"),
        (lambda: time_scatter({}, "accuracy"), "there must be one"),
        (lambda: time_scatter({"a": (0.0, 1.0)}, "accuracy"), "above 0"),
        (lambda: paper_scatter({"a": ([1.0], [])}, "accuracy"), "one number of ours"),
        (lambda: reference_curves({"a": [1.0]}, ["5", "10"], "x", "y"), "needs 2 values"),
        (lambda: win_tie_loss({"a": (0, 0, 0)}, "b"), "need a data set"),
        (lambda: map_panels({}), "at least one"),
    ],
)
def test_malformed_input_is_refused(draw, message):
    with pytest.raises(InputError, match=message):
        draw()
