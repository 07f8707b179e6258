"""ECG: the MIT-BIH atrial fibrillation database, two leads of 23 records of about ten hours."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.cases import Array, Scale
from dicot.data.datasets.base import majority
from dicot.data.datasets.large import ECG, ECG_FIXED, ECG_FULL, LargeSet
from dicot.data.datasets.standins import LENGTH, OTHER, RHYTHMS, rhythm_per_step
from dicot.data.wfdb import RHYTHM, read_wfdb_header, read_wfdb_marks, read_wfdb_signals
from dicot.paper.preparation import OnProgress, PreparedParts, each, raw_files

N_CHUNKS = 72
# The records with signals; 00735 and 03665 have none. Sorted, the first five test and the others train (D-93).
_RECORDS = """
04015 04043 04048 04126 04746 04908 04936 05091 05121 05261 06426 06453 06995 07162 07859 07879 07910 08215 08219 08378
08405 08434 08455
"""
RECORDS: tuple[str, ...] = tuple(_RECORDS.split())
N_TEST = 5
NOTES = {
    ECG.name: "Training draws a window at random inside each of 72 chunks of a record, every epoch anew; the windows "
    "in the middle of the chunks are for the probe, for what learns from labels, and for the test (D-92).",
    ECG_FIXED.name: "One window in the middle of each of 72 chunks of a record, in training too (D-92).",
}


def chunk_starts(n_times: int) -> Array:
    """Place a window in the middle of each of 72 chunks of equal length; the last has the remainder too (D-43)."""
    edges = np.append(np.arange(N_CHUNKS) * (n_times // N_CHUNKS), n_times)
    starts: Array = edges[:-1] + np.diff(edges) // 2 - LENGTH // 2
    return starts


def all_starts(n_times: int) -> Array:
    """Place windows side by side; the tail is dropped."""
    return np.arange(0, n_times - LENGTH + 1, LENGTH)


def read(raw: Path, settings: Mapping[str, Any], on_progress: OnProgress, dataset: LargeSet = ECG) -> PreparedParts:
    """Cut windows of all records from their first rhythm to the shortest length, in units of training records.

    Those of ECG_FULL lie side by side, the others in the middle of chunks; ECG also has the chunks whole, to draw from.
    """
    files = [raw_files(raw, f"{record}.hea", dataset.download)[0] for record in RECORDS]
    paths = [file.with_suffix("") for file in files]
    n_times = min(_span(path) for path in paths)
    if n_times < N_CHUNKS * LENGTH:
        raise InputError(f"The shortest record has {n_times} time steps; {N_CHUNKS * LENGTH} are needed at least.")
    starts, size = (all_starts if dataset is ECG_FULL else chunk_starts)(n_times), n_times // N_CHUNKS
    x = np.empty((len(paths), len(starts), 2, LENGTH), dtype=np.float32)
    segments = np.empty((len(paths), N_CHUNKS, 2, size), dtype=np.float32) if dataset.drawn else None
    y = np.empty((len(paths), len(starts)), dtype=np.int64)
    mean, variance = np.empty((2, len(paths), 2))
    for i, path in enumerate(each(paths, on_progress)):
        signals = read_wfdb_signals(path)
        first, labels = _rhythms(path, signals.shape[1])
        signals = signals[:, first : first + n_times]
        if signals.shape != (2, n_times) or np.isnan(signals).any():
            raise InputError(f"{path}.dat must hold two leads without invalid values. Fetch it again.")
        x[i] = [signals[:, at : at + LENGTH] for at in starts]
        y[i] = majority(labels, starts, LENGTH)
        mean[i], variance[i] = signals.mean(1, dtype=np.float64), signals.var(1, dtype=np.float64)
        if segments is not None:
            segments[i] = signals[:, : N_CHUNKS * size].reshape(2, N_CHUNKS, size).transpose(1, 0, 2)
    mean, variance = mean[N_TEST:], variance[N_TEST:]
    centre = mean.mean(0)  # of records of one length (D-93)
    scale = Scale(centre, np.sqrt((variance + (mean - centre) ** 2).mean(0)))
    for record in (*x, *(() if segments is None else segments)):  # one at a time, in place: together they are large
        record[:] = scale(record)
    group = np.repeat(RECORDS, len(starts)).reshape(y.shape)
    test, train = (
        Windows(x[rows].reshape(-1, 2, LENGTH), y[rows].ravel(), group[rows].ravel(), dataset.name)
        for rows in (slice(N_TEST), slice(N_TEST, None))
    )
    if segments is not None:
        train = replace(train, segments=segments[N_TEST:].reshape(-1, 2, size))
    notes = (NOTES[dataset.name],) if dataset.name in NOTES else ()
    return PreparedParts(train, test, RHYTHMS, int(starts[1] - starts[0]), notes)


def _span(path: Path) -> int:
    """Count the time steps from the first rhythm to the end."""
    n_times = read_wfdb_header(path).n_times
    if n_times is None:
        raise InputError(f"{path}.hea does not say how long the record is. Fetch it again.")
    return n_times - _rhythms(path, n_times)[0]


def _rhythms(path: Path, n_times: int) -> tuple[int, Array]:
    marks = [mark for mark in read_wfdb_marks(path.with_suffix(".atr")) if mark.symbol == RHYTHM]
    try:
        first, labels = rhythm_per_step([mark.sample for mark in marks], [mark.aux for mark in marks], n_times)
    except InputError as error:
        raise InputError(f"{path}.atr: {error}") from error
    if (labels == OTHER).any():
        raise InputError(f"{path}.atr names rhythms beside {', '.join(RHYTHMS)}. Fetch the database's own file.")
    return first, labels
