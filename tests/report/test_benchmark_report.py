"""The report as files: every suite, well-formed, self-contained, escaped, with its failures and trials in sight."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from tests.report.samples import SUITES, failed, several

from bench.paper import reports
from bench.report.benchmark import write_report
from bench.report.frame import frame

EVIL = '<script>alert("1")</script> & 100 % | k_{max}'


class Page(HTMLParser):
    """Which tags a page has, and whether they are balanced."""

    VOID = frozenset({"meta"})

    def __init__(self, text):
        super().__init__()
        self.seen, self.open, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def report(folder, suite, records, **options):
    names = [path.name for path in write_report(folder, suite, frame(records), **options)]
    return {name: (folder / name).read_text(encoding="utf-8") for name in names}


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_has_its_report(tmp_path, quick, suite):
    files = report(tmp_path, suite, SUITES[suite], beside=reports, command="python -m bench report")
    assert {"report.md", "report.html"} <= set(files)
    assert len(files) == len(set(files)) and set(files) == {path.name for path in tmp_path.iterdir()}
    page = Page(files["report.html"])
    assert page.open == [] and "script" not in page.seen
    assert page.seen.count("svg") == sum(name.endswith(".svg") for name in files)
    assert set(re.findall(r"\]\((.*?)\)", files["report.md"])) == {name for name in files if name.endswith(".svg")}
    tables = page.seen.count("table")
    assert tables == files["report.md"].count("| ---: |\n")
    if suite != "batch_scaling":  # a cost is no score
        method = r">dicot\b|>Next Sub-block|>Overlap"
        whole = [text.partition("</table>")[0] for text in files["report.html"].split("<table>")[1:]]
        scores = [table for table in whole if re.search(method, table)]
        assert scores and all(">random" in t and ">calibrated" in t for t in scores)


def test_the_page_is_light_self_contained_and_its_figures_are_svg(tmp_path):
    records = SUITES["ucr"]
    files = report(tmp_path, "ucr", records, beside=reports, command=f"python -m bench report {EVIL}")
    text = files["report.html"]
    assert "color-scheme: light" in text and "default-src 'none'" in text
    foreign = re.sub(r'xmlns(:xlink)?="http://www\.w3\.org/\S+"', "", text)
    assert not re.search(r"https?://(?!www\.w3\.org|purl\.org|creativecommons)|@import|<link|<img|src=", foreign)
    assert not re.search(r"url\((?!#)", text)
    for name, svg in files.items():
        if name.endswith(".svg"):
            assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    page = Page(text)
    assert page.open == [] and page.seen.count("svg") == 2
    assert f"python -m bench report {EVIL}" in page.text
    ids = re.findall(r' id="(\S+?)"', text)
    assert len(ids) == len(set(ids))


def test_what_others_wrote_is_escaped_everywhere(tmp_path, quick):
    records = [failed(r, EVIL) if r["contender"] == "catt" else r for r in SUITES["uea"]]
    records += several("uea", [EVIL], ("NATOPS", "ERing", "Libras"))
    files = report(tmp_path, "uea", records)
    page = Page(files["report.html"])
    assert "script" not in page.seen and page.text.count(EVIL) >= 3
    assert "<script" not in files["report.md"] and r"\| k_" in files["report.md"]


def test_failed_jobs_are_listed_and_counted(tmp_path, quick):
    records = [failed(r, "it broke") if r["contender"] == "catt" else r for r in SUITES["uea"]]
    files = report(tmp_path, "uea", records)
    assert "15, of which 3 failed" in files["report.html"]
    for text in (files["report.html"], files["report.md"]):
        assert "Failed jobs" in text and "it broke" in text


def test_facts_say_where_the_numbers_come_from(tmp_path, quick):
    older = [SUITES["uea"][0]]
    text = report(tmp_path, "uea", older + SUITES["uea"], command="python -m bench report uea")["report.md"]
    for fact in (
        "jobs: 15, of which 0 failed",
        "devices: cpu",
        "versions: dicot 0.1.0",
        "command: python -m bench report uea",
    ):
        assert f"- {fact}" in text
    assert "left out: 1 older record" in text


@pytest.mark.slow
def test_suites_are_joined(tmp_path, quick):
    records = [*SUITES["ucr"], *SUITES["uea"]]
    everyone = report(tmp_path / "a", "ucr+uea", records)["report.md"]
    assert "# Benchmark: ucr and uea" in everyone and "- data sets: 9" in everyone
    assert "| minirocket, linear |" in everyone and "| dicot, per_epoch |" in everyone
