"""How embeddings are scored: by a classifier with all training labels or few of them, and by clusters."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.cluster import KMeans
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import LabelBinarizer, StandardScaler

from dicot.core.errors import lookup
from dicot.data.cases import pieces
from dicot.judge.protocols import base
from dicot.judge.protocols.base import Features, Floats, Labels, Protocol, Rows, Seed, SubsetSeed
from dicot.model.fewlabels import FewLabelClassifier

TOLERANCE, MAX_STEPS = 1e-4, 1_000_000  # of logistic regression; the tolerance is the published one
ALPHAS = np.logspace(-3, 3, 10)  # strengths of ridge regression
TREES = 300
EXTRA_TREES = 200
DRAWS = 10  # of labelled cases in a run: which few they are moves a score more than the seed of a training does


def fit_linear(train: Features, *, tolerance: float = TOLERANCE) -> Pipeline:
    """Standardise, then fit one binary logistic regression per class against the rest.

    The published tolerance ends short of the minimum, so where it ends is part of the protocol: another solver, or the
    minimum itself, gives up to 2 % of the cases another label. Hence the same solver for any number of cases.
    """
    train = base.to_fit(train, "A linear probe")
    # D-58: recent scikit-learn has no multi_class argument and would fit a multinomial model instead.
    one = LogisticRegression(C=1.0, solver="lbfgs", tol=tolerance, max_iter=MAX_STEPS)
    return make_pipeline(StandardScaler(), OneVsRestClassifier(one)).fit(train.x, train.y)


@dataclass(frozen=True, eq=False)
class RidgeScores:
    """Standardisation followed by one linear score per class (a single one for two classes)."""

    classes: Labels  # (K,)
    mean: Floats  # (F,)
    scale: Floats  # (F,)
    weights: Floats  # (F, K), or (F, 1) for two classes
    intercepts: Floats  # (K,), or (1,)

    def decision_function(self, x: NDArray[np.floating[Any]]) -> Floats:
        """Map (N, F) to (N, K) scores; for two classes to (N,), positive for the second."""
        parts = [((x[rows] - self.mean) / self.scale) @ self.weights for rows in pieces(x.shape)]
        scores: Floats = np.concatenate(parts) + self.intercepts
        return scores[:, 0] if len(self.classes) == 2 else scores

    def predict(self, x: NDArray[np.floating[Any]]) -> Labels:
        scores = self.decision_function(x)
        labels: Labels = self.classes[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]
        return labels


def fit_ridge(train: Features) -> RidgeScores:
    """Fit ridge regression on +-1 targets, its strength chosen by leave-one-out: scikit-learn's RidgeClassifierCV.

    By one eigendecomposition of the smaller product of the standardised features, (n, n) or (f, f). Everything else
    is done in pieces, in float64, so that wide features take the memory of two such matrices. scikit-learn takes
    several times their own, and for many cases four times as long.
    """
    train = base.to_fit(train, "A ridge probe")
    x, (n, f) = train.stored, train.stored.shape
    scaler = StandardScaler()
    for rows in pieces((n, f)):
        scaler.partial_fit(x[rows].astype(np.float64))
    mean, scale = scaler.mean_, scaler.scale_
    binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
    targets = binarizer.fit_transform(train.y).astype(np.float64)  # (n, K)
    height = targets.mean(axis=0)
    targets -= height

    def against(cases: Floats) -> Floats:
        """Return (f, K), the standardised features against numbers (n, K) of every case."""
        parts = [((x[:, part] - mean[part]) / scale[part]).T @ cases for part in pieces((f, n))]
        product: Floats = np.concatenate(parts)
        return product

    product = np.zeros((min(n, f), min(n, f)))
    for part in pieces((f, n) if n <= f else (n, f)):
        z = (x[:, part] - mean[part]) / scale[part] if n <= f else ((x[part] - mean) / scale).T
        product += z @ z.T
    # Transposed, which changes nothing but the order in memory: LAPACK would copy it otherwise.
    values, vectors = eigh(product.T, overwrite_a=True, driver="evr", check_finite=False)
    del product
    turned = vectors.T @ (targets if n <= f else against(targets))
    errors = np.zeros(len(ALPHAS))  # squared, of all cases, each left out of its own fit
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
    solution = vectors @ (turned / (values + float(ALPHAS[int(np.argmin(errors))]))[:, None])
    weights = against(solution) if n <= f else solution
    return RidgeScores(binarizer.classes_, mean, scale, weights, height)


def fit_forest(train: Features) -> Pipeline:
    """Standardise, then fit trees of any depth with balanced class weights, as published (D-36)."""
    train = base.to_fit(train, "A forest probe")
    # The number of threads does not change the forest.
    forest = RandomForestClassifier(TREES, class_weight="balanced_subsample", random_state=0, n_jobs=-1)
    return make_pipeline(StandardScaler(), forest).fit(train.x, train.y)


def fit_extra_trees(train: Features) -> ExtraTreesClassifier:
    """Fit extremely randomised trees with the settings of QUANT's authors (Dempster et al., DMKD 2024, section 3)."""
    train = base.to_fit(train, "A probe of extremely randomised trees")
    trees = ExtraTreesClassifier(EXTRA_TREES, criterion="entropy", max_features=0.1, random_state=0, n_jobs=-1)
    return trees.fit(train.stored, train.y)


