"""The clocks of the paper's page: the steps that are timed are those of a training, and the files are shown."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
from benchmarks.alone import SETS, Run, main, measured, planned
from benchmarks.tables import as_csv
from benchmarks.timing.walk import SEED, timing, walk
from tests.paper.records import everything, paper_markdown

from bench.paper import times
from bench.paper.summary import _speed
from bench.report.frame import frame
from dicot import pretrain
from dicot.core.errors import InputError
from dicot.methods import build_method
from dicot.nets.encoders import InceptionTime
from dicot.train.recipe import Recipe

ROOT = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")


def small(name="dicot"):
    torch.manual_seed(0)
    return build_method(name, InceptionTime(2, dim=8), {})


@pytest.mark.parametrize("name", ["dicot", "tnc"])
def test_the_steps_that_are_timed_are_those_of_a_training(name, waves):
    recipe = Recipe(3, 4)
    first, second = small(name), small(name)
    pretrain(first, waves, recipe, seed=SEED, device="cpu")
    assert len(list(walk(second, waves, recipe, CPU, "auto"))) == 3
    ours, theirs = first.encoder.state_dict(), second.encoder.state_dict()
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_a_slow_run_is_timed_by_fewer_steps_and_none_is_counted_before_the_warm_up(waves):
    assert timing(small(), waves, Recipe(6, 4), CPU, 2).timed == 4
    short = timing(small(), waves, Recipe(20, 4), CPU, 2, limit=1e-9)
    assert (short.warm_up, short.timed) == (2, 3) and 0 < short.step_ms < 1e3 * short.seconds


def test_a_run_that_fails_is_a_row_with_its_reason_and_every_method_has_one_on_every_set(waves):
    row = measured(Run("methods", "catt", "catt", {}, waves, Recipe(3, 4), 1), CPU)
    assert row["error"] == "" and float(row["passes"]) == 1 and float(row["step_ms"]) > 0
    options = type("Options", (), {"sets": ["ItalyPowerDemand"], "questions": ["methods", "splits"], "steps": 9})
    options.methods, options.warm_up = ["dicot", "catt"], 3
    runs = list(planned(options))
    assert [run.contender for run in runs[:3]] == ["dicot", "catt", "k = 2"] and len(runs) == 11
    assert {run.recipe.steps for run in runs} == {9} and len(SETS) == 3


def rows():
    base = {"data_set": "hapt", "batch_size": 128, "time_steps": 128, "precision": "tf32", "warm_up": 100, "timed": 300}
    base |= {"device": "NVIDIA H200, alone", "host_ms": 0.5, "peak_mib": 90, "passes": 1, "encoded": 1.5, "error": ""}
    base["recorded"] = "2026-11-18T08:06:41+00:00"
    made = [
        {**base, "question": "methods", "contender": name, "step_ms": ms} for name, ms in (("dicot", 4), ("tnc", 3))
    ]
    made += [
        {**base, "question": "splits", "contender": name, "step_ms": ms}
        for name, ms in (("k = 2", 3), ("k from 2 to 10", 4), ("both neighbours", 4.2))
    ]
    long = {**base, "question": "batches", "data_set": "long", "time_steps": 500}
    for size in (8, 16):
        made.append({**long, "contender": "dicot", "batch_size": size, "step_ms": size / 4})
        failed = {"error": "out of memory", "step_ms": "", "peak_mib": ""} if size == 16 else {"step_ms": 9}
        made.append({**long, "contender": "catt", "batch_size": size, **failed})
    return made


def test_the_page_says_how_fast_each_is_beside_the_paper_and_what_did_not_fit(tmp_path):
    (tmp_path / "times.csv").write_bytes(as_csv(rows()))
    text = paper_markdown(frame([]), tmp_path, only=["figure1", "table7", "figure6", "figure7"])
    assert "A step of Di-COT takes 4 ms on hapt (number 2 of 2; TNC needs 3)." in text
    assert (
        "300 steps are timed after 100 of warm-up" in text
        and "| Di-COT | 4 | 0.5 | 1 | 1.5 | 2.88 (number 1) |" in text
    )
    assert "hapt 4.2 and 4 ms (1.05 times). The paper: 10,382 and 10,374 seconds" in text
    assert "| CaTT | 9 | out of memory |" in text and "Time at T = 500 on NVIDIA H200" in text
    assert "Measured on 2026-11-18." in text and "host is the limit" in text
    jobs = frame(row for row in everything() if row["suite"] == "batch_scaling")  # on a stand-in, beside other work
    assert "Time per step on hapt" in paper_markdown(jobs, only=["figure6"])
    assert "Time per step on hapt" not in paper_markdown(jobs, tmp_path, only=["figure6"])
    assert "| k = 2 | 3 |" in text
    assert _speed(tmp_path).startswith("No. On NVIDIA H200: a step of Di-COT takes 4 ms")
    ended = [row | {"error": "out of memory", "step_ms": "", "timed": "", "warm_up": ""} for row in rows()]
    (tmp_path / "times.csv").write_bytes(as_csv(ended))
    assert "0 steps are timed" in paper_markdown(frame([]), tmp_path, only=["figure1"]), "every run failed"
    (tmp_path / "times.csv").write_text("question,contender\n")
    with pytest.raises(InputError, match=r"times\.csv.*data_set"):
        times.measured(tmp_path, "times")


def test_the_exponents_are_those_of_the_power_laws_in_the_file(tmp_path):
    table = pd.DataFrame({"size": [8, 16, 32, 64]}).assign(
        what="loss", method="dicot", quantity="k", paper=2, base="B = 4", recorded="2026-11-18T08:06:41+00:00"
    )
    table = table.assign(ms=0.5 * table["size"] ** 2.0, precision="tf32", device="NVIDIA H200, alone")
    table.to_csv(tmp_path / "exponents.csv", index=False)
    text = paper_markdown(frame([]), tmp_path, only=["figure6"])
    assert "| loss of Di-COT against k | 8 to 64 | 32 to 2,048 | 2.00 | 2.00 | 2 | B = 4 |" in text
    table[:2].to_csv(tmp_path / "exponents.csv", index=False)
    assert "loss of Di-COT" not in paper_markdown(frame([]), tmp_path, only=["figure6"]), "two sizes are no curve"


def test_runs_that_are_not_measured_anew_stay_in_the_file(tmp_path, monkeypatch):
    out = tmp_path / "times.csv"
    out.write_bytes(as_csv(rows()))
    again = {**rows()[1], "step_ms": 7}
    monkeypatch.setattr("benchmarks.alone.planned", lambda options: [Run("methods", "tnc", "tnc", {}, None, None, 1)])
    monkeypatch.setattr("benchmarks.alone.measured", lambda run, device: again)
    monkeypatch.setattr(Run, "data", type("Data", (), {"name": "hapt"}))
    monkeypatch.setattr(Run, "recipe", Recipe(3, 128))
    monkeypatch.setattr(sys, "argv", ["alone", "--device", "cpu", "--sets", "ItalyPowerDemand", "--out", str(out)])
    main()
    found = pd.read_csv(out)
    assert found.contender.tolist() == [row["contender"] for row in rows()]
    assert found.step_ms[:2].tolist() == [4, 7]


@pytest.mark.slow
def test_both_benchmarks_run_with_torch_and_numpy_alone(tmp_path):
    others = ("sklearn", "scipy", "safetensors", "typer", "rich", "aeon", "matplotlib", "jinja2")
    for name, more in (("exponents", ["--steps", "2"]), ("alone", ["--questions", "methods", "--methods", "dicot"])):
        out = tmp_path / f"{name}.csv"
        argv = [name, "--device", "cpu", "--out", str(out), *more]
        argv += ["--sets", "ItalyPowerDemand", "--steps", "3", "--warm-up", "1"] if name == "alone" else []
        code = f"import sys, runpy; sys.modules.update(dict.fromkeys({others})); sys.argv = {argv}; "
        code += f"runpy.run_module('benchmarks.{name}', run_name='__main__')"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)
        assert len(pd.read_csv(out)) >= 1
