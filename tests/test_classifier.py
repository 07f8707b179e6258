import json
import pickle
import time
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from dicot import TimeSeriesClassifier, TimeSeriesEmbedder
from dicot.core.errors import InputError, ModelFileError
from dicot.model.files import grouped
from tests.own import Net, Summary, slow_start

QUICK = {"random_state": 0, "device": "cpu"}


def small(**settings) -> TimeSeriesClassifier:
    return TimeSeriesClassifier(**grouped({"dim": 16, "steps": 2, **QUICK, **settings}, ("prepare", "recipe")))


@pytest.fixture
def embedder(waves) -> TimeSeriesEmbedder:
    return TimeSeriesEmbedder("dicot", dim=16, steps=2, prepare={"scale": "dataset"}, **QUICK).fit(waves.x)


# Some checks ask for accuracy, so it must learn: few large steps of the fastest encoder do. The default trains nothing.
@parametrize_with_checks(
    [
        TimeSeriesClassifier(),
        TimeSeriesClassifier(device="cpu", encoder="fcn", dim=8, steps=12, recipe={"lr": 2e-2, "batch_size": 32}),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_the_default_learns_in_seconds_without_a_training(waves, tmp_path):
    names = np.array(["walk", "run", "sit"])[waves.y]
    started = time.perf_counter()
    model = TimeSeriesClassifier(**QUICK).fit(waves.x, names)
    assert time.perf_counter() - started < 30
    assert not len(model.history_) and model.strength_ > 0
    assert model.score(waves.x, names) == 1.0
    again = TimeSeriesClassifier.from_pretrained(model.save_pretrained(tmp_path), device="cpu")
    assert np.array_equal(again.predict_proba(waves.x), model.predict_proba(waves.x))
    assert again.strength_ == model.strength_


def test_the_default_is_sure_only_where_left_out_cases_are_right(waves):
    y = np.random.default_rng(0).permutation(waves.y)
    assert TimeSeriesClassifier(**QUICK).fit(waves.x, y).predict_proba(waves.x + 0.5).max() < 0.9
    assert TimeSeriesClassifier(**QUICK).fit(waves.x, waves.y).predict_proba(waves.x).max(axis=1).mean() > 0.8


def test_a_preset_and_a_training_by_labels_are_not_mixed(waves):
    with pytest.raises(InputError, match="preset='best' names the embedder .* Leave out the one or the others"):
        TimeSeriesClassifier(preset="best", epochs=3).fit(waves.x, waves.y)


def test_an_embedder_that_is_not_fitted_is_cloned_and_fitted(waves, embedder):
    bare = clone(embedder)
    model = TimeSeriesClassifier(bare, steps=2, **QUICK).fit(waves.x, waves.y)
    assert not hasattr(bare, "encoder_")
    same = TimeSeriesClassifier(embedder, steps=2, **QUICK).fit(waves.x, waves.y)
    np.testing.assert_array_equal(model.predict_proba(waves.x), same.predict_proba(waves.x))


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_it_learns_and_gives_probabilities(waves, pooling):
    names = np.array(["walk", "run", "sit"])[waves.y]
    model = small(epochs=20, steps=None, batch_size=8, lr=1e-2, pooling=pooling).fit(waves.x, names)
    assert model.classes_.tolist() == ["run", "sit", "walk"]
    assert model.score(waves.x, names) > 0.9
    probabilities = model.predict_proba(waves.x)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-12)
    assert (model.classes_[probabilities.argmax(1)] == model.predict(waves.x)).all()


def test_predictions_are_those_of_the_trained_network(waves):
    model = small(pooling="max").fit(waves.x, waves.y)
    with torch.no_grad():
        expected = model.head_(model.encoder_(torch.from_numpy(waves.x)).amax(-1)).softmax(1)
    np.testing.assert_allclose(model.predict_proba(waves.x), expected, atol=1e-6)


@pytest.mark.parametrize("labels", [["b", "a", "c"], [7, -3, 40], [True, False, True], [3.0, 2.0, 1.0]], ids=str)
def test_saved_and_loaded_it_predicts_the_same(waves, labels, tmp_path):
    y = np.array(labels)[waves.y]
    model = small(schedule=slow_start, scale="case", pooling="max").fit(waves.x, y)
    again = TimeSeriesClassifier.from_pretrained(model.save_pretrained(tmp_path), device="cpu")
    assert np.array_equal(again.predict_proba(waves.x), model.predict_proba(waves.x))
    assert (
        again.classes_.dtype == model.classes_.dtype
        and again.predict(waves.x).tolist() == model.predict(waves.x).tolist()
    )
    assert (again.recipe_.steps, again.seed_, again.pooling_) == (2, 0, "max") and not hasattr(again, "tuned_")


def test_what_was_tuned_is_saved_without_the_embedder(waves, embedder, tmp_path):
    model = TimeSeriesClassifier(embedder, steps=2, **QUICK).fit(waves.x[:7], waves.y[:7])
    assert np.isnan(model.tuned_.tuned_accuracy)  # too few cases: the probe, in a file that knows no NaN
    again = TimeSeriesClassifier.from_pretrained(model.save_pretrained(tmp_path), device="cpu")
    assert again.pretrained is None and repr(again.tuned_) == repr(model.tuned_)
    assert np.array_equal(again.predict_proba(waves.x), model.predict_proba(waves.x))


def test_a_saved_classifier_is_told_from_an_embedder_and_from_a_damaged_one(waves, embedder, tmp_path):
    small().fit(waves.x, waves.y).save_pretrained(tmp_path / "classifier")
    with pytest.raises(ModelFileError, match="holds a TimeSeriesClassifier. Load it by TimeSeriesClassifier"):
        TimeSeriesEmbedder.from_pretrained(tmp_path / "classifier")
    with pytest.raises(ModelFileError, match="holds a TimeSeriesEmbedder. Load it by TimeSeriesEmbedder"):
        TimeSeriesClassifier.from_pretrained(embedder.save_pretrained(tmp_path / "embedder"))
    config = json.loads((tmp_path / "classifier" / "config.json").read_text())
    for entry, wrong, message in (
        ("classes", [0, 1], "size mismatch for weight"),
        ("pooling", "none", "Unknown pooling"),
        ("tuned", {"kept": "probe"}, "lacks 'accuracies'"),
    ):
        changed = {**config, entry: wrong}
        del changed["sha256"]
        (tmp_path / "classifier" / "config.json").write_text(json.dumps(changed))
        with pytest.raises(ModelFileError, match=message):
            TimeSeriesClassifier.from_pretrained(tmp_path / "classifier")


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({"epochs": 3, "batch_size": 10}, 6),  # 24 // 10 steps per epoch
        ({"epochs": 3, "batch_size": 16}, 3),
        ({"epochs": 3, "batch_size": 100}, 3),  # at least one
        ({"epochs": 3, "batch_size": 10, "steps": 1}, 1),
        ({"recipe": {"batch_size": 24}}, 50),
        ({"recipe": {"steps": 4}}, 4),
        ({"recipe": {"steps": 4}, "epochs": 2, "batch_size": 24}, 2),
        ({"recipe": {"steps": 4}, "steps": 2}, 2),
    ],
    ids=str,
)
def test_epochs_become_steps_and_the_rate_has_no_warm_up(waves, settings, steps):
    model = small(**{"steps": None, "lr": 2e-3, **settings}).fit(waves.x, waves.y)
    assert len(model.history_) == model.recipe_.steps == steps
    assert model.history_.lr[0] == 2e-3
    assert (model.recipe_.betas, model.recipe_.weight_decay) == ((0.9, 0.999), 3e-4)


