"""SLEEP: Sleep-EDF-20, one EEG channel of 20 sleepers, as the Di-COT paper and its forerunners use it."""

from pathlib import Path

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.datasets.preparation import PreparedSet, Sizes, Workspace, raw_files, read_each
from dicot.data.datasets.prepared import PreparedParts
from dicot.data.edf import Annotation, read_edf_annotations, read_edf_header, read_edf_signal
from dicot.data.policies import Array

STAGES = ("W", "N1", "N2", "N3", "REM")
EDGE = 60  # epochs of waking that are kept before and after sleep: 30 min
_CHANNEL = "EEG Fpz-Cz"
_EPOCH = 30  # seconds
_RATE = 100  # Hz
# Movement and unknown stages have no entry and are left out.
_CODES = {f"Sleep stage {letter}": code for letter, code in zip("W1234R", (0, 1, 2, 3, 3, 4), strict=True)}
# The split of TS-TCC: a fixed order of the 20 subjects, of which the first 12 train and the last 4 test. The four
# between them are its validation part, which nothing here needs.
_ORDER = (14, 5, 4, 17, 8, 7, 19, 12, 0, 15, 16, 9, 11, 10, 3, 1, 6, 18, 2, 13)
_TRAIN, _TEST = _ORDER[:12], _ORDER[-4:]


def prepare_sleep(raw: Path, workspace: Workspace) -> PreparedParts:
    """Cut epochs of 30 s around sleep; both nights of a subject are one group."""
    nights = [night for subject in (*_TRAIN, *_TEST) for night in _nights(raw, subject)]
    parts: dict[bool, list[dict[str, Array]]] = {True: [], False: []}
    read_nights = read_each(nights, read_night, workspace, beside=lambda night: [_hypnogram(night)])
    for night, arrays in zip(nights, read_nights, strict=True):
        arrays["group"] = np.full(len(arrays["y"]), _subject(night))
        parts[_subject(night) in _TRAIN].append(arrays)
    train, test = (_joined(parts[is_train]) for is_train in (True, False))
    return PreparedParts(train, test, STAGES, stride=_EPOCH * _RATE)


def read_night(path: Path) -> dict[str, Array]:
    """Read the epochs X (N, 1, 3000) of one PSG file in microvolts, and their stages y from the hypnogram beside it."""
    hypnogram = _hypnogram(path)
    if read_edf_header(path).start != read_edf_header(hypnogram).start:
        raise InputError(f"{path.name} and {hypnogram.name} do not start at the same time. Fetch both again.")
    signal = read_edf_signal(path, _CHANNEL)
    if signal.rate != _RATE:
        raise InputError(f"{path}: {_CHANNEL} must be sampled at {_RATE} Hz; got {signal.rate:g} Hz.")
    length = _EPOCH * _RATE
    starts, y = _epochs(read_edf_annotations(hypnogram), hypnogram, len(signal.values) // length)
    inside = starts + length <= len(signal.values)  # some hypnograms go on after the signal ended
    starts, y = starts[inside], y[inside]
    rows = around_sleep(y)
    return {"X": signal.values[starts[rows, None] + np.arange(length)][:, None], "y": y[rows]}


def around_sleep(y: Array) -> Array:
    """Return the positions from 30 min before the first epoch of sleep to 30 min after the last."""
    asleep = np.flatnonzero(y != 0)
    if not len(asleep):
        raise InputError("No epoch of sleep is among the stages. Check that the hypnogram belongs to the recording.")
    return np.arange(max(0, asleep[0] - EDGE), min(len(y), asleep[-1] + EDGE + 1))


def _epochs(annotations: list[Annotation], hypnogram: Path, most: int) -> tuple[Array, Array]:
    """Return first sample and stage of every scored epoch, up to the end of a signal of `most` epochs."""
    starts, stages = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for stage in annotations:
        if stage.text not in _CODES or stage.onset >= most * _EPOCH:
            continue
        if stage.onset < 0:
            raise InputError(
                f"{hypnogram}: {stage.text!r} begins {-stage.onset:g} s before the recording. Fetch it again."
            )
        if stage.duration % _EPOCH:
            raise InputError(f"{hypnogram}: {stage.text!r} at {stage.onset:g} s lasts no whole number of {_EPOCH} s.")
        n_epochs = min(round(stage.duration / _EPOCH), most)
        starts.append(round(stage.onset * _RATE) + np.arange(n_epochs) * _EPOCH * _RATE)
        stages.append(np.full(n_epochs, _CODES[stage.text]))
    return np.concatenate(starts), np.concatenate(stages)


def _subject(path: Path) -> int:
    """Take the subject ss from SC4ssNEO-PSG.edf, where N is the night."""
    return int(path.name[3:5])


def _nights(raw: Path, subject: int) -> list[Path]:
    """List the PSG files of one subject, one or two."""
    by_name = {path.name: path for path in raw_files(raw, f"SC4{subject:02d}*-PSG.edf", _FILES)}
    return [by_name[name] for name in sorted(by_name)]


def _hypnogram(path: Path) -> Path:
    """Return the hypnogram of the same night; its name differs in the letter of whoever scored it."""
    files = sorted(path.parent.glob(f"{path.name[:6]}*-Hypnogram.edf"))
    if len(files) != 1:
        raise InputError(f"{path.name[:6]}*-Hypnogram.edf must be one file beside {path}; got {len(files)}.")
    return files[0]


def _joined(nights: list[dict[str, Array]]) -> Windows:
    x, y, group = (np.concatenate([night[key] for night in nights]) for key in ("X", "y", "group"))
    return Windows(x, y, group, SLEEP.name)


_FILES = (
    "of the folder sleep-cassette the 78 files SC400* to SC419*: *-PSG.edf and *-Hypnogram.edf of subjects 00 to 19, "
    "two nights each (subject 13: one)"
)
SLEEP = PreparedSet(
    name="sleep",
    source="https://physionet.org/content/sleep-edfx/1.0.0/",
    licence="ODC-By 1.0",
    citation="Kemp et al., Analysis of a sleep-dependent neuronal feedback loop, IEEE Trans. Biomed. Eng. 47(9), 2000; "
    "Goldberger et al., PhysioBank, PhysioToolkit, and PhysioNet, Circulation 101(23), 2000",
    download=f"{_FILES}.",
    read=prepare_sleep,
    expected=Sizes(n_train=25612, n_test=8910, n_channels=1, n_times=3000, n_classes=5),
)
