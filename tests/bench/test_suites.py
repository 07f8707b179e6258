"""What each suite consists of."""

from collections import Counter
from dataclasses import replace

import pytest

from bench.datasets.standins import HAPT, WISDM_2019
from bench.paper import numbers as paper
from bench.paper.suites import LARGE, NOT_IN_PAPER, PAPER_UCR, PAPER_UEA, TRANSFERS, maps_set, with_stand_ins
from bench.suites import SUITES, SuiteOptions, suite_jobs
from dicot.core.errors import InputError
from dicot.judge.classical import RAW_FEATURES
from dicot.methods import METHODS
from dicot.model.controls import CONTROLS

RIVALS = {name for name, method in METHODS.items() if not method.needs_labels} - set(NOT_IN_PAPER)
BASELINES = {"minirocket", "raw-mean", "raw-flat"}


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
    of_paper = {suite for suite, jobs in SUITES.items() if jobs.__module__ == "bench.paper.suites"} - {"smoke"}
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
        assert {job.seed for job in jobs} == {1, 2, 3}
        scored = {kind: set() for kind in (*RIVALS, *CONTROLS, *BASELINES)}
        for job in jobs:
            scored[job.contender.kind].add(job.protocol)
        for kind, protocols in scored.items():
            more = {"forest"} if kind in RAW_FEATURES else {"ridge"} if kind in BASELINES else set()
            assert protocols == {"linear", *more}, kind


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


def test_transfer_takes_the_accelerometers():
    pairs = {
        (job.source.name, job.source.channels, job.target.name, job.target.channels) for job in jobs_of("transfer")
    }
    assert len(pairs) == 4
    assert ("harth", (3, 4, 5), "pamap2-paper", (2, 3, 4)) in pairs
    own = {(job.source.name, job.target.name) for job in jobs_of("transfer", sets=("a", "b"))}
    assert own == {("a", "b"), ("b", "a")}


def test_a_scale_is_part_of_the_data_of_every_job_and_of_no_key_without_it():
    jobs = jobs_of("transfer", seeds=(1,), scale="dataset")
    assert {data.scale for job in jobs for data in (job.source, job.target)} == {"dataset"}
    plain = jobs_of("transfer", seeds=(1,))
    assert not {job.key for job in jobs} & {job.key for job in plain}
    assert not any("scale" in job.config for job in plain)
    with pytest.raises(InputError, match='scale must be None, "dataset", "case"'):
        jobs_of("transfer", scale="zscores")


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


def test_options():
    jobs = jobs_of(
        "ucr", contenders=("tnc",), sets=("gunpoint",), seeds=(3, 4), schedules=("per_step", "per_epoch"), steps=5
    )
    assert {job.source.name for job in jobs} == {"GunPoint"} and {job.seed for job in jobs} == {3, 4}
    wanted = {"tnc": 4, "tnc with ADF": 4, "random": 2, "calibrated": 2}
    assert Counter(job.contender.name for job in jobs) == wanted
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


def test_stand_ins_at_hand_take_the_place_of_missing_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("DICOT_DATA", str(tmp_path))
    (tmp_path / "large").mkdir()
    for name in (HAPT.file, WISDM_2019.file):
        (tmp_path / "large" / name).touch()
    options = SuiteOptions(contenders=("dicot",))
    own = {(job.source.name, job.target.name) for job in with_stand_ins(["transfer"], options)}
    assert own == {*TRANSFERS, ("hapt", "wisdm2019"), ("wisdm2019", "hapt")}
    for suite, seeds in (("large", {1, 2, 3, 4, 5}), ("ablation", {1})):
        more = with_stand_ins([suite], options)[len(suite_jobs([suite], options)) :]
        assert {job.source.name for job in more} == {"hapt", "wisdm2019"} and {job.seed for job in more} == seeds
    assert {job.source.name for job in with_stand_ins(["batch_scaling"], options)} == {"harth", "hapt"}
    named = replace(options, sets=("synthetic",))
    assert with_stand_ins(["large"], named) == suite_jobs(["large"], named)
    named = replace(options, sets=("HAPT", "ItalyPowerDemand", "mine.npz"))
    jobs = with_stand_ins(["ucr", "large", "ablation", "transfer"], named)
    planned = {(job.suite, job.seed) for job in jobs if job.source.name == "hapt"}
    assert planned == {*(("large", seed) for seed in (1, 2, 3, 4, 5)), ("ablation", 1)}, "as in the plan of the page"
    assert {job.suite for job in jobs if job.source.name == "ItalyPowerDemand"} == {"ucr", "ablation"}
    assert {job.suite for job in jobs if job.source.name == "mine.npz"} == {"ucr", "large", "ablation"}
    assert maps_set() == "hapt"


def test_the_authors_channels_of_pamap2_are_an_option_of_transfers():
    def channels(choice):
        jobs = suite_jobs(["transfer"], SuiteOptions(channels=choice))
        return {job.target.channels for job in jobs if job.target.name == "pamap2-paper"}

    assert (channels(""), channels("authors")) == ({(2, 3, 4)}, {(4, 5, 6)})
