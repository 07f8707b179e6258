"""A page of windows: all channels on one scale, escaped and self-contained."""

import re

import numpy as np
from tests.report.test_benchmark_report import Page

from dicot.judge.report.page import MOST_POINTS, STRIP, WIDTH, DrawnWindow, line_path, windows_page

EVIL = '"><script>alert(1)</script>'


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.-]+)", path)]


def paths(page: str) -> list[str]:
    return re.findall(r'<path d="([^"]*)"', page)


def test_a_channel_has_one_scale_on_the_whole_page() -> None:
    small, large = np.array([[0.0, 1.0], [5, 5]]), np.array([[0.0, 10.0], [5, 5]])
    page = windows_page("t", [], [DrawnWindow("a", small, {}), DrawnWindow("b", large, {})], ["x", "flat"], {})
    heights = [max(y for _, y in points(path)) - min(y for _, y in points(path)) for path in paths(page)]
    np.testing.assert_allclose(heights, [STRIP / 10, 0, STRIP, 0], atol=0.11)
    assert '<span class="range">0 to 10</span>' in page


def test_every_text_is_escaped_and_nothing_comes_from_elsewhere() -> None:
    shown = DrawnWindow(EVIL, np.zeros((1, 3)), {EVIL: EVIL}, (EVIL, EVIL), marked=True)
    text = windows_page(EVIL, [EVIL], [shown], [EVIL], {EVIL: EVIL})
    page = Page(text)
    assert page.open == [] and "script" not in page.seen and text.count("<script") == 0
    assert not re.search(r"https?://|@import|url\(|<link|<img|src=", text)
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text and 'class="marked"' in text


def test_a_line_is_broken_where_values_are_missing() -> None:
    path = line_path(np.array([1.0, 2.0, np.nan, 3.0, np.nan, 4.0]))
    assert path.count("M") == 3 and path.count("L") == 1
    assert points(path)[-1] == (WIDTH, 4.0)
    assert line_path(np.full(3, np.nan)) == ""


def test_a_long_line_keeps_its_peaks() -> None:
    heights = np.zeros(50_000)
    heights[12_345], heights[33_333], heights[100:9_000] = 50, -50, np.nan
    drawn = points(line_path(heights))
    assert len(drawn) <= MOST_POINTS and {50.0, -50.0} <= {y for _, y in drawn}
    assert [x for x, _ in drawn] == sorted(x for x, _ in drawn)
    assert line_path(heights).count("M") == 2
