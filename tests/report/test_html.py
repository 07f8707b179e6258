"""The page: escaped and self-contained."""

import re
from html.parser import HTMLParser

from dicot.report.comparison import Cell, Table
from dicot.report.html import render
from dicot.report.parts import Part

EVIL = '"><script>alert(1)</script>'
TABLE = Table("corner", (EVIL,), ("name",), ((Cell("1"),),), "note")
PARTS = [Part(EVIL, TABLE, {"figure": "<p>fragment</p>"}, EVIL), Part("plain", figures={"other": "<p>b</p>"})]
PAGE = render(EVIL, PARTS, {EVIL: EVIL, "steps": 1500})


class Tags(HTMLParser):
    VOID = frozenset({"meta"})

    def __init__(self):
        super().__init__()
        self.seen, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_every_text_is_escaped_and_tags_are_balanced():
    tags = Tags()
    tags.feed(PAGE)
    assert tags.open == []
    assert "script" not in tags.seen
    assert tags.seen.count("section") == 2
    assert PAGE.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 7
    assert "<p>fragment</p>" in PAGE


def test_nothing_comes_from_elsewhere():
    assert not re.search(r"https?://|@import|url\(|<link|<img|src=", PAGE)
    assert "default-src 'none'" in PAGE


def test_facts_are_a_definition_list_and_may_be_absent():
    assert "<dt>steps</dt><dd>1500</dd>" in PAGE
    assert "<dl>" not in render("t", [])


def test_a_part_without_a_table_or_text_has_neither():
    assert PAGE.count('class="note"') == 2  # of the table, and the text
    assert PAGE.count("<table>") == 1 and "<h2>plain</h2>\n<p>b</p>\n</section>" in PAGE
