"""ECG: the MIT-BIH atrial fibrillation database, two leads of 23 records of about ten hours."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.datasets.preparation import PreparedSet, Sizes, Workspace, raw_files, read_each
from dicot.data.datasets.prepared import PreparedParts
from dicot.data.datasets.rhythms import OTHER, RHYTHMS, majority, rhythm_per_step
from dicot.data.policies import Array, Scale
from dicot.data.wfdb import RHYTHM, read_wfdb_header, read_wfdb_marks, read_wfdb_signals, wfdb_signal_files

LENGTH = 2500  # 10 s
N_CHUNKS = 72
# The records with signals; 00735 and 03665 have none. Sorted, the first five test and the others train (D-93).
_RECORDS = """
04015 04043 04048 04126 04746 04908 04936 05091 05121 05261 06426 06453 06995 07162 07859 07879 07910 08215 08219 08378
08405 08434 08455
"""
RECORDS: tuple[str, ...] = tuple(_RECORDS.split())
N_TEST = 5
Starts = Callable[[int], Array]  # time steps of a record -> where its windows begin


def chunk_starts(n_times: int) -> Array:
    """Place a window in the middle of each of 72 chunks of equal length; the last has the remainder too (D-43)."""
    edges = np.append(np.arange(N_CHUNKS) * (n_times // N_CHUNKS), n_times)
    starts: Array = edges[:-1] + np.diff(edges) // 2 - LENGTH // 2
    return starts


def all_starts(n_times: int) -> Array:
    """Place windows side by side; the tail is dropped."""
    return np.arange(0, n_times - LENGTH + 1, LENGTH)


def prepare_ecg(
    raw: Path, workspace: Workspace, starts: Starts, name: str, *, drawn: bool = False, notes: tuple[str, ...] = ()
) -> PreparedParts:
    """Cut windows of all records from their first rhythm to the shortest length, in units of training records.

    With `drawn` the training part also has the chunks whole, for training to draw its windows from.
    """
    paths = [_find(raw, record) for record in RECORDS]
    n_times = min(_span(path) for path in paths)
    if n_times < N_CHUNKS * LENGTH:
        raise InputError(f"The shortest record has {n_times} time steps; {N_CHUNKS * LENGTH} are needed at least.")
    at = starts(n_times)
    x = np.empty((len(paths), len(at), 2, LENGTH), dtype=np.float32)
    y = np.empty((len(paths), len(at)), dtype=np.int64)
    mean, variance = (np.empty((len(paths), 2)) for _ in range(2))
    # Windows depend on the length of all records: saved ones of another length must not be used.
    of_this_length = replace(workspace, partial=workspace.partial / f"{n_times}{'-whole' if drawn else ''}")
    read = partial(_read_record, starts=at, n_times=n_times, whole=drawn)
    data = [path.with_suffix(".dat") for path in paths]
    size = n_times // N_CHUNKS
    segments = np.empty((len(paths) - N_TEST, N_CHUNKS, 2, size), dtype=np.float32) if drawn else None
    for i, arrays in enumerate(read_each(data, read, of_this_length, beside=_beside)):
        x[i], y[i], mean[i], variance[i] = arrays["x"], arrays["y"], arrays["mean"], arrays["variance"]
        if segments is not None and i >= N_TEST:
            chunks = arrays["signals"][:, : N_CHUNKS * size].reshape(2, N_CHUNKS, size)
            segments[i - N_TEST] = chunks.transpose(1, 0, 2)
    mean, variance = mean[N_TEST:], variance[N_TEST:]
    centre = mean.mean(0)  # of records of one length (D-93)
    scale = Scale(centre, np.sqrt((variance + (mean - centre) ** 2).mean(0)))
    for record in (*x, *(() if segments is None else segments)):  # one at a time, in place: together they are large
        record[:] = scale(record)
    group = np.repeat(RECORDS, len(at)).reshape(y.shape)
    test, train = (
        Windows(x[rows].reshape(-1, 2, LENGTH), y[rows].reshape(-1), group[rows].reshape(-1), name)
        for rows in (slice(N_TEST), slice(N_TEST, None))
    )
    if segments is not None:
        train = replace(train, segments=segments.reshape(-1, 2, size))
    return PreparedParts(train, test, RHYTHMS, int(at[1] - at[0]), notes)


def _find(raw: Path, record: str) -> Path:
    """Return the path of a record without its suffix."""
    head = raw_files(raw, f"{record}.hea", _FILES)[0]
    for suffix in (".dat", ".atr"):
        raw_files(head.parent, f"{record}{suffix}", _FILES)
    return head.with_suffix("")


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


def _beside(data: Path) -> list[Path]:
    """List what is read beside a record's .dat: header, annotations, and signals that the header names."""
    path = data.with_suffix("")
    return [path.with_suffix(".hea"), path.with_suffix(".atr"), *wfdb_signal_files(path)]


def _read_record(data: Path, starts: Array, n_times: int, whole: bool) -> dict[str, Array]:
    """Read windows and labels of one record in millivolts, the statistics of each lead, and perhaps all of it."""
    path = data.with_suffix("")
    signals = read_wfdb_signals(path)
    first, labels = _rhythms(path, signals.shape[1])
    signals = signals[:, first : first + n_times]
    if signals.shape != (2, n_times) or np.isnan(signals).any():
        raise InputError(f"{data} must hold two leads without invalid values. Fetch it again.")
    return {
        "x": np.stack([signals[:, at : at + LENGTH] for at in starts]),
        "y": majority(labels, starts, LENGTH),
        "mean": signals.mean(1, dtype=np.float64),
        "variance": signals.var(1, dtype=np.float64),
        **({"signals": signals.astype(np.float32)} if whole else {}),
    }


_FILES = "the .hea, .dat and .atr files of the 23 records with signals, 04015 to 08455"
_DRAWN = (
    "Training draws a window at random inside each of 72 chunks of a record, every epoch anew; the windows in the "
    "middle of the chunks are for the probe, for what learns from labels, and for the test (D-92)."
)
_FIXED = "One window in the middle of each of 72 chunks of a record, in training too (D-92)."
ECG = PreparedSet(
    name="ecg",
    source="https://physionet.org/content/afdb/1.0.0/",
    licence="ODC-By 1.0",
    citation="Moody and Mark, A new method for detecting atrial fibrillation using R-R intervals, Computers in "
    "Cardiology 10, 1983; Goldberger et al., PhysioBank, PhysioToolkit, and PhysioNet, Circulation 101(23), 2000",
    download=f"{_FILES}.",
    read=partial(prepare_ecg, starts=chunk_starts, name="ecg", drawn=True, notes=(_DRAWN,)),
    expected=Sizes(n_train=1296, n_test=360, n_channels=2, n_times=LENGTH, n_classes=4),
    paper=Sizes(n_train=59922, n_test=16645),  # D-42: its tables were made with 1,296 and 360
    paper_subset_seed=0,
    drawn=True,
)
ECG_FIXED = replace(
    ECG,
    name="ecg-fixed",
    read=partial(prepare_ecg, starts=chunk_starts, name="ecg-fixed", notes=(_FIXED,)),
    drawn=False,
)
ECG_FULL = replace(
    ECG,
    name="ecg-full",
    read=partial(prepare_ecg, starts=all_starts, name="ecg-full"),
    expected=Sizes(n_train=59922, n_test=16645, n_channels=2, n_times=LENGTH, n_classes=4),
    paper=None,
    drawn=False,
)
