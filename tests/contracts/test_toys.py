"""One class and one line are enough: a toy of each kind keeps the promises and goes the whole way to a report."""

import csv

import numpy as np
import pytest

from tests.commands import dicot
from tests.contracts.promises import PROMISES, REGISTRIES, Promise
from tests.contracts.toys import NearestMean, Stack, Together

TOYS = {"methods": ("together", Together), "encoders": ("stack", Stack), "protocols": ("nearest_mean", NearestMean)}
PAIRS = [(registry, promise) for registry in TOYS for promise in PROMISES[registry]]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    for registry, (name, toy) in TOYS.items():
        monkeypatch.setitem(REGISTRIES[registry], name, toy)


@pytest.fixture
def data(tmp_path, waves):
    """A labelled file with a training and a test part."""
    path = tmp_path / "waves.npz"
    np.savez(path, X_train=waves.x[::2], y_train=waves.y[::2], X_test=waves.x[1::2], y_test=waves.y[1::2])
    return path


@pytest.mark.parametrize(("registry", "promise"), PAIRS, ids=[f"{registry}-{p.__name__}" for registry, p in PAIRS])
def test_a_toy_keeps_the_promises(registry: str, promise: Promise):
    promise(*TOYS[registry])


@pytest.mark.parametrize("registry", TOYS)
def test_a_toy_is_listed(registry):
    name, _ = TOYS[registry]
    (line,) = (line for line in dicot("list", registry).splitlines() if line.startswith(f"{name} "))
    assert "toy" in line.lower()


def test_a_toy_is_pretrained_and_evaluated(tmp_path, data):
    names = ["--method", "together", "--encoder", "stack", "--dim", 8, "--steps", 2, "--device", "cpu"]
    dicot("pretrain", data, *names, "--set", "margin=2", "--out", tmp_path / "model")
    said = dicot("evaluate", data, "--model", tmp_path / "model", "--protocols", "nearest_mean", "--device", "cpu")
    assert "errors" in said
    dicot("evaluate", data, *names, "--protocols", "nearest_mean,linear", "--out", tmp_path / "out")
    rows = list(csv.DictReader((tmp_path / "out" / "scores.csv").read_text().splitlines()))
    values = {row["contender"]: float(row["value"]) for row in rows if row["metric"] == "errors"}
    assert set(values) >= {"together", "random", "calibrated"} and all(0 <= v <= 100 for v in values.values())
    assert "together" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_toy_runs_in_a_suite_and_is_reported(tmp_path, data):
    ledger = ["--ledger", tmp_path / "bench.sqlite"]
    narrow = ["--sets", data, "--only", "together", "--protocols", "nearest_mean,linear", "--seeds", 1, "--steps", 1]
    said = dicot("bench", "knn", *narrow, *ledger, "--device", "cpu", "--workers", 1)
    assert "6 jobs recorded" in said and "failed:" not in said
    dicot("report", "knn", *ledger, "--out", tmp_path / "report", "--baseline", "together")
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "together" in text and "nearest_mean" in text
