"""The ridge probe: the classifier that MiniRocket's authors put on its features, for any embedding."""

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.preprocessing import StandardScaler

from dicot.protocols.base import Features, Floats, Labels, Protocol, check_classes, check_pair
from dicot.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.protocols.subsets import stratified_cap

MAX_CASES = 100_000  # as for the linear probe
LARGE = 20_000  # cases from which the own solver is used
MAX_FEATURES = 2048  # beyond which it is not, because it was measured for fewer
ALPHAS = np.logspace(-3, 3, 10)


class RidgeProbe(Protocol):
    """Ridge regression on +-1 targets, its strength chosen by leave-one-out. Deterministic: the seed plays no part.

    Up to `LARGE` cases or beyond `MAX_FEATURES` features by scikit-learn, else by `dicot.solvers` on the GPU or, where
    there is none, the CPU. Both are the closed form.
    """

    metrics = CLASSIFICATION_METRICS
    name = "ridge"
    description = "ridge classifier, strength by leave-one-out, on all training labels"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        check_pair(train, test)
        check_classes(train, "A ridge probe")
        if len(train.y) > MAX_CASES:
            train = train.rows(stratified_cap(train.y, MAX_CASES))
        scaler = StandardScaler().fit(train.x)
        known, asked = scaler.transform(train.x), scaler.transform(test.x)
        if len(known) >= LARGE and known.shape[1] <= MAX_FEATURES:
            return classification_scores(test.y, _solved(known, train.y, asked))
        model = RidgeClassifierCV(alphas=ALPHAS).fit(known, train.y)
        return classification_scores(test.y, model.predict(asked))


def _solved(known: Floats, y: Labels, asked: Floats) -> Labels:
    from dicot.solvers import leave_one_out_ridge  # torch

    classes = np.unique(y)
    targets = np.where(y[:, None] == (classes[1:] if len(classes) == 2 else classes), 1.0, -1.0)
    weights, intercepts, _ = leave_one_out_ridge(known, targets, ALPHAS)
    scores = asked @ weights.T + intercepts
    predicted: Labels = classes[(scores[:, 0] > 0).astype(np.intp) if len(classes) == 2 else scores.argmax(axis=1)]
    return predicted
