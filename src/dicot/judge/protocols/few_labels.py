"""A probe with few labels: a classifier that sees a small labelled subset, and may see the other cases unlabelled."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dicot.core.errors import InputError, lookup
from dicot.judge.protocols.base import (
    Features,
    Floats,
    Labels,
    Protocol,
    SubsetSeed,
    check_classes,
    check_pair,
    mean_scores,
)
from dicot.judge.protocols.forest import ForestProbe, fit_forest
from dicot.judge.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.judge.protocols.probe import LinearProbe, fit_probe
from dicot.judge.protocols.subsets import (
    DRAWS,
    Rows,
    Seed,
    check_per_class,
    check_subsets,
    fixed_per_class,
    stratified_fraction,
    subset_seeds,
    subset_suffix,
    subset_text,
)
from dicot.model.fewlabels import FewLabelClassifier


@dataclass(frozen=True, eq=False)
class FittedFewLabels:
    """A FewLabelClassifier and the labels that its numbers stand for."""

    classes: Labels
    model: FewLabelClassifier

    def predict(self, x: Floats) -> Labels:
        """Return the most probable label of each row of x (N, F)."""
        predicted: Labels = self.classes[self.model.predict(x)]
        return predicted


def fit_few_labels(train: Features, rows: Rows) -> FittedFewLabels:
    """Fit a FewLabelClassifier to all cases and the labels of those in `rows`."""
    check_classes(train.rows(rows), "A few-label classifier")
    classes, numbers = np.unique(train.y[rows], return_inverse=True)
    y = np.full(len(train.y), -1)  # numbers, because -1 may be the name of a class
    y[rows] = numbers
    return FittedFewLabels(classes, FewLabelClassifier().fit(train.stored, y))


@dataclass(frozen=True)
class _Probe:
    """A classifier for few labels: what it is called in the names of protocols, in words, and with all labels."""

    prefix: str
    words: str
    fit: Callable[[Features, Rows], Any]  # of all cases and the labelled ones; gives an object with `predict`
    with_all: Callable[[], Protocol] | None  # None: it is the same classifier


PROBES = {
    "linear": _Probe("few", "linear probe", lambda train, rows: fit_probe(train.rows(rows)), LinearProbe),
    "forest": _Probe("forest", "random forest", lambda train, rows: fit_forest(train.rows(rows)), ForestProbe),
    "semi": _Probe("semi", "FewLabelClassifier with all cases", fit_few_labels, None),
}


class FewLabels(Protocol):
    """A probe on a small labelled subset: a fraction of every class or a fixed number of cases.

    `probe` is "linear" or "forest", which see the labelled cases alone, or "semi", the FewLabelClassifier, which sees
    the other training cases too, without their labels. The subset is drawn `draws` times in a run, anew with each seed;
    a number `subset_seed`, such as the authors' 42, draws the same one in every run.
    """

    metrics = CLASSIFICATION_METRICS

    def __init__(
        self,
        *,
        fraction: float | None = None,
        per_class: int | None = None,
        probe: str = "linear",
        subset_seed: SubsetSeed = "run",
        draws: int = DRAWS,
    ) -> None:
        if (fraction is None) == (per_class is None):
            raise InputError(f"Give either fraction or per_class; got fraction={fraction}, per_class={per_class}.")
        if fraction is not None and not 0 < fraction <= 1:
            raise InputError(f"fraction must lie in (0, 1]; got {fraction}.")
        if per_class is not None:
            check_per_class(per_class)
        lookup(PROBES, probe, "probe")
        check_subsets(subset_seed, draws)
        self.fraction = fraction
        self.per_class = per_class
        self.probe = probe
        self.subset_seed = subset_seed
        self.draws = draws

    @property
    def name(self) -> str:
        amount = f"{100 * self.fraction:g}pct" if self.fraction is not None else f"{self.per_class}"
        return f"{PROBES[self.probe].prefix}_{amount}{subset_suffix(self.subset_seed)}"

    @property
    def description(self) -> str:
        amount = (
            f"{100 * self.fraction:g} % of the training labels"
            if self.fraction is not None
            else f"{self.per_class} labelled case(s) per class"
        )
        return f"{PROBES[self.probe].words} on {amount}, {subset_text(self.subset_seed, self.draws)}"

    def on_subset(self, seed: SubsetSeed) -> "FewLabels":
        return FewLabels(fraction=self.fraction, per_class=self.per_class, probe=self.probe, subset_seed=seed, draws=1)

    def without_draws(self, y: Labels) -> Protocol:
        if len(self._rows(y, 0)) < len(y):
            return self
        with_all = PROBES[self.probe].with_all
        return self.on_subset(self.subset_seed) if with_all is None else with_all()

    def _rows(self, y: Labels, seed: Seed) -> Rows:
        if self.fraction is not None:
            return stratified_fraction(y, self.fraction, seed)
        assert self.per_class is not None  # the constructor saw to it
        return fixed_per_class(y, self.per_class, seed)

    def labelled(self, train: Features, seed: int) -> Iterator[Features]:
        """Yield the labelled cases that the probe sees, draw by draw, in the run with this seed."""
        yield from (train.rows(rows) for rows in self._draws(train.y, seed))

    def _draws(self, y: Labels, seed: int) -> Iterator[Rows]:
        return (self._rows(y, draw) for draw in subset_seeds(self.subset_seed, seed, self.draws))

    def score_draws(self, train: Features, test: Features, *, seed: int) -> list[dict[str, float]]:
        check_pair(train, test)
        fit = PROBES[self.probe].fit
        predicted = (fit(train, rows).predict(test.x) for rows in self._draws(train.y, seed))
        return [classification_scores(test.y, labels) for labels in predicted]

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        return mean_scores(self.score_draws(train, test, seed=seed))
