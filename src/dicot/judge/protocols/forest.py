"""The forest probe: a random forest on embeddings; on raw features it is the paper's random forest baseline (D-36)."""

from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dicot.judge.protocols.base import Features, Protocol, check_classes
from dicot.judge.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.judge.protocols.subsets import MAX_CASES, capped

TREES = 300


def fit_forest(train: Features, *, max_cases: int = MAX_CASES) -> Pipeline:
    """Standardise, then fit trees of any depth with balanced class weights."""
    check_classes(train, "A forest probe")
    train = capped(train, max_cases)
    # The number of threads does not change the forest.
    forest = RandomForestClassifier(TREES, class_weight="balanced_subsample", random_state=0, n_jobs=-1)
    return make_pipeline(StandardScaler(), forest).fit(train.x, train.y)


class ForestProbe(Protocol):
    """300 trees on all training labels. Deterministic: the forest's random state is always 0, as published."""

    metrics = CLASSIFICATION_METRICS
    name = "forest"
    description = f"random forest of {TREES} trees on all training labels"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        return classification_scores(test.y, fit_forest(train).predict(test.x))
