"""The command as it is typed, on shapes that take no time."""

import csv
import re

import pytest
import typer
from typer.testing import CliRunner

from bench.speed import command
from bench.speed.shapes import Effort

TINY = ["--device", "cpu", "--shape", "4,16,1", "--shape", "4,12,2"]
LABELS = ("4, 16, 1 float32", "4, 12, 2 float32")


def run(arguments):
    app = typer.Typer()
    app.command()(command.speed)
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(command, "effort_for", lambda shape, kind: Effort(1, 1, 2, 2, 1))


def test_the_last_line_is_the_smallest_ratio_and_the_files_have_every_number(tiny, tmp_path):
    result = run([*TINY, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    page = command.page_name("cpu")
    with (tmp_path / f"{page}.csv").open() as file:
        value = {(row["section"], row["row"], row["column"]): row["value"] for row in csv.DictReader(file)}
    ratios = [float(value["steps", label, "plain ms"]) / float(value["steps", label, "ours ms"]) for label in LABELS]
    assert [float(value["steps", label, "ratio"]) for label in LABELS] == pytest.approx(ratios)
    last = result.stdout.splitlines()[-1]
    assert re.fullmatch(r"min ratio \d+\.\d\d", last) and last == f"min ratio {min(ratios):.2f}"
    assert {value["agreement", label, "agrees"] for label in LABELS} == {"yes"}
    assert "| B, T, C, precision | plain ms | ours ms | ratio |" in (tmp_path / f"{page}.md").read_text()


def test_losses_that_do_not_agree_end_with_exit_code_one(monkeypatch):
    steps = command.Section("steps", "Steps", [{"shape": "4, 16, 1", "ratio": 2.0}], "")
    agreement = command.Section("agreement", "Losses", [{"shape": "4, 16, 1", "agrees": "NO"}], "")
    monkeypatch.setattr(command, "step_sections", lambda *arguments: [steps, agreement])
    result = run(TINY)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "min ratio 2.00"
    assert "eager float32" in result.stderr
