"""One-vs-rest logistic regression beside scikit-learn's, brought to the same optimum."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import dicot.solvers.logistic as logistic_module
from dicot.errors import InputError
from dicot.solvers import one_vs_rest


def classes(n, k, f, spread, seed=0):
    """Correlated Gaussian classes, standardised."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    axes = rng.normal(size=(f, f)) * np.arange(1, f + 1) ** -0.75
    x = (spread * rng.normal(size=(k, f))[y] + rng.normal(size=(n, f))) @ axes.T
    return StandardScaler().fit_transform(x), y


def collinear():
    x, y = classes(400, 3, 5, 0.5)
    return np.column_stack([x, x[:, 0], x[:, 1] + x[:, 2], np.zeros(400)]), y


def rare():
    x, y = classes(500, 3, 6, 0.5)
    return x, np.where(np.arange(500) < 2, 3, y)


DATA = {
    "separate": lambda: classes(600, 4, 8, 3.0),
    "overlapping": lambda: classes(3000, 6, 30, 0.3),
    "two": lambda: classes(500, 2, 10, 0.3),
    "strings": lambda: (lambda x, y: (x, np.array(["walk", "run", "lie"])[y]))(*classes(300, 3, 5, 0.4)),
    "tiny": lambda: classes(4, 3, 2, 1.0),
    "wide": lambda: classes(40, 3, 100, 0.5),
    "collinear": collinear,
    "a class of two": rare,
    "not centred": lambda: (lambda x, y: (3 * x + 5, y))(*classes(400, 3, 4, 0.5)),
}


def sklearn_solution(x, y, tol=1e-10):
    names = np.unique(y)
    models = [
        LogisticRegression(C=1.0, tol=tol, max_iter=100_000).fit(x, y == c)
        for c in (names if len(names) > 2 else names[1:])
    ]
    return np.concatenate([m.coef_ for m in models]), np.concatenate([m.intercept_ for m in models])


def chosen(scores):
    return scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)


@pytest.mark.parametrize("name", DATA)
def test_weights_and_decisions_are_those_of_scikit_learn(name):
    x, y = DATA[name]()
    names, weights, intercepts = one_vs_rest(x, y, tolerance=1e-9, device="cpu")
    expected, shifts = sklearn_solution(x, y)
    assert names.tolist() == np.unique(y).tolist()
    assert weights.shape == expected.shape
    assert np.abs(weights - expected).max() < 1e-3 * np.abs(expected).max()
    ours, theirs = x @ weights.T + intercepts, x @ expected.T + shifts
    np.testing.assert_allclose(ours, theirs, atol=1e-3 * np.abs(theirs).max())
    assert np.mean(chosen(ours) == chosen(theirs)) >= 0.999


@pytest.mark.parametrize("name", DATA)
def test_the_default_tolerance_holds_for_the_gradient(name):
    x, y = DATA[name]()
    names, weights, intercepts = one_vs_rest(x, y, device="cpu")
    targets = (y[:, None] == (names if len(names) > 2 else names[1:])).astype(float)
    residual = 1 / (1 + np.exp(-(x @ weights.T + intercepts))) - targets
    gradient = np.vstack([x.T @ residual + weights.T, residual.sum(axis=0)]) / len(x)
    # Each rotated entry is bounded, so an entry on the features' own axes is by sqrt(F) more.
    assert np.abs(gradient).max() <= 1e-6 * np.sqrt(x.shape[1])


def test_the_usual_stopping_rule_of_scikit_learn_gives_nearly_the_same_labels():
    x, y = classes(4000, 6, 30, 0.6)
    _, weights, intercepts = one_vs_rest(x, y, device="cpu")
    expected, shifts = sklearn_solution(x, y, tol=1e-4)
    same = chosen(x @ weights.T + intercepts) == chosen(x @ expected.T + shifts)
    assert same.mean() >= 0.99


def test_read_only_float32_features_are_left_as_they_are():
    x, y = classes(100, 3, 4, 0.5)
    frozen = x.astype(np.float32)
    frozen.flags.writeable = False
    again = one_vs_rest(frozen.astype(np.float64), y, device="cpu")
    for ours, theirs in zip(one_vs_rest(frozen, y, device="cpu"), again, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_one_class_and_too_few_steps_are_refused(monkeypatch):
    x, y = classes(100, 3, 4, 0.5)
    with pytest.raises(InputError, match="at least 2 classes; got 1"):
        one_vs_rest(x, np.zeros(100), device="cpu")
    monkeypatch.setattr(logistic_module, "MAX_STEPS", 2)
    with pytest.raises(RuntimeError, match="did not converge in 2 steps"):
        one_vs_rest(x, y, device="cpu")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused(value):
    x, y = classes(100, 3, 4, 0.5)
    x[7, 2] = value
    with pytest.raises(InputError, match="1 of 100 rows .* row 7"):
        one_vs_rest(x, y, device="cpu")


def test_a_class_without_gradient_stays_and_does_not_disturb_the_others():
    x, y = classes(100, 3, 4, 0.5)
    targets = torch.from_numpy(y[:, None] == np.arange(3))
    problem, _, _ = logistic_module._on_principal_axes(torch.from_numpy(x), targets)
    v = torch.ones(5, 3, dtype=torch.float64)
    gradient, curvature = problem.derivatives(v, problem.z @ v)
    alone, _ = logistic_module._newton_step(problem, gradient, curvature)
    gradient[:, 1] = 0
    step, reach = logistic_module._newton_step(problem, gradient, curvature)
    assert (step[:, 1] == 0).all() and (reach[:, 1] == 0).all()
    torch.testing.assert_close(step[:, [0, 2]], alone[:, [0, 2]])
