"""suggest: every region before any doubt, then the cases in doubt, and never a case that has a label."""

import subprocess
import sys

import numpy as np
import pytest

from dicot import FewLabelClassifier, suggest
from dicot.core.errors import InputError
from dicot.use.labels import suggestion


def blobs(sizes, seed=0, distance=6.0, features=4):
    """Gaussian clusters of these sizes; returns cases and the cluster of each, shuffled."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = distance * rng.normal(size=(len(sizes), features))
    return centres[y] + rng.normal(size=(len(y), features)), y


def test_every_region_is_covered_before_any_is_covered_twice():
    x, y = blobs([100, 60, 30, 10], distance=10.0)
    rows = suggest(x, k=4)
    assert sorted(y[rows]) == [0, 1, 2, 3]
    assert y[rows].tolist() == [0, 1, 2, 3], "the largest region first"


def test_what_is_labelled_already_counts_as_covered():
    x, y = blobs([50, 50, 50, 50], distance=10.0)
    for covered in ([0], [1, 3], [0, 1, 2]):
        given = np.full(len(x), -1)
        for c in covered:
            given[np.flatnonzero(y == c)[0]] = c
        rows = suggest(x, given, k=4 - len(covered))
        assert sorted(y[rows]) == sorted(set(range(4)) - set(covered))


def test_coverage_takes_typical_cases_and_not_outliers():
    x, y = blobs([80, 80], distance=10.0)
    x[:4] += 60 * np.eye(4)  # alone in the distance
    rows = suggest(x, k=2)
    assert sorted(y[rows]) == [0, 1]
    for row in rows:
        own = x[4:][y[4:] == y[row]]
        away = np.linalg.norm(own - own.mean(axis=0), axis=1)
        assert np.linalg.norm(x[row] - own.mean(axis=0)) < np.median(away)


def test_uncertainty_looks_between_the_classes_once_both_are_known_well():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(600, 2))
    y = (x[:, 0] > 0).astype(int)
    given = np.full(600, -1)
    known = rng.choice(600, 40, replace=False)
    given[known] = y[known]
    doubtful, covering = suggest(x, given, k=10), suggest(x, np.where(np.arange(600) < 9, y, -1), k=10)
    assert np.abs(x[doubtful, 0]).mean() < 0.15 < 0.3 < np.abs(x[covering, 0]).mean()
    assert np.ptp(x[doubtful, 1]) > 1, "different from each other"
    model = FewLabelClassifier().fit(x, given)
    margins = np.abs(np.diff(model.label_distributions_, axis=1))[:, 0]
    unknown = np.setdiff1d(np.arange(600), known)
    assert np.isin(doubtful, unknown[np.argsort(margins[unknown])][:50]).all()


@pytest.mark.parametrize("n_labelled", [0, 1, 3, 40, 97])
@pytest.mark.parametrize("k", [1, 7, 50])
def test_rows_are_new_different_and_the_same_for_a_seed(n_labelled, k):
    x, y = blobs([50, 30, 20])
    given = np.full(100, -1)
    given[:n_labelled] = y[:n_labelled]
    rows = suggest(x, given, k=k, random_state=3)
    assert len(rows) == min(k, 100 - n_labelled) == len(set(rows.tolist()))
    assert (rows >= n_labelled).all()
    assert np.array_equal(rows, suggest(x, given, k=k, random_state=3))


@pytest.mark.parametrize("unknown", [-1, None, float("nan"), ""])
def test_labels_may_be_unknown_in_any_way_of_the_classifier(unknown):
    x, y = blobs([30, 30])
    names = [["a", "b"][c] if i < 14 else unknown for i, c in enumerate(y)]
    numbers = [c if i < 14 else -1 for i, c in enumerate(y)]
    assert np.array_equal(suggest(x, names, k=5), suggest(x, numbers, k=5))
    assert np.array_equal(suggest(x, [unknown] * 60, k=5), suggest(x, k=5)), "no label at all"


def test_equal_and_constant_cases_are_suggested_once_each():
    x = np.repeat(np.eye(3), 10, axis=0)
    rows = suggest(x, k=8)
    assert len(set(rows.tolist())) == 8
    assert len(np.unique(x[rows[:3]], axis=0)) == 3, "each kind before any twice"
    assert len(set(suggest(np.zeros((20, 2)), k=6).tolist())) == 6
    assert len(set(suggest(np.zeros((20, 2)), [0, 1] * 5 + [-1] * 10, k=6).tolist())) == 6


def test_of_many_cases_some_are_looked_at(monkeypatch):
    monkeypatch.setattr(suggestion, "CASES", 100)
    x, y = blobs([3000, 1000])
    given = np.where(np.arange(4000) < 1000, y, -1)
    for labels in (None, given):
        rows = suggest(x, labels, k=20)
        assert len(set(rows.tolist())) == 20 and (labels is None or (rows >= 1000).all())
        assert not np.array_equal(rows, suggest(x, labels, k=20, random_state=1)), "others are drawn"
    assert len(set(suggest(x, k=700).tolist())) == 700


def test_mistakes_are_named():
    x, y = blobs([10, 10])
    with pytest.raises(InputError, match="All 20 cases"):
        suggest(x, y)
    with pytest.raises(InputError, match="20 cases; got 19"):
        suggest(x, y[:-1])
    for bad in (np.full((3, 2), np.nan), np.zeros(3), np.zeros((0, 2))):
        with pytest.raises(ValueError, match="suggest|NaN|array"):
            suggest(bad)


def test_suggested_labels_beat_random_ones():
    """Where classes differ in size and a few labels decide."""

    def accuracy(x, y, labelled):
        labels = np.where(np.isin(np.arange(len(x)), labelled), y, -1)
        return np.mean(FewLabelClassifier().fit(x, labels).transduction_ == y)

    by_suggestion, by_chance = [], []
    for seed in range(6):
        x, y = blobs([160, 80, 40, 20, 10], seed, distance=2.5)
        by_suggestion.append(accuracy(x, y, suggest(x, k=10, random_state=seed)))
        by_chance.append(accuracy(x, y, np.random.default_rng(seed).choice(len(x), 10, replace=False)))
    assert np.mean(by_suggestion) > np.mean(by_chance) + 0.03


MEMORY = """
import resource
import numpy as np
from dicot import suggest

x = np.random.default_rng(0).normal(size=(100_000, 256)).astype(np.float32)
y = np.full(len(x), -1)
y[:60] = np.arange(60) % 3
suggest(x[:500], k=2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert len(suggest(x)) == len(suggest(x, y)) == 10
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
def test_memory_for_a_hundred_thousand_cases():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 300, "MiB beside x, which has 98"
