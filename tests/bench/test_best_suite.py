"""The suite of the preset "best", and that of its parts."""

import pytest

from dicot.data.datasets.standins import HAPT
from dicot.judge.bench.suites import VARIANTS, SuiteOptions, at_hand, suite_jobs
from dicot.methods import METHODS
from dicot.model.controls import CONTROLS
from dicot.model.presets import BEST

EVERYONE = {
    *("best", "dicot", "tstcc", "cost", "tnc", *CONTROLS),
    *("minirocket", "hydra-multirocket", "quant", "catch22", "stats-spectrum"),
}


def test_everyone_is_scored_by_every_protocol_with_three_seeds():
    jobs = suite_jobs(["best"], SuiteOptions(sets=("GunPoint", "NATOPS", "hapt")))
    protocols = {
        "ridge",
        "linear",
        "few_1pct",
        "few_5",
        "few_10",
        "semi_1pct",
        "semi_5",
        "semi_10",
        "knn_all",
        "clustering",
    }
    wanted = {
        (name, data, protocol, seed)
        for name in EVERYONE
        for data in ("GunPoint", "NATOPS", "hapt")
        for protocol in protocols
        for seed in (1, 2, 3)
    }
    wanted |= {(name, data, "cost", 1) for name in ("best", "dicot") for data in ("GunPoint", "NATOPS", "hapt")}
    found = [(job.contender.name, job.source.name, job.protocol, job.seed) for job in jobs]
    assert set(found) == wanted and len(found) == len(wanted)
    assert {job.subsets for job in jobs if job.protocol.startswith(("few_", "semi_"))} == {"per-seed"}
    assert {job.contender.make(1).preset for job in jobs if job.contender.kind in METHODS} == {"best", "paper"}
    chosen = suite_jobs(["best"], SuiteOptions(sets=("GunPoint",), subsets="authors", contenders=("best",)))
    assert {job.subsets for job in chosen} == {"authors"} and {job.contender.name for job in chosen} == {
        "best",
        *CONTROLS,
    }


@pytest.mark.slow
def test_the_data_sets_are_those_at_hand_and_stand_ins_for_the_large_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("DICOT_DATA", str(tmp_path))
    shipped = at_hand()
    assert "ItalyPowerDemand" in shipped and "hapt" not in shipped and "Wine" not in shipped
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / HAPT.file).touch()
    (tmp_path / "ucr").mkdir()
    (tmp_path / "ucr" / "Wine.npz").touch()
    assert set(at_hand()) == {*shipped, "hapt", "Wine"}
    assert {job.source.name for job in suite_jobs(["best"], SuiteOptions())} == set(at_hand())


def test_every_variant_differs_from_the_preset_in_what_its_name_says():
    usual = VARIANTS["best"].make(1).resolve(100, 100)
    changed = {
        "without bank": ("bank", 0),
        "without compression": ("n_components", 0),
        "with calibration": ("calibrate", True),
    }
    for name, (part, value) in changed.items():
        used = VARIANTS[f"best {name}"].make(1).resolve(100, 100)
        assert used.features == {**usual.features, part: value} and used.recipe == usual.recipe
    for view in ("noise", "scale", "offset", "mask", "crop", "channel_drop"):
        used = VARIANTS[f"best without {view}"].make(1).resolve(100, 100)
        assert used.params == {**usual.params, view: 0.0} and used.features == usual.features
    untrained = VARIANTS["best untrained"].make(1).resolve(100, 100)
    assert (untrained.method, untrained.features) == ("calibrated", BEST.features({}))
