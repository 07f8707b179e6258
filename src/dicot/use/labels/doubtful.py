"""The labels of a file of vectors that are probably wrong, with what the others say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import naming
from dicot.data.cases import Array
from dicot.data.labels import as_text
from dicot.store.vectors import Vectors
from dicot.use.labels.doubt import Doubt, probably_wrong, too_few
from dicot.use.labels.given import labels_of
from dicot.use.labels.names import window_name


@dataclass(frozen=True, eq=False)
class DoubtfulLabels:
    """Labels that are probably wrong, the least probable first."""

    vectors: Vectors
    labels: Array  # (N,) as text, "" where a window has none
    doubts: list[Doubt]
    unit: str | None  # what is hidden together, such as "recording"; None: labels one by one

    @property
    def rows(self) -> list[int]:
        return [doubt.row for doubt in self.doubts]

    def columns(self) -> dict[str, list[Any]]:
        """Return what is said of each of these labels, by the title of its column."""
        return {
            "label": [doubt.label for doubt in self.doubts],
            "given": [doubt.given for doubt in self.doubts],
            "predicted": [doubt.predicted for doubt in self.doubts],
            "probability": [doubt.probability for doubt in self.doubts],
            "near": [self._near(doubt) for doubt in self.doubts],
        }

    def table(self) -> dict[str, Array]:
        """Return the table for other programs: the row of each window, its place, and what is said of it."""
        known = {name: values[self.rows] for name, values in self.vectors.columns().items() if name != "label"}
        said = {name: np.array(values) for name, values in self.columns().items()}
        return {"row": np.array(self.rows, int), **known, **said}

    def sentence(self) -> str:
        """Say how many labels are probably wrong, and where they are too few to tell."""
        hidden = "by hiding labels" if self.unit is None else f"by hiding the labels of whole {self.unit}s"
        n_labels = np.count_nonzero(self.labels)
        counted = f"{len(self.doubts)} of {n_labels} label(s) are probably wrong, {hidden}."
        few = too_few(self.labels)
        if few and not self.doubts:
            return few
        return f"{counted} {few}" if few else counted

    def _near(self, doubt: Doubt) -> str:
        """Name the nearest windows among the others, each with its label."""
        return ", ".join(f"{self.labels[row]} ({window_name(self.vectors, row)})" for row in doubt.near)


def doubtful_labels(path: Path, vectors: Vectors, labels: Path | None = None) -> DoubtfulLabels:
    """Find labels that are probably wrong: each is hidden, with those of its group, and predicted from the others.

    path : of the vectors, for errors
    labels : a file of labels; without it those of the vectors count
    """
    texts = as_text(labels_of(path, vectors, labels))
    texts[texts == "-1"] = ""
    with naming(labels or path):
        unit, groups = vectors.held_together(2, texts != "") or (None, None)
        doubts = probably_wrong(vectors.x, texts, groups)
    return DoubtfulLabels(vectors, texts, doubts, unit)
