"""ECG and SLEEP: the MIT-BIH atrial fibrillation database and Sleep-EDF-20, cut into windows as the paper does."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.datasets.cutting import majority
from bench.datasets.large import ECG, ECG_FIXED, ECG_FULL, SLEEP, LargeSet
from bench.datasets.standins import LENGTH, OTHER, RHYTHMS, STAGES, around_sleep, rhythm_per_step
from bench.paper.preparation import PreparedParts, each, raw_files
from bench.paper.raw.annotations import RHYTHM, read_edf_annotations, read_wfdb_marks
from dicot.core.errors import InputError, naming
from dicot.data import Windows
from dicot.data.cases import Array, Scale
from dicot.data.edf import read_edf_header, read_edf_signal
from dicot.data.wfdb import read_wfdb_header, read_wfdb_signals

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


def read_ecg(raw: Path, dataset: LargeSet = ECG) -> PreparedParts:
    """Cut two leads of all records from their first rhythm to the shortest length, in units of training records.

    The windows of ECG_FULL lie side by side, the others in the middle of chunks; ECG also has the chunks whole, to draw
    from.
    """
    files = [raw_files(raw, f"{record}.hea", dataset.download)[0] for record in RECORDS]
    paths = [file.with_suffix("") for file in files]
    n_times = min(len(_rhythms(path, read_wfdb_header(path).n_times or 0)[1]) for path in paths)
    if n_times < N_CHUNKS * LENGTH:
        raise InputError(f"The shortest record has {n_times} time steps; {N_CHUNKS * LENGTH} are needed at least.")
    starts, size = (all_starts if dataset is ECG_FULL else chunk_starts)(n_times), n_times // N_CHUNKS
    x = np.empty((len(paths), len(starts), 2, LENGTH), dtype=np.float32)
    segments = np.empty((len(paths), N_CHUNKS, 2, size), dtype=np.float32) if dataset.drawn else None
    y = np.empty((len(paths), len(starts)), dtype=np.int64)
    mean, variance = np.empty((2, len(paths), 2))
    for i, path in enumerate(each(paths)):
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


def _rhythms(path: Path, n_times: int) -> tuple[int, Array]:
    """Return where the first rhythm of a record begins, and the rhythm of each time step from there on."""
    marks_path = path.with_suffix(".atr")
    with naming(marks_path):
        marks = [mark for mark in read_wfdb_marks(marks_path) if mark.symbol == RHYTHM]
        first, labels = rhythm_per_step([mark.sample for mark in marks], [mark.aux for mark in marks], n_times)
        if (labels == OTHER).any():
            raise InputError(f"It names rhythms beside {', '.join(RHYTHMS)}. Fetch the database's own file.")
    return first, labels


EPOCH, RATE = 30, 100  # of sleep: seconds, Hz
EPOCH_LENGTH = EPOCH * RATE
CHANNEL = "EEG Fpz-Cz"
# Movement and unknown stages have no entry and are left out.
CODES = {f"Sleep stage {letter}": code for letter, code in zip("W1234R", (0, 1, 2, 3, 3, 4), strict=True)}
# The split of TS-TCC: a fixed order of the 20 subjects, of which the first 12 train and the last 4 test. The four
# between them are its validation part, which nothing here needs.
ORDER = (14, 5, 4, 17, 8, 7, 19, 12, 0, 15, 16, 9, 11, 10, 3, 1, 6, 18, 2, 13)


def read_sleep(raw: Path) -> PreparedParts:
    """Cut epochs of 30 s around sleep; both nights of a subject are one group."""
    parts = []
    for subjects in (ORDER[:12], ORDER[-4:]):
        # SC4ssNEO-PSG.edf: subject ss, night N
        nights = [path for who in subjects for path in raw_files(raw, f"SC4{who:02d}*-PSG.edf", SLEEP.download)]
        x, y = zip(*map(read_night, each(nights)), strict=True)
        group = np.repeat([int(path.name[3:5]) for path in nights], list(map(len, y)))
        parts.append(Windows(np.concatenate(x), np.concatenate(y), group, SLEEP.name))
    return PreparedParts(parts[0], parts[1], STAGES, EPOCH_LENGTH)


def read_night(path: Path) -> tuple[Array, Array]:
    """Read the epochs x (N, 1, 3000) of one PSG file in microvolts, and their stages from the hypnogram beside it.

    Some hypnograms go on after the signal ended.
    """
    files = sorted(path.parent.glob(f"{path.name[:6]}*-Hypnogram.edf"))  # named after who scored it too
    if len(files) != 1:
        raise InputError(f"{path.name[:6]}*-Hypnogram.edf must be one file beside {path}; got {len(files)}.")
    hypnogram = files[0]
    if read_edf_header(path).start != read_edf_header(hypnogram).start:
        raise InputError(f"{path.name} and {hypnogram.name} do not start at the same time. Fetch both again.")
    signal = read_edf_signal(path, CHANNEL)
    if signal.rate != RATE:
        raise InputError(f"{path}: {CHANNEL} must be sampled at {RATE} Hz; got {signal.rate:g} Hz.")
    starts: list[int] = []
    stages: list[int] = []
    for stage in read_edf_annotations(hypnogram):
        if stage.text not in CODES:
            continue
        if stage.onset < 0 or stage.duration % EPOCH:
            raise InputError(
                f"{hypnogram}: {stage.text!r} at {stage.onset:g} s lasts {stage.duration:g} s. A stage must begin in "
                f"the recording and last a whole number of {EPOCH} s. Fetch it again."
            )
        first = round(stage.onset * RATE)
        own = range(
            first, min(first + round(stage.duration * RATE), len(signal.values) - EPOCH_LENGTH + 1), EPOCH_LENGTH
        )
        starts += own
        stages += [CODES[stage.text]] * len(own)
    rows = around_sleep(np.array(stages))
    at = np.array(starts)[rows, None] + np.arange(EPOCH_LENGTH)
    return signal.values[at][:, None], np.array(stages, dtype=np.int64)[rows]
