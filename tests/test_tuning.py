"""Gradual fine-tuning: it begins as the frozen probe, and held-out cases decide what is kept."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dicot import TimeSeriesClassifier, TimeSeriesEmbedder
from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.methods.supervised import Supervised
from dicot.model import classifier as tuning
from dicot.model.embedding import pooled_dim
from dicot.model.files import grouped
from dicot.train import Recipe, pretrain
from dicot.train.loop import weights_hash
from tests.own import Net

QUICK = {"random_state": 0, "device": "cpu"}


def embedder_for(x, **settings) -> TimeSeriesEmbedder:
    """A small network that learned nothing but the statistics of BatchNorm."""
    network = Net(x.shape[1], dim=16)
    return TimeSeriesEmbedder("calibrated", **grouped({"encoder": network, "dim": 16, **QUICK, **settings})).fit(x)


def probe(embedder: TimeSeriesEmbedder, x, y):
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=10_000)).fit(embedder.transform(x), y)


def many_waves(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noisy waves of two frequencies that differ little."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    wave = np.sin(2 * np.pi * (3 + 0.7 * y[:, None]) * np.linspace(0, 1, 24) + rng.uniform(0, 6, (n, 1)))
    return (wave + 0.5 * rng.normal(size=wave.shape)).astype(np.float32)[:, None], y


@pytest.mark.parametrize("pooling", ["mean", "max", "mean+max+std", "layers"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_step_0_is_the_frozen_probe(waves, pooling, n_classes):
    known = waves.subset(waves.y < n_classes)
    embedder = embedder_for(waves.x, pooling=pooling)
    model = TimeSeriesClassifier(embedder, steps=0, **QUICK).fit(known.x, known.y)
    expected = probe(embedder, known.x, known.y)
    np.testing.assert_allclose(
        model.predict_proba(waves.x), expected.predict_proba(embedder.transform(waves.x)), atol=1e-3
    )
    assert np.array_equal(model.predict(waves.x), expected.predict(embedder.transform(waves.x)))
    assert (model.tuned_.kept, model.tuned_.step, len(model.history_)) == ("probe", 0, 0)
    assert (model.pooling_, model.head_.in_features) == (pooling, pooled_dim(model.encoder_, pooling))
    assert weights_hash(model.encoder_.state_dict()) == weights_hash(embedder.encoder_.state_dict())


@pytest.mark.parametrize("pooling", ["mean+max+std", "layers"])
def test_any_pooling_is_trained_through(waves, pooling):
    embedder = embedder_for(waves.x, pooling=pooling, encoder="inception_time")
    model = TimeSeriesClassifier(embedder, steps=2, **QUICK).fit(waves.x, waves.y)
    assert len(model.history_) == 2 and model.head_.in_features == embedder.transform(waves.x[:1]).shape[1]
    assert TimeSeriesClassifier(embedder, steps=0, pooling="max", **QUICK).fit(waves.x, waves.y).head_.in_features == 16
    everything = TimeSeriesClassifier(embedder, steps=1, tuning="all", **QUICK).fit(waves.x, waves.y)
    assert (everything.pooling_, everything.head_.in_features) == ("mean", 16)
    with pytest.raises(InputError, match="Unknown pooling 'meen'. Did you mean 'mean'"):
        TimeSeriesClassifier(embedder, pooling="meen", **QUICK).fit(waves.x, waves.y)


def test_where_training_helps_the_trained_weights_are_kept(caplog):
    x, y = many_waves(120)
    embedder = embedder_for(x, encoder=Net(1, dim=4))  # four random features tell the classes apart badly
    with caplog.at_level(logging.INFO, "dicot"):
        model = TimeSeriesClassifier(embedder, epochs=20, recipe={"lr": 3e-2}, **QUICK).fit(x, y)
    told = model.tuned_
    assert told.kept == "tuned" and told.tuned_accuracy > told.probe_accuracy
    assert told.accuracies[told.step] == told.tuned_accuracy == max(told.accuracies.values())
    assert len(told.accuracies) == 11 and max(told.accuracies) == len(model.history_) == model.recipe_.steps
    assert "kept the weights of step" in caplog.text and told.reason in caplog.text
    others, labels = many_waves(200, seed=1)
    assert model.score(others, labels) > probe(embedder, x, y).score(embedder.transform(others), labels) + 0.2


def test_where_training_harms_the_probe_is_kept_with_a_head_of_all_cases(waves, caplog):
    """Rates at which every step destroys what the embedder can tell apart."""
    embedder = embedder_for(waves.x)
    x, y = np.tile(waves.x, (3, 1, 1)), np.tile(waves.y, 3)
    with caplog.at_level(logging.INFO, "dicot"):
        model = TimeSeriesClassifier(embedder, steps=10, recipe={"schedule": lambda step: 3.0}, **QUICK).fit(x, y)
    told = model.tuned_
    assert told.kept == "probe" and told.step == 0 and told.probe_accuracy > told.tuned_accuracy
    assert "kept the frozen probe" in caplog.text
    expected = probe(embedder, x, y).predict_proba(embedder.transform(x))
    np.testing.assert_allclose(model.predict_proba(x), expected, atol=1e-3)
    assert weights_hash(model.encoder_.state_dict()) == weights_hash(embedder.encoder_.state_dict())


def test_of_equals_the_last_is_kept(waves):
    """At a rate of nearly zero nothing changes but BatchNorm, which the module does without."""
    embedder = embedder_for(waves.x, encoder=NoNorm())
    model = TimeSeriesClassifier(embedder, steps=20, recipe={"lr": 1e-12}, **QUICK).fit(waves.x, waves.y)
    assert len(set(model.tuned_.accuracies.values())) == 1 and model.tuned_.step == 20


class NoNorm(Net):
    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def test_no_label_of_a_held_out_case_reaches_the_training(waves, monkeypatch):
    """Other labels of the held-out cases leave every weight that training passes through as it was."""
    seen = []
    usual = tuning.train_with_bar

    def watched(what, run, **settings):
        history = usual(what, run, **settings)
        seen.append((run.train, [weights_hash(state) for _, state in run.method.states]))
        return history

    monkeypatch.setattr(tuning, "train_with_bar", watched)
    rows = np.arange(24)
    monkeypatch.setattr(tuning, "validation_rows", lambda *_: rows % 4 == 1)
    embedder = embedder_for(waves.x)
    for shift in (0, 1):
        y = np.where(rows % 4 == 1, (waves.y + shift) % 3, waves.y)
        TimeSeriesClassifier(embedder, steps=10, **QUICK).fit(waves.x, y)
    assert len(seen[0][1]) == 10 and seen[0][1] == seen[1][1]
    assert np.array_equal(seen[0][0].x, waves.x[rows % 4 != 1])


def test_with_too_few_labels_only_the_head_is_fitted(waves, caplog):
    embedder = embedder_for(waves.x)
    few = np.arange(12)  # four of each class
    with caplog.at_level(logging.INFO, "dicot"):
        model = TimeSeriesClassifier(embedder, **QUICK).fit(waves.x[few], waves.y[few])
    assert (model.tuned_.kept, model.tuned_.held_out, len(model.history_)) == ("probe", 0, 0)
    assert np.isnan(model.tuned_.probe_accuracy) and "no class has 5 cases" in model.tuned_.reason
    assert model.tuned_.reason in caplog.text and all(record.levelno == logging.INFO for record in caplog.records)
    expected = probe(embedder, waves.x[few], waves.y[few]).predict(embedder.transform(waves.x))
    assert np.array_equal(model.predict(waves.x), expected)


def test_whole_groups_are_held_out(monkeypatch):
    x, y = many_waves(80)
    group = np.repeat(np.arange(8), 10)
    held = []
    usual = tuning.TrainingRun
    monkeypatch.setattr(
        tuning, "TrainingRun", lambda method, train, *a, **k: held.append(train) or usual(method, train, *a, **k)
    )
    model = TimeSeriesClassifier(embedder_for(x), steps=1, **QUICK).fit(Windows(x, y, group), y)
    (trained,) = held
    assert set(np.unique(trained.group, return_counts=True)[1]) == {10} and len(trained) == 80 - model.tuned_.held_out
    assert 10 <= model.tuned_.held_out <= 30


def test_one_group_alone_cannot_be_held_out():
    x, y = many_waves(20)
    model = TimeSeriesClassifier(embedder_for(x), **QUICK).fit(Windows(x, y, np.zeros(20, int)), y)
    assert model.tuned_.kept == "probe" and "none of the groups" in model.tuned_.reason


def test_all_weights_at_once_is_what_it_was(waves):
    """The way of the paper, written out: `tuning="all"` must give the same bytes."""
    embedder = embedder_for(waves.x, encoder="inception_time")
    model = TimeSeriesClassifier(embedder, steps=3, tuning="all", **QUICK).fit(waves.x, waves.y)
    method = Supervised(embedder_for(waves.x, encoder="inception_time").encoder_, pool="mean")
    recipe = Recipe(3, 16, betas=(0.9, 0.999), warmup=0.0)
    history = pretrain(method, replace(waves, x=waves.x.copy()), recipe, seed=0, device="cpu")
    assert model.history_.loss == history.loss
    assert weights_hash(model.encoder_.state_dict()) == weights_hash(method.encoder.state_dict())
    assert weights_hash(model.head_.state_dict()) == weights_hash(method.head.state_dict())
    assert not hasattr(model, "tuned_")


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({}, 50),
        ({"epochs": 3}, 3),
        ({"steps": 4}, 4),
        ({"recipe": {"steps": 5}}, 5),
        ({"recipe": {"batch_size": 2}, "epochs": 2}, 18),
        ({"recipe": {"batch_size": 2}}, 180),
    ],
    ids=str,
)
def test_the_budget_counts_cases_that_are_not_held_out(waves, settings, steps):
    model = TimeSeriesClassifier(embedder_for(waves.x), **settings, **QUICK).fit(waves.x, waves.y)
    assert model.tuned_.held_out == 6
    assert len(model.history_) == model.recipe_.steps == steps


def test_optimiser_and_callbacks_reach_the_training(waves):
    groups, told = [], []

    def sgd(given):
        groups.extend(given)
        return torch.optim.SGD(given, lr=1.0)

    embedder = embedder_for(waves.x)
    model = TimeSeriesClassifier(embedder, steps=20, **QUICK)
    model.fit(waves.x, waves.y, optimiser=sgd, on_step=lambda step: told.append(step.number) or step.number == 3)
    assert [round(group["rate"], 3) for group in groups] == [0.3, 0.448, 0.669, 1.0]
    assert told == [1, 2, 3] and len(model.history_) == 3
    assert set(model.tuned_.accuracies) == {0, 2, 3}  # a look every second step, and the last state


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
def test_a_gpu_tunes_as_a_cpu_does(waves):
    """CUDA graphs read a rate for each group, and the looks lie between their replays."""
    embedder = embedder_for(waves.x, encoder="inception_time")
    models = [
        TimeSeriesClassifier(embedder, steps=20, random_state=0, device=device).fit(waves.x, waves.y)
        for device in ("cpu", "cuda")
    ]
    losses = [np.array(model.history_.loss) for model in models]
    np.testing.assert_allclose(losses[0][:5], losses[1][:5], rtol=2e-3)
    assert list(models[0].tuned_.accuracies) == list(models[1].tuned_.accuracies)
