"""Linear classifiers on standardised embeddings: logistic regression, and ridge regression for wide ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import LabelBinarizer, StandardScaler

from dicot.data.cases import pieces
from dicot.judge.protocols.base import Features, Floats, Labels
from dicot.judge.protocols.subsets import to_fit

TOLERANCE = 1e-4  # of scikit-learn's stopping rule, as published
MAX_STEPS = 1_000_000
ALPHAS = np.logspace(-3, 3, 10)


@dataclass(frozen=True, eq=False)
class LinearScores:
    """Standardisation followed by one linear score per class (a single one for two classes)."""

    classes: Labels  # (K,)
    mean: Floats  # (F,)
    scale: Floats  # (F,)
    weights: Floats  # (K, F), or (1, F) for two classes
    intercepts: Floats  # (K,), or (1,)

    def decision_function(self, x: NDArray[np.floating[Any]]) -> Floats:
        """Map (N, F) to (N, K) scores; for two classes to (N,), positive for the second."""
        parts = [((x[rows] - self.mean) / self.scale) @ self.weights.T for rows in pieces(x.shape)]
        scores: Floats = np.concatenate(parts) + self.intercepts
        return scores[:, 0] if len(self.classes) == 2 else scores

    def predict(self, x: NDArray[np.floating[Any]]) -> Labels:
        """Return the class with the highest score."""
        scores = self.decision_function(x)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels: Labels = self.classes[chosen]
        return labels


def fit_linear(train: Features, *, tolerance: float = TOLERANCE) -> LinearScores:
    """Standardise, then fit one binary logistic regression per class against the rest, by scikit-learn.

    The published tolerance ends short of the minimum, so where it ends is part of the protocol: another solver, or the
    minimum itself, gives up to 2 % of the cases another label. Hence the same solver for any number of cases.
    """
    train = to_fit(train, "A linear probe")
    classes = np.unique(train.y)
    scaler = StandardScaler()
    x = scaler.fit_transform(train.x)
    # D-58: recent scikit-learn has no multi_class argument and would fit a multinomial model instead.
    positives = classes[1:] if len(classes) == 2 else classes
    models = [
        LogisticRegression(C=1.0, solver="lbfgs", tol=tolerance, max_iter=MAX_STEPS).fit(x, train.y == positive)
        for positive in positives
    ]
    weights, intercepts = (np.concatenate([getattr(m, part) for m in models]) for part in ("coef_", "intercept_"))
    return LinearScores(classes, scaler.mean_, scaler.scale_, weights, intercepts)


def fit_ridge(train: Features) -> LinearScores:
    """Fit ridge regression on +-1 targets, its strength chosen by leave-one-out: scikit-learn's RidgeClassifierCV.

    By one eigendecomposition of the smaller product of the standardised features, (n, n) or (f, f). Everything else
    is done in pieces, in float64, so that wide features take the memory of two such matrices. scikit-learn takes
    several times their own, and for many cases four times as long.
    """
    train = to_fit(train, "A ridge probe")
    x, (n, f) = train.stored, train.stored.shape
    scaler = StandardScaler()
    for rows in pieces((n, f)):
        scaler.partial_fit(x[rows].astype(np.float64))
    mean, scale = scaler.mean_, scaler.scale_
    binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
    targets = binarizer.fit_transform(train.y).astype(np.float64)  # (n, K)
    height = targets.mean(axis=0)
    targets -= height

    def against(cases: Floats) -> Floats:
        """Return (f, K), the standardised features against numbers (n, K) of every case."""
        parts = [((x[:, part] - mean[part]) / scale[part]).T @ cases for part in pieces((f, n))]
        product: Floats = np.concatenate(parts)
        return product

    product = np.zeros((min(n, f), min(n, f)))
    for part in pieces((f, n) if n <= f else (n, f)):
        z = (x[:, part] - mean[part]) / scale[part] if n <= f else ((x[part] - mean) / scale).T
        product += z @ z.T
    # Transposed, which changes nothing but the order in memory: LAPACK would copy it otherwise.
    values, vectors = eigh(product.T, overwrite_a=True, driver="evr", check_finite=False)
    del product
    turned = vectors.T @ (targets if n <= f else against(targets))
    errors = np.zeros(len(ALPHAS))  # squared, of all cases, each left out of its own fit
    for rows in pieces((n, max(len(values), f if n > f else 0))):
        share = vectors[rows] if n <= f else ((x[rows] - mean) / scale) @ vectors
        squared = share**2
        for number, alpha in enumerate(ALPHAS):
            weight = 1 / (values + alpha)
            solved = share @ (turned * weight[:, None])
            # The mean is learned too, which takes 1 / n of every case's influence.
            if n <= f:
                missing = solved / (squared @ weight - 1 / (alpha * n))[:, None]
            else:
                missing = (targets[rows] - solved) / (1 - squared @ weight - 1 / n)[:, None]
            errors[number] += (missing**2).sum()
    solution = vectors @ (turned / (values + float(ALPHAS[int(np.argmin(errors))]))[:, None])
    weights = against(solution) if n <= f else solution
    return LinearScores(binarizer.classes_, mean, scale, weights.T, height)
