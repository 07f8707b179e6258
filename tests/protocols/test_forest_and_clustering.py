"""The forest probe and clustering: published settings, golden scores, and a problem no linear probe solves."""

from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import RandomForestClassifier

from dicot.judge.protocols import Features, KMeansClustering, Probe
from dicot.judge.protocols.base import classification_scores, stratified_cap
from dicot.judge.protocols.embeddings import fit_forest


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
    got = Probe("forest").score(train, test, seed=3)
    assert got == classification_scores(test.y, predicted) == Probe("forest").score(train, test, seed=4)
    assert got["macro_f1"] > 90 > Probe("linear").score(train, test, seed=3)["macro_f1"]


def test_large_sets_are_capped(monkeypatch):
    train, test = rings(200, 1), rings(60, 2)
    expected = fit_forest(train.rows(stratified_cap(train.y, 40))).predict(test.x)
    assert (fit_forest(train).predict(test.x) != expected).any()
    monkeypatch.setattr("dicot.judge.protocols.base.MAX_CASES", 40)
    assert (fit_forest(train).predict(test.x) == expected).all()


GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "protocols.npz", allow_pickle=False)
CASES = range(int(GOLDEN["n_cases"]))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.skipif(sklearn.__version__ != str(GOLDEN["sklearn"]), reason="k-means starts differ between versions")
def test_golden_scores(case):
    train, test = (Features(GOLDEN[f"c{case}_{s}"], GOLDEN[f"c{case}_y{s}"]) for s in ("train", "test"))
    got = KMeansClustering().score(train, test, seed=int(GOLDEN[f"c{case}_kmeans_seed"]))
    assert got["nmi"] == pytest.approx(float(GOLDEN[f"c{case}_nmi"]), abs=1e-6)
    assert got["ari"] == pytest.approx(float(GOLDEN[f"c{case}_ari"]), abs=1e-6)


def test_far_groups_are_found_whatever_their_names():
    y = np.array(["b", "a"] * 20)
    x = np.where(y == "a", 1.0, -1.0)[:, None] * 100 + np.random.default_rng(0).normal(size=(40, 3))
    test = Features(x, y)
    assert KMeansClustering().score(test, test, seed=1) == pytest.approx({"nmi": 1.0, "ari": 1.0})


def test_the_training_embeddings_play_no_part():
    rng = np.random.default_rng(0)
    test = Features(rng.normal(size=(40, 3)), np.arange(40) % 3)
    other = Features(rng.normal(size=(5, 8)), np.zeros(5, int))
    assert KMeansClustering().score(other, test, seed=3) == KMeansClustering().score(test, test, seed=3)
