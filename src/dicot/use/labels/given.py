"""The labels of windows: from a file of labels, or else from the column that the vectors have."""

import warnings
from collections.abc import Mapping
from pathlib import Path

from dicot.core.errors import DicotWarning, InputError, naming
from dicot.data.cases import Array
from dicot.data.labels import labelled
from dicot.store.vectors import Vectors
from dicot.use.labels.store import Key, Label
from dicot.use.labels.tables import read_labels
from dicot.use.labels.windows import check_ranges, check_recordings, put_on_windows, why_on_none


def has_labels(vectors: Vectors) -> bool:
    """Tell whether a file of vectors has a label for some of them."""
    return vectors.label is not None and bool(labelled(vectors.label).any())


def labels_of(path: Path, vectors: Vectors, labels: Path | None) -> Array:
    """Return the label of each vector (N,), unknown for most as in Windows.

    `path` is that of the vectors, for errors. Labels that are on no window are warned of.
    """
    if labels is None:
        if vectors.label is None or not has_labels(vectors):
            raise InputError(f"{path} holds no labels. Give some by `dicot label add`, and name the file: --labels.")
        return vectors.label

    with naming(path):
        places = vectors.places()
    with naming(labels):
        by_place = read_labels(labels, vectors.begun())
        by_window, lost = put_on_windows(by_place, *places)
        check_ranges(by_place, lost, labels, places)
    if not by_place:
        raise InputError(f"{labels} holds no labels. Give some by `dicot label add`.")
    if lost:
        message = (
            f"{len(lost)} of {len(by_place)} label(s) of {labels} are on no window of {path}; the "
            f"first is on {lost[0]!r}. {why_on_none(lost[0], *places)}"
        )
        if len(lost) == len(by_place):
            raise InputError(f"{message} Name the vectors that were labelled.")
        warnings.warn(message, DicotWarning, stacklevel=2)
    return by_window


def check_labels_of(path: Path, vectors: Vectors, file: Path, labels: Mapping[Key, Label]) -> None:
    """Refuse labels of a file that are of recordings which vectors do not have; warn of those on no window."""
    recordings = vectors.places()[0].astype(str).tolist()
    check_recordings(labels, file, recordings, path)
    labels_of(path, vectors, file)