def fit_neighbours(train: Features) -> Pipeline:
    """Standardise by the labelled cases alone: only these count as known."""
    base.check_classes(train, "Nearest neighbour")
    return make_pipeline(StandardScaler(), KNeighborsClassifier(n_neighbors=1)).fit(train.x, train.y)


def semi_supervised(train: Features, rows: Rows, test: Features) -> Labels:
    """Fit a FewLabelClassifier to all cases and the labels of those in `rows`."""
    base.check_classes(train.rows(rows), "A few-label classifier")
    classes, numbers = np.unique(train.y[rows], return_inverse=True)
    y = np.full(len(train.y), -1)  # numbers, because -1 may be the name of a class
    y[rows] = numbers
    labels: Labels = classes[FewLabelClassifier().fit(train.stored, y).predict(test.x)]
    return labels


@dataclass(frozen=True)
class Classifier:
    """What a probe fits, and how it is called in names and listings, with few labels and with all."""

    predicted: Callable[[Features, Rows, Features], Labels]  # with the training labels of these rows
    few: str
    words: str  # before the number of labels
    all: str = ""  # empty: no protocol of that name is registered
    about: str = ""
    subsets: str = base.AUTHORS


CLASSIFIERS = {
    "linear": Classifier(
        lambda train, rows, test: fit_linear(train.rows(rows)).predict(test.x),
        *("few", "linear probe on"),
        *("linear", "linear probe: one-vs-rest logistic regression on all training labels"),
    ),
    "ridge": Classifier(
        lambda train, rows, test: fit_ridge(train.rows(rows)).predict(test.stored),
        *("ridge", "ridge classifier on"),
        *("ridge", "ridge classifier, strength by leave-one-out, on all training labels"),
    ),
    "forest": Classifier(
        lambda train, rows, test: fit_forest(train.rows(rows)).predict(test.x),
        *("forest", "random forest on"),
        *("forest", f"random forest of {TREES} trees on all training labels"),
    ),
    "trees": Classifier(
        lambda train, rows, test: fit_extra_trees(train.rows(rows)).predict(test.stored),
        *("trees", "extremely randomised trees on"),
        *("trees", f"{EXTRA_TREES} extremely randomised trees, as QUANT's authors use, on all training labels"),
    ),
    "knn": Classifier(
        lambda train, rows, test: fit_neighbours(train.rows(rows)).predict(test.x),
        *("knn", "1-nearest neighbour among"),
        *("knn_all", "1-nearest neighbour among all training cases"),
        base.PER_SEED,  # "averaged over five random seeds to mitigate sampling variance" (D-40)
    ),
    "semi": Classifier(semi_supervised, "semi", "FewLabelClassifier with all cases on"),
}


LINEAR = ("linear", "ridge")  # classifiers that a contender's own one stands in for


