"""What each suite consists of."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.datasets.standins import HAPT, WISDM_2019
from dicot.judge.bench.crossing import SuiteOptions
from dicot.judge.bench.suites import SUITES, suite_jobs
from dicot.judge.classical import CLASSICAL, RAW_FEATURES
from dicot.judge.evaluation import every_protocol
from dicot.judge.evaluation.loading import load_labelled
from dicot.methods import METHODS
from dicot.model.controls import CONTROLS
from dicot.paper import numbers as paper
from dicot.paper.runs import maps_set, with_stand_ins
from dicot.paper.suites import LARGE, NOT_IN_PAPER, PAPER_UCR, PAPER_UEA, TRANSFERS

RIVALS = {name for name, method in METHODS.items() if not method.needs_labels} - set(NOT_IN_PAPER)


def jobs_of(suite: str, **options):
    return suite_jobs([suite], SuiteOptions(**options))


@pytest.mark.parametrize("suite", SUITES)
def test_every_suite_has_both_controls_on_every_set_beside_a_trained_contender(suite):
    jobs = jobs_of(suite)
    kinds = {(job.contender.kind, job.source.name) for job in jobs}
    for name in {job.source.name for job in jobs if job.contender.kind in METHODS}:
        assert {(control, name) for control in CONTROLS} <= kinds
    assert {job.suite for job in jobs} == {suite}
    narrowed = {job.contender.kind for job in jobs_of(suite, contenders=("dicot",))}
    assert {"dicot", *CONTROLS} == narrowed


@pytest.mark.slow
def test_the_papers_suites_have_the_papers_methods_and_what_a_user_registers(monkeypatch):
    trained = {*paper.METHODS, "supervised"}
    of_paper = {suite for suite, jobs in SUITES.items() if jobs.__module__ == "dicot.paper.suites"} - {"smoke"}
    assert {"ucr", "uea", "large", "low_label", "knn", "clustering", "transfer", "ablation"} <= of_paper
    for suite in of_paper:
        assert {job.contender.kind for job in jobs_of(suite)} & set(METHODS) <= trained, suite
    assert {job.contender.kind for job in jobs_of("ucr")} & set(METHODS) == set(paper.METHODS)
    monkeypatch.setitem(METHODS, "mine", METHODS["dicot"])
    assert "mine" in {job.contender.kind for job in jobs_of("ucr")}
    with pytest.raises(InputError, match="No contender 'across' in ucr"):
        jobs_of("ucr", contenders=("across",))


def test_the_archives_as_in_the_paper():
    assert (len(PAPER_UCR), len(PAPER_UEA)) == (124, 28)
    for suite, names in (("ucr", PAPER_UCR), ("uea", PAPER_UEA)):
        jobs = jobs_of(suite)
        assert {job.source.name for job in jobs} == set(names)
        assert {job.seed for job in jobs} == {1}
        scored = {kind: set() for kind in (*RIVALS, *CONTROLS, *CLASSICAL)}
        for job in jobs:
            scored[job.contender.kind].add(job.protocol)
        for kind, protocols in scored.items():
            more = {"forest"} if kind in RAW_FEATURES else {"ridge"} if kind in CLASSICAL else set()
            assert protocols == {"linear", *more}, kind


def test_missing_values_of_an_archive_are_interpolated_and_those_of_a_file_refused(tmp_path, monkeypatch):
    x = np.arange(12.0).reshape(2, 1, 6)
    x[:, 0, 2] = np.nan
    (tmp_path / "ucr").mkdir()
    path = tmp_path / "ucr" / "DodgerLoopGame.npz"
    np.savez(path, X_train=x, y_train=["1", "2"], X_test=x, y_test=["1", "2"])
    monkeypatch.setenv("DICOT_DATA", str(tmp_path))
    monkeypatch.setattr("dicot.data.datasets.archive.differences", lambda *sizes: [])  # smaller than the real one
    assert load_labelled("DodgerLoopGame").split.test.x[1, 0].tolist() == [6, 7, 8, 9, 10, 11]
    with pytest.raises(InputError, match="contains NaN"):
        load_labelled(str(path))


def test_the_large_sets():
    for suite in ("large", "low_label", "knn", "clustering"):
        jobs = jobs_of(suite)
        full = {"ecg-full" if name == "ecg" and suite == "knn" else name for name in LARGE}
        assert {job.source.name for job in jobs} == {job.target.name for job in jobs} == full
        assert {job.seed for job in jobs} == {1, 2, 3, 4, 5}
        assert {job.contender.kind for job in jobs} >= RIVALS
    assert {job.protocol for job in jobs_of("knn")} == {f"knn_{n}" for n in (5, 10, 50, 100, 500)}
    assert "supervised" in {job.contender.kind for job in jobs_of("clustering")}
    (catt,) = (job for job in jobs_of("large", seeds=(1,), sets=("ecg",)) if job.contender.kind == "catt")
    assert catt.contender.method_params == {"temperature": 0.5}
    on_ecg = [job for job in jobs_of("knn", seeds=(1,)) if job.source.name == "ecg-full"]
    assert {job.contender.method_params.get("temperature") for job in on_ecg if job.contender.kind == "catt"} == {0.5}


def test_labelled_cases_are_drawn_as_for_the_papers_tables():
    """Its k-NN varies them with the seed; with 1 % of the labels the authors' one draw serves all seeds."""
    drawn = {
        (job.protocol, job.subsets) for suite in ("knn", "low_label", "positive_selection") for job in jobs_of(suite)
    }
    assert {subsets for name, subsets in drawn if name.startswith("knn_")} == {"per-seed"}
    assert {subsets for name, subsets in drawn if not name.startswith("knn_")} == {"authors"}
    assert {"few_1pct", "forest_1pct", "finetune-1"} <= {name for name, _ in drawn}


