"""From a suite's name to its report, by the commands a user types: everybody, everything that is missing."""

import csv

import numpy as np
import pytest
from tests.commands import bench, dicot

from bench.ledger import Ledger
from bench.suites import SuiteOptions, suite_jobs
from dicot.judge.protocols import MODEL_PROTOCOLS, PROTOCOLS, Metric, ModelProtocol, Protocol


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """No data set of this machine can be seen."""
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DICOT_DATA", raising=False)


def run_ucr(folder, sets, *more):
    call = ["run", "ucr", "--sets", sets, "--protocols", "linear", "--steps", 2, "--device", "cpu", "--workers", 1]
    call += ["--seeds", 1]
    return bench(*call, "--ledger", folder / "bench.sqlite", *more)


def written(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_method_of_one_class_and_one_line_is_listed_run_recorded_and_reported(tmp_path, data, toy, alone):
    assert "toy                a toy" in dicot("list", "methods")
    assert "toy" in {job.contender.name for job in suite_jobs(["ucr"], SuiteOptions())}
    said = run_ucr(tmp_path, data, "--only", "toy,dicot")
    assert "4 jobs recorded" in said and "toy on" in said
    with Ledger(tmp_path / "bench.sqlite") as ledger:
        (result,) = (one for one in ledger.results("ucr") if one.contender == "toy")
    accuracy = result.values["accuracy"]
    assert result.error is None and result.steps == 2 and 0 <= accuracy <= 100
    bench("report", "ucr", "--ledger", tmp_path / "bench.sqlite", "--out", tmp_path / "report", "--against-paper")
    page, text = ((tmp_path / "report" / name).read_text() for name in ("report.html", "report.md"))
    for title in ("Standings", "Scores per data set"):
        table = text.split(f"## {title}")[1].split("##")[0]
        assert f"| toy (trial) | {accuracy:.2f} " in table.replace("**", "") and "| calibrated |" in table
    assert "Not a result: 2 steps" in page and ">toy (trial)<" in page


def test_a_report_of_a_ledger_and_of_its_export_are_the_same_and_name_what_is_missing(tmp_path, data, waves, alone):
    other = tmp_path / "other.npz"
    np.savez(other, X_train=waves.x[:12], y_train=waves.y[:12], X_test=waves.x[12:], y_test=waves.y[12:])
    said = run_ucr(tmp_path, f"{data},{other},harth,pamap2", "--only", "dicot", "--export", tmp_path / "all.csv")
    assert (
        "Left out, because the data are not here (2): harth, pamap2. `python -m bench list datasets NAME` says" in said
    )
    assert "12 jobs: 0 recorded, 0 failed, 6 no data, 6 to run" in said
    for option, source in (("--ledger", "bench.sqlite"), ("--records", "all.csv")):
        bench("report", "ucr", option, tmp_path / source, "--out", tmp_path / option)
    first, second = written(tmp_path / "--ledger"), written(tmp_path / "--records")
    assert first == second and {"report.html", "report.md", "report.csv"} < first.keys()
    page = first["report.html"].decode()
    assert "<dt>no record of</dt><dd>harth, pamap2. `python -m bench list datasets NAME` says how" in page
    assert "<dt>jobs</dt><dd>6, of which 0 failed</dd>" in page


class Spread(Protocol):
    """A protocol that was added by one class and one line; less is better."""

    metrics = (Metric("spread", higher_is_better=False),)
    name = "spread"
    description = "standard deviation of the test embeddings"

    def score(self, train, test, *, seed):
        return {"spread": float(test.x.std())}


class Weights(ModelProtocol):
    """The same for the network itself."""

    metrics = (Metric("weights", higher_is_better=False, decimals=0),)
    name = "weights"
    description = "number of weights"

    def score(self, fitted, data, *, seed, steps=None):
        return {"weights": float(sum(weight.numel() for weight in fitted.model.encoder_.parameters()))}


def test_protocols_of_one_class_and_one_line_are_listed_run_evaluated_recorded_and_reported(
    tmp_path, data, alone, monkeypatch
):
    monkeypatch.setitem(PROTOCOLS, "spread", Spread)
    monkeypatch.setitem(MODEL_PROTOCOLS, "weights", Weights)
    assert "number of weights" in dicot("list", "protocols")
    assert {"spread", "weights"} <= {job.protocol for job in suite_jobs(["smoke"], SuiteOptions())}
    run_ucr(tmp_path, data, "--only", "dicot,raw-mean", "--protocols", "spread,weights")
    with Ledger(tmp_path / "bench.sqlite") as ledger:
        values = {(one.contender, one.protocol): one.values for one in ledger.results("ucr")}
    assert values["dicot", "weights"] == values["random", "weights"] != {}
    assert values["raw-mean", "spread"]["spread"] > 0 and ("raw-mean", "weights") not in values
    bench("report", "ucr", "--ledger", tmp_path / "bench.sqlite", "--out", tmp_path / "report")
    assert repr(values["raw-mean", "spread"]["spread"]) in (tmp_path / "report" / "report.csv").read_text()
    call = ["--protocols", "spread,weights", "--steps", 1, "--set", "dim=8", "--device", "cpu"]
    call += ["--out", tmp_path / "own"]
    dicot("evaluate", data, "--method", "dicot", *call)
    rows = list(csv.DictReader((tmp_path / "own" / "scores.csv").read_text().splitlines()))
    assert {row["contender"] for row in rows if row["weights"]} == {"dicot", "random", "calibrated"}
    assert all(float(row["spread"]) > 0 for row in rows if row["protocol"] == "spread")
