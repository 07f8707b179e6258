"""The ridge probe against the closed form of its leave-one-out choice."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dicot.judge.protocols import Features, Probe
from dicot.judge.protocols.base import classification_scores
from dicot.judge.protocols.embeddings import fit_ridge


def blobs(n, k, f, seed, spread=0.7):
    centres = spread * np.random.default_rng(99).normal(size=(k, f))
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return Features(centres[y] + rng.normal(size=(n, f)), y)


def slow_ridge(train, x):
    """Every strength, every case left out in turn; the mean and the weights solved anew each time."""
    mean, scale = train.x.mean(axis=0), train.x.std(axis=0)
    z, classes = (train.x - mean) / scale, np.unique(train.y)
    targets = np.where(train.y[:, None] == classes, 1.0, -1.0)

    def solve(rows, alpha):
        centre, height = z[rows].mean(axis=0), targets[rows].mean(axis=0)
        a = z[rows] - centre
        weights = np.linalg.solve(a.T @ a + alpha * np.eye(z.shape[1]), a.T @ (targets[rows] - height))
        return lambda v: (v - centre) @ weights + height

    everything = np.arange(len(z))
    errors = []
    for alpha in np.logspace(-3, 3, 10):
        left_out = [(solve(np.delete(everything, i), alpha)(z[i]) - targets[i]) ** 2 for i in everything]
        errors.append(np.mean(left_out))
    best = np.logspace(-3, 3, 10)[int(np.argmin(errors))]
    return classes[solve(everything, best)((x - mean) / scale).argmax(axis=1)]


@pytest.mark.parametrize(("k", "f"), [(3, 4), (2, 3), (3, 40)])
def test_matches_a_slow_reference(k, f):
    train, test = blobs(30, k, f, 1), blobs(60, k, f, 2)
    expected = classification_scores(test.y, slow_ridge(train, test.x))
    assert Probe("ridge").score(train, test, seed=1) == pytest.approx(expected, abs=1e-9)
    assert expected["accuracy"] > 50


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("n", "f"), [(40, 90), (90, 40), (40, 40), (120, 300)])
@pytest.mark.parametrize("spread", [0.02, 0.7])
def test_wide_features_get_scikit_learns_answer(k, n, f, spread, monkeypatch):
    monkeypatch.setattr("dicot.data.cases.PIECE", 700)  # many pieces, the last one smaller
    drawn = blobs(n, k, f, 1, spread)
    x = drawn.x.astype(np.float32)
    x[:, 3] = 7.0  # constant
    train, test = Features(x, drawn.y), blobs(50, k, f, 2, spread)
    ours = fit_ridge(train)
    theirs = make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=np.logspace(-3, 3, 10))).fit(train.x, train.y)
    np.testing.assert_allclose(ours.decision_function(test.x), theirs.decision_function(test.x), atol=1e-9)
    assert (ours.predict(test.x) == theirs.predict(test.x)).all()


@pytest.mark.slow
def test_wide_features_are_scored_within_their_own_memory_once_more():
    """600 x 60,000 as float32 are 137 MiB, as float64 with scikit-learn's copies close to 1 GiB."""
    code = """
import numpy as np
from dicot.judge.protocols import Features, Probe
rng = np.random.default_rng(0)
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
Probe("ridge").score(*[Features(rng.normal(size=(9, 2)), np.arange(9) % 2)] * 2, seed=1)
x, y = rng.standard_normal((600, 60_000), np.float32), np.arange(600) % 5
x[:, :5] += 9 * np.eye(5, dtype=np.float32)[y]
train = Features(x, y)
before = peak()
accuracy = Probe("ridge").score(train, train.rows(np.arange(50)), seed=1)["accuracy"]
assert accuracy == 100.0
print(peak() - before)
"""
    if sys.platform != "linux":
        pytest.skip("peak memory is read from /proc")
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(told) < 200