def test_transfer_takes_the_accelerometers():
    pairs = {
        (job.source.name, job.source.channels, job.target.name, job.target.channels) for job in jobs_of("transfer")
    }
    assert len(pairs) == 4
    assert ("harth", (3, 4, 5), "pamap2-paper", (2, 3, 4)) in pairs
    own = {(job.source.name, job.target.name) for job in jobs_of("transfer", sets=("a", "b"))}
    assert own == {("a", "b"), ("b", "a")}


def test_positive_selection_transfers_between_the_given_sets_that_have_an_accelerometer():
    jobs = jobs_of("positive_selection", sets=("hapt", "wisdm2019", "sleepedf-night"), seeds=(1,))
    moved = {(job.source.name, job.target.name) for job in jobs if job.source != job.target}
    assert moved == {("hapt", "wisdm2019"), ("wisdm2019", "hapt")}


def test_a_scale_is_part_of_the_data_of_every_job_and_of_no_key_without_it():
    jobs = jobs_of("transfer", seeds=(1,), scale="dataset")
    assert {data.scale for job in jobs for data in (job.source, job.target)} == {"dataset"}
    plain = jobs_of("transfer", seeds=(1,))
    assert not {job.key for job in jobs} & {job.key for job in plain}
    assert not any("scale" in job.config for job in plain)
    with pytest.raises(InputError, match='scale must be None, "dataset", "case"'):
        jobs_of("transfer", scale="zscores")


def test_ablations_share_what_is_the_default_anyway():
    jobs = [job for job in jobs_of("extended_ablation", seeds=(1,)) if job.contender.kind == "dicot"]
    on_uea = {job.contender.name: job.key for job in jobs if job.source.name == "NATOPS"}
    usual = {"Temperature \\tau -> 0.07", "Overlap -> 50%", "Uniform Splits Sampling (k_{max}) -> 10"}
    assert len(on_uea) == 16 and len(set(on_uea.values())) == 14
    assert len({on_uea[name] for name in usual}) == 1
    on_ucr = {job.contender.name: job.key for job in jobs if job.source.name == "GunPoint"}
    assert on_ucr["Temperature \\tau -> 1.0"] == on_ucr["Overlap -> 50%"] != on_ucr["Temperature \\tau -> 0.07"]
    plain = [job.key for job in jobs_of("uea", sets=("NATOPS",)) if job.contender.kind == "dicot"]
    assert plain == [on_uea["Overlap -> 50%"]]


def test_a_temperature_stays_said_where_the_family_is_unknown():
    jobs = jobs_of("extended_ablation", sets=("mine",), seeds=(1,))
    assert len({job.key for job in jobs if job.contender.name.startswith("Temperature")}) == 4


def test_a_file_takes_the_family_that_it_is_given(tmp_path):
    """Its recipe and settings; a set by name keeps its own, and a file that was given none its key."""
    mine = str(tmp_path / "mine.npz")
    jobs = jobs_of("extended_ablation", sets=(mine, "GunPoint"), seeds=(1,), family="large")
    on = {name: [job for job in jobs if job.source.name == name] for name in (mine, "GunPoint")}
    assert {job.source.family for job in on[mine]} == {job.target.family for job in on[mine]} == {"large"}
    assert {job.source.family for job in on["GunPoint"]} == {None}
    temperatures = {job.key for job in on[mine] if job.contender.name.startswith("Temperature")}
    plain = {job.key for job in on[mine] if job.contender.name == "Overlap -> 50%"}
    assert len(temperatures) == 4 and plain < temperatures, "0.07 is what the large sets have"
    given = {job.key for job in jobs_of("large", sets=(mine,), family="large")}
    assert not given & {job.key for job in jobs_of("large", sets=(mine,))}
    archives = suite_jobs(["ucr", "uea"], SuiteOptions(sets=(mine,), family="uea"))
    assert {job.suite for job in archives} == {"uea"}


def test_ablation_has_the_papers_rows():
    rows = Counter(job.contender.name for job in jobs_of("ablation", sets=("harth",), seeds=(1,)))
    assert len(rows) == 9 + 2 and set(rows.values()) == {1}
    encoders = {job.contender.settings.get("encoder") for job in jobs_of("ablation", sets=("harth",), seeds=(1,))}
    assert encoders == {None, "fcn", "resnet"}
    positives = {job.contender.method_params.get("positive") for job in jobs_of("positive_selection", seeds=(1,))}
    assert positives == {None, "next", "both"}


