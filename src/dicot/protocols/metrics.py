"""What a protocol measures: a metric knows its name, which direction is better, and how it is printed."""

from dataclasses import dataclass

from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from dicot.protocols.base import Labels

CLASSIFICATION_METRICS = ("accuracy", "macro_f1", "macro_precision", "macro_recall")


@dataclass(frozen=True)
class Metric:
    """A number that a protocol gives."""

    name: str  # in files and tables
    higher_is_better: bool = True
    decimals: int = 2
    headline: bool = True  # shown in tables for people; files hold every metric


def find_metric(name: str) -> Metric:
    """The metric of this name among those of the registered protocols; an unknown one is printed as usual.

    A ledger may hold values of protocols that are not registered here.
    """
    known = {
        "macro_precision": Metric("macro_precision", headline=False),
        "macro_recall": Metric("macro_recall", headline=False),
        "nmi": Metric("nmi", decimals=3),
        "ari": Metric("ari", decimals=3),
        "step_ms": Metric("step_ms", higher_is_better=False),
        "peak_mib": Metric("peak_mib", higher_is_better=False, decimals=0),
        "fit_seconds": Metric("fit_seconds", higher_is_better=False),
    }
    return known.get(name, Metric(name))


def classification_scores(truth: Labels, predicted: Labels) -> dict[str, float]:
    """Accuracy and macro averages in percent; a class that is never predicted counts as 0."""
    precision, recall, f1, _ = precision_recall_fscore_support(truth, predicted, average="macro", zero_division=0)
    values = (accuracy_score(truth, predicted), f1, precision, recall)
    return {name: 100.0 * float(value) for name, value in zip(CLASSIFICATION_METRICS, values, strict=True)}
