"""Vectors and the recordings behind them: what outliers, events and stretches are judged by."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import DicotWarning, InputError
from dicot.core.progress import Bar
from dicot.data.allowance import Allowance
from dicot.data.cases import Array
from dicot.store.series import AbsentSeriesError, Series, series_of
from dicot.store.vectors import Vectors
from dicot.use.features import BOTH, VECTOR, judged_by, level_statistics


@dataclass(frozen=True, eq=False)
class JudgedVectors:
    """Vectors, and the level statistics of their windows where these are judged by too."""

    path: Path  # of the file of vectors
    vectors: Vectors  # without the windows of recordings that cannot be read
    rows: Array  # (N,) their rows in the file
    kind: str  # vector, levels or both
    levels: Array | None = None  # (N, L) of `level_statistics`; None where the kind is vector

    def __len__(self) -> int:
        return len(self.vectors)

    def features(self, normal: Array, *others: "JudgedVectors") -> list[Array]:
        """Return the features of these windows and of others, standardised by the normal ones of these."""
        pairs: list[tuple[Array, Any]] = [(other.vectors.x, other.levels) for other in others]
        return judged_by(self.kind, self.vectors.x, self.levels, normal, *pairs)


def judge(
    path: Path,
    vectors: Vectors,
    features: str | None = None,
    data: str | None = None,
    allowance: Allowance | None = None,
) -> JudgedVectors:
    """Return what the windows of a file of vectors are judged by: "vector", "levels" or, with None, both.

    data : where the recordings are now, if they were moved
    allowance : whether windows of recordings that cannot be read may be left out, and which were

    Where nobody asked for features and no recording is at hand, windows are judged by the vector alone.
    """
    everything = np.arange(len(vectors))
    if features == VECTOR:
        return JudgedVectors(path, vectors, everything, VECTOR)
    try:
        series = series_of(vectors, data, {}, path=path)
    except AbsentSeriesError as error:
        if features is not None:
            raise InputError(f"--features {features} needs the recordings. {error}") from error
        _warn(f"Judged by the vectors alone, without levels and ranges: {error}")
        return JudgedVectors(path, vectors, everything, VECTOR)

    rows: list[int] = []
    levels = level_statistics(_windows_at_hand(series, len(vectors), rows))
    leave_out_lost(series, Allowance() if allowance is None else allowance)
    if len(rows) < len(vectors):
        n_lost = len(vectors) - len(rows)
        _warn(f"{n_lost} of {len(vectors)} windows are of these recordings, and are left out.")
        vectors = vectors.at(np.array(rows))
    return JudgedVectors(path, vectors, np.array(rows), features or BOTH, levels)


def _windows_at_hand(series: Series, n_windows: int, rows: list[int]) -> Iterator[Array]:
    """Read the windows whose recording can be read, and note their rows."""
    with Bar("levels", n_windows) as bar:
        for row in range(n_windows):
            bar.update(row)
            window = series.window(row)
            if window is not None:
                rows.append(row)
                yield window


def leave_out_lost(series: Series, allowance: Allowance) -> None:
    """Name the recordings that cannot be read; an error where none may be left out."""
    for recording, reason in series.lost.items():
        if not allowance.bad_files:
            raise InputError(reason)
        if recording not in allowance.files:
            allowance.refuse(recording, recording, InputError(reason))
            _warn(f"Left out {recording}: {reason}")


def _warn(sentence: str) -> None:
    warnings.warn(sentence, DicotWarning, stacklevel=3)
