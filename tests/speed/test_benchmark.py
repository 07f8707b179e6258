"""The command as it is typed, on a shape that takes no time."""

import csv
import re

import pytest
from typer.testing import CliRunner

from dicot.cli import app
from dicot.errors import InputError
from dicot.methods import METHODS
from dicot.speed import Options, Shape, parse_shape, run_benchmark, steps, write_result
from dicot.speed.embedding import embedding_section
from dicot.speed.memory import STATUS, memory_section
from dicot.speed.scaling import Curve, curves, exponent, scaling_sections
from dicot.speed.shapes import CPU, CUDA, QUICK, Effort, effort_for
from dicot.speed.steps import method_section
from dicot.speed.turns import in_turns, run_length

TINY = ["bench", "speed", "--device", "cpu", "--shape", "4,16,1", "--turns", "1", "--steps", "1", "--checked", "2"]


@pytest.fixture(autouse=True)
def _small_ceilings(monkeypatch):
    monkeypatch.setattr("dicot.speed.floors.SIDE", {"cpu": 64})
    monkeypatch.setattr("dicot.speed.floors.COPIED", {"cpu": 2**16})


def test_the_last_line_is_the_smallest_ratio_and_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [*TINY, "--shape", "4,12,2"])
    assert result.exit_code == 0, result.output
    last = result.stdout.splitlines()[-1]
    assert re.fullmatch(r"min ratio \d+\.\d\d", last)
    shown = re.findall(r"4, 1[26], [12] float32 .*?(\d+\.\d\d) ", result.stdout)[:2]
    assert "4, 16, 1 float32" in result.stdout and "4, 12, 2 float32" in result.stdout and shown
    assert list(tmp_path.iterdir()) == []


def test_files_are_written_where_they_are_asked_for(tmp_path):
    result = CliRunner().invoke(app, [*TINY, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["speed-cpu.csv", "speed-cpu.md"]
    with (tmp_path / "speed-cpu.csv").open() as file:
        rows = list(csv.DictReader(file))
    value = {(row["section"], row["column"]): row["value"] for row in rows}
    ratio = float(value["steps", "plain ms"]) / float(value["steps", "ours ms"])
    assert float(value["steps", "ratio"]) == pytest.approx(ratio)
    assert value["agreement", "agrees"] == "yes"
    assert result.stdout.splitlines()[-1] == f"min ratio {ratio:.2f}"
    text = (tmp_path / "speed-cpu.md").read_text()
    assert "| 4, 16, 1 float32 |" in text and "threads, torch" in text and f"**{ratio:.2f}**" in text


def test_losses_that_do_not_agree_end_with_exit_code_one(monkeypatch):
    check = steps.check_losses
    from dicot.encoders import InceptionTime
    from dicot.methods.dicot import DiCOT

    def wrong(*args):
        return check(*args, lambda n: DiCOT(InceptionTime(n), temperature=0.1))

    monkeypatch.setattr(steps, "check_losses", wrong)
    result = CliRunner().invoke(app, TINY)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("min ratio ")
    assert "not those of eager float32" in result.stderr


def test_shapes_are_those_of_the_large_sets_and_the_archives():
    assert QUICK == ((8, 24, 1), (8, 150, 1), (8, 100, 6)) and (*QUICK, (128, 500, 6)) == CPU
    large = {(128, 500, 6), (128, 100, 52), (128, 40, 3), (128, 50, 60), (16, 3000, 1), (16, 2500, 2)}
    assert set(CUDA) == large | {(8, 150, 1), (8, 1000, 3), (8, 100, 6)}
    lengths = {shape: run_length(effort_for(shape, "cuda")) for shape in CUDA}
    assert all(lengths[shape] == (1500 if shape in large else 600) for shape in CUDA)


@pytest.mark.parametrize("text", ["8,150", "8,x,1", "1,150,1", "8,4,1", ""])
def test_a_shape_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="shape"):
        parse_shape(text)


def test_an_unknown_precision_is_refused():
    from dicot.speed import Options

    with pytest.raises(InputError, match="float32 or tf32; got half"):
        run_benchmark(Options("cpu", precisions=("half",)))


def test_turns_alternate_and_medians_leave_the_warm_up_out():
    from dicot.speed.ours import Seconds

    called = []

    def plain(turn):
        called.append(f"plain {turn}")
        return [100.0, 4.0, 6.0]

    def ours(turn):
        called.append(f"ours {turn}")
        return Seconds([1.0, 2.0, 3.0], 30.0)

    pair = in_turns(plain, ours, Effort(2, warm_up=1, steps=2, checked=0, runs=1, length=10), lambda: None)
    assert called == ["plain 0", "ours 0", "plain 1"]
    assert (pair.plain, pair.ours, pair.all_in) == (5.0, 2.0, 3.0)
    assert pair.ratio("cpu") == 2.5 and pair.ratio("cuda") == pytest.approx(5 / 3)


def test_methods_are_in_the_table(monkeypatch):
    monkeypatch.setattr(steps, "METHODS", {name: METHODS[name] for name in ("catt", "supervised")})
    effort = Effort(turns=1, warm_up=1, steps=1, checked=0, runs=1)
    section = method_section([Shape(4, 24, 2)], ["float32"], "cpu", lambda shape, kind: effort)
    assert [label.split()[0] for label, _ in section.rows] == ["catt", "supervised"]
    assert all(values[0] > 0 and values[2] == values[0] / values[1] for _, values in section.rows)


def test_exponents_and_figures_of_the_scaling(monkeypatch):
    assert exponent([1, 2, 4], [3, 12, 48]) == pytest.approx(2)
    monkeypatch.setattr("dicot.speed.scaling.STEPS", {"cpu": 2})
    chosen = [
        Curve("dicot", "B", (2, 4), lambda n: (Shape(n, 24, 1), 16, {})),
        Curve("catt", "B", (2, 4), lambda n: (Shape(n, 24, 1), 16, {})),
        Curve("dicot", "k", (2, 3), lambda n: (Shape(2, 24, 1), 16, {"k": n})),
    ]
    points, powers = scaling_sections("float32", "cpu", chosen, draw=True)
    assert [label for label, _ in points.rows][:2] == ["dicot against B = 2", "dicot against B = 4"]
    assert [label for label, _ in powers.rows] == ["dicot against B", "catt against B", "dicot against k"]
    assert set(points.figures) == {"scaling-batch-size", "scaling-sub-blocks"}
    assert all(svg.startswith("<svg") and "xmlns" in svg for svg in points.figures.values())


def test_the_papers_scaling_is_measured_on_a_gpu():
    found = {(curve.method, curve.quantity): tuple(curve.sizes) for curve in curves("cuda")}
    assert found["catt", "B"] == found["dicot", "B"] == (8, 16, 32, 64, 128, 256, 512)
    assert {quantity for name, quantity in found if name == "dicot"} == {"T", "B", "k", "N"}
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
    ((label, (plain, ours, ratio, deviation)),) = embedding_section([Shape(4, 24, 2)], "cpu", n_cases=6).rows
    assert label == "24, 2 float32"
    assert ratio == pytest.approx(ours / plain)
    assert deviation < 1e-5


def test_without_the_step_there_is_no_smallest_ratio(tmp_path):
    result = run_benchmark(Options("cpu", shapes=(Shape(4, 16, 1),), step=False))
    assert (result.sections, result.ratios, result.agrees) == ([], [], True)
    write_result(tmp_path, result, "dicot bench speed --no-step")
    text = (tmp_path / "speed-cpu.md").read_text(encoding="utf-8")
    assert "`dicot bench speed --no-step`" in text and "Smallest" not in text
