"""python -m bench run SUITE as it is typed."""

import csv

import numpy as np
import pytest
from tests.commands import bench, dicot

from dicot.core.errors import DicotError, InputError, WrongCallError
from dicot.judge.protocols import Probe


@pytest.fixture
def call(tmp_path, waves):
    """`bench run knn` on small data with a step or two."""
    path = tmp_path / "waves.npz"
    np.savez(path, X_train=waves.x[::2], y_train=waves.y[::2], X_test=waves.x[1::2], y_test=waves.y[1::2])
    narrow = ["--sets", path, "--only", "dicot", "--protocols", "knn_5", "--seeds", "1", "--steps", 1]
    where = ["--ledger", tmp_path / "bench.sqlite", "--device", "cpu", "--workers", 1]
    return ["run", "knn", *narrow, *where]


def test_a_suite_runs_once_and_is_exported(tmp_path, call):
    dry = bench(*call, "--dry-run")
    assert "3 jobs: 0 recorded, 0 failed, 0 no data, 3 to run, in 3 fits." in dry and "calibrated" in dry
    assert not (tmp_path / "bench.sqlite").exists()
    said = bench(*call, "--export", tmp_path / "a.csv")
    assert "[3/3]" in said and "dicot on" in said and "3 jobs recorded" in said
    rows = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
    assert {(row["contender"], row["trial"]) for row in rows} == {("dicot", "1"), ("random", "0"), ("calibrated", "0")}
    assert all(0 <= float(row["accuracy"]) <= 100 for row in rows)
    assert "3 jobs: 3 recorded, 0 failed, 0 no data, 0 to run" in bench(*call)
    assert "Wrote 3 rows" in bench(*call, "--dry-run", "--export", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    said = bench("merge", tmp_path / "a.csv", "--ledger", tmp_path / "new.sqlite")
    assert "3 rows, 3 of them taken over" in said
    assert "b.csv: 3 rows, " in bench("merge", tmp_path, "--ledger", tmp_path / "c.sqlite")


def test_both_schedules_and_failures(call, monkeypatch):
    monkeypatch.setattr(Probe, "score_draws", lambda *words, **more: 1 / 0)
    said = bench(*call, "--set", "schedule=both", code=1)
    assert "4 jobs" in said and "per_epoch" in said
    assert "4 of them failed: dicot on" in said and "ZeroDivisionError" in said
    assert "Failed jobs are run again with --retry-failed." in bench(*call)
    assert "3 to run" in bench(*call, "--retry-failed", code=1)
    monkeypatch.undo()
    assert "3 jobs recorded" in bench(*call, "--retry-failed")


def test_missing_data_is_named_once(call, tmp_path, monkeypatch):
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path))
    monkeypatch.delenv("DICOT_DATA", raising=False)
    said = bench(*call, "--sets", "harth,synthetic,pamap2")
    assert said.count("Left out, because the data are not here (2): harth, pamap2.") == 1
    assert "3 jobs recorded" in said


def test_mistakes():
    for words, message in (
        (["run", "smok"], "Did you mean 'smoke'"),
        (["run", "ucr", "--seeds", "x"], "--seeds takes whole numbers from 0 to 4294967295"),
        (["run", "ucr", "--seeds", "1,-1"], "--seeds takes whole numbers .*got '1,-1'"),
        (["run", "transfer", "--set", "scale=zscore"], "scale must be .*got .zscore"),
        (["run", "ucr", "--set", "shedule=both"], "'schedule'"),
    ):
        with pytest.raises(DicotError, match=message):
            bench(*words)


def test_suites_and_their_protocols_are_listed():
    assert "Linear probes on the univariate archive" in bench("list", "suites")
    assert "finetune-10" in dicot("list", "protocols")
    assert "merge" in bench("--help") and "SUITES" in bench("run", "--help")


@pytest.mark.parametrize(
    "words", [["run", "smoke", "--dry-run", "--export"], ["report", "smoke", "--out"], ["paper", "--out"]]
)
def test_nothing_that_is_there_is_replaced(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    notes = tmp_path / "mine" / "notes.csv"
    notes.write_text("three weeks of notes")
    there = "mine/notes.csv" if words[0] == "run" else "mine"
    with pytest.raises(InputError, match="--overwrite"):
        bench(*words, there)
    assert notes.read_text() == "three weeks of notes"


@pytest.mark.parametrize("command", ["bench", "report", "paper", "data"])
def test_a_command_of_an_earlier_release_says_where_it_went(command):
    with pytest.raises(WrongCallError, match=f"`dicot {command}` is `python -m bench"):
        dicot(command, "ucr")
