"""Figures are well-formed, repeatable, safe and say what they show."""

import builtins
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from dicot.errors import InputError, MissingExtraError
from dicot.report.curves import loss_curve
from dicot.report.figures import bars, confusion
from dicot.report.scatter import embedding_map

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 2))


def words(svg):
    return [e.text for e in ET.fromstring(svg).iter() if e.text and e.text.strip()]


FIGURES = {
    "loss": lambda: loss_curve([3.0, 2.0, 1.5], [1e-3, 5e-4, 0.0]),
    "one step": lambda: loss_curve([3.0], [1e-3]),
    "map": lambda: embedding_map(POINTS, np.arange(60) % 3, "t-SNE"),
    "confusion": lambda: confusion([[3, 1], [0, 4]], ["sit", "walk"]),
    "bars": lambda: bars({"dicot": [80.0, 82.0], "raw-mean": [60.0], "tnc": []}, "accuracy"),
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
    code = "import sys; from dicot.report.curves import loss_curve; early = 'matplotlib' in sys.modules;"
    code += "loss_curve([1.0], [1.0]); sys.exit(early or 'matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_curve_names_its_axes():
    assert {"loss", "learning rate", "step"} <= set(words(FIGURES["loss"]()))


def test_map_has_a_legend_up_to_twenty_classes():
    y = np.array([f"class {i % 20}" for i in range(60)])
    assert {"class 0", "class 19"} <= set(words(embedding_map(POINTS, y, "map")))
    assert "class 0" not in words(embedding_map(POINTS, np.array([f"class {i % 21}" for i in range(60)]), "map"))


def test_labels_are_text_not_markup_formula_or_hidden():
    svg = embedding_map(POINTS, np.array(["<script>", "$x_{", "_hidden", "日本"] * 15), 'a "title" <b>')
    assert "<script" not in svg
    assert {"<script>", "$x_{", "_hidden", "日本"} <= {w.strip() for w in words(svg)}
    assert ET.fromstring(svg).get("aria-label") == 'a "title" <b>, 4 classes'


def test_confusion_prints_numbers_up_to_fifteen_classes():
    assert "777" in words(confusion(np.full((15, 15), 777), range(15)))
    assert "777" not in words(confusion(np.full((16, 16), 777), range(16)))


def test_a_class_without_cases_does_not_divide_by_zero():
    assert "0" in words(confusion([[0, 0], [1, 2]], ["a", "b"]))


def test_a_contender_without_scores_is_shown_as_failed():
    assert {"dicot", "raw-mean", "tnc", "failed", "accuracy"} <= set(words(FIGURES["bars"]()))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: loss_curve([], []), "got 0 and 0"),
        (lambda: loss_curve([1.0], [1.0, 2.0]), "got 1 and 2"),
        (lambda: embedding_map(np.ones((3, 3)), np.zeros(3), "t"), r"points \(N, 2\)"),
        (lambda: embedding_map(np.ones((3, 2)), np.zeros(2), "t"), r"got \(3, 2\) and \(2,\)"),
        (lambda: confusion([[1, 2]], ["a", "b"]), r"counts of shape \(2, 2\)"),
        (lambda: confusion([[0.5, 0.5], [1.0, 0.0]], ["a", "b"]), "float64"),
        (lambda: bars({}, "accuracy"), "at least one contender"),
    ],
)
def test_malformed_input_is_refused(draw, message):
    with pytest.raises(InputError, match=message):
        draw()


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'dicot\[report\]'"):
        FIGURES["loss"]()
