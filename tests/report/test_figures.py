"""Figures are well-formed, repeatable, safe and say what they show."""

import builtins
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from dicot.core.errors import MissingExtraError
from dicot.judge.report.figures import (
    confusion,
    critical_difference,
    dots,
    loss_curve,
    map_panels,
    time_scatter,
    win_tie_loss,
)
from dicot.paper.figures import power_curves, reference_curves, sub_blocks

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 2))
NAMES = ["dicot", "<b>", "a_very long name of a contender -> with settings", "random"]
ACCURACY = RNG.normal(70, 5, size=(20, 4)) + np.array([6, 5, 0, -8])


def all_words(svg):
    return " ".join(words(svg))


def words(svg):
    return [e.text for e in ET.fromstring(svg).iter() if e.text and e.text.strip()]


FIGURES = {
    "loss": lambda: loss_curve([3.0, 2.0, 1.5], [1e-3, 5e-4, 0.0]),
    "one step": lambda: loss_curve([3.0], [1e-3]),
    "confusion": lambda: confusion([[3, 1], [0, 4]], ["sit", "walk"]),
    "dots": lambda: dots({"dicot": [80.0, 82.0], "raw-mean": [60.0], "tnc": []}, "accuracy"),
    "critical difference": lambda: critical_difference(ACCURACY, NAMES),
    "time": lambda: time_scatter({"dicot": (10.0, 80.0), "<b>": (11.0, 80.1)}, "average accuracy", ["dicot"]),
    "curves": lambda: reference_curves({"dicot": [1.0, 2.0], "<b>": [2.0, np.nan]}, ["5", "all"], "cases", "accuracy"),
    "curves that end": lambda: power_curves({"<b>": ([8, 64], [1.0, 9.0])}, "batch size", "ms", {"<b>": 512.0}),
    "method": lambda: sub_blocks(POINTS[:, 0].tolist(), 4),
    "wins": lambda: win_tie_loss({"<b>": (3, 0, 1), "catt": (1, 1, 0)}, "dicot"),
    "maps": lambda: map_panels({n: (POINTS[:9], np.arange(9) % 3) for n in ("dicot", "<b>")}),
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


def test_pyplot_and_its_global_state_are_not_touched():
    code = "import sys; from dicot.judge.report.figures import loss_curve; early = 'matplotlib' in sys.modules;"
    code += "loss_curve([1.0], [1.0]); sys.exit(early or 'matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_map_has_a_legend_up_to_twenty_classes():
    y = np.array([f"class {i % 20}" for i in range(60)])
    assert {"class 0", "class 19"} <= set(words(map_panels({"map": (POINTS, y)})))
    many = np.array([f"class {i % 21}" for i in range(60)])
    assert "class 0" not in words(map_panels({"map": (POINTS, many)}))


def test_labels_are_text_not_markup_formula_or_hidden():
    svg = map_panels({'a "title" <b>': (POINTS, np.array(["<script>", "$x_{", "_hidden", "日本"] * 15))})
    assert "<script" not in svg
    assert {"<script>", "$x_{", "_hidden", "日本"} <= {w.strip() for w in words(svg)}
    assert ET.fromstring(svg).get("aria-label") == 'Maps of a "title" <b>'


def test_confusion_prints_numbers_up_to_fifteen_classes():
    assert "777" in words(confusion(np.full((15, 15), 777), range(15)))
    assert "777" not in words(confusion(np.full((16, 16), 777), range(16)))


def test_a_contender_without_scores_is_shown_as_failed():
    assert {"dicot", "raw-mean", "tnc", "failed", "accuracy"} <= set(words(FIGURES["dots"]()))


@pytest.mark.parametrize("name", ["critical difference", "time", "curves", "wins", "maps"])
def test_figures_of_contenders_name_them(name):
    svg = FIGURES[name]()
    assert svg.startswith("<svg role=") and "<b>" not in svg
    assert "dicot" in all_words(svg) and "<b>" in all_words(svg)
    assert "mathdefault" not in svg  # a formula that was not set


def test_the_diagram_repeats_and_shows_ranks_and_both_tests():
    svg = FIGURES["critical difference"]()
    assert svg == FIGURES["critical difference"]()
    for text in ("Nemenyi, critical difference 1.05", "Wilcoxon, Holm's correction", "settings"):
        assert text in all_words(svg)
    ranks = {f"{rank:.2f}" for rank in (-ACCURACY).argsort(axis=1).argsort(axis=1).mean(axis=0) + 1}
    assert ranks <= set(all_words(svg).split())


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'dicot\[report\]'"):
        FIGURES["loss"]()


def test_a_curve_that_could_not_go_on_ends_at_a_cross():
    plain = power_curves({"a": ([8, 64], [1.0, 9.0])}, "batch size", "ms")
    ended = power_curves({"a": ([8, 64], [1.0, 9.0])}, "batch size", "ms", {"a": 512.0})
    assert "512" not in words(plain) and "512" in words(ended)
    assert ended.count("<use") > plain.count("<use")