@pytest.mark.parametrize("tuning", ["gradual", "all"])
def test_fine_tuning_starts_from_the_embedder_and_leaves_it_alone(waves, embedder, tuning, monkeypatch):
    monkeypatch.setattr("dicot.model.classifier._accuracy", lambda *_: 1.0)  # so that the tuned weights are kept
    before = embedder.transform(waves.x)
    untouched = TimeSeriesClassifier(embedder, steps=0, tuning=tuning, **QUICK).fit(waves.x, waves.y)
    assert untouched.encoder_.dim == 16
    for mine, its in zip(untouched.encoder_.parameters(), embedder.encoder_.parameters(), strict=True):
        assert torch.equal(mine, its)
    embedder.encoder_.requires_grad_(False)  # as an averaged encoder's
    tuned = TimeSeriesClassifier(embedder, steps=3, tuning=tuning, **QUICK).fit(waves.x, waves.y)
    pairs = list(zip(tuned.encoder_.parameters(), embedder.encoder_.parameters(), strict=True))
    assert all(not torch.equal(mine, its) for mine, its in pairs)
    assert np.array_equal(embedder.transform(waves.x), before)


def test_fine_tuning_prepares_input_as_the_embedder_did(waves, embedder):
    tuned = TimeSeriesClassifier(embedder, steps=1, **QUICK).fit(waves.x[:6] + 5, waves.y[:6])
    its, mine = embedder.preparation_, tuned.preparation_
    assert mine.statistics is its.statistics and mine.fingerprint != its.fingerprint
    long = TimeSeriesEmbedder("dicot", dim=16, steps=1, prepare={"unequal": "resample"}, **QUICK).fit(waves.x)
    short = TimeSeriesClassifier(long, steps=1, **QUICK).fit(waves.x[..., :20], waves.y)
    assert short.preparation_.n_times == 32
    with pytest.raises(InputError, match=r"1 channel\(s\); this model was fitted on 2"):
        TimeSeriesClassifier(embedder, **QUICK).fit(waves.x[:, :1], waves.y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prepare": {"scale": "case"}}, "prepare=.*case.* contradicts the pretrained embedder's .*dataset"),
        ({"dim": 32}, "dim=32 contradicts"),
        ({"encoder": "fcn"}, "Leave encoder out"),
    ],
    ids=str,
)
def test_what_contradicts_the_embedder_is_refused(waves, embedder, settings, message):
    with pytest.raises(InputError, match=message):
        TimeSeriesClassifier(embedder, **settings).fit(waves.x, waves.y)
    same = TimeSeriesClassifier(embedder, prepare={"scale": "dataset"}, dim=16, steps=1, **QUICK)
    assert same.fit(waves.x, waves.y).predict(waves.x).shape == (24,)


