"""The recordings behind vectors, for commands that look at both."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dicot.cli.options import checking_options, warn
from dicot.core.errors import InputError, lookup

if TYPE_CHECKING:
    from dicot.data.allowance import Allowance
    from dicot.data.cases import Array
    from dicot.store.series import Series
    from dicot.store.vectors import Vectors


@dataclass(frozen=True, eq=False)
class Judged:
    """Windows and what they are judged by."""

    known: "Vectors"  # without the windows of recordings that cannot be read
    rows: "Array"  # (N,) their rows in the file of vectors
    kind: str  # vector, levels or both
    levels: "Array | None" = None  # (N, L) of `level_statistics`, where these are judged by


def judged(features: str | None, path: Path, known: "Vectors", data: str | None, allowance: "Allowance") -> Judged:
    """Return what windows are judged by, with the level statistics of all where these are among it.

    Windows of a recording that cannot be read are left out. Where no recording is at hand, it is the vector alone.
    """
    import numpy as np

    from dicot.core.progress import Bar
    from dicot.store.series import AbsentSeriesError, series_of
    from dicot.use.features import BOTH, FEATURES, VECTOR, level_statistics

    if features is not None:
        with checking_options():
            lookup(FEATURES, features, "--features")
    everything = np.arange(len(known))
    if features == VECTOR:
        return Judged(known, everything, VECTOR)
    try:
        series = series_of(known, data, {}, path=path)
    except AbsentSeriesError as error:
        if features is not None:
            raise InputError(f"--features {features} needs the recordings. {error}") from error
        warn(f"Judged by the vectors alone, without levels and ranges: {error}")
        return Judged(known, everything, VECTOR)
    rows = []

    def windows() -> "Iterator[Array]":
        with Bar("levels", len(known)) as bar:
            for row in everything.tolist():
                bar.update(row)
                window = series.window(row)
                if window is not None:
                    rows.append(row)
                    yield window

    levels = level_statistics(windows())
    leave_out_lost(series, allowance)
    if len(rows) < len(known):
        warn(f"{len(known) - len(rows)} of {len(known)} windows are of these recordings, and are left out.")
        known = known.at(np.array(rows))
    return Judged(known, np.array(rows), features or BOTH, levels)


def leave_out_lost(series: "Series", allowance: "Allowance") -> None:
    """Name the recordings that cannot be read; an error where none may be left out."""
    for recording, reason in series.lost.items():
        if not allowance.bad_files:
            raise InputError(reason)
        if recording not in allowance.files:
            allowance.refuse(recording, recording, InputError(reason))
            warn(f"Left out {recording}: {reason}")
