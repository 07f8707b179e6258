"""Nearest neighbour: how well distance in the embedding space alone carries the labels."""

from collections.abc import Iterator

from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from dicot.judge.protocols.base import (
    PER_SEED,
    Features,
    Floats,
    Labels,
    Protocol,
    SubsetSeed,
    check_classes,
    check_pair,
    mean_scores,
)
from dicot.judge.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.judge.protocols.subsets import (
    DRAWS,
    check_per_class,
    check_subsets,
    fixed_per_class,
    subset_seeds,
    subset_suffix,
    subset_text,
)


class NearestNeighbour(Protocol):
    """The label of the closest reference case (Euclidean); `per_class=None` uses all training cases.

    With a number `per_class` the references are drawn `draws` times in a run, anew with each seed; a number
    `subset_seed`, such as the authors' 42, draws the same ones in every run.
    """

    metrics = CLASSIFICATION_METRICS
    subsets = PER_SEED  # "averaged over five random seeds to mitigate sampling variance" (D-40)

    def __init__(self, *, per_class: int | None = None, subset_seed: SubsetSeed = "run", draws: int = DRAWS) -> None:
        if per_class is not None:
            check_per_class(per_class)
        check_subsets(subset_seed, draws)
        self.per_class = per_class
        self.subset_seed = subset_seed
        self.draws = draws

    @property
    def name(self) -> str:
        if self.per_class is None:
            return "knn_all"
        return f"knn_{self.per_class}{subset_suffix(self.subset_seed)}"

    @property
    def description(self) -> str:
        if self.per_class is None:
            return "1-nearest neighbour among all training cases"
        which = subset_text(self.subset_seed, self.draws)
        return f"1-nearest neighbour among {self.per_class} case(s) per class, {which}"

    def on_subset(self, seed: SubsetSeed) -> "NearestNeighbour":
        return self if self.per_class is None else NearestNeighbour(per_class=self.per_class, subset_seed=seed, draws=1)

    def without_draws(self, y: Labels) -> Protocol:
        if self.per_class is None or len(fixed_per_class(y, self.per_class, 0)) < len(y):
            return self
        return NearestNeighbour()

    def references(self, train: Features, seed: int) -> Iterator[Features]:
        """Yield the labelled cases that a test case is compared with, draw by draw, in the run with this seed."""
        if self.per_class is None:
            yield train
            return
        for draw in subset_seeds(self.subset_seed, seed, self.draws):
            yield train.rows(fixed_per_class(train.y, self.per_class, draw))

    def score_draws(self, train: Features, test: Features, *, seed: int) -> list[dict[str, float]]:
        check_pair(train, test)
        check_classes(train, "Nearest neighbour")
        predicted = (nearest_labels(reference, test.x) for reference in self.references(train, seed))
        return [classification_scores(test.y, labels) for labels in predicted]

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        return mean_scores(self.score_draws(train, test, seed=seed))


def nearest_labels(reference: Features, x: Floats) -> Labels:
    """Return the label of the reference case closest to each row of x (N, F)."""
    scaler = StandardScaler().fit(reference.x)  # only the reference cases count as known
    model = KNeighborsClassifier(n_neighbors=1).fit(scaler.transform(reference.x), reference.y)
    labels: Labels = model.predict(scaler.transform(x))
    return labels
