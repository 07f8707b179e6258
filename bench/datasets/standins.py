"""Recordings in one .npz file each, cut into windows when loaded: four that stand in for sets of the paper, SisFall."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack, final

import numpy as np

from bench.datasets.cutting import cut, majority, runs
from bench.datasets.large import FAMILY, HOW, card_of
from bench.datasets.names import declared
from dicot.core.errors import InputError, MissingDataError, naming
from dicot.core.storage import data_folders
from dicot.data import Split, Windows, split_groups
from dicot.data.cases import Array, Policies
from dicot.data.datasets.base import Card, DataSet, Sizes, fingerprint, shaped
from dicot.data.npyfile import load_npz

Arrays = Mapping[str, Array]
Parts = tuple[Windows, Windows]  # training, test


@final
@dataclass(frozen=True, kw_only=True)
class StandIn(DataSet):
    """A set in one file: what its card says, and the function that cuts its arrays into windows."""

    name: str
    file: str  # in the folder large/ of a data folder
    content: str  # the arrays that it must hold, and how they come from the publisher's files
    parts: Callable[[Arrays], Parts]
    sizes: Sizes
    class_sizes: tuple[int, ...]
    constant_accuracy: float
    source: str
    licence: str
    citation: str
    fingerprint: str
    labels: tuple[str, ...]
    stride: int
    stands_in_for: str = ""
    transfer_channels: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    family: str | None = FAMILY

    def is_here(self) -> bool:
        return any(path.is_file() for path in self._places())

    def card(self) -> Card:
        self.path()
        return card_of(self, self.sizes)

    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        """Return both parts; a file that gives other windows than those of the publisher's recordings is refused."""
        path = self.path()
        with naming(path):
            split = Split(*self.parts(load_npz(path)), FAMILY, self.name, HOW)
            if (actual := fingerprint(split)) != self.fingerprint:
                raise InputError(
                    f"Its windows have the fingerprint {actual}, those of {self.name} {self.fingerprint}. The file "
                    f"holds other recordings; it must hold {self.content}."
                )
        return shaped(split, channels, **policies)

    def path(self) -> Path:
        """Return where the file is, or raise the error that says what to download, where to put it, how to check it."""
        for path in self._places():
            if path.is_file():
                return path
        raise MissingDataError(
            f"The data set {self.name} is not on this machine (looked for {' or '.join(map(str, self._places()))}). "
            f"Download it from {self.source} and save an .npz there that holds {self.content}. To check the "
            f"result: python -m bench list datasets {self.name} --check"
        )

    def _places(self) -> list[Path]:
        return [folder / FAMILY / self.file for folder in data_folders()]


def hapt_parts(arrays: Arrays) -> Parts:
    """Cut windows inside each experiment; those that are mostly without a label are dropped."""
    user = arrays["user"].astype(np.int64)
    label = np.maximum(arrays["label"].astype(np.int64), 0)  # 1 to 12; none is 0 or -1
    # The publisher's windows: 2.56 s, each sharing half of its values with the next.
    windows = cut(arrays["X"].T, label, user, 128, 64, inside=runs(arrays["experiment"], user), name="hapt")
    assert windows.y is not None and windows.group is not None
    known = windows.y > 0
    coded = Windows(windows.x[known], windows.y[known] - 1, windows.group[known], "hapt")
    return split_groups(coded, (2, 4, 9, 10, 12, 13, 18, 20, 24))  # the publisher's test users


HAPT = StandIn(**declared("hapt"), parts=hapt_parts)

LETTERS = np.array(list("ABCDEFGHIJKLMOPQRS"))  # of the activities, in this order
GAP = 3.0  # usual intervals between two rows; a longer one ends a recording


def wisdm_parts(arrays: Arrays) -> Parts:
    """Cut windows inside each recording: one subject, one activity, no gap in time."""
    subject, activity = arrays["subject"].astype(np.int64), np.searchsorted(LETTERS, arrays["activity"])
    step = np.diff(arrays["timestamp"], prepend=arrays["timestamp"][:1])
    jumps = step < 0
    for rows in runs(subject, activity):  # in whatever unit of time
        inner = slice(rows.start + 1, rows.stop)
        if step[inner].size:
            jumps[inner] |= step[inner] > GAP * np.median(step[inner])
    stretches = runs(subject, activity, np.cumsum(jumps))
    # The publisher's windows: 10 s, side by side.
    windows = cut(arrays["X"].T, activity, subject, 200, 200, inside=stretches, name="wisdm2019")
    return split_groups(windows, (1607, 1615, 1624, 1632, 1638))  # every fourth of the 22


WISDM_2019 = StandIn(**declared("wisdm2019"), parts=wisdm_parts)

STAGES = ("W", "N1", "N2", "N3", "REM")
AROUND = 60  # epochs of waking that are kept before and after sleep: 30 min


