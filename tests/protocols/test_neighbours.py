"""Nearest neighbour against stored values and against all distances."""

from pathlib import Path

import numpy as np
import pytest

from dicot.judge.protocols import Features, Probe
from dicot.judge.protocols.base import fixed_per_class

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
    got = Probe("knn").score(train, test, seed=1)
    assert got["accuracy"] == pytest.approx(float(GOLDEN[f"c{case}_knn_acc"]), abs=1e-9)
    # The stored predictions as truth: only the same predictions score 100.
    same = Features(test.x, GOLDEN[f"c{case}_knn_pred"])
    assert Probe("knn").score(train, same, seed=1)["accuracy"] == 100.0


@pytest.mark.parametrize("f", [2, 20])  # a tree and the direct search inside scikit-learn
@pytest.mark.parametrize("per_class", [None, 5, 1000])
def test_matches_brute_force_with_a_scaler_on_the_reference(f, per_class):
    train, test = pair(90, f, seed=f)
    protocol = Probe("knn", per_class=per_class, subset_seed=42)
    (rows,) = protocol.run_draws(train.y, 1)
    predicted = brute_force(train.rows(rows), test)
    assert protocol.score(train, Features(test.x, predicted), seed=1)["accuracy"] == 100.0
    assert protocol.score(train, test, seed=1)["accuracy"] == pytest.approx(100 * np.mean(predicted == test.y))


def test_references_are_drawn_ten_times_in_a_run_and_anew_with_its_seed():
    train, test = pair(90, 2, 1)
    protocol = Probe("knn", per_class=5)
    drawn = [rows for seed in (1, 2) for rows in protocol.run_draws(train.y, seed)]
    assert [np.bincount(train.y[rows]).tolist() for rows in drawn] == [[5, 5, 5]] * 20
    assert len({rows.tobytes() for rows in drawn}) == 20
    scores = protocol.score_draws(train, test, seed=1)
    assert scores == protocol.score_draws(train, test, seed=1) != protocol.score_draws(train, test, seed=2)
    assert len(Probe("knn").score_draws(train, test, seed=1)) == 1


def test_one_draw_is_the_authors_or_that_of_the_seed():
    y = pair(90, 2, 1)[0].y
    paper, once = Probe("knn", per_class=5).on_subset(42), Probe("knn", per_class=5).on_subset("run")
    assert paper.name == "knn_5_subset42" and once.name == "knn_5"
    for seed in (1, 2):
        assert [rows.tolist() for rows in paper.run_draws(y, seed)] == [fixed_per_class(y, 5, 42).tolist()]
        # The first of ten draws, and for a single number the same as the number itself.
        assert [rows.tolist() for rows in once.run_draws(y, seed)] == [fixed_per_class(y, 5, seed).tolist()]
    everything = Probe("knn")
    assert everything.on_subset(42) is everything, "nothing is drawn"


def test_with_no_class_larger_than_asked_for_it_takes_all():
    train, _ = pair(90, 2, 1)
    assert Probe("knn", per_class=30).without_draws(train.y).name == "knn_all"
    assert Probe("knn", per_class=29).without_draws(train.y).name == "knn_29"
