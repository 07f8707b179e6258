"""A label for every window of a file of vectors, learned from the labels of some."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import DicotWarning, InputError, naming
from dicot.data.cases import Array
from dicot.model.fewlabels import FewLabelClassifier, class_numbers
from dicot.store.vectors import Vectors
from dicot.use.labels.accuracy import HonestAccuracy, honest_accuracy
from dicot.use.labels.given import labels_of


@dataclass(frozen=True, eq=False)
class ClassifiedWindows:
    """Windows with the labels that were given, and those that are predicted."""

    vectors: Vectors
    given: Array  # (N,) labels, as in Windows
    numbers: Array  # (N,) of the class of each given label, -1 where there is none
    model: FewLabelClassifier
    unit: str  # what is held out together, such as "recording"
    groups: Array | None  # (N,) whose windows they are

    @property
    def classes(self) -> Array:
        """Return the classes; whole numbers as such: beside unknown labels, NaN, they had become 1.0 and so on."""
        classes: Array = self.model.classes_
        are_whole = classes.dtype.kind == "f" and bool((classes % 1 == 0).all())
        return classes.astype(int) if are_whole else classes

    def counts(self) -> dict[str, Any]:
        """Return how many windows of each class were given and predicted."""
        given = np.bincount(self.numbers[self.numbers >= 0], minlength=len(self.classes))
        predicted = np.bincount(self._predicted(), minlength=len(self.classes))
        return {"class": self.classes, "given": given.tolist(), "predicted": predicted.tolist()}

    def accuracy(self, *, drawn: bool, on_fit: Callable[[int, int], None] = lambda done, total: None) -> HonestAccuracy:
        """Measure how often the classifier is right, by hiding labels.

        drawn : whether labelled windows were drawn at random, not chosen
        on_fit : is told how many of the fits are done
        """
        return honest_accuracy(
            self.vectors.x,
            self.given,
            self.groups,
            group_name=self.unit,
            suggested=not drawn,
            on_fit=on_fit,
        )

    def columns(self) -> dict[str, Array]:
        """Return the table of all windows: the label that was given, the one predicted, and p_CLASS of each class."""
        vectors, classes = self.vectors, self.classes
        part = {} if vectors.part is None else {"part": vectors.part}
        known = {name: values for name, values in vectors.columns().items() if name != "label"}
        given = np.ma.masked_array(classes[self.numbers], self.numbers < 0)  # type: ignore[no-untyped-call]
        labels = {"given": given, "predicted": classes[self._predicted()]}
        p = self.model.label_distributions_
        by_class = {f"p_{name}": p[:, number] for number, name in enumerate(classes)}
        return {**part, **known, **labels, **by_class}

    def save(self, path: Path) -> Path:
        """Write the classifier, with the model of its vectors and how recordings were cut for them."""
        vectors = self.vectors
        source = None if vectors.source is None else replace(vectors.source, recordings={}).to_dict()
        return replace(self.model.head_, model=vectors.model, source=source).save(path)

    def _predicted(self) -> Array:
        """Return the number of the class that is predicted of each window."""
        return np.searchsorted(self.model.classes_, self.model.transduction_)


def classify_windows(path: Path, vectors: Vectors, labels: Path | None = None) -> ClassifiedWindows:
    """Learn from the labels of some windows, and predict those of all.

    path : of the vectors, for errors
    labels : a file of labels; without it those of the vectors count
    """
    given = labels_of(path, vectors, labels)
    try:
        numbers = class_numbers(given, len(given))[1]
    except ValueError as error:
        raise InputError(f"{labels or path}: {error}") from error

    with naming(path):
        of_all = vectors.held_together(2)
        of_labelled = vectors.held_together(2, numbers >= 0)
        unit, groups = of_labelled or of_all or vectors.held_together(1) or ("group", None)
    if of_all is not None and of_all[0] != unit:
        noun = of_all[0]
        warnings.warn(
            f"All labels are of one {noun}: nothing is known of other {noun}s. Label windows of more.",
            DicotWarning,
            stacklevel=2,
        )
    model = FewLabelClassifier().fit(vectors.x, given)
    return ClassifiedWindows(vectors, given, numbers, model, unit, groups)
