"""SLEEP: Sleep-EDF-20, one EEG channel of 20 sleepers, as the Di-COT paper and its forerunners use it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.cases import Array
from dicot.data.datasets.large import SLEEP
from dicot.data.datasets.standins import STAGES, around_sleep
from dicot.data.edf import Annotation, read_edf_annotations, read_edf_header, read_edf_signal
from dicot.paper.preparation import OnProgress, PreparedParts, each, raw_files

EPOCH, RATE = 30, 100  # seconds, Hz
LENGTH = EPOCH * RATE
CHANNEL = "EEG Fpz-Cz"
# Movement and unknown stages have no entry and are left out.
CODES = {f"Sleep stage {letter}": code for letter, code in zip("W1234R", (0, 1, 2, 3, 3, 4), strict=True)}
# The split of TS-TCC: a fixed order of the 20 subjects, of which the first 12 train and the last 4 test. The four
# between them are its validation part, which nothing here needs.
ORDER = (14, 5, 4, 17, 8, 7, 19, 12, 0, 15, 16, 9, 11, 10, 3, 1, 6, 18, 2, 13)


def read(raw: Path, settings: Mapping[str, Any], on_progress: OnProgress) -> PreparedParts:
    """Cut epochs of 30 s around sleep; both nights of a subject are one group."""
    train, test = (_part(raw, subjects, on_progress) for subjects in (ORDER[:12], ORDER[-4:]))
    return PreparedParts(train, test, STAGES, LENGTH)


def _part(raw: Path, subjects: Sequence[int], on_progress: OnProgress) -> Windows:
    # SC4ssNEO-PSG.edf: subject ss, night N
    nights = [path for who in subjects for path in raw_files(raw, f"SC4{who:02d}*-PSG.edf", SLEEP.download)]
    parts = [(path, *read_night(path)) for path in each(nights, on_progress)]
    groups = [np.full(len(y), int(path.name[3:5])) for path, _, y in parts]
    x, y, group = (np.concatenate(rows) for rows in ([x for _, x, _ in parts], [y for _, _, y in parts], groups))
    return Windows(x, y, group, SLEEP.name)


def read_night(path: Path) -> tuple[Array, Array]:
    """Read the epochs x (N, 1, 3000) of one PSG file in microvolts, and their stages from the hypnogram beside it."""
    files = sorted(path.parent.glob(f"{path.name[:6]}*-Hypnogram.edf"))  # named after who scored it too
    if len(files) != 1:
        raise InputError(f"{path.name[:6]}*-Hypnogram.edf must be one file beside {path}; got {len(files)}.")
    hypnogram = files[0]
    if read_edf_header(path).start != read_edf_header(hypnogram).start:
        raise InputError(f"{path.name} and {hypnogram.name} do not start at the same time. Fetch both again.")
    signal = read_edf_signal(path, CHANNEL)
    if signal.rate != RATE:
        raise InputError(f"{path}: {CHANNEL} must be sampled at {RATE} Hz; got {signal.rate:g} Hz.")
    starts, y = _epochs(read_edf_annotations(hypnogram), hypnogram, len(signal.values))
    rows = around_sleep(y)
    return signal.values[starts[rows, None] + np.arange(LENGTH)][:, None], y[rows]


def _epochs(annotations: list[Annotation], hypnogram: Path, n_times: int) -> tuple[Array, Array]:
    """Return first sample and stage of every scored epoch; some hypnograms go on after the signal ended."""
    starts: list[int] = []
    stages: list[int] = []
    for stage in annotations:
        if stage.text not in CODES:
            continue
        if stage.onset < 0 or stage.duration % EPOCH:
            raise InputError(
                f"{hypnogram}: {stage.text!r} at {stage.onset:g} s lasts {stage.duration:g} s. A stage must begin in "
                f"the recording and last a whole number of {EPOCH} s. Fetch it again."
            )
        first = round(stage.onset * RATE)
        own = range(first, min(first + round(stage.duration * RATE), n_times - LENGTH + 1), LENGTH)
        starts += own
        stages += [CODES[stage.text]] * len(own)
    return np.array(starts, dtype=np.int64), np.array(stages, dtype=np.int64)