def around_sleep(y: Array) -> Array:
    """Return the positions from 30 min before the first epoch of sleep to 30 min after the last."""
    asleep = np.flatnonzero(y != 0)
    if not len(asleep):
        raise InputError("No epoch of sleep is among the stages. Check that the hypnogram belongs to the recording.")
    return np.arange(max(0, asleep[0] - AROUND), min(len(y), asleep[-1] + AROUND + 1))


def night_parts(arrays: Arrays) -> Parts:
    """Take the epochs around sleep: the first 60 % train, the rest tests, without the ten between them."""
    x, y = arrays["X"], arrays["y"].astype(np.int64)
    epochs = around_sleep(y)
    n_train = int(0.6 * len(epochs))  # later there is too little deep sleep left to test on
    train, test = (
        Windows(np.ascontiguousarray(x[rows], np.float32), y[rows], np.full(len(rows), "SC4001"), "sleepedf-night")
        for rows in (epochs[:n_train], epochs[n_train + 10 :])
    )
    return train, test


NIGHT = StandIn(**declared("sleepedf-night"), parts=night_parts)

RHYTHMS = ("AFIB", "AFL", "J", "N")  # atrial fibrillation, atrial flutter, junctional rhythm, all others
OTHER = -1
RHYTHM_CODES = {f"({name}": code for code, name in enumerate(RHYTHMS)} | {"(NOD": 2}  # nodal: another word for J
LENGTH = 2500  # as many time steps as in the ECG set; 6.9 s here
# Split so that each of the four rhythms is in both parts.
TRAIN_RECORDS = ("103", "105", "109", "118", "208", "210", "217", "219", "221", "222")
TEST_RECORDS = ("100", "201", "202", "203")


def rhythm_per_step(samples: Sequence[int] | Array, names: Sequence[str] | Array, n_times: int) -> tuple[int, Array]:
    """Return (first, labels): where the first rhythm begins, and the code of each time step from there to n_times.

    A rhythm lasts until the next one begins; one without a code is OTHER.
    """
    begins = np.asarray(samples, dtype=np.int64)
    if not len(begins) or not 0 <= begins[0] < n_times or (np.diff(begins) < 0).any():
        raise InputError("Marks of rhythms must lie inside the recording, in the order of time, and be one at least.")
    lasting = np.diff(np.minimum(np.append(begins, n_times), n_times))
    rhythms = np.array([RHYTHM_CODES.get(str(name), OTHER) for name in names], dtype=np.int8)
    return int(begins[0]), np.repeat(rhythms, lasting)


def arrhythmia_parts(arrays: Arrays) -> Parts:
    """Cut windows side by side from the first rhythm of a record on, in millivolts."""
    parts = []
    for records in (TRAIN_RECORDS, TEST_RECORDS):
        made = [_record(arrays, record) for record in records]
        x, y, group = (np.concatenate(column) for column in zip(*made, strict=True))
        parts.append(Windows(x, y, group, "mitbih-arrhythmia"))
    return parts[0], parts[1]


def _record(arrays: Arrays, record: str) -> tuple[Array, Array, Array]:
    stored = arrays[f"sig_{record}"]  # (T, 2)
    changes = arrays[f"ann_symbol_{record}"] == "+"
    samples, names = (arrays[f"ann_{what}_{record}"][changes] for what in ("sample", "aux"))
    first, labels = rhythm_per_step(samples, names, len(stored))
    starts = np.arange(0, len(labels) - LENGTH + 1, LENGTH)
    y = majority(labels, starts, LENGTH)
    starts, y = starts[y != OTHER], y[y != OTHER]
    signals = (stored[first:] - arrays["baseline"]) / arrays["gain"]
    x = np.stack([signals[at : at + LENGTH].T for at in starts]).astype(np.float32, order="C")
    return x, y, np.full(len(y), "201" if record == "202" else record)  # both are of one person


ARRHYTHMIA = StandIn(**declared("mitbih-arrhythmia"), parts=arrhythmia_parts)
SHORTEST = 598  # time steps of the shortest recording, 12 s


def sisfall_parts(arrays: Arrays) -> Parts:
    """Cut windows of 12 s side by side inside each recording, in g and degrees per second."""
    recording = arrays["rec"].astype(np.int64)
    codes = np.unique(arrays["rec_activity"], return_inverse=True)[1]  # D01 to D19, then F01 to F15
    subjects, subject = np.unique(arrays["rec_subject"], return_inverse=True)
    signals = (arrays["X"] * arrays["scale"]).T.astype(np.float32)
    inside = runs(recording)
    windows = cut(signals, codes[recording], subject[recording], SHORTEST, SHORTEST, inside=inside, name="sisfall")
    assert windows.group is not None
    named = Windows(windows.x, windows.y, subjects[windows.group.astype(np.int64)], "sisfall")
    return split_groups(named, ("SA07", "SA15", "SA23", "SE08"))  # every fourth of the 19


SISFALL = StandIn(**declared("sisfall"), parts=sisfall_parts)
STAND_INS = (HAPT, WISDM_2019, NIGHT, ARRHYTHMIA, SISFALL)
