"""The windows of vectors that lie farthest from normal ones: distance and conformal p-value."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import DicotWarning, InputError, naming
from dicot.data.allowance import Allowance
from dicot.data.cases import Array
from dicot.store.modelplace import check_same_model
from dicot.store.subset import rows_where
from dicot.store.vectors import read_vectors
from dicot.use.events import first_hits
from dicot.use.features import VECTOR
from dicot.use.judging import JudgedVectors, judge
from dicot.use.labels.given import labels_of
from dicot.use.outliers import EmbeddingOutlierDetector, compare_with_rest, distances_and_p

# Whole groups, or else recordings, are held out together where there are so many of them.
FEWEST_PARTS = 3  # where windows of one file are compared with each other
FEWEST_HELD_OUT = 2  # of a reference


@dataclass(frozen=True, eq=False)
class FarWindows:
    """How far windows lie from normal ones."""

    windows: JudgedVectors
    distance: Array  # (N,)
    p: Array  # (N,) the share of held-out normal windows that lie at least as far out
    alpha: float
    normal: str  # which windows were taken as normal: a sentence
    unit: str | None  # what was held out as a whole, such as "recording"; None: windows one by one

    @property
    def is_far(self) -> NDArray[np.bool_]:
        """Tell which windows lie farther out than the share `alpha` of normal ones."""
        return np.asarray(self.p <= self.alpha)

    def hits(self, most: int) -> list[int]:
        """Return the farthest windows, the farthest first; of those that overlap or touch one."""
        ranked = np.lexsort((-self.distance, self.p)).tolist()
        vectors = self.windows.vectors
        return first_hits(ranked, vectors.places() if vectors.placed else None, most)

    def shares(self) -> str:
        """Say how many windows lie far out, and how many would if all were normal."""
        n_windows = len(self.windows)
        caution = ""
        if self.unit is not None:
            caution = f", or more where a few {self.unit}s differ far more than the others"
        return (
            f"{self.is_far.sum()} of {n_windows} windows have p <= {self.alpha:g}; about "
            f"{self.alpha * n_windows:.1f} would if all were normal{caution}."
        )

    def columns(self) -> dict[str, Array]:
        """Return the table of all windows."""
        vectors = self.windows.vectors
        part = {} if vectors.part is None else {"part": vectors.part}
        numbers = {"distance": self.distance, "p": self.p, "alarm": self.is_far}
        return {**part, **vectors.columns(), **numbers}


def normal_windows(windows: JudgedVectors, conditions: Sequence[str], labels: Path | None = None) -> NDArray[np.bool_]:
    """Tell which windows are normal (N,): those that fulfil all conditions, such as "label!=fall*".

    `labels` is a file of labels for conditions; without it those of the vectors count.
    """
    vectors = windows.vectors
    if labels is not None:
        vectors = replace(vectors, label=labels_of(windows.path, vectors, labels))
    is_normal = np.ones(len(vectors), bool)
    with naming(windows.path):
        for condition in conditions:
            is_normal &= rows_where(vectors, condition)
        if not is_normal.any():
            raise InputError("no window is normal by all conditions together. Leave one out.")
    return is_normal


def far_from_each_other(
    windows: JudgedVectors,
    is_normal: NDArray[np.bool_],
    *,
    n_neighbors: int = 5,
    alpha: float = 0.05,
) -> FarWindows:
    """Compare each window with the normal ones of the same file, of other groups or recordings."""
    vectors = windows.vectors
    detector = _detector(windows.kind, n_neighbors, alpha)
    with naming(windows.path):
        unit, groups = vectors.held_together(FEWEST_PARTS, is_normal) or (None, None)
        x = vectors.x if windows.kind == VECTOR else windows.features(is_normal)[0]
        distance, p = compare_with_rest(detector, x, groups, is_normal)
    if unit is None and vectors.recording is not None:
        _warn(
            f"{windows.path} has fewer than {FEWEST_PARTS} recordings: what lasts longer than a window may hide itself."
        )
    normal = (
        f"Normal: {is_normal.sum()} of {len(vectors)} windows. They are dealt out to parts "
        f"({_in_units(unit)}), and each part is compared with the others; what is not normal is "
        "compared with all of them."
    )
    return FarWindows(windows, distance, p, alpha, normal, unit)


def far_from_reference(
    windows: JudgedVectors,
    reference: Path,
    *,
    n_neighbors: int = 5,
    alpha: float = 0.05,
    allowance: Allowance | None = None,
) -> FarWindows:
    """Compare each window with those of a file of normal ones, made by the same model.

    Recordings of these that cannot be read are left out where the allowance says so.
    """
    vectors = read_vectors(reference, finite=True)
    check_same_model(reference, vectors.model, vectors.x.shape[1], windows.path, windows.vectors)
    detector = _detector(windows.kind, n_neighbors, alpha)
    usual, x = vectors.x, windows.vectors.x
    if windows.kind != VECTOR:
        normal_ones = judge(reference, vectors, windows.kind, None, allowance)
        vectors = normal_ones.vectors
        usual, x = normal_ones.features(np.ones(len(vectors), bool), windows)
    with naming(reference):
        unit, groups = vectors.held_together(FEWEST_HELD_OUT) or (None, None)
        detector.fit(usual, groups=groups)
        distance, p = distances_and_p(detector, x)
    if unit is None and vectors.recording is not None:
        _warn(f"{reference} has one recording: in others there may be more false alarms than --alarm says.")
    normal = (
        f"Reference: {len(detector.reference_)} windows of {reference}; "
        f"{len(detector.calibration_)} others are held out for p-values ({_in_units(unit)})."
    )
    return FarWindows(windows, distance, p, alpha, normal, unit)


def _detector(kind: str, n_neighbors: int, alpha: float) -> EmbeddingOutlierDetector:
    """Return the detector for these features; chosen by `python -m bench outliers`."""
    by_vector = kind == VECTOR
    return EmbeddingOutlierDetector(
        n_neighbors=n_neighbors,
        alpha=alpha,
        distance="relative" if by_vector else "mean",
        # Levels and vectors are standardised already, by the normal windows.
        standardise=by_vector,
    )


def _in_units(unit: str | None) -> str:
    return "one by one" if unit is None else f"whole {unit}s"


def _warn(sentence: str) -> None:
    warnings.warn(sentence, DicotWarning, stacklevel=3)
