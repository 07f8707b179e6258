"""The ridge probe: the classifier that MiniRocket's authors put on its features, for any embedding."""

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dicot.protocols.base import Features, Protocol, check_classes, check_pair
from dicot.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.protocols.subsets import MAX_CASES, capped

ALPHAS = np.logspace(-3, 3, 10)


def fit_ridge(train: Features, *, max_cases: int = MAX_CASES) -> Pipeline:
    """Standardise, then fit ridge regression on +-1 targets, its strength chosen by leave-one-out."""
    check_classes(train, "A ridge probe")
    train = capped(train, max_cases)
    return make_pipeline(StandardScaler(), RidgeClassifierCV(alphas=ALPHAS)).fit(train.x, train.y)


class RidgeProbe(Protocol):
    """The ridge classifier on all training labels. Deterministic: the seed plays no part."""

    metrics = CLASSIFICATION_METRICS
    name = "ridge"
    description = "ridge classifier, strength by leave-one-out, on all training labels"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        check_pair(train, test)
        return classification_scores(test.y, fit_ridge(train).predict(test.x))
