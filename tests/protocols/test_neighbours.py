"""Nearest neighbour against stored values and against all distances."""

from pathlib import Path

import numpy as np
import pytest

from dicot.errors import InputError
from dicot.protocols import Features, NearestNeighbour

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "protocols.npz", allow_pickle=False)
CASES = range(int(GOLDEN["n_cases"]))


def pair(n, f, seed):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-2, 3, f)  # without the scaler the largest feature would decide
    return [Features(rng.normal(size=(m, f)) * scale, np.arange(m) % 3) for m in (n, 40)]


def brute_force(reference, test):
    mean, scale = reference.x.mean(axis=0), reference.x.std(axis=0)
    a, b = (reference.x - mean) / scale, (test.x - mean) / scale
    return reference.y[np.array([((a - case) ** 2).sum(axis=1).argmin() for case in b])]


@pytest.mark.parametrize("case", CASES)
def test_golden_accuracy(case):
    train, test = (Features(GOLDEN[f"c{case}_{s}"], GOLDEN[f"c{case}_y{s}"]) for s in ("train", "test"))
    got = NearestNeighbour().score(train, test, seed=1)
    assert got["accuracy"] == pytest.approx(float(GOLDEN[f"c{case}_knn_acc"]), abs=1e-9)
    # The stored predictions as truth: only the same predictions score 100.
    same = Features(test.x, GOLDEN[f"c{case}_knn_pred"])
    assert NearestNeighbour().score(train, same, seed=1)["accuracy"] == 100.0


@pytest.mark.parametrize("f", [2, 20])  # a tree and the direct search inside scikit-learn
@pytest.mark.parametrize("per_class", [None, 5, 1000])
def test_matches_brute_force_with_a_scaler_on_the_reference(f, per_class):
    train, test = pair(90, f, seed=f)
    protocol = NearestNeighbour(per_class=per_class)
    predicted = brute_force(protocol.reference(train, seed=1), test)
    assert protocol.score(train, Features(test.x, predicted), seed=1)["accuracy"] == 100.0
    assert protocol.score(train, test, seed=1)["accuracy"] == pytest.approx(100 * np.mean(predicted == test.y))


def test_reference_has_the_requested_size_and_ignores_the_run_seed_by_default():
    train, _ = pair(90, 2, 1)
    assert np.bincount(NearestNeighbour(per_class=5).reference(train, 1).y).tolist() == [5, 5, 5]
    assert (
        NearestNeighbour(per_class=5).reference(train, 1).x == NearestNeighbour(per_class=5).reference(train, 2).x
    ).all()
    run = NearestNeighbour(per_class=5, subset_seed="run")
    assert (run.reference(train, 1).x != run.reference(train, 2).x).any()
    assert run.name == "knn_5_run"


def test_bad_requests_are_refused():
    with pytest.raises(InputError, match="positive integer"):
        NearestNeighbour(per_class=0)
    one = Features(np.ones((4, 2)), np.zeros(4, int))
    with pytest.raises(InputError, match="Nearest neighbour needs at least 2 classes"):
        NearestNeighbour().score(one, one, seed=1)
