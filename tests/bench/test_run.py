"""Units of work: fitted once, scored by all protocols, failures as rows."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bench.executor import execute, site_for
from bench.ledger import Ledger
from bench.plan import make_plan
from dicot.data import Split
from dicot.data.datasets import load, paper_subset_seed
from dicot.data.datasets.base import shaped
from dicot.judge.evaluation import Contender
from dicot.judge.evaluation.jobs import JobData, units_of
from dicot.judge.evaluation.labelled import Shelf
from dicot.judge.evaluation.scoring import Site, run_unit
from dicot.judge.protocols import PROTOCOLS, Features, Probe
from dicot.judge.protocols.base import stratified_fraction
from dicot.judge.protocols.network import FineTuning, Fitted
from dicot.model.classifier import TimeSeriesClassifier
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.train import Checkpoint


def finish(jobs, path, site=None, **options):
    """What `bench run` does: plan, enrol, run, in this process; the plan."""
    with Ledger(path) as ledger:
        plan = make_plan(jobs, ledger, **options)
        ledger.enrol(jobs)
    execute(plan.units, path, site or site_for(path, "cpu"), 1, lambda job, error: None)
    return plan


def records(path):
    with Ledger(path) as ledger:
        rows = [row for result in ledger.results() for row in result.tidy()]
    return {(r["contender"], r["protocol"], r["metric"], r["seed"]): SimpleNamespace(**r) for r in rows}


def test_values_are_those_of_an_estimator_and_a_protocol(tmp_path, job, waves):
    path = tmp_path / "bench.sqlite"
    finish([job(), job(protocol="clustering"), job("raw-mean")], path)
    found = records(path)
    model = TimeSeriesEmbedder("dicot", dim=8, steps=2, recipe={"batch_size": 4}, random_state=1, device="cpu")
    model.fit(waves.x[::2])
    parts = [Features(model.transform(waves.x[k::2]), waves.y[k::2]) for k in (0, 1)]
    for protocol in ("linear", "clustering"):
        for metric, value in PROTOCOLS[protocol]().score(*parts, seed=1).items():
            assert found["dicot", protocol, metric, 1].value == value
    one = found["dicot", "linear", "accuracy", 1]
    assert (one.steps, one.batch_size, one.schedule) == (2, 4, "per_step")
    assert one.device.startswith("cpu") and one.device.endswith(", alone")  # one process, one unit after the other
    assert one.fit_seconds > 0
    raw = found["raw-mean", "linear", "accuracy", 1]
    assert (raw.steps, raw.batch_size, raw.schedule, raw.precision) == (0, 0, "", "")


def test_few_labels_per_seed_differ_with_the_seed_and_a_data_set_may_have_its_own_authors_draw(
    tmp_path, job, waves, monkeypatch
):
    path = tmp_path / "bench.sqlite"
    parts = [Features(waves.x[k::2].reshape(12, -1), waves.y[k::2]) for k in (0, 1)]
    own = {
        seed: Probe("linear", fraction=0.01, subset_seed=seed).score(*parts, seed=9)["macro_f1"] for seed in (0, 1, 2)
    }
    assert len(set(own.values())) == 3
    finish([job("raw-flat", "few_1pct", seed=seed, subsets="per-seed") for seed in (1, 2)], path)
    found = [records(path)["raw-flat", "few_1pct", "macro_f1", seed] for seed in (1, 2)]
    assert [one.value for one in found] == [own[1], own[2]] and {one.subsets for one in found} == {"per-seed"}
    assert [paper_subset_seed(name) for name in ("ecg", "ECG-full", "harth", "mine.npz")] == [0, 0, None, None]
    monkeypatch.setattr("dicot.judge.evaluation.scoring.paper_subset_seed", lambda name: 0)
    finish([job("raw-flat", "few_1pct", seed=3)], path)
    authors = records(path)["raw-flat", "few_1pct", "macro_f1", 3]
    assert (authors.value, authors.subsets) == (own[0], "authors")


def test_fine_tuning_takes_the_labelled_cases_of_its_subset(job, waves):
    """The same 10 % in all runs, or others with each seed; all labels are no draw."""
    data = Split(waves, waves, name="waves")
    fitted = Fitted(TimeSeriesEmbedder("random", dim=8, random_state=1, device="cpu").fit(waves.x), seconds=10.0)
    seen = []

    class Spy(TimeSeriesClassifier):
        def fit(self, X, y, **more):
            seen.append(X.x)
            return super().fit(X, y, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dicot.model.classifier.TimeSeriesClassifier", Spy)
        for subset_seed, seed in ((42, 1), (42, 2), ("run", 1), ("run", 2)):
            further = FineTuning(0.5).on_subset(subset_seed).train(fitted, data, seed=seed, steps=1)
            assert further.seconds > 10 and isinstance(further.model, Spy)
    rows = [waves.x[stratified_fraction(waves.y, 0.5, draw)] for draw in (42, 42, 1, 2)]
    assert all((a == b).all() for a, b in zip(seen, rows, strict=True))
    assert (seen[2] != seen[3]).any()
    everything = FineTuning(1.0)
    assert everything.on_subset("run") is everything


def test_a_fit_serves_all_protocols_and_an_embedding_all_of_a_target(tmp_path, job, monkeypatch):
    calls = []
    for name in ("fit", "transform"):
        usual = getattr(TimeSeriesEmbedder, name)
        monkeypatch.setattr(
            TimeSeriesEmbedder,
            name,
            lambda self, *words, _usual=usual, _name=name, **more: calls.append(_name) or _usual(self, *words, **more),
        )
    finish([job(protocol=name) for name in ("linear", "knn_5", "ridge")], tmp_path / "bench.sqlite")
    assert calls == ["fit", "transform", "transform"]


def test_only_what_is_missing_runs(tmp_path, job, monkeypatch):
    path = tmp_path / "bench.sqlite"
    assert len(finish([job()], path).units) == 1
    before = records(path)
    plan = finish([job(), job(protocol="knn_5"), job(seed=2)], path)
    assert {j.key for unit in plan.units for j in unit.jobs} == {job(protocol="knn_5").key, job(seed=2).key}
    assert {key: repr(one) for key, one in records(path).items() if key in before} == {
        key: repr(one) for key, one in before.items()
    }
    monkeypatch.setattr(TimeSeriesEmbedder, "fit", None)
    assert finish([job(), job(seed=2)], path).units == []


def test_a_failing_contender_is_a_row_and_is_retried_only_on_demand(tmp_path, job):
    path = tmp_path / "bench.sqlite"
    broken = Contender("broken", "dicot", {"k": 1}, {"dim": 8, "steps": 2})
    jobs = [job(contender=broken), job("raw-mean")]
    finish(jobs, path)
    found = records(path)
    assert "InputError: k must be" in found["broken", "linear", "accuracy", 1].error
    assert math.isnan(found["broken", "linear", "macro_f1", 1].value)
    with Ledger(path) as ledger:
        assert sorted(r.error is None for r in ledger.results()) == [False, True]
    assert finish(jobs, path).units == []
    assert len(finish(jobs, path, retry_failed=True).units) == 1


def test_other_data_under_the_same_name_run_again(tmp_path, job, data, waves):
    path = tmp_path / "bench.sqlite"
    finish([job("raw-mean")], path)
    first = records(path)["raw-mean", "linear", "accuracy", 1]
    x, y = waves.x + np.arange(24)[:, None, None], waves.y
    np.savez(data, X_train=x[::2], y_train=y[::2], X_test=x[1::2], y_test=y[1::2])
    plan = finish([job("raw-mean")], path)
    assert plan.changed == (data,) and len(plan.units) == 1
    assert records(path)["raw-mean", "linear", "accuracy", 1].value != first.value
    assert finish([job("raw-mean")], path).units == []


def test_fine_tuning_starts_from_the_encoder_and_cost_is_recorded(tmp_path, job):
    path = tmp_path / "bench.sqlite"
    jobs = [job(protocol=f"finetune-{share}", steps=2, trial=True) for share in (1, 10, 100)]
    jobs += [job(protocol="finetune-100-gradual", steps=2, trial=True)]
    jobs += [job("random", "finetune-100", steps=2, trial=True), job(protocol="cost"), job("random", "cost")]
    finish(jobs, path)
    found = records(path)
    assert all(record.error is None for record in found.values())
    assert all(0 <= found["dicot", f"finetune-{share}", "accuracy", 1].value <= 100 for share in (1, 10, 100))
    assert 0 <= found["dicot", "finetune-100-gradual", "accuracy", 1].value <= 100
    assert found["dicot", "finetune-10", "accuracy", 1].trial
    cost = found["random", "cost", "fit_seconds", 1].value
    assert found["random", "finetune-100", "accuracy", 1].fit_seconds > cost, "training is time to fit"
    assert found["dicot", "cost", "step_ms", 1].value > 0
    assert 1 <= found["dicot", "cost", "encoded", 1].value <= 2
    assert ("random", "cost", "step_ms", 1) not in found and ("random", "cost", "encoded", 1) not in found
    assert found["random", "cost", "fit_seconds", 1].value > 0
    assert found["dicot", "cost", "embed_seconds", 1].value > 0


def test_what_is_the_same_for_every_seed_is_fitted_once(tmp_path, job):
    path = tmp_path / "bench.sqlite"
    plan = finish([job("raw-mean", "few_5", seed=seed) for seed in (1, 2)] + [job("random", seed=1)], path)
    assert sorted(len(unit.jobs) for unit in plan.units) == [1, 2]
    assert {key[3] for key in records(path)} == {1, 2}


def test_scaled_transfer_is_that_of_two_sets_z_scored_by_their_own_training_parts(tmp_path, job, data, waves):
    path, other = tmp_path / "bench.sqlite", tmp_path / "other.npz"
    x, y = 50 * waves.x + 300, waves.y  # the same in other units
    np.savez(other, X_train=x[::2], y_train=y[::2], X_test=x[1::2], y_test=y[1::2])
    scaled = {name: JobData(str(name), (1,), scale="dataset") for name in (data, other)}
    finish([job(source=scaled[data], target=scaled[other]), job(source=JobData(data, (1,)))], path)
    with Ledger(path) as ledger:
        rows = {
            row["target"]: row for result in ledger.results() for row in result.tidy() if row["metric"] == "accuracy"
        }
    assert set(rows) == {data, f"{other} (scale dataset)"}, "a report shows scaled data in a column of their own"
    own, theirs = (shaped(load(name), [1], scale="dataset") for name in (data, other))
    model = TimeSeriesEmbedder("dicot", dim=8, steps=2, recipe={"batch_size": 4}, random_state=1, device="cpu").fit(
        own.train.x
    )
    parts = [Features(model.transform(part.x), part.y) for part in (theirs.train, theirs.test)]
    assert rows[f"{other} (scale dataset)"]["value"] == PROTOCOLS["linear"]().score(*parts, seed=1)["accuracy"]
    np.testing.assert_allclose(Shelf().get(scaled[other]).split.test.x, theirs.test.x)
    np.testing.assert_allclose(theirs.test.x, own.test.x, atol=1e-4)


def test_a_fit_that_fails_is_the_result_of_its_own_jobs(job):
    broken = Contender("broken", "dicot", {}, {"dim": 8, "steps": 2, "lr": 1e30})
    jobs = [job(contender=broken), job("catt"), job("calibrated")]
    rows = {}
    for unit in units_of(jobs):
        run_unit(unit, Site("cpu"), Shelf(), lambda one, results: rows.update({one.key: results[0]}))
    assert "NonFiniteLossError" in rows[jobs[0].key].error
    assert [rows[one.key].error for one in jobs[1:]] == [None, None]


def test_an_interrupted_fit_goes_on_and_says_that_its_time_is_unknown(tmp_path, job, monkeypatch):
    path = tmp_path / "bench.sqlite"
    site = replace(site_for(path, "cpu"), checkpoint_seconds=0)
    slow = job(contender=Contender("dicot", "dicot", {}, {"dim": 8, "steps": 6, "batch_size": 4}))
    usual, written = Checkpoint.write, []

    def dies(self, method, optimiser, history, identity, **more):
        usual(self, method, optimiser, history, identity, **more)
        written.append(len(history))
        if len(written) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        finish([slow], path, site)
    assert len(list((tmp_path / "bench.work").iterdir())) == 1
    finish([slow], path, site)
    assert written == [1, 2, 3, 4, 5, 6]
    found = records(path)["dicot", "linear", "accuracy", 1]
    assert found.error is None and math.isnan(found.fit_seconds)
    assert not (tmp_path / "bench.work").exists()
    whole = tmp_path / "whole.sqlite"
    finish([slow], whole)
    assert records(whole)["dicot", "linear", "accuracy", 1].value == found.value
