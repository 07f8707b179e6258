"""The linear probe against stored values and against a slow solution of the same problem."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dicot.judge.protocols import Features, Probe
from dicot.judge.protocols.embeddings import fit_linear

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "protocols.npz", allow_pickle=False)
CASES = range(int(GOLDEN["n_cases"]))


def golden(case):
    train, ytrain, test, ytest = (GOLDEN[f"c{case}_{k}"] for k in ("train", "ytrain", "test", "ytest"))
    return Features(train, ytrain), Features(test, ytest)


def blobs(n, k, f, seed, spread=1.0):
    centres = spread * np.random.default_rng(99).normal(size=(k, f))
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return Features(centres[y] + rng.normal(size=(n, f)), y)


@pytest.mark.parametrize("case", CASES)
def test_golden_decisions_and_predictions(case):
    train, test = golden(case)
    fitted = fit_linear(train)
    np.testing.assert_allclose(fitted.decision_function(test.x), GOLDEN[f"c{case}_lr_decision"], atol=1e-3, rtol=0)
    assert fitted.predict(test.x).tolist() == GOLDEN[f"c{case}_lr_pred"].tolist()


@pytest.mark.parametrize("case", CASES)
def test_golden_scores_in_percent(case):
    got = Probe("linear").score(*golden(case), seed=1)
    assert tuple(got) == tuple(metric.name for metric in Probe.metrics)
    assert got["accuracy"] == pytest.approx(float(GOLDEN[f"c{case}_lr_acc"]), abs=1e-9)
    for metric in ("macro_f1", "macro_precision", "macro_recall"):
        assert got[metric] == pytest.approx(100 * float(GOLDEN[f"c{case}_lr_{metric}"]), abs=1e-6)


def reference_scores(train, x):
    """Each class against the rest, minimised by another solver to high precision."""
    mean, scale = train.x.mean(axis=0), train.x.std(axis=0)
    z, columns = (train.x - mean) / scale, []
    for c in np.unique(train.y):
        sign = np.where(train.y == c, 1.0, -1.0)

        def loss(v, sign=sign):
            return np.logaddexp(0, -sign * (z @ v[:-1] + v[-1])).sum() + 0.5 * v[:-1] @ v[:-1]

        best = minimize(loss, np.zeros(z.shape[1] + 1), method="BFGS", options={"gtol": 1e-5}).x
        columns.append((x - mean) / scale @ best[:-1] + best[-1])
    return np.stack(columns, axis=1)


EXACT = 1e-8  # the published tolerance leaves decision values up to 2e-3 from the minimum; here the problem is compared


def test_three_classes_match_a_slow_reference():
    train, test = blobs(45, 3, 3, 1), blobs(30, 3, 3, 2)
    expected = reference_scores(train, test.x)
    fitted = fit_linear(train, tolerance=EXACT)
    np.testing.assert_allclose(fitted.decision_function(test.x), expected, atol=1e-4)
    assert fitted.predict(test.x).tolist() == expected.argmax(axis=1).tolist()


def test_two_classes_are_one_binary_model():
    train, test = blobs(40, 2, 3, 1), blobs(20, 2, 3, 2)
    fitted = fit_linear(train, tolerance=EXACT)
    assert len(fitted[-1].estimators_) == 1
    np.testing.assert_allclose(fitted.decision_function(test.x), reference_scores(train, test.x)[:, 1], atol=1e-4)


def test_a_constant_feature_and_a_class_with_one_case_do_no_harm():
    train = blobs(40, 2, 3, 1, spread=4)
    x = np.column_stack([np.append(train.x, [[50.0] * 3], axis=0), np.full(41, 7.0)])
    fitted = fit_linear(Features(x, np.append(train.y, 2)))
    assert all(one.coef_[0, 3] == pytest.approx(0) for one in fitted[-1].estimators_)
    assert fitted.predict(x)[-1] == 2


def test_more_features_than_cases_converges_without_a_warning():
    train = blobs(30, 3, 100, 1)
    assert Probe("linear").score(train, train, seed=1)["accuracy"] == 100.0


@pytest.mark.parametrize("n", [300, 19_999, 20_001])
def test_the_published_solver_at_every_size(n):
    train = blobs(n, 3, 4, 1)
    z = StandardScaler().fit_transform(train.x)
    models = [
        LogisticRegression(C=1.0, solver="lbfgs", tol=1e-4, max_iter=1_000_000).fit(z, train.y == c) for c in range(3)
    ]
    ours = [model.coef_ for model in fit_linear(train)[-1].estimators_]
    np.testing.assert_array_equal(ours, [model.coef_ for model in models])
