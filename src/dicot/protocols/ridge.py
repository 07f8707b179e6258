"""The ridge probe: the classifier that MiniRocket's authors put on its features, for any embedding."""

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.preprocessing import StandardScaler

from dicot.protocols.base import Features, Protocol, check_classes, check_pair
from dicot.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.protocols.subsets import stratified_cap

MAX_CASES = 100_000  # as for the linear probe
ALPHAS = np.logspace(-3, 3, 10)


class RidgeProbe(Protocol):
    """Ridge regression on +-1 targets, its strength chosen by leave-one-out. Deterministic: the seed plays no part."""

    metrics = CLASSIFICATION_METRICS
    name = "ridge"
    description = "ridge classifier, strength by leave-one-out, on all training labels"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        check_pair(train, test)
        check_classes(train, "A ridge probe")
        if len(train.y) > MAX_CASES:
            train = train.rows(stratified_cap(train.y, MAX_CASES))
        scaler = StandardScaler().fit(train.x)
        model = RidgeClassifierCV(alphas=ALPHAS).fit(scaler.transform(train.x), train.y)
        return classification_scores(test.y, model.predict(scaler.transform(test.x)))
