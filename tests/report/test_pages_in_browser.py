"""Every page that is written, in a browser window of 1,280 pixels: nothing is cut off."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")

from bench.speed.browser import CHROMIUM, chromium
from dicot.judge.report.figures import class_series, map_panels
from dicot.judge.report.page import DrawnWindow, Part, render, windows_page
from dicot.judge.report.tables import Table, text_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}"),
]
WIDE = 1280
LONG = "a_very_long_name_of_a_channel_without_any_space_in_it_" * 5
# What reaches over the edge of the window or of its drawing; what is inside a scroll container may.
CUT_OFF = """() => [...document.querySelectorAll('body *')].filter((one) => {
    const right = one.getBoundingClientRect().right;
    const drawing = one.tagName === 'text' && one.closest('svg').getBoundingClientRect().right;
    return !one.parentElement.closest('.scroll, pre') && (right > innerWidth || (drawing && right > drawing + 1));
}).map((one) => `${one.tagName} ${one.textContent.slice(0, 60)}`)"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def cut_off(browser: Any, file: Path, text: str) -> tuple[list[str], list[int]]:
    """Return what is cut off, and how many pixels each scroll container hides."""
    file.write_text(text, encoding="utf-8")
    page = browser.new_page(viewport={"width": WIDE, "height": 900})
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDE
    boxes = "[...document.querySelectorAll('.scroll')].map((box) => box.scrollWidth - box.clientWidth)"
    found = page.evaluate(CUT_OFF), page.evaluate(boxes)
    page.close()
    return found


def scores(columns: list[str]) -> Table:
    """A table as `dicot evaluate` has it: means with their spread, ties, and a sentence below each protocol."""
    rows = ["semi_1pct, semi_1 accuracy", "linear accuracy"]
    cells = ["94.92 ± 1.37 (tie)", *["88.16 ± 12.06"] * (len(columns) - 1)]
    table = text_table("protocol, metric", [(row, cells) for row in rows], columns, "")
    return replace(table, about=dict.fromkeys(rows, "FewLabelClassifier with all cases on 1 labelled case per class"))


# The contenders of `make demo`.
DEMO = ["best", "dicot", "random", "calibrated", "random of dicot", "calibrated of dicot", "raw-mean", "raw-flat"]


def test_a_report_fits_and_what_cannot_fit_scrolls(browser: Any, tmp_path: Path) -> None:
    x, names = np.random.default_rng(0).normal(size=(6, 2, 50)), np.array(["walk", LONG] * 3)
    figures = {
        "series": class_series(x, names, [LONG, "y"], np.unique(names)),
        "map": map_panels({"map": (x[:, :, 0], names)}, ringed=x[:2, :, 0]),
    }
    more = scores([f"{number} of dicot" for number in range(30)])
    opening = Part("", lead=(f"{LONG} and best differ", LONG))
    parts = [opening, Part("Scores", scores(DEMO), drawings=figures), Part("More", more)]
    page = render(LONG, parts, {"command": LONG}, "banner", [("why", f"dicot {LONG}")])
    wrong, hidden = cut_off(browser, tmp_path / "a.html", page)
    assert wrong == [] and hidden[0] == 0 < hidden[1]


def test_a_page_of_windows_fits(browser: Any, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(3, 50))
    shown = [DrawnWindow(LONG, values, {LONG: LONG}, (LONG, LONG)), DrawnWindow("b", values, {}, ("0", "1"))]
    text = windows_page(LONG, [LONG], shown, ["x", LONG, "z"], {LONG: LONG})
    assert cut_off(browser, tmp_path / "a.html", text)[0] == []