def test_cloning_keeps_the_fitted_embedder_for_searches(waves, embedder):
    model = TimeSeriesClassifier(embedder, steps=1, **QUICK)
    assert clone(model).pretrained is embedder
    assert cross_val_score(model, waves.x, waves.y, cv=2).shape == (2,)
    search = GridSearchCV(small(), {"pooling": ["mean", "max"]}, cv=2).fit(waves.x, waves.y)
    assert search.predict(waves.x).shape == (24,)
    fitted = model.fit(waves.x, waves.y)
    copy = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(copy.predict_proba(waves.x), fitted.predict_proba(waves.x))


@pytest.mark.parametrize("unlabelled", [None, np.nan, ""])
def test_every_case_needs_a_label(waves, unlabelled):
    labels = [*"ab" * 11, "a", unlabelled]
    with pytest.raises(InputError, match="case 23"):
        small().fit(waves.x, labels)
    with pytest.raises(ValueError, match="NaN|case 23"):
        small().fit(waves.x, np.array(labels, dtype=object))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder": "fcnn"}, "Did you mean 'fcn'"),
        ({"pooling": "mean+max"}, "Unknown pool.*mean.max"),
        ({"epochs": 0}, "epochs must be a whole number, 1 or more; got 0"),
        ({"batch_size": 0}, "batch_size must be a whole number, 1 or more; got 0"),
        ({"encoder_params": {"depth": 3}}, "does not take"),
    ],
    ids=str,
)
def test_bad_settings_are_refused_at_fit(settings, message, waves):
    with pytest.raises(InputError, match=message):
        small(**settings).fit(waves.x, waves.y)


def test_bad_labels_are_refused(waves):
    with pytest.raises(InputError, match="requires y"):
        small().fit(waves.x, None)
    with pytest.raises(InputError, match="at least 2 classes"):
        small().fit(waves.x, np.zeros(24, int))
    with pytest.raises(ValueError, match="Unknown label type"):
        small().fit(waves.x, np.linspace(0, 1, 24))
    with pytest.raises(InputError, match="one value for each of the 24 cases; got 3"):
        small().fit(waves.x, [0, 1, 2])
    with pytest.raises(NotFittedError):
        small().predict(waves.x)


def test_recipe_optimiser_schedule_and_callbacks_reach_the_training(waves):
    seen = []
    momentum = partial(torch.optim.SGD, lr=1.0, momentum=0.9)
    model = small(steps=5, schedule=slow_start, recipe={"weight_decay": 0.0, "lr": 1.0}, lr=0.5)
    model.fit(waves.x, waves.y, optimiser=momentum, on_step=lambda step: seen.append(step) or step.number == 3)
    assert (model.recipe_.weight_decay, model.recipe_.lr, model.recipe_.betas) == (0.0, 0.5, (0.9, 0.999))
    assert model.history_.lr == [slow_start(step) for step in range(len(seen))] and 2 < len(seen) < 5


@pytest.mark.parametrize("kind", [Net, Summary])
def test_a_module_is_trained_in_a_copy(waves, kind):
    module = kind()
    before = [tensor.clone() for tensor in module.state_dict().values()]
    first, again = (small(encoder=one).fit(waves.x, waves.y) for one in (module, kind()))
    assert np.array_equal(first.predict_proba(waves.x), again.predict_proba(waves.x))
    assert all(torch.equal(a, b) for a, b in zip(before, module.state_dict().values(), strict=True))
    embedder = TimeSeriesEmbedder("dicot", encoder=module, steps=1, **QUICK).fit(waves.x)
    tuned = TimeSeriesClassifier(embedder, steps=1, **QUICK).fit(waves.x, waves.y)
    assert clone(tuned).fit(waves.x, waves.y).predict(waves.x).shape == (24,)
