"""Nearest neighbour: how well distance in the embedding space alone carries the labels."""

from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dicot.judge.protocols.base import PER_SEED, Features, Floats, Labels, Protocol, SubsetSeed, check_classes
from dicot.judge.protocols.subsets import DRAWS, Drawn, Rows


class NearestNeighbour(Drawn):
    """The label of the closest reference case (Euclidean); `per_class=None` uses all training cases."""

    subsets = PER_SEED  # "averaged over five random seeds to mitigate sampling variance" (D-40)

    def __init__(self, *, per_class: int | None = None, subset_seed: SubsetSeed = "run", draws: int = DRAWS) -> None:
        self.per_class, self.subset_seed, self.draws = per_class, subset_seed, draws

    @property
    def name(self) -> str:
        return "knn_all" if self.per_class is None else self.named("knn")

    @property
    def description(self) -> str:
        if self.per_class is None:
            return "1-nearest neighbour among all training cases"
        return f"1-nearest neighbour among {self.per_class} case(s) per class, {self.subset_text()}"

    def predicted(self, train: Features, rows: Rows, test: Features) -> Labels:
        check_classes(train, "Nearest neighbour")
        return nearest_labels(train.rows(rows), test.x)

    def without_draws(self, y: Labels) -> Protocol:
        return self if len(self.subset_rows(y, 0)) < len(y) else NearestNeighbour()


def nearest_labels(reference: Features, x: Floats) -> Labels:
    """Return the label of the reference case closest to each row of x (N, F)."""
    # Only the reference cases count as known.
    model = make_pipeline(StandardScaler(), KNeighborsClassifier(n_neighbors=1)).fit(reference.x, reference.y)
    labels: Labels = model.predict(x)
    return labels
