"""The trials that an embedding is chosen by."""

import json
import sys

import pytest
from benchmarks import trials

from dicot.methods import METHODS, build_method
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.presets import grouped
from dicot.nets.encoders import InceptionTime


@pytest.mark.parametrize("name", trials.VARIANTS)
def test_a_variant_is_one_that_the_library_knows(name):
    variant = trials.VARIANTS[name]
    assert "," not in name
    TimeSeriesEmbedder(variant.method, method_params=variant.params, **grouped(variant.settings))
    if variant.method in METHODS:
        build_method(variant.method, InceptionTime(3, dim=8), variant.params)


def test_trainings_that_are_there_are_not_run_again_and_a_table_shows_their_means(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(trials, "KINDS", {"mean": trials.KINDS["mean"]})
    monkeypatch.setattr(trials, "ProcessPoolExecutor", _Here)
    path = tmp_path / "trials.jsonl"
    given = ["--sets", "ItalyPowerDemand", "--variants", "calibrated,random", "--seeds", "1", "--out", str(path)]
    given += ["--protocols", "few_5,clustering", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["trials", *given])
    trials.main()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {row["variant"] for row in rows} == {"calibrated", "random"}
    scores = rows[0]["scores"]["mean"]
    assert 50 < scores["few_5"] <= 100 and 0 <= scores["clustering"] <= 1
    trials.main()
    assert "0 of 2 trainings" in capsys.readouterr().out and len(path.read_text().splitlines()) == 2
    monkeypatch.setattr(sys, "argv", ["trials", "--table", "--out", str(path)])
    trials.main()
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("calibrated | mean"))
    wanted = next(row for row in rows if row["variant"] == "calibrated")["scores"]["mean"]["few_5"]
    assert f"{wanted:.2f}" in line.split()


class _Here:
    """A pool of workers that is this process."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def submit(self, function, *given):
        from concurrent.futures import Future

        future = Future()
        future.set_result(function(*given))
        return future
