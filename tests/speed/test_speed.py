"""The script as it is typed, on a shape that takes no time, and the arithmetic of its tables."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import speed
from benchmarks.timing.archive import ArchiveRun, archive_sections
from benchmarks.timing.embedding import embedding_section
from benchmarks.timing.floors import matrix_precision, multiply_adds, step_work, stored_values
from benchmarks.timing.scaling import STATUS, Curve, curves, exponent, memory_section, scaling_sections
from benchmarks.timing.sections import Section, shown
from benchmarks.timing.shapes import CPU, CUDA, QUICK, Effort, Shape, effort_for, parse_shape
from benchmarks.timing.steps import method_section
from benchmarks.timing.turns import RunSeconds, in_turns, run_length
from torch import nn
from typer.testing import CliRunner

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.nets.encoders import InceptionTime
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


@pytest.mark.slow
def test_the_page_says_how_it_was_made(tiny_run):
    _, out = tiny_run
    assert sorted(path.name for path in out.iterdir()) == [f"{PAGE}.csv", f"{PAGE}.md"]
    text = (out / f"{PAGE}.md").read_text(encoding="utf-8")
    assert "`python benchmarks/speed.py --device cpu --shape 4,16,1" in text
    assert "| 4, 16, 1 float32 |" in text and "threads, torch" in text and re.search(r"\*\*\d+\.\d\d\*\*", text)


def test_arm_has_a_page_of_its_own():
    pages = [speed.page_name("cpu", processor) for processor in ("x86_64", "AMD64", "aarch64", "arm64")]
    assert pages == ["speed-cpu", "speed-cpu", "speed-cpu-arm", "speed-cpu-arm"]
    assert speed.page_name("cuda", "aarch64") == "speed-cuda"


def test_losses_that_do_not_agree_end_with_exit_code_one(monkeypatch):
    table = Section("steps", "Steps", ("shape", "ratio"), (("4, 16, 1", (2.0,)),), "")
    monkeypatch.setattr(speed, "step_sections", lambda *arguments: (table, table, [2.0], False))
    result = CliRunner().invoke(speed.app, TINY)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "min ratio 2.00"
    assert "eager float32" in result.stderr


def test_without_the_step_there_is_no_smallest_ratio():
    result = CliRunner().invoke(speed.app, ["--device", "cpu", "--no-step"])
    assert result.exit_code == 0 and "ratio" not in result.stdout


@pytest.mark.parametrize("text", ["8,150", "8,x,1", "1,150,1", "8,4,1", ""])
def test_a_wrong_shape_is_refused(text):
    with pytest.raises(InputError, match=f"'{text}'"):
        parse_shape(text)


def test_an_unknown_precision_is_refused():
    result = CliRunner().invoke(speed.app, ["--device", "cpu", "--precision", "half"])
    assert isinstance(result.exception, InputError) and "half" in str(result.exception)


def test_shapes_are_those_of_the_large_sets_and_the_archives():
    assert QUICK == ((8, 24, 1), (8, 150, 1), (8, 100, 6)) and (*QUICK, (128, 500, 6)) == CPU
    large = {(128, 500, 6), (128, 100, 52), (128, 40, 3), (128, 50, 60), (16, 3000, 1), (16, 2500, 2)}
    assert set(CUDA) == large | {(8, 150, 1), (8, 1000, 3), (8, 100, 6)}
    lengths = {shape: run_length(effort_for(shape, "cuda")) for shape in CUDA}
    assert all(lengths[shape] == (1500 if shape in large else 600) for shape in CUDA)


def test_turns_alternate_and_medians_leave_the_warm_up_out():
    called = []

    def plain(turn):
        called.append(f"plain {turn}")
        return [100.0, 4.0, 6.0]

    def ours(turn):
        called.append(f"ours {turn}")
        return RunSeconds([1.0, 2.0, 3.0], 30.0)

    pair = in_turns(plain, ours, Effort(2, warm_up=1, steps=2, checked=0, runs=1, length=10), lambda: None)
    assert called == ["plain 0", "ours 0", "plain 1"]
    assert (pair.plain, pair.ours, pair.all_in) == (5.0, 2.0, 3.0)
    assert pair.ratio("cpu") == 2.5 and pair.ratio("cuda") == pytest.approx(5 / 3)


def test_methods_are_in_the_table():
    effort = Effort(turns=1, warm_up=1, steps=1, checked=0, runs=1)
    section = method_section([Shape(4, 24, 2)], ["float32"], "cpu", lambda shape, kind: effort, ["catt", "supervised"])
    assert [label.split()[0] for label, _ in section.rows] == ["catt", "supervised"]
    assert all(values[0] > 0 and values[2] == values[0] / values[1] for _, values in section.rows)


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


def test_the_papers_scaling_is_measured_on_a_gpu():
    sizes = {(curve.method, curve.quantity): tuple(curve.sizes) for curve in curves("cuda")}
    assert sizes["catt", "B"] == sizes["dicot", "B"] == (8, 16, 32, 64, 128, 256, 512)
    assert {quantity for name, quantity in sizes if name == "dicot"} == {"T", "B", "k", "N"}
    for curve in curves("cuda"):
        shape, n_cases, settings = curve.point(curve.sizes[-1])
        assert curve.sizes[-1] in (*shape, n_cases, *settings.values())


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="the memory of a process is read from Linux's /proc")
def test_memory_of_both_in_processes_of_their_own():
    ((label, values),) = memory_section([Shape(8, 200, 1)], "cpu", steps=1).rows
    assert label == "8, 200, 1"
    assert values[0] > 10 and values[1] > 10, "a step of this size needs many MiB"
    assert values[2] == values[1] / values[0]


def test_embedding_is_compared_and_equals_the_definition():
    ((label, (plain, ours, ratio, deviation)),) = embedding_section([Shape(4, 24, 2)], "cpu", n_cases=6, turns=1).rows
    assert label == "24, 2 float32"
    assert ratio == pytest.approx(ours / plain)
    assert deviation < 1e-5


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


def test_the_count_of_operations_equals_that_of_hooks():
    encoder, counted = InceptionTime(3).eval(), [0, 0]

    def count(conv, args, y):
        counted[0] += y.numel() * conv.in_channels * conv.kernel_size[0]
        counted[1] += y.numel()

    for module in encoder.modules():
        if isinstance(module, nn.Conv1d):
            module.register_forward_hook(count)
    with torch.no_grad():
        encoder(torch.zeros(2, 3, 50))
    assert counted == [100 * multiply_adds(encoder), 100 * stored_values(encoder)]


def test_a_step_is_a_pass_over_the_sub_blocks_three_times():
    rows = []  # k = 2 .. 10 at T = 100 by the paper's rule: length, stride and count
    for k in range(2, 11):
        length = 2 * round(100 / (1 + (k - 1) / 2) / 2)
        rows.append(4 * length * ((100 - length) // round(length / 2) + 1))
    work = step_work(Shape(4, 100, 2))
    assert work.operations == pytest.approx(2 * 3 * np.mean(rows) * multiply_adds(InceptionTime(2)))
    assert work.bytes == pytest.approx(16 * np.mean(rows) * stored_values(InceptionTime(2)))


def test_the_callers_precision_is_restored():
    before = torch.backends.cuda.matmul.fp32_precision
    with matrix_precision("tf32"):
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_numbers_are_rounded_to_three_digits_or_so():
    assert [shown(value) for value in (0.0, 3.14159, 31.4159, 314.159, 0.00031, 2e7, "yes")] == [
        "0", "3.14", "31.4", "314", "3.1e-04", "2.0e+07", "yes"
    ]  # fmt: skip
