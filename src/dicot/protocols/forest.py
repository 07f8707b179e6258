"""The forest probe: a random forest on embeddings; on raw features it is the paper's random forest baseline (D-36)."""

from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import StandardScaler

from dicot.protocols.base import Features, Protocol, check_classes, check_pair
from dicot.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.protocols.subsets import stratified_cap

MAX_CASES = 100_000
TREES = 300


class ForestProbe(Protocol):
    """300 trees of any depth with balanced class weights. Deterministic: its random state is always 0, as published."""

    metrics = CLASSIFICATION_METRICS
    name = "forest"
    description = f"random forest of {TREES} trees on all training labels"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        check_pair(train, test)
        check_classes(train, "A forest probe")
        if len(train.y) > MAX_CASES:
            train = train.rows(stratified_cap(train.y, MAX_CASES))
        scaler = StandardScaler().fit(train.x)
        # The number of threads does not change the forest.
        model = RandomForestClassifier(TREES, class_weight="balanced_subsample", random_state=0, n_jobs=-1)
        model.fit(scaler.transform(train.x), train.y)
        return classification_scores(test.y, model.predict(scaler.transform(test.x)))
