"""Classification scores in percent."""

from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from dicot.protocols.base import Labels

CLASSIFICATION_METRICS = ("accuracy", "macro_f1", "macro_precision", "macro_recall")


def classification_scores(truth: Labels, predicted: Labels) -> dict[str, float]:
    """Accuracy and macro averages in percent; a class that is never predicted counts as 0."""
    precision, recall, f1, _ = precision_recall_fscore_support(truth, predicted, average="macro", zero_division=0)
    values = (accuracy_score(truth, predicted), f1, precision, recall)
    return {name: 100.0 * float(value) for name, value in zip(CLASSIFICATION_METRICS, values, strict=True)}
