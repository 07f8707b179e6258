"""Maps of all contenders: every test case, continued where a run was cut short, drawn whole."""

from dataclasses import replace

import numpy as np
import pytest

from bench.paper import maps as bench_maps
from bench.paper.figures import maps_part
from bench.paper.mapfile import Maps, read_maps, write_maps
from bench.paper.maps import run_maps
from bench.paper.suites import NOT_IN_PAPER
from bench.paper.tables import newest
from bench.report.frame import frame
from dicot.core.errors import InputError
from dicot.judge.evaluation.scoring import Embedded, Fit, fit_unit
from dicot.judge.protocols import Features
from dicot.judge.protocols.network import Fitted
from dicot.methods import METHODS
from dicot.model.controls import CONTROLS

QUICK = {"device": "cpu", "steps": 2}


@pytest.mark.slow
def test_every_contender_of_the_figure_has_all_test_cases(tmp_path, data, monkeypatch):
    test = Features(np.random.default_rng(0).normal(size=(12, 3)), np.arange(12) % 3)
    path = tmp_path / "maps.npz"
    monkeypatch.setattr(bench_maps, "fit_unit", lambda unit, site, shelf: Fit(unit, Fitted(None, 0.0), {}))
    monkeypatch.setattr(bench_maps, "embed_labelled", lambda model, split: Embedded(test, test))
    run_maps(data, path, **QUICK)
    maps = read_maps(path)
    assert set(maps.points) == {*METHODS, *CONTROLS} - set(NOT_IN_PAPER)
    assert {points.shape for points in maps.points.values()} == {(12, 2)}
    assert (maps.data_set, maps.seed, maps.steps) == ("waves", 1, 2) and maps.labels.tolist() == [1, 0, 2] * 4
    (part,) = maps_part(newest(frame([]), tmp_path))
    assert part.title == "Maps of the test part of waves" and "A trial: every training had 2 steps." in part.text
    assert "t-SNE of 12 cases" in part.text and "seed 1" in part.text
    figure = part.figures["figure5"]()
    found = [figure.index(f">{name}</text>") for name in ("dicot", "catt", "tstcc", "supervised", *CONTROLS)]
    assert found == sorted(found), "panels are in the order of the tables"


@pytest.mark.slow
def test_a_run_goes_on_where_another_was_cut_short(tmp_path, data, monkeypatch):
    path = tmp_path / "maps.npz"
    run_maps(data, path, contenders=("random",), **QUICK)
    before = read_maps(path)
    assert set(before.points) == {"random"}
    fitted = []

    def counted(unit, site, shelf):
        fitted.append(str(unit))
        return fit_unit(unit, site, shelf)

    monkeypatch.setattr(bench_maps, "fit_unit", counted)
    run_maps(data, path, contenders=("dicot",), **QUICK)
    after = read_maps(path)
    assert set(after.points) == {"random", "dicot", "calibrated"} and len(fitted) == 2
    assert (after.points["random"] == before.points["random"]).all()
    assert not list((tmp_path / "maps.work").glob("*")), "no checkpoint is left behind"
    again = tmp_path / "again.npz"
    run_maps(data, again, contenders=("dicot",), **QUICK)
    assert all((read_maps(again).points[name] == after.points[name]).all() for name in after.points), "same bytes"
    for other, said in (({"seed": 2}, "seed 1, not 2"), ({"steps": 3}, "steps 2, not 3")):
        with pytest.raises(InputError, match=f"{said}. Remove that file"):
            run_maps(data, path, **{**QUICK, **other})
    write_maps(path, replace(after, fingerprint="0" * 16))
    with pytest.raises(InputError, match="fingerprint 0000000000000000, not"):
        run_maps(data, path, **QUICK)


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "maps.npz"
    sound = Maps("waves", "f", 1, 0, np.arange(3), {"dicot": np.ones((3, 2), "f4")}, {"dicot": "t-SNE"})
    for wrong in (
        replace(sound, labels=np.arange(4)),
        replace(sound, points={"dicot": np.ones((3, 3), "f4")}),
        replace(sound, points={"dicot": np.full((3, 2), np.nan, "f4")}),
        replace(sound, points={"dicot": np.ones((3, 2))}),
    ):
        write_maps(path, wrong)
        with pytest.raises(InputError, match="is damaged"):
            read_maps(path)
    np.savez(path, dicot=np.ones((3, 2)))
    with pytest.raises(InputError, match="is no file of maps: labels, "):
        read_maps(path)
