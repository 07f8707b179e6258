"""Many cases go to the own solvers, few to scikit-learn, and the scores do not show which."""

import subprocess
import sys

import numpy as np
import pytest

import dicot.protocols.neighbours as neighbours_module
import dicot.protocols.probe as probe_module
import dicot.protocols.ridge as ridge_module
import dicot.solvers
from dicot.protocols import Features, LinearProbe, NearestNeighbour, RidgeProbe, fit_probe

ROUTES = {
    "linear": (LinearProbe, probe_module, "one_vs_rest"),
    "knn_all": (NearestNeighbour, neighbours_module, "nearest"),
    "ridge": (RidgeProbe, ridge_module, "leave_one_out_ridge"),
}


def pair(k, f=20, names=None):
    rng = np.random.default_rng(0)
    y = [np.arange(n) % k for n in (900, 600)]
    centres = 0.5 * rng.normal(size=(k, f))
    scale = 10.0 ** rng.integers(-2, 3, f)
    return [Features((centres[c] + rng.normal(size=(len(c), f))) * scale, c if names is None else names[c]) for c in y]


@pytest.fixture
def solved(monkeypatch):
    """Which solvers were called."""
    calls = []

    def spy(name, solver):
        return lambda *a, **k: (calls.append(name), solver(*a, **k))[1]

    for _, _, name in ROUTES.values():
        monkeypatch.setattr(dicot.solvers, name, spy(name, getattr(dicot.solvers, name)))
    return calls


@pytest.mark.parametrize("names", [None, np.array(["sit", "run", "lie", "cycle"])])
@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("key", ROUTES)
def test_both_routes_give_the_same_scores(key, k, names, monkeypatch, solved):
    protocol, module, solver = ROUTES[key]
    train, test = pair(k, names=names)
    monkeypatch.setattr(probe_module, "TOLERANCE", 1e-8)
    usual = protocol().score(train, test, seed=1)
    assert solved == []
    monkeypatch.setattr(module, "LARGE", 900)
    assert protocol().score(train, test, seed=1) == pytest.approx(usual, abs=0.2)  # one case of 600 is 0.17
    assert solved == [solver]
    assert usual["accuracy"] < 99


@pytest.mark.parametrize("k", [2, 4])
def test_a_probe_by_either_route_decides_alike(k, monkeypatch):
    train, test = pair(k)
    monkeypatch.setattr(probe_module, "TOLERANCE", 1e-8)
    usual = fit_probe(train)
    monkeypatch.setattr(probe_module, "LARGE", 900)
    solved = fit_probe(train)
    assert solved.weights.shape == usual.weights.shape
    np.testing.assert_allclose(solved.decision_function(test.x), usual.decision_function(test.x), atol=1e-3)


def test_few_features_stay_with_the_tree(monkeypatch, solved):
    monkeypatch.setattr(neighbours_module, "LARGE", 900)
    NearestNeighbour().score(*pair(3, f=15), seed=1)
    assert solved == []
    NearestNeighbour().score(*pair(3, f=16), seed=1)
    assert solved == ["nearest"]


def test_very_many_features_stay_with_scikit_learns_ridge(monkeypatch, solved):
    monkeypatch.setattr(ridge_module, "LARGE", 900)
    monkeypatch.setattr(ridge_module, "MAX_FEATURES", 19)
    RidgeProbe().score(*pair(3), seed=1)
    assert solved == []


def test_scoring_few_cases_does_not_load_torch():
    code = """
import sys
import numpy as np
from dicot.protocols import PROTOCOLS, Features
f = Features(np.random.default_rng(0).normal(size=(60, 20)), np.arange(60) % 3)
for key in ("linear", "ridge", "knn_all"):
    PROTOCOLS[key]().score(f, f, seed=1)
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