def test_batch_sizes():
    jobs = jobs_of("batch_scaling")
    for name in ("dicot", "catt", "catt without chunks"):
        sizes = [job.contender.settings["batch_size"] for job in jobs if job.contender.name == name]
        assert sizes == [8, 16, 32, 64, 128, 256, 512]
    chunks = {job.contender.method_params.get("chunked") for job in jobs if job.contender.name != "catt without chunks"}
    assert chunks == {None}
    assert not any(job.trial for job in jobs)
    assert {job.protocol for job in jobs} == {"cost"}


def test_smoke_has_everyone_and_every_protocol_and_marks_trials():
    jobs = jobs_of("smoke")
    assert {job.contender.kind for job in jobs} == {*METHODS, *CONTROLS, *CLASSICAL}
    assert {job.protocol for job in jobs} == set(every_protocol())
    assert all(job.trial for job in jobs if job.contender.kind in METHODS or job.scorer().trains)
    assert not any(job.trial for job in jobs if job.contender.kind in CLASSICAL)
    assert {job.contender.settings["steps"] for job in jobs if job.contender.kind in METHODS} == {10}
    assert {job.contender.settings.get("schedule") for job in jobs} == {None, "per_step", "per_epoch"}


def test_options():
    jobs = jobs_of(
        "ucr", contenders=("tnc",), sets=("gunpoint",), seeds=(3, 4), schedules=("per_step", "per_epoch"), steps=5
    )
    assert {job.source.name for job in jobs} == {"GunPoint"} and {job.seed for job in jobs} == {3, 4}
    assert Counter(job.contender.kind for job in jobs) == {"tnc": 4, "random": 2, "calibrated": 2}
    assert all(job.trial == (job.contender.kind == "tnc") for job in jobs)
    assert {job.contender.kind for job in jobs_of("ucr", contenders=("raw-mean",))} == {"raw-mean"}
    archives = suite_jobs(["ucr", "uea"], SuiteOptions(sets=("GunPoint", "NATOPS")))
    assert {(job.suite, job.source.name) for job in archives} == {("ucr", "GunPoint"), ("uea", "NATOPS")}
    for wanted in ("authors", "per-seed"):
        drawn = suite_jobs(["knn", "low_label", "large"], SuiteOptions(sets=("harth",), subsets=wanted))
        few = {job.subsets for job in drawn if job.protocol not in ("linear", "ridge", "forest", "finetune-100")}
        assert few == {wanted}
        assert {job.subsets for job in drawn if job.suite == "large"} == {"authors"}, "nothing is drawn: one key"
    both = suite_jobs(["knn", "clustering"], SuiteOptions(sets=("harth",)))
    assert {job.suite for job in both} == {"knn", "clustering"}


@pytest.mark.parametrize(
    ("suite", "options", "message"),
    [
        ("urc", {}, "Unknown suite 'urc'. Did you mean 'ucr'"),
        ("ucr", {"contenders": ("dicott",)}, "Did you mean 'dicot'"),
        ("ucr", {"protocols": ("liner",)}, "Did you mean 'linear'"),
        ("ucr", {"schedules": ("per_stp",)}, "Did you mean 'per_step'"),
        ("ucr", {"precision": "tf23"}, "Did you mean 'tf32'"),
        ("knn", {"sets": ("mine.npz",), "family": "lagre"}, "Did you mean 'large'"),
        ("knn", {"sets": ("hapt",), "family": "large"}, "is for files"),
        ("knn", {"subsets": "perseed"}, "Did you mean 'per-seed'"),
        ("ucr", {"contenders": ("raw-mean",), "protocols": ("finetune-1",)}, "Nothing is left"),
    ],
)
def test_mistakes(suite, options, message):
    with pytest.raises(InputError, match=message):
        jobs_of(suite, **options)


def test_a_registered_method_takes_part_everywhere(toy):
    for suite in ("smoke", "large", "low_label", "knn", "clustering", "transfer", "ucr", "uea"):
        assert "toy" in {job.contender.name for job in jobs_of(suite)}


def test_stand_ins_at_hand_take_the_place_of_missing_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("DICOT_DATA", str(tmp_path))
    (tmp_path / "large").mkdir()
    for name in (HAPT.file, WISDM_2019.file):
        (tmp_path / "large" / name).touch()
    options = SuiteOptions(contenders=("dicot",), seeds=(1,))
    own = {(job.source.name, job.target.name) for job in with_stand_ins(["transfer"], options)}
    assert own == {*TRANSFERS, ("hapt", "wisdm2019"), ("wisdm2019", "hapt")}
    for suite in ("large", "ablation"):
        more = with_stand_ins([suite], options)[len(suite_jobs([suite], options)) :]
        assert {job.source.name for job in more} == {"hapt", "wisdm2019"} and {job.seed for job in more} == {1}
    assert {job.source.name for job in with_stand_ins(["batch_scaling"], options)} == {"harth", "hapt"}
    named = replace(options, sets=("synthetic",))
    assert with_stand_ins(["large"], named) == suite_jobs(["large"], named)
    assert maps_set() == "hapt"
