"""Ridge with leave-one-out beside scikit-learn's RidgeClassifierCV."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifierCV
from sklearn.preprocessing import StandardScaler

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
