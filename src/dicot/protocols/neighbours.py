"""Nearest neighbour: how well distance in the embedding space alone carries the labels."""

from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from dicot.protocols.base import Features, Floats, Labels, Protocol, check_classes, check_pair
from dicot.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.protocols.subsets import SubsetSeed, check_per_class, check_subset_seed, fixed_per_class, subset_seed_for

LARGE = 20_000  # reference cases from which the own search is used
TREE = 15  # features up to which scikit-learn searches by a tree, which beats any comparison with all references


class NearestNeighbour(Protocol):
    """The label of the closest reference case (Euclidean); `per_class=None` uses all training cases.

    Up to `LARGE` references or `TREE` features by scikit-learn, else by `dicot.solvers` on the GPU or, where there is
    none, the CPU. Both are exact.
    """

    metrics = CLASSIFICATION_METRICS

    def __init__(self, *, per_class: int | None = None, subset_seed: SubsetSeed = "paper") -> None:
        if per_class is not None:
            check_per_class(per_class)
        check_subset_seed(subset_seed)
        self.per_class = per_class
        self.subset_seed = subset_seed

    @property
    def name(self) -> str:
        if self.per_class is None:
            return "knn_all"
        return f"knn_{self.per_class}" + ("_run" if self.subset_seed == "run" else "")

    @property
    def description(self) -> str:
        if self.per_class is None:
            return "1-nearest neighbour among all training cases"
        return f"1-nearest neighbour among {self.per_class} case(s) per class, subset seed: {self.subset_seed}"

    def reference(self, train: Features, seed: int) -> Features:
        """The labelled cases that a test case is compared with in the run with this seed."""
        if self.per_class is None:
            return train
        return train.rows(fixed_per_class(train.y, self.per_class, subset_seed_for(self.subset_seed, seed)))

    def predict(self, train: Features, x: Floats, seed: int) -> Labels:
        """The label of the reference case closest to each row of x (N, F)."""
        reference = self.reference(train, seed)
        scaler = StandardScaler().fit(reference.x)  # only the reference cases count as known
        known, asked = scaler.transform(reference.x), scaler.transform(x)
        labels: Labels
        if len(known) >= LARGE and known.shape[1] > TREE:
            from dicot.solvers import nearest  # torch

            labels = reference.y[nearest(known, asked)]
        else:
            labels = KNeighborsClassifier(n_neighbors=1).fit(known, reference.y).predict(asked)
        return labels

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        check_pair(train, test)
        check_classes(train, "Nearest neighbour")
        return classification_scores(test.y, self.predict(train, test.x, seed))
