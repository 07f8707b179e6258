"""What a protocol measures: a metric knows its name, which direction is better, and how it is printed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, precision_recall_fscore_support


@dataclass(frozen=True)
class Metric:
    """A number that a protocol gives."""

    name: str  # in files and tables
    higher_is_better: bool = True
    decimals: int = 2
    headline: bool = True  # shown in tables for people; files hold every metric


CLASSIFICATION_METRICS = (
    Metric("accuracy"),
    Metric("macro_f1"),
    Metric("macro_precision", headline=False),
    Metric("macro_recall", headline=False),
)
CLUSTERING_METRICS = (Metric("nmi", decimals=3), Metric("ari", decimals=3))
COST_METRICS = (
    Metric("step_ms", higher_is_better=False),
    Metric("peak_mib", higher_is_better=False, decimals=0),
    Metric("fit_seconds", higher_is_better=False),
    Metric("embed_seconds", higher_is_better=False, decimals=3),  # all labelled cases of both parts
    Metric("encoded", higher_is_better=False),  # time steps in a training step for each time step of a case
)
COSTS = tuple(metric.name for metric in COST_METRICS)


# Registries of protocols, read anew by each lookup. PROTOCOLS is one of them; a package with others appends its own.
REGISTRIES: list[Mapping[str, Callable[[], Any]]] = []


def find_metric(name: str) -> Metric:
    """Return the metric of this name that a registered protocol declares; an unknown one is printed as usual.

    A table may hold values of protocols that are not registered here.
    """
    declared = (metric for registry in REGISTRIES for make in registry.values() for metric in make().metrics)
    # The cost of a fit is read from tables by programs that have not loaded what measures it.
    return next((metric for metric in chain(declared, COST_METRICS) if metric.name == name), Metric(name))


class CaseScores(dict[str, float]):
    """Scores of one draw that also know which cases were classified right: what a paired test needs."""

    def __init__(self, values: Mapping[str, float], right: NDArray[np.bool_]) -> None:
        super().__init__(values)
        self.right = right  # (N,)


def classification_scores(truth: NDArray[Any], predicted: NDArray[Any]) -> CaseScores:
    """Compute accuracy and macro averages in percent; a class that is never predicted counts as 0."""
    precision, recall, f1, _ = precision_recall_fscore_support(truth, predicted, average="macro", zero_division=0)
    values = (accuracy_score(truth, predicted), f1, precision, recall)
    scores = {metric.name: 100.0 * float(value) for metric, value in zip(CLASSIFICATION_METRICS, values, strict=True)}
    return CaseScores(scores, np.asarray(truth == predicted))
