"""A probe with few labels: a classifier that sees a small labelled subset, and may see the other cases unlabelled."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dicot.core.errors import InputError, lookup
from dicot.judge.protocols.base import Features, Labels, Protocol, SubsetSeed, check_classes
from dicot.judge.protocols.forest import ForestProbe, fit_forest
from dicot.judge.protocols.probe import LinearProbe, fit_probe
from dicot.judge.protocols.subsets import DRAWS, Drawn, Rows
from dicot.model.fewlabels import FewLabelClassifier


def semi_supervised(train: Features, rows: Rows, test: Features) -> Labels:
    """Fit a FewLabelClassifier to all cases and the labels of those in `rows`."""
    check_classes(train.rows(rows), "A few-label classifier")
    classes, numbers = np.unique(train.y[rows], return_inverse=True)
    y = np.full(len(train.y), -1)  # numbers, because -1 may be the name of a class
    y[rows] = numbers
    labels: Labels = classes[FewLabelClassifier().fit(train.stored, y).predict(test.x)]
    return labels


@dataclass(frozen=True)
class _Probe:
    """A classifier for few labels: what it is called in the names of protocols, in words, and with all labels."""

    prefix: str
    words: str
    predicted: Callable[[Features, Rows, Features], Labels]
    with_all: Callable[[], Protocol] | None  # None: it is the same classifier


PROBES = {
    "linear": _Probe("few", "linear probe", lambda a, rows, b: fit_probe(a.rows(rows)).predict(b.x), LinearProbe),
    "forest": _Probe("forest", "random forest", lambda a, rows, b: fit_forest(a.rows(rows)).predict(b.x), ForestProbe),
    "semi": _Probe("semi", "FewLabelClassifier with all cases", semi_supervised, None),
}


class FewLabels(Drawn):
    """A probe on a small labelled subset: a fraction of every class or a fixed number of cases.

    `probe` is "linear" or "forest", which see the labelled cases alone, or "semi", the FewLabelClassifier, which sees
    the other training cases too, without their labels.
    """

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
        lookup(PROBES, probe, "probe")
        self.fraction, self.per_class, self.probe = fraction, per_class, probe
        self.subset_seed, self.draws = subset_seed, draws

    @property
    def name(self) -> str:
        return self.named(PROBES[self.probe].prefix)

    @property
    def description(self) -> str:
        amount = f"{self.per_class} labelled case(s) per class"
        if self.fraction is not None:
            amount = f"{100 * self.fraction:g} % of the training labels"
        return f"{PROBES[self.probe].words} on {amount}, {self.subset_text()}"

    def predicted(self, train: Features, rows: Rows, test: Features) -> Labels:
        return PROBES[self.probe].predicted(train, rows, test)

    def without_draws(self, y: Labels) -> Protocol:
        if len(self.subset_rows(y, 0)) < len(y):
            return self
        with_all = PROBES[self.probe].with_all
        return self.on_subset(self.subset_seed) if with_all is None else with_all()
