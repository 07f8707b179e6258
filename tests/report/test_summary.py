"""The short table of a README, the marks around it, and whether it is up to date; the command that does all this."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.commands import bench
from tests.report.samples import ARCHIVE, SUITES, write_csv

from bench.paper.numbers import paper_tables
from bench.paper.reports import summary_markdown, with_summary
from bench.report.frame import frame
from dicot.core.errors import InputError

ROWS = [*SUITES["ucr"], *SUITES["uea"]]
BEGIN, END = "<!-- bench report: begin -->", "<!-- bench report: end -->"


def test_the_summary_is_table_two_and_depends_on_the_records_alone():
    text = summary_markdown(frame(ROWS))
    assert text == summary_markdown(frame(reversed(ROWS))) and "Recorded 2026-01-02 to 2026-01-02." in text
    assert "| contender | UCR accuracy, 6 sets | UCR rank | UEA accuracy, 3 sets |" in text
    printed = np.mean([paper_tables()["ucr"][name]["CaTT"] for name in ARCHIVE])
    assert f" ({printed:.2f}, " in next(line for line in text.splitlines() if line.startswith("| CaTT |"))
    with pytest.raises(InputError, match="no record of calibrated"):
        summary_markdown(frame(r for r in ROWS if r["contender"] != "calibrated"))


def test_the_block_is_replaced_and_nothing_else():
    made = with_summary(f"before\n{BEGIN}\nold\n{END}\nafter\n", "new\n", ["ucr", "uea"])
    assert made == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert with_summary(made, "new\n", ["ucr", "uea"]) == made
    with pytest.raises(InputError, match="needs one line .*best: begin"):
        with_summary(made, "new", ["best"])


def test_the_command_writes_the_report_and_the_summary(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["bench", "report", "uea"])
    write_csv(tmp_path / "all.csv", ROWS)
    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    call = ["report", "ucr,uea", "--records", tmp_path / "all.csv", "--into", readme]
    with pytest.raises(InputError, match="out of date"):
        bench(*call, "--check")
    assert "Wrote the summary" in bench(*call)
    assert "is up to date" in bench(*call, "--check")
    said = bench("report", "uea", "--records", tmp_path / "all.csv", "--out", tmp_path / "uea", "--against-paper")
    assert f"{tmp_path / 'uea' / 'report.html'}" in said
    assert "command: python -m bench report uea" in (tmp_path / "uea" / "report.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suites", "folder", "page"),
    [("ucr,uea", "results", "docs/benchmark.md"), ("best", "results/best", "README.md")],
)
def test_the_tables_on_pages_are_those_of_the_published_results(suites, folder, page):
    root = Path(__file__).resolve().parents[2]
    call = ["report", suites, "--records", root / folder, "--into", root / page]
    assert "is up to date" in bench(*call, "--check")
