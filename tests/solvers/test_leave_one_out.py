"""Ridge with leave-one-out beside scikit-learn's RidgeClassifierCV and RidgeCV, and beside exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.preprocessing import StandardScaler

from dicot.errors import InputError
from dicot.solvers import leave_one_out_ridge

ALPHAS = np.logspace(-3, 3, 10)


def case(n, k, f, spread, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    x = spread * rng.normal(size=(k, f))[y] + rng.normal(size=(n, f))
    return x, np.where(y[:, None] == np.arange(k), 1.0, -1.0)[:, 1 if k == 2 else 0 :], y


@pytest.mark.parametrize(
    ("n", "k", "f", "spread"), [(600, 4, 8, 3.0), (9000, 5, 30, 0.3), (60, 3, 40, 0.2), (300, 2, 10, 0.0)]
)
@pytest.mark.parametrize("extra", [False, True])
def test_weights_and_alpha_are_those_of_scikit_learn(n, k, f, spread, extra):
    x, targets, y = case(n, k, f, spread)
    if extra:  # a repeated and a constant feature
        x = StandardScaler().fit_transform(np.column_stack([x, x[:, 0], np.ones(n)]))
    weights, intercepts, alpha = leave_one_out_ridge(x, targets, ALPHAS, device="cpu")
    model = RidgeClassifierCV(alphas=ALPHAS).fit(x, y)
    assert alpha == model.alpha_
    np.testing.assert_allclose(weights, np.atleast_2d(model.coef_), atol=1e-7)
    np.testing.assert_allclose(intercepts, model.intercept_, atol=1e-7)


def test_the_choice_of_alpha_is_not_always_the_same():
    chosen = {leave_one_out_ridge(*case(300, 2, 10, s)[:2], ALPHAS, device="cpu")[2] for s in (0.0, 0.3, 3.0)}
    assert len(chosen) > 1


def test_many_small_problems_are_solved_as_by_scikit_learn():
    rng = np.random.default_rng(0)
    chosen = set()
    for _ in range(150):
        n, f, k = (int(rng.integers(low, high)) for low, high in ((4, 20), (1, 20), (1, 4)))
        x, targets = rng.normal(size=(n, f)) * 10.0 ** rng.uniform(-1, 1, f), rng.normal(size=(n, k))
        weights, intercepts, alpha = leave_one_out_ridge(x, targets, ALPHAS, device="cpu")
        model = RidgeCV(alphas=ALPHAS).fit(x, targets)
        assert alpha == model.alpha_, (n, f, k)
        np.testing.assert_allclose(weights, np.reshape(model.coef_, (k, f)), atol=1e-8)
        np.testing.assert_allclose(intercepts, np.reshape(model.intercept_, k), atol=1e-8)
        chosen.add(alpha)
    assert len(chosen) > 5


def solved(matrix, right):
    """The solution of matrix @ v = right by elimination in exact fractions."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(len(rows)):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


def exact_errors(x, targets):
    """The squared errors summed over cases that are really left out, one number for each alpha."""
    x, targets = ([[Fraction(value) for value in row] for row in part.tolist()] for part in (x, targets))
    totals = []
    for alpha in map(Fraction, ALPHAS.tolist()):
        total = Fraction(0)
        for left in range(len(x)):
            keep = [i for i in range(len(x)) if i != left]
            mean = [sum(x[i][j] for i in keep) / len(keep) for j in range(len(x[0]))]
            z = {i: [value - m for value, m in zip(x[i], mean, strict=True)] for i in range(len(x))}
            products = {(i, j): sum(a * b for a, b in zip(z[i], z[j], strict=True)) for i in z for j in keep}
            for k in range(len(targets[0])):
                level = sum(targets[i][k] for i in keep) / len(keep)
                matrix = [[products[i, j] + alpha * (i == j) for j in keep] for i in keep]
                dual = solved(matrix, [targets[i][k] - level for i in keep])
                guess = level + sum(products[left, j] * d for j, d in zip(keep, dual, strict=True))
                total += (targets[left][k] - guess) ** 2
        totals.append(float(total))
    return np.array(totals)


@pytest.mark.parametrize(("n", "f"), [(3, 10), (4, 3), (4, 4), (6, 2)])
def test_features_of_very_different_scales_do_not_mislead_the_choice(n, f):
    """scikit-learn's own choice is led by rounding here: it is not the reference."""
    rng = np.random.default_rng(n + f)
    for _ in range(10):
        x = rng.normal(size=(n, f)) * 10.0 ** rng.integers(-6, 7, f)
        targets = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
        errors = exact_errors(x, targets)
        _, _, alpha = leave_one_out_ridge(x, targets, ALPHAS, device="cpu")
        assert errors[ALPHAS.tolist().index(alpha)] <= errors.min() * (1 + 1e-9)


def test_what_cannot_be_solved_is_refused():
    x, targets, _ = case(20, 3, 4, 1.0)
    with pytest.raises(InputError, match="at least 2 cases; got 1"):
        leave_one_out_ridge(x[:1], targets[:1], ALPHAS, device="cpu")
    for part in (x, targets):
        part[5, 0], kept = np.inf, part[5, 0]
        with pytest.raises(InputError, match="row 5"):
            leave_one_out_ridge(x, targets, ALPHAS, device="cpu")
        part[5, 0] = kept
