"""The linear probe: how far a linear classifier gets on frozen embeddings."""

from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dicot.judge.protocols.base import Features, Floats, Labels, Protocol, check_classes
from dicot.judge.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.judge.protocols.subsets import MAX_CASES, capped

TOLERANCE = 1e-4  # of scikit-learn's stopping rule, as published
MAX_STEPS = 1_000_000


def highest(classes: Labels, scores: Floats) -> Labels:
    """Return the class with the highest of scores (N, K); of two classes with scores (N,) the second where positive."""
    chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
    labels: Labels = classes[chosen]
    return labels


@dataclass(frozen=True, eq=False)
class FittedProbe:
    """Standardisation followed by one linear score per class (a single one for two classes)."""

    classes: Labels  # (K,)
    scaler: StandardScaler
    weights: Floats  # (K, F), or (1, F) for two classes
    intercepts: Floats  # (K,), or (1,)

    def decision_function(self, x: Floats) -> Floats:
        """Map (N, F) to (N, K) scores; for two classes to (N,), positive for the second."""
        scores: Floats = self.scaler.transform(x) @ self.weights.T + self.intercepts
        return scores[:, 0] if len(self.classes) == 2 else scores

    def predict(self, x: Floats) -> Labels:
        """Return the class with the highest score."""
        return highest(self.classes, self.decision_function(x))


def fit_probe(train: Features, *, tolerance: float = TOLERANCE, max_cases: int = MAX_CASES) -> FittedProbe:
    """Standardise, then fit one binary logistic regression per class against the rest, by scikit-learn.

    The published tolerance ends short of the minimum, so where it ends is part of the protocol: another solver, or the
    minimum itself, gives up to 2 % of the cases another label. Hence the same solver for any number of cases.
    """
    check_classes(train, "A linear probe")
    train = capped(train, max_cases)
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
    return FittedProbe(classes, scaler, weights, intercepts)


class LinearProbe(Protocol):
    """The probe on all training labels. Deterministic: the seed plays no part."""

    metrics = CLASSIFICATION_METRICS
    name = "linear"
    description = "linear probe: one-vs-rest logistic regression on all training labels"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        return classification_scores(test.y, fit_probe(train).predict(test.x))
