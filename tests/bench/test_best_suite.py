"""The suite of the presets, and that of the parts of "instant"."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bench.datasets.names import DEVELOPMENT
from bench.datasets.standins import HAPT, SISFALL
from bench.ledger import read_contents, read_records, write_table
from bench.suites import CHANGES, VARIANTS, SuiteOptions, at_hand, suite_jobs
from dicot.judge.result import CONTROL, canonical, key_of
from dicot.methods import METHODS
from dicot.model.box import BOX
from dicot.model.controls import CONTROLS
from dicot.model.presets import PRESETS
from dicot.nets.encoders import Universal

JUDGED = {"instant", "best", "best-2026.11"}
EVERYONE = {
    *(*JUDGED, "dicot", "tstcc", "cost", "tnc", "instant untrained", "instant calibrated", *CONTROLS),
    *("minirocket", "hydra-multirocket", "quant", "catch22", "stats-spectrum"),
}
SETS = ("GunPoint", "NATOPS", "hapt")
PROTOCOLS = (
    *("ridge", "linear", "few_1pct", "few_5", "few_10"),
    *("semi_1pct", "semi_5", "semi_10", "knn_all", "clustering"),
)
RESULTS = Path(__file__).resolve().parents[2] / "results" / "best"


def test_everyone_is_scored_by_every_protocol_with_three_seeds():
    jobs = suite_jobs(["best"], SuiteOptions(sets=SETS))
    wanted = {
        (name, data, protocol, seed)
        for name in EVERYONE
        for data in SETS
        for protocol in PROTOCOLS
        for seed in (1, 2, 3)
    }
    wanted |= {(name, data, "cost", 1) for name in (*JUDGED, "dicot") for data in SETS}
    found = [(job.contender.name, job.source.name, job.protocol, job.seed) for job in jobs]
    assert set(found) == wanted and len(found) == len(wanted)
    assert {job.subsets for job in jobs if job.protocol.startswith(("few_", "semi_"))} == {"per-seed"}
    used = {job.contender.make(1).preset for job in jobs if job.contender.kind in METHODS}
    assert used == JUDGED - {"instant"} | {"paper"}


def test_a_preset_brings_the_controls_and_its_own_one_along():
    def chosen(name):
        jobs = suite_jobs(["best"], SuiteOptions(sets=("GunPoint",), subsets="authors", contenders=(name,)))
        assert {job.subsets for job in jobs} == {"authors"}
        return {job.contender.name for job in jobs}

    assert chosen("best-2026.11") == {"best-2026.11", *CONTROLS}
    assert chosen("instant") == {"instant", "instant untrained", "instant calibrated", *CONTROLS}
    assert chosen("minirocket") == {"minirocket"}


def test_the_untrained_control_is_instant_but_for_its_weights(waves):
    control, subject = (VARIANTS[name].make(1, device="cpu").fit(waves.x) for name in ("instant untrained", "instant"))
    assert VARIANTS["instant untrained"].role == CONTROL
    assert isinstance(control.encoder_, Universal) and isinstance(subject.encoder_, Universal)
    assert control.features_ == subject.features_ and control.encoder_.dim == subject.encoder_.dim
    assert control.transform(waves.x).shape == subject.transform(waves.x).shape
    pairs = zip(control.encoder_.parameters(), subject.encoder_.parameters(), strict=True)
    assert any((one != other).any() for one, other in pairs) and not control.origin_["initial"]


def test_other_weights_in_the_box_have_other_keys(tmp_path):
    preset = PRESETS["instant"]
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "config.json").write_text('{"weights": {"sha256": "0"}}')
    assert preset.digest() != replace(preset, initial=str(folder)).digest()


def test_recorded_results_are_found_by_the_name_that_the_preset_has_today(tmp_path):
    recorded = {result.key: result for result in read_records(None, RESULTS).results}
    options = SuiteOptions(sets=("GunPoint", "Libras", "hapt"), contenders=("best-2026.11",), precision="tf32")
    jobs = suite_jobs(["best"], options)
    assert len(jobs) == 3 * 3 * (1 + len(CONTROLS)) * len(PROTOCOLS) + 3
    for job in jobs:
        assert recorded[job.key].contender == job.contender.name and recorded[job.key].config == canonical(job.config)

    # The same rows as they were recorded, when the preset was called "best".
    now = [recorded[job.key] for job in jobs if job.contender.name == "best-2026.11"]
    then = []
    for result, job in zip(now, (job for job in jobs if job.contender.name == "best-2026.11"), strict=True):
        settings = {**job.config["settings"], "preset": "best"}
        config = {**job.config, "settings": settings, "preset": "9ee2a8a7dd6f"}
        then.append(replace(result, contender="best", config=canonical(config), key=key_of(config)))
    assert not {one.key for one in then} & set(recorded)
    write_table(tmp_path / "then.csv", then)
    assert read_contents(tmp_path / "then.csv").results == now
    other = [replace(one, config=one.config.replace("9ee2a8a7dd6f", "0" * 12)) for one in then]
    other = [replace(one, key=key_of(json.loads(one.config))) for one in other]
    write_table(tmp_path / "other.csv", other)
    assert {one.contender for one in read_contents(tmp_path / "other.csv").results} == {"best"}, "another preset"


@pytest.mark.slow
def test_the_data_sets_are_those_at_hand_and_stand_ins_for_the_large_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("DICOT_DATA", str(tmp_path))
    shipped = at_hand()
    assert "ItalyPowerDemand" in shipped and "hapt" not in shipped and "Wine" not in shipped
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / HAPT.file).touch()
    (tmp_path / "large" / SISFALL.file).touch()
    (tmp_path / "ucr").mkdir()
    (tmp_path / "ucr" / "Wine.npz").touch()
    assert set(at_hand()) == {*shipped, "hapt", "sisfall", "Wine"}
    assert {job.source.name for job in suite_jobs(["best"], SuiteOptions())} == set(at_hand())


def test_every_variant_differs_from_the_preset_in_what_its_name_says():
    usual = VARIANTS["instant"].make(1).resolve(100, 100)
    for name, parts in CHANGES.items():
        used = VARIANTS[f"instant {name}"].make(1).resolve(100, 100)
        assert used.features == {**usual.features, **parts} and used.recipe == usual.recipe


@pytest.mark.parametrize("model", BOX)
def test_the_box_has_seen_development_sets_alone(model):
    card = (BOX[model] / "card.md").read_text(encoding="utf-8")
    sources = re.findall(r"^\| (\S+) \| [\d,]+ \| \d+ \| [\d,]+ \|$", card, flags=re.M)
    assert len(sources) > 1 and set(sources) <= set(DEVELOPMENT)
