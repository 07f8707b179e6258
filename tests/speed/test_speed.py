"""The script as it is typed, on a shape that takes no time, and the arithmetic of its tables."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import speed
from benchmarks.timing.archive import ArchiveRun, archive_sections
from benchmarks.timing.scaling import Curve, exponent, scaling_sections
from benchmarks.timing.sections import Section
from benchmarks.timing.shapes import Shape
from typer.testing import CliRunner

from dicot.data import Windows
from dicot.train import Recipe

ROOT = Path(__file__).resolve().parents[2]
TINY = ["--device", "cpu", "--shape", "4,16,1", "--turns", "1", "--steps", "1", "--checked", "2"]
PAGE = speed.page_name("cpu")


@pytest.fixture(scope="module")
def tiny_run(tmp_path_factory):
    """The lines that the script prints, run by its path from another folder, and the folder it writes to."""
    out = tmp_path_factory.mktemp("speed")
    command = [sys.executable, str(ROOT / "benchmarks" / "speed.py"), *TINY, "--shape", "4,12,2", "--out", str(out)]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        command, cwd=out.parent, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines(), out


@pytest.mark.slow
def test_the_last_line_is_the_smallest_ratio(tiny_run):
    lines, out = tiny_run
    assert re.fullmatch(r"min ratio \d+\.\d\d", lines[-1])
    with (out / f"{PAGE}.csv").open() as file:
        value = {(row["section"], row["row"], row["column"]): row["value"] for row in csv.DictReader(file)}
    labels = ("4, 16, 1 float32", "4, 12, 2 float32")
    ratios = [float(value["steps", label, "plain ms"]) / float(value["steps", label, "ours ms"]) for label in labels]
    assert [float(value["steps", label, "ratio"]) for label in labels] == pytest.approx(ratios)
    assert lines[-1] == f"min ratio {min(ratios):.2f}"
    assert {value["agreement", label, "agrees"] for label in labels} == {"yes"}


def test_losses_that_do_not_agree_end_with_exit_code_one(monkeypatch):
    table = Section("steps", "Steps", ("shape", "ratio"), (("4, 16, 1", (2.0,)),), "")
    monkeypatch.setattr(speed, "step_sections", lambda *arguments: (table, table, [2.0], False))
    result = CliRunner().invoke(speed.app, TINY)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "min ratio 2.00"
    assert "eager float32" in result.stderr


def test_exponents_and_figures_of_the_scaling():
    assert exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2)
    chosen = [
        Curve("dicot", "B", (2, 4), lambda n: (Shape(n, 24, 1), 16, {})),
        Curve("dicot", "k", (2, 3), lambda n: (Shape(2, 24, 1), 16, {"k": n})),
    ]
    points, powers = scaling_sections("float32", "cpu", chosen, steps=2, draw=True)
    assert [label for label, _ in points.rows][:2] == ["dicot against B = 2", "dicot against B = 4"]
    assert [label for label, _ in powers.rows] == ["dicot against B", "dicot against k"]
    assert set(points.figures) == {"scaling-batch-size", "scaling-sub-blocks"}
    assert all("<svg" in svg for svg in points.figures.values())


@pytest.mark.slow
def test_the_plain_sum_of_the_archive_is_steps_times_seconds_per_step():
    rng = np.random.default_rng(0)
    sets = [
        ArchiveRun(f"set {n_times}", Windows(rng.normal(size=(9, 1, n_times)).astype(np.float32)), Recipe(steps, 8))
        for n_times, steps in ((12, 2), (16, 3))
    ]
    total, plain = archive_sections("float32", "cpu", sets, warm_up=1, timed=1)
    ((_, (runs, steps, expected, ours, ratio)),) = total.rows
    assert (runs, steps) == ("2", "5") and ours > 0 and ratio == expected / ours
    ms = {label: value for label, (value,) in plain.rows}
    assert expected == pytest.approx((2 * ms["8, 12, 1"] + 3 * ms["8, 16, 1"]) / 1e3)
