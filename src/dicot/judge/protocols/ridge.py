"""The ridge probe: the classifier that MiniRocket's authors put on its features, for any embedding."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import LabelBinarizer, StandardScaler

from dicot.data.cases import pieces
from dicot.judge.protocols.base import Features, Floats, Labels, Protocol, check_classes
from dicot.judge.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.judge.protocols.probe import highest
from dicot.judge.protocols.subsets import MAX_CASES, capped

ALPHAS = np.logspace(-3, 3, 10)
LARGE = 2**22  # numbers of an embedding of all cases, from which on scikit-learn takes four times as long


@dataclass(frozen=True, eq=False)
class WideRidge:
    """What RidgeClassifierCV learns from standardised features, within the memory of two square matrices.

    These have the smaller of both sides, cases or features; everything else is done in pieces, in float64.
    """

    classes: Labels  # (K,)
    mean: Floats  # (F,)
    scale: Floats  # (F,)
    weights: Floats  # (F, K), or (F, 1) for two classes
    intercepts: Floats  # (K,), or (1,)
    alpha: float

    def decision_function(self, x: Floats) -> Floats:
        """Map (N, F) to (N, K) scores; for two classes to (N,), positive for the second."""
        parts = [((x[rows] - self.mean) / self.scale) @ self.weights for rows in pieces(x.shape)]
        scores: Floats = np.concatenate(parts) + self.intercepts
        return scores[:, 0] if len(self.classes) == 2 else scores

    def predict(self, x: Floats) -> Labels:
        """Return the class with the highest score."""
        return highest(self.classes, self.decision_function(x))


def fit_ridge(train: Features, *, max_cases: int = MAX_CASES) -> Pipeline | WideRidge:
    """Standardise, then fit ridge regression on +-1 targets, its strength chosen by leave-one-out."""
    check_classes(train, "A ridge probe")
    train = capped(train, max_cases)
    if train.stored.size >= LARGE:
        return fit_wide(train)
    return make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=ALPHAS)).fit(train.x, train.y)


def fit_wide(train: Features) -> WideRidge:
    """Do what scikit-learn does, by one eigendecomposition of the smaller product of the features."""
    x, (n, f) = train.stored, train.stored.shape
    scaler = StandardScaler()
    for rows in pieces((n, f)):
        scaler.partial_fit(x[rows].astype(np.float64))
    mean, scale = scaler.mean_, scaler.scale_
    binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
    targets = binarizer.fit_transform(train.y).astype(np.float64)  # (n, K)
    height = targets.mean(axis=0)
    targets -= height
    product = np.zeros((min(n, f), min(n, f)))
    for part in pieces((f, n) if n <= f else (n, f)):
        z = (x[:, part] - mean[part]) / scale[part] if n <= f else ((x[part] - mean) / scale).T
        product += z @ z.T
    # Transposed, which changes nothing but the order in memory: LAPACK would copy it otherwise.
    values, vectors = eigh(product.T, overwrite_a=True, driver="evr", check_finite=False)
    del product
    inner = targets if n <= f else _against(train, mean, scale, targets)  # (n, K) or (f, K)
    turned = vectors.T @ inner
    errors = _left_out_errors(train, mean, scale, targets, values, vectors, turned)
    alpha = float(ALPHAS[int(np.argmin(errors))])
    solution = vectors @ (turned / (values + alpha)[:, None])
    weights = _against(train, mean, scale, solution) if n <= f else solution
    return WideRidge(binarizer.classes_, mean, scale, weights, height, alpha)


def _left_out_errors(
    train: Features, mean: Floats, scale: Floats, targets: Floats, values: Floats, vectors: Floats, turned: Floats
) -> Floats:
    """Return the squared errors (alphas,) of all cases, each left out of its own fit."""
    x, (n, f) = train.stored, train.stored.shape
    errors = np.zeros(len(ALPHAS))
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
    return errors


def _against(train: Features, mean: Floats, scale: Floats, cases: Floats) -> Floats:
    """Return (F, K), the standardised features against numbers (n, K) of every case."""
    n, f = train.stored.shape
    parts = [((train.stored[:, part] - mean[part]) / scale[part]).T @ cases for part in pieces((f, n))]
    product: Floats = np.concatenate(parts)
    return product


class RidgeProbe(Protocol):
    """The ridge classifier on all training labels. Deterministic: the seed plays no part."""

    metrics = CLASSIFICATION_METRICS
    name = "ridge"
    description = "ridge classifier, strength by leave-one-out, on all training labels"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        model = fit_ridge(train)
        predicted = [model.predict(test.stored[rows].astype(np.float64)) for rows in pieces(test.stored.shape)]
        return classification_scores(test.y, np.concatenate(predicted))
