"""The page: escaped and self-contained."""

import re

from tests.report.test_benchmark_report import Page

from dicot.judge.report.page import Part, drawn, render
from dicot.judge.report.tables import ABSENT, BEST, FAILED, Cell, text_table

EVIL = '"><script>alert(1)</script>'
TABLE = text_table(
    EVIL,
    [(EVIL, [Cell(EVIL), Cell("1", BEST)]), ("name", [Cell("not run", ABSENT), Cell("no", FAILED)])],
    [EVIL, "b"],
    EVIL,
)
PARTS = [
    Part(EVIL, TABLE, {"figure": lambda: "<p>fragment</p>"}, EVIL),
    Part("plain", figures={"other": lambda: "<p>b</p>"}),
]
PAGE = render(EVIL, drawn(PARTS), {EVIL: EVIL, "steps": 1500}, EVIL)


def test_every_text_is_escaped_and_tags_are_balanced():
    page = Page(PAGE)
    assert page.open == [] and "script" not in page.seen
    assert page.seen.count("section") == 2
    assert PAGE.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 12
    assert "<p>fragment</p>" in PAGE


def test_nothing_comes_from_elsewhere():
    assert not re.search(r"https?://|@import|url\(|<link|<img|src=", PAGE)
    assert "default-src 'none'" in PAGE
