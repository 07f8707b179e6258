"""Figures are well-formed, repeatable, safe and say what they show."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from bench.paper.drawings import power_curves, reference_curves, sub_blocks
from bench.report.figures import critical_difference, time_scatter
from dicot.judge.report.figures import PER_CLASS, class_series, confusion, loss_curve, map_panels

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 2))
NAMES = ["dicot", "<b>", "a_very long name of a contender -> with settings", "random"]
CLASSES = np.array(["<b>", "run", "walk"])
CASES = RNG.normal(size=(15, 2, 500))
ACCURACY = RNG.normal(70, 5, size=(20, 4)) + np.array([6, 5, 0, -8])


def all_words(svg):
    return " ".join(words(svg))


def words(svg):
    return [e.text for e in ET.fromstring(svg).iter() if e.text and e.text.strip()]


FIGURES = {
    "loss": lambda: loss_curve([3.0, 2.0, 1.5], [1e-3, 5e-4, 0.0]),
    "one step": lambda: loss_curve([3.0], [1e-3]),
    "confusion": lambda: confusion([[3, 1], [0, 4]], ["sit", "walk"]),
    "critical difference": lambda: critical_difference(ACCURACY, NAMES),
    "time": lambda: time_scatter({"dicot": (10.0, 80.0), "<b>": (11.0, 80.1)}, "average accuracy", ["dicot"]),
    "curves": lambda: reference_curves({"dicot": [1.0, 2.0], "<b>": [2.0, np.nan]}, ["5", "all"], "cases", "accuracy"),
    "curves that end": lambda: power_curves({"<b>": ([8, 64], [1.0, 9.0])}, "batch size", "ms", {"<b>": 512.0}),
    "method": lambda: sub_blocks(POINTS[:, 0].tolist(), 4),
    "series": lambda: class_series(CASES, CLASSES.repeat(5), ["x", "<b>"], CLASSES),
    "maps": lambda: map_panels({n: (POINTS[:9], np.arange(9) % 3) for n in ("dicot", "<b>")}),
    "ringed": lambda: map_panels({"<b>": (POINTS[:9], np.arange(9) % 3)}, np.arange(4), POINTS[:2]),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_figures_are_repeatable_inline_svg(draw):
    svg = draw()
    assert svg == draw()
    assert svg.startswith("<svg role=")
    assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert "<!DOCTYPE" not in svg
    assert "dc:date" not in svg
    assert ' id="axes_1"' not in svg  # ids must not repeat within a page


def test_labels_are_text_not_markup_formula_or_hidden():
    svg = map_panels({'a "title" <b>': (POINTS, np.array(["<script>", "$x_{", "_hidden", "日本"] * 15))})
    assert "<script" not in svg
    assert {"<script>", "$x_{", "_hidden", "日本"} <= {w.strip() for w in words(svg)}
    assert ET.fromstring(svg).get("aria-label") == 'Maps of a "title" <b>'


def test_the_diagram_repeats_and_shows_ranks_and_both_tests():
    svg = FIGURES["critical difference"]()
    assert svg == FIGURES["critical difference"]()
    for text in ("Nemenyi, critical difference 1.05", "Wilcoxon, Holm's correction", "settings"):
        assert text in all_words(svg)
    ranks = {f"{rank:.2f}" for rank in (-ACCURACY).argsort(axis=1).argsort(axis=1).mean(axis=0) + 1}
    assert ranks <= set(all_words(svg).split())


def test_every_class_has_a_few_series_of_every_channel_on_one_scale():
    svg = FIGURES["series"]()
    assert svg.count("stroke: #0072b2") == 2 * PER_CLASS
    assert {"<b> (5)", "run (5)", "walk (5)", "x", "<b>"} <= set(words(svg))
    spike = np.zeros((2, 1, 10_000))
    spike[0, 0, 5_003] = 9.0
    assert "0 to 9" in words(class_series(spike, np.array(["a", "b"]), ["x"], np.array(["a", "b"])))
