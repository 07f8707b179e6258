"""One class and one line are enough: a toy of each kind keeps the promises and goes the whole way to a report."""

import csv
import re

import pytest

from tests.commands import bench, dicot
from tests.contracts.promises import PROMISES, REGISTRIES, Promise
from tests.contracts.toys import RANGE, SHORT, NearestMean, Slopes, Stack, Together

TOYS = {
    "methods": ("together", Together),
    "encoders": ("stack", Stack),
    "protocols": ("nearest_mean", NearestMean),
    "poolings": ("range", RANGE),
    "presets": ("short", SHORT),
    "datasets": ("slopes", Slopes()),
}
PAIRS = [(registry, promise) for registry in TOYS for promise in PROMISES[registry]]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The line that registers each of them: METHODS["together"] = Together, and so on."""
    for registry, (name, toy) in TOYS.items():
        monkeypatch.setitem(REGISTRIES[registry], name, toy)


@pytest.mark.parametrize(("registry", "promise"), PAIRS, ids=[f"{registry}-{p.__name__}" for registry, p in PAIRS])
def test_a_toy_keeps_the_promises(registry: str, promise: Promise):
    promise(*TOYS[registry])


@pytest.mark.parametrize("registry", TOYS)
def test_a_toy_is_listed(registry):
    name, _ = TOYS[registry]
    (line,) = (line for line in dicot("list", registry).splitlines() if line.startswith(f"{name} "))
    assert len(line.split()) > 1, "with a word about it"


def test_a_toy_is_pretrained_and_evaluated(tmp_path):
    names = ["--method", "together", "--set", "encoder=stack", "--set", "pooling=range", "--set", "dim=8", "--steps", 2]
    dicot("pretrain", "slopes", *names, "--device", "cpu", "--set", "margin=2", "--out", tmp_path / "model")
    said = dicot("evaluate", "slopes", "--model", tmp_path / "model", "--protocols", "nearest_mean", "--device", "cpu")
    assert "errors" in said
    wanted = ["--protocols", "nearest_mean,linear", "--device", "cpu", "--out", tmp_path / "out"]
    dicot("evaluate", "slopes", *names, *wanted)
    rows = list(csv.DictReader((tmp_path / "out" / "scores.csv").read_text().splitlines()))
    errors = {row["contender"]: float(row["errors"]) for row in rows if row["protocol"] == "nearest_mean"}
    assert set(errors) >= {"together", "random", "calibrated"} and all(0 <= value <= 100 for value in errors.values())
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "together" in page and "nearest_mean" in page


def test_a_toy_runs_in_a_suite_and_is_reported_with_the_lowest_error_bold(tmp_path):
    ledger = ["--ledger", tmp_path / "bench.sqlite"]
    narrow = ["--sets", "slopes", "--only", "together", "--protocols", "nearest_mean,linear"]
    said = bench("run", "large", *narrow, *ledger, "--seeds", 1, "--steps", 1, "--device", "cpu", "--workers", 1)
    assert "6 jobs recorded" in said and "failed:" not in said
    bench("report", "large", *ledger, "--out", tmp_path / "report", "--baseline", "together")
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^## Scores per data set: nearest_mean\n\n(.*?)\n\n", text, re.M | re.S)
    head, _, *lines = table.splitlines()
    assert "slopes" in head
    errors = [float(number) for line in lines for number in re.findall(r"\d+\.\d", line)]
    bold = [float(number) for line in lines for number in re.findall(r"\*\*(\d+\.\d)\*\*", line)]
    assert len(lines) == len(errors) == 3 and set(bold) == {min(errors)} != {max(errors)}
    assert any(line.startswith("| together") for line in lines)
