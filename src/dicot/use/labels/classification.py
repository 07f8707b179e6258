"""A label for every case, learnt from those that have one, with what it is worth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dicot.model.fewlabels import FewLabelClassifier
from dicot.use.labels.accuracy import FOLDS, HonestAccuracy, honest_accuracy


@dataclass(frozen=True, eq=False)
class Classification:
    """A fitted classifier, and how often it may be right."""

    model: FewLabelClassifier
    accuracy: HonestAccuracy
    together: str | None  # what held-out cases were held together by, such as "group"

    def measured(self) -> str:
        """Say in a sentence how the accuracy was measured; empty where it could not be."""
        told = self.accuracy
        if not told.n_scored:
            return ""
        how = f"whole {self.together}s together" if self.together and told.n_groups else "one by one"
        parts = min(FOLDS, told.n_groups or FOLDS)
        often = "once" if told.repeats == 1 else f"{told.repeats} times over"
        return f"Measured by hiding the labels of one of {parts} parts at a time, {how}, {often}."


def classify_cases(
    x: Any,
    y: Any,
    together: tuple[str, Any] | None,
    *,
    suggested: bool,
    repeats: int = 5,
    on_fit: Callable[[int, int], None] = lambda done, total: None,
) -> Classification:
    """Fit a FewLabelClassifier to all cases x (N, F) and the labels y (N,) of some, and measure it.

    Parameters
    ----------
    x, y, repeats, suggested, on_fit : as for `honest_accuracy`
    together : a name, and for each case (N,) the group of this name that it is held out with; None: one by one
    """
    model = FewLabelClassifier().fit(x, y)
    name, groups = together or (None, None)
    told = honest_accuracy(
        x, y, groups, repeats=repeats, suggested=suggested, group_name=name or "group", on_fit=on_fit
    )
    return Classification(model, told, name)
