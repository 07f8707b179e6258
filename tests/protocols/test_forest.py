"""The forest probe: the published settings, and a problem no linear probe solves."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

import dicot.protocols.forest as forest_module
from dicot.errors import InputError
from dicot.protocols import Features, ForestProbe, LinearProbe
from dicot.protocols.metrics import classification_scores
from dicot.protocols.subsets import stratified_cap


def rings(n, seed):
    """Two classes by distance from the middle; the outer one is rare."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 4 == 0).astype(int)
    angle, radius = rng.uniform(0, 7, n), 1 + 2 * y + 0.3 * rng.normal(size=n)
    return Features(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y)


def test_the_published_forest():
    train, test = rings(120, 1), rings(80, 2)
    mean, scale = train.x.mean(axis=0), train.x.std(axis=0)
    model = RandomForestClassifier(n_estimators=300, class_weight="balanced_subsample", random_state=0)
    predicted = model.fit((train.x - mean) / scale, train.y).predict((test.x - mean) / scale)
    got = ForestProbe().score(train, test, seed=3)
    assert got == classification_scores(test.y, predicted) == ForestProbe().score(train, test, seed=4)
    assert got["macro_f1"] > 90 > LinearProbe().score(train, test, seed=3)["macro_f1"]


def test_large_sets_are_capped_and_one_class_is_refused(monkeypatch):
    train, test = rings(200, 1), rings(60, 2)
    expected = ForestProbe().score(train.rows(stratified_cap(train.y, 40)), test, seed=1)
    monkeypatch.setattr(forest_module, "MAX_CASES", 40)
    assert ForestProbe().score(train, test, seed=1) == expected
    one = Features(np.ones((4, 2)), np.zeros(4, int))
    with pytest.raises(InputError, match="forest probe needs at least 2 classes"):
        ForestProbe().score(one, one, seed=1)
