"""The clocks of the paper's page: the steps that are timed are those of a training, and the files are shown."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
from tests.paper.records import everything, paper_markdown

from bench.paper import times
from bench.paper.summary import _speed
from bench.report.frame import frame
from bench.speed import exponents
from bench.speed.alone import SETS, Run, measured, put, runs_on
from bench.speed.exponents import Curve, Sizes
from bench.speed.walk import SEED, timing, walk
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
    runs = list(runs_on("ItalyPowerDemand", ["methods", "splits"], ["dicot", "catt"], steps=9, warm_up=3))
    assert [run.contender for run in runs[:3]] == ["dicot", "catt", "k = 2"] and len(runs) == 11
    assert {run.recipe.steps for run in runs} == {9} and len(SETS.split(",")) == 3


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


def write(path, rows):
    pd.DataFrame(rows).to_csv(path, index=False)


def test_the_page_says_how_fast_each_is_beside_the_paper_and_what_did_not_fit(tmp_path):
    write(tmp_path / "times.csv", rows())
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
    write(tmp_path / "times.csv", ended)
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


def test_rows_that_are_not_measured_anew_stay_in_the_file(tmp_path):
    out = tmp_path / "times.csv"
    write(out, rows())
    put(out, {**rows()[1], "step_ms": 7})
    found = pd.read_csv(out)
    assert found.contender.tolist() == [row["contender"] for row in rows()]
    assert found.step_ms[:2].tolist() == [4, 7]


def test_a_point_of_a_curve_is_a_row_and_says_what_stayed_the_same():
    curve = Curve("loss", "dicot", "k", (3,), Sizes(8, 0, 32, 16), 2)
    row = exponents.measured(curve, 3, CPU, steps=2)
    assert row["size"] == 3 and row["base"] == "B = 8, d = 16" and float(row["ms"]) > 0


@pytest.mark.slow
def test_the_command_writes_its_file(tmp_path):
    out = tmp_path / "alone.csv"
    command = [sys.executable, "-m", "bench", "alone", "--device", "cpu", "--out", str(out), "--questions", "methods"]
    command += ["--methods", "dicot", "--sets", "ItalyPowerDemand", "--steps", "3", "--warm-up", "1"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert len(pd.read_csv(out)) == 1
