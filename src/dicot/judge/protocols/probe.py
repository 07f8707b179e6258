"""Probes: how far a classifier gets on frozen embeddings, with all training labels or few of them."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from statistics import fmean
from typing import Self

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from dicot.core.errors import InputError
from dicot.judge.protocols.base import (
    AUTHORS,
    CLASSIFICATION_METRICS,
    PER_SEED,
    Features,
    Labels,
    Protocol,
    SubsetSeed,
    check_classes,
    classification_scores,
)
from dicot.judge.protocols.linear import fit_linear, fit_ridge
from dicot.judge.protocols.subsets import Rows, Seed, fixed_per_class, stratified_fraction, subset_seeds, to_fit
from dicot.model.fewlabels import FewLabelClassifier

TREES = 300
DRAWS = 10  # of labelled cases in a run: which few they are moves a score more than the seed of a training does


def fit_forest(train: Features) -> Pipeline:
    """Standardise, then fit trees of any depth with balanced class weights, as published (D-36)."""
    train = to_fit(train, "A forest probe")
    # The number of threads does not change the forest.
    forest = RandomForestClassifier(TREES, class_weight="balanced_subsample", random_state=0, n_jobs=-1)
    return make_pipeline(StandardScaler(), forest).fit(train.x, train.y)


def fit_neighbours(train: Features) -> Pipeline:
    """Standardise by the labelled cases alone: only these count as known."""
    check_classes(train, "Nearest neighbour")
    return make_pipeline(StandardScaler(), KNeighborsClassifier(n_neighbors=1)).fit(train.x, train.y)


def semi_supervised(train: Features, rows: Rows, test: Features) -> Labels:
    """Fit a FewLabelClassifier to all cases and the labels of those in `rows`."""
    check_classes(train.rows(rows), "A few-label classifier")
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
    subsets: str = AUTHORS


CLASSIFIERS = {
    "linear": Classifier(
        lambda train, rows, test: fit_linear(train.rows(rows)).predict(test.stored),
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
    "knn": Classifier(
        lambda train, rows, test: fit_neighbours(train.rows(rows)).predict(test.x),
        *("knn", "1-nearest neighbour among"),
        *("knn_all", "1-nearest neighbour among all training cases"),
        PER_SEED,  # "averaged over five random seeds to mitigate sampling variance" (D-40)
    ),
    "semi": Classifier(semi_supervised, "semi", "FewLabelClassifier with all cases on"),
}


class Probe(Protocol):
    """A classifier on the labelled training cases: all of them, a fraction of every class, or so many of each.

    Few are drawn `draws` times in a run, anew with each seed; a number `subset_seed`, such as the authors' 42, draws
    the same ones in every run. "semi", the FewLabelClassifier, sees the other training cases too, without their labels.
    """

    metrics = CLASSIFICATION_METRICS

    def __init__(
        self,
        classifier: str,
        *,
        fraction: float | None = None,
        per_class: int | None = None,
        subset_seed: SubsetSeed = "run",
        draws: int = DRAWS,
    ) -> None:
        if fraction is not None and per_class is not None:
            raise InputError(f"Give fraction or per_class, not both; got {fraction} and {per_class}.")
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
        """Draw the labelled cases."""
        if self.fraction is not None:
            return stratified_fraction(y, self.fraction, seed)
        return np.arange(len(y)) if self.per_class is None else fixed_per_class(y, self.per_class, seed)

    def run_draws(self, y: Labels, seed: int) -> list[Rows]:
        """Draw the labelled cases of the run with this seed."""
        return [self.subset_rows(y, one) for one in subset_seeds(self.subset_seed, seed, self.draws)]

    def on_subset(self, seed: SubsetSeed) -> Self:
        if not self.is_few:
            return self
        other = copy(self)
        other.subset_seed, other.draws = seed, 1
        return other

    def score_draws(self, train: Features, test: Features, *, seed: int) -> list[dict[str, float]]:
        predicted = CLASSIFIERS[self.classifier].predicted
        return [classification_scores(test.y, predicted(train, rows, test)) for rows in self.run_draws(train.y, seed)]

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        draws = self.score_draws(train, test, seed=seed)
        return draws[0] if len(draws) == 1 else {metric: fmean(draw[metric] for draw in draws) for metric in draws[0]}

    def without_draws(self, y: Labels) -> Protocol:
        if len(self.subset_rows(y, 0)) < len(y):
            return self
        return Probe(self.classifier) if CLASSIFIERS[self.classifier].all else self.on_subset(self.subset_seed)
