"""The short table of a README, the marks around it, and whether it is up to date; the command that does all this."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot
from tests.report.samples import ARCHIVE, SUITES, write_csv

from dicot.core.errors import InputError
from dicot.judge.report.frame import frame
from dicot.paper.numbers import paper_tables
from dicot.paper.summary import Marks, block_is_current, summary_markdown, summary_table, with_block, write_block

ROWS = [*SUITES["ucr"], *SUITES["uea"]]
MARKS = Marks.of(["ucr", "uea"])
BEGIN, END = MARKS


def test_the_summary_has_both_archives_the_controls_and_the_papers_numbers():
    table = summary_table(frame(ROWS))
    assert table.columns[:3] == ["UCR accuracy", "UCR rank", "UCR, the paper's"]
    assert {"random", "calibrated", "minirocket, ridge", "dicot, per_epoch"} <= set(table.cells.index)
    assert table.cells.loc["minirocket, ridge"].tolist()[3:5] == ["not run", ""]
    printed = np.mean([paper_tables()["ucr"][name]["CaTT"] for name in ARCHIVE])
    column = table.cells["UCR, the paper's"]
    assert column["catt"] == f"{printed:.2f}" and column["calibrated"] == ""
    assert "UCR: 6 data sets. UEA: 3 data sets." in table.note


def test_the_summary_depends_on_the_records_alone():
    assert summary_markdown(frame(ROWS)) == summary_markdown(frame(reversed(ROWS)))
    assert "Recorded 2026-01-02 to 2026-01-02." in summary_markdown(frame(ROWS))


def test_a_summary_needs_controls_and_accuracies():
    with pytest.raises(InputError, match="no record of calibrated"):
        summary_table(frame(r for r in ROWS if r["contender"] != "calibrated"))
    with pytest.raises(InputError, match="there are none"):
        summary_table(frame(SUITES["clustering"]))


def test_the_block_is_replaced_and_nothing_else(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    assert not block_is_current(readme, "new\n", MARKS)
    write_block(readme, "new\n", MARKS)
    assert readme.read_text(encoding="utf-8") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert block_is_current(readme, "new\n", MARKS)


@pytest.mark.parametrize("text", ["no marks", BEGIN, f"{END} {BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_marks_must_be_there_once_and_in_order(text):
    with pytest.raises(InputError, match="needs one line <!-- dicot report: begin -->"):
        with_block(text, "new", "README.md", MARKS)


def test_the_command_writes_the_report_and_the_summary(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["dicot", "report", "uea"])
    write_csv(tmp_path / "all.csv", ROWS)
    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    call = ["report", "ucr,uea", "--records", tmp_path / "all.csv", "--into", readme]
    with pytest.raises(InputError, match="out of date"):
        dicot(*call, "--check")
    assert "Wrote the summary" in dicot(*call)
    assert "is up to date" in dicot(*call, "--check")
    said = dicot("report", "uea", "--records", tmp_path / "all.csv", "--out", tmp_path / "uea", "--against-paper")
    assert f"{tmp_path / 'uea' / 'report.html'}" in said
    assert "command: dicot report uea" in (tmp_path / "uea" / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ucr", "--out", "o"], "There is no ledger at out/bench.sqlite"),
        (["ucr", "--out", "o", "--ledger", "a", "--records", "b"], "either --ledger FILE or --records FILE"),
        (["ucr", "--out", "o", "--check"], "--check needs --into"),
    ],
)
def test_a_call_that_cannot_work_says_why(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        dicot("report", *words)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suites", "folder", "page"),
    [("ucr,uea", "results", "docs/benchmark.md"), ("best", "results/best", "README.md")],
)
def test_the_tables_on_pages_are_those_of_the_published_results(suites, folder, page):
    root = Path(__file__).resolve().parents[2]
    call = ["report", suites, "--records", root / folder, "--into", root / page]
    assert "is up to date" in dicot(*call, "--check")


def test_the_table_about_the_preset_has_marks_of_its_own():
    assert Marks.of(["best"]).begin == "<!-- dicot report best: begin -->" != BEGIN
    assert Marks.of(["best", "ucr"]) == MARKS