class Probe(Protocol):
    """A classifier on the labelled training cases: all of them, a fraction of every class, or so many of each.

    Few are drawn `draws` times in a run, anew with each seed; a number `subset_seed`, such as the authors' 42, draws
    the same ones in every run. "semi", the FewLabelClassifier, sees the other training cases too, without their labels.
    """

    metrics = base.CLASSIFICATION_METRICS

    def __init__(
        self,
        classifier: str,
        *,
        fraction: float | None = None,
        per_class: int | None = None,
        subset_seed: SubsetSeed = "run",
        draws: int = DRAWS,
    ) -> None:
        self.classifier, self.fraction, self.per_class = classifier, fraction, per_class
        self.subset_seed, self.subsets = subset_seed, CLASSIFIERS[classifier].subsets
        self.is_few = fraction is not None or per_class is not None
        self.draws = draws if self.is_few else 1

    @property
    def name(self) -> str:
        known = CLASSIFIERS[self.classifier]
        if not self.is_few:
            return known.all
        amount = f"{self.per_class}" if self.fraction is None else f"{100 * self.fraction:g}pct"
        return f"{known.few}_{amount}" + ("" if self.subset_seed == "run" else f"_subset{self.subset_seed}")

    @property
    def description(self) -> str:
        known = CLASSIFIERS[self.classifier]
        if not self.is_few:
            return known.about
        amount = f"{self.per_class} labelled case(s) per class"
        if self.fraction is not None:
            amount = f"{100 * self.fraction:g} % of the training labels"
        drawn = f"mean of {self.draws} draws" if self.draws > 1 else "drawn by the seed"
        if self.subset_seed != "run":
            drawn = f"always those of seed {self.subset_seed}"
        return f"{known.words} {amount}, {drawn}"

    def subset_rows(self, y: Labels, seed: Seed) -> Rows:
        if self.fraction is not None:
            return base.stratified_fraction(y, self.fraction, seed)
        return np.arange(len(y)) if self.per_class is None else base.fixed_per_class(y, self.per_class, seed)

    def run_draws(self, y: Labels, seed: int) -> list[Rows]:
        """Draw the labelled cases of the run with this seed."""
        return [self.subset_rows(y, one) for one in base.subset_seeds(self.subset_seed, seed, self.draws)]

    def on_subset(self, seed: SubsetSeed) -> Self:
        if not self.is_few:
            return self
        other = copy(self)
        other.subset_seed, other.draws = seed, 1
        return other

    def classified_by(self, classifier: str) -> Protocol:
        if self.classifier not in LINEAR:
            return self
        other = copy(self)
        lookup(CLASSIFIERS, classifier, "classifier")
        other.classifier = classifier
        return other

    def score_draws(self, train: Features, test: Features, *, seed: int) -> list[dict[str, float]]:
        predicted = CLASSIFIERS[self.classifier].predicted
        return [
            base.classification_scores(test.y, predicted(train, rows, test)) for rows in self.run_draws(train.y, seed)
        ]

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        draws = self.score_draws(train, test, seed=seed)
        return draws[0] if len(draws) == 1 else {metric: fmean(draw[metric] for draw in draws) for metric in draws[0]}

    def without_draws(self, y: Labels) -> Protocol:
        if len(self.subset_rows(y, 0)) < len(y):
            return self
        return Probe(self.classifier) if CLASSIFIERS[self.classifier].all else self.on_subset(self.subset_seed)


class KMeansClustering(Protocol):
    """k-means on the test embeddings with as many clusters as test labels; NMI and ARI, both 1 at best.

    A single start, as in the paper: one run is noisy, so average over seeds. The training embeddings play no part.
    """

    metrics = base.CLUSTERING_METRICS
    name = "clustering"
    description = "k-means on the test embeddings against the labels (NMI, ARI)"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        base.check_classes(test, "Clustering")
        n_clusters = len(set(test.y.tolist()))
        x = StandardScaler().fit_transform(test.x)
        model = KMeans(n_clusters, init="k-means++", n_init=1, max_iter=300, random_state=seed)
        clusters = model.fit_predict(x)
        return {
            "nmi": float(normalized_mutual_info_score(test.y, clusters, average_method="arithmetic")),
            "ari": float(adjusted_rand_score(test.y, clusters)),
        }
