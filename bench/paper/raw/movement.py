"""HARTH, PAMAP2, SKODA and WISDM2: accelerometers on people who move, cut into windows as the paper's authors do."""

import re
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.io import loadmat
from sklearn.model_selection import train_test_split

from bench.datasets.cutting import cut, runs
from bench.datasets.large import CONVERT_PAMAP2, HARTH, PAMAP2, PAMAP2_PAPER, SKODA_BLOCKED, SKODA_PAPER, WISDM2
from bench.paper.preparation import PreparedParts, codes_of, each, raw_files
from dicot.core.errors import InputError, MissingDataError, naming
from dicot.data import Windows
from dicot.data.cases import Array
from dicot.data.datasets.base import Sizes, differences
from dicot.data.npyfile import load_npz


def _joined(recordings: Iterable[tuple[Array, Array]], who: Sequence[Any]) -> tuple[Array, Array, Array]:
    """Join recordings of x (C, T) and label (T,) in time, and say of each time step whose it is."""
    x, label = zip(*recordings, strict=True)
    return np.concatenate(x, axis=1), np.concatenate(label), np.repeat(who, list(map(len, label)))


def _cut_joined(x: Array, label: Array, who: Array, length: int, stride: int, borders: str, name: str) -> Windows:
    """Cut what was joined: windows cross people and activities unless borders=cut (D-49)."""
    inside = runs(label, who) if borders == "cut" else None
    return cut(x, label, who, length, stride, inside=inside, name=name)


# HARTH: back and thigh of 22 people, 50 Hz.
HARTH_LENGTH, HARTH_STRIDE = 500, 250
HARTH_CHANNELS = ["back_x", "back_y", "back_z", "thigh_x", "thigh_y", "thigh_z"]
# Twelve labels exist, not the eighteen of the paper (D-44). One map for both parts (D-45).
HARTH_NAMES = (
    *("walking", "running", "shuffling", "stairs up", "stairs down", "standing", "sitting", "lying"),
    *("cycling sitting", "cycling standing", "cycling sitting, not moving", "cycling standing, not moving"),
)
HARTH_ACTIVITIES = dict(zip((*range(1, 9), 13, 14, 130, 140), HARTH_NAMES, strict=True))
HARTH_TEST = ("S026", "S027", "S028", "S029")  # the last four of the 22 files sorted by name


def read_harth_subject(path: Path) -> tuple[Array, Array]:
    """Read one file as x (6, T) in g and labels (T,); time steps with a missing value are left out.

    Some files carry one more column, a row index, so columns are taken by their names.
    """
    with naming(path):
        table = pd.read_csv(path, skipinitialspace=True, float_precision="round_trip")
        if not isinstance(table.index, pd.RangeIndex):
            raise InputError("Its rows have more cells than the first line has names. Fetch it again.")
        values = table[[*HARTH_CHANNELS, "label"]].dropna().to_numpy(np.float64)
        return values[:, :-1].T.astype(np.float32), codes_of(values[:, -1], list(HARTH_ACTIVITIES))


def read_harth(raw: Path) -> PreparedParts:
    """Cut windows inside each file, so that none crosses two people."""
    files = raw_files(raw, "S0[0-9][0-9].csv", HARTH.download)
    people = [path.stem for path in files]
    if len(set(people)) < len(people):
        raise InputError(f"{raw} holds some of {', '.join(sorted(set(people)))} twice. Remove the copies.")
    x, label, group = _joined(map(read_harth_subject, each(files)), people)
    windows = cut(x, label, group, HARTH_LENGTH, HARTH_STRIDE, inside=runs(group), name=HARTH.name)
    assert windows.group is not None
    in_test = np.isin(windows.group, HARTH_TEST)
    return PreparedParts(windows.subset(~in_test), windows.subset(in_test), HARTH_NAMES, HARTH_STRIDE)


# PAMAP2: heart rate and three inertial units on nine people, 100 Hz.
PAMAP2_LENGTH, PAMAP2_STRIDE = 100, 50
PAMAP2_TEST = (8, 9)
PAMAP2_NAMES = (
    *("lying", "sitting", "standing", "walking", "running", "cycling", "Nordic walking", "watching TV"),
    *("computer work", "car driving", "ascending stairs", "descending stairs", "vacuum cleaning", "ironing"),
    *("folding laundry", "house cleaning", "playing soccer", "rope jumping"),
)
PAMAP2_EVERY = dict(zip((*range(1, 8), *range(9, 14), *range(16, 21), 24), PAMAP2_NAMES, strict=True))
# The loader of the paper keeps activities of six and more people. In the publisher's files these are all but six; fixed
# here, so that a missing file cannot shift the labels.
PAMAP2_OPTIONAL = (9, 10, 11, 18, 19, 20)
PAMAP2_ACTIVITIES = {code: name for code, name in PAMAP2_EVERY.items() if code not in PAMAP2_OPTIONAL}


def read_pamap2_recording(path: Path) -> tuple[Array, Array]:
    """Read one .dat file as x (52, T), NaN where a sensor gave nothing, and activity (T,); activity 0 is left out."""
    with naming(path):  # columns: time stamp, activity, then 52 channels
        table = pd.read_csv(path, sep=r"\s+", header=None, float_precision="round_trip").to_numpy(np.float64)
        codes_of(table[:, 1], [0, *PAMAP2_EVERY])
        known = table[table[:, 1] != 0]
        return known[:, 2:].T.astype(np.float32), known[:, 1].astype(np.int64)


def read_pamap2(raw: Path, scaling: str = "test", borders: str = "cross") -> PreparedParts:
    """Join all files, fill gaps, drop optional activities, split people, scale and cut.

    Files are joined in the order of their paths; the paper's loader takes them as the file system lists them (D-94).
    """
    files = raw_files(raw, "subject10[1-9].dat", PAMAP2.download)
    recordings = map(read_pamap2_recording, each(files))
    x, activity, subject = _joined(recordings, [int(path.stem[-1]) for path in files])
    fill_gaps(x)
    known = np.isin(activity, list(PAMAP2_ACTIVITIES))
    x, label, subject = x[:, known], codes_of(activity[known], list(PAMAP2_ACTIVITIES)), subject[known]
    in_test = np.isin(subject, PAMAP2_TEST)
    if in_test.all() or not in_test.any():
        raise InputError(f"{raw} must hold subjects of {PAMAP2_TEST} for the test part and others to train on.")
    seen = x[:, in_test if scaling == "test" else ~in_test]  # the paper scales by the test part (D-48)
    low, high = seen.min(axis=1, keepdims=True), seen.max(axis=1, keepdims=True)
    x = (x - low) / np.where(high == low, 1, high - low)
    train, test = (
        _cut_joined(x[:, part], label[part], subject[part], PAMAP2_LENGTH, PAMAP2_STRIDE, borders, PAMAP2.name)
        for part in (~in_test, in_test)
    )
    return PreparedParts(train, test, tuple(PAMAP2_ACTIVITIES.values()), PAMAP2_STRIDE)


def fill_gaps(x: Array) -> None:
    """Fill gaps in place by straight lines along the joined recordings; before a channel's first value by its mean."""
    at = np.arange(x.shape[1])
    for channel in x:
        gap = np.isnan(channel)
        if gap.any():
            first = int(np.argmin(gap))
            channel[gap] = np.interp(at[gap], at[~gap], channel[~gap])
            channel[:first] = channel[first:].mean(dtype=np.float64)


def read_pamap2_arrays(raw: Path, sizes: Sizes | None = None) -> PreparedParts:
    """Read the windows that Series2Vec's authors share, which no published script makes, as CONVERT_PAMAP2 wrote them.

    Training windows are those of train_data, or where these are too few those of train_data and val_data, as in
    Series2Vec's own loader. Other `sizes` than the paper's are refused.
    """
    sizes = sizes or PAMAP2_PAPER.sizes
    assert sizes is not None
    found = sorted(path for path in raw.rglob("PAMAP2*.npz") if path.is_file())
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "no PAMAP2.npz"
        raise MissingDataError(
            f"{raw} holds {names}; it must hold one. To make it of PAMAP2.npy, which is pickled, run where you trust "
            f"that file, in its folder: {CONVERT_PAMAP2}"
        )
    with naming(found[0]):
        arrays = load_npz(found[0])
        joined = len(arrays["train_data"]) != sizes.n_train and {"val_data", "val_label"} <= set(arrays)
        for what in ("data", "label") if joined else ():
            arrays[f"train_{what}"] = np.concatenate([arrays[f"train_{what}"], arrays[f"val_{what}"]])
        known = np.unique(np.concatenate([arrays["train_label"], arrays["test_label"]]))
        parts = []
        # The arrays do not say whose window is whose.
        for part, group in (("train", "subjects 1 to 7"), ("test", "subjects 8 and 9")):
            x, label = arrays[f"{part}_data"], arrays[f"{part}_label"]
            if x.shape[1:] == (sizes.n_times, sizes.n_channels):
                x = x.transpose(0, 2, 1)  # time before channels
            if x.ndim != 3 or label.shape != x.shape[:1]:
                raise InputError(f"Expected windows (N, C, T) with a label each; got {x.shape} and {label.shape}.")
            x = np.ascontiguousarray(x, dtype=np.float32)
            parts.append(Windows(x, np.searchsorted(known, label), np.full(len(x), group), PAMAP2_PAPER.name))
        notes = ["The file does not say whose window is whose: each part is one group."]
        notes += ["Training windows are train_data and val_data."] if joined else []
        made = PreparedParts(parts[0], parts[1], PAMAP2_NAMES[: len(known)], notes=tuple(notes))
        if wrong := differences(made.sizes._replace(n_classes=len(known)), sizes):
            raise InputError(f"It holds {', '.join(wrong)}: it is not the file that the paper used.")
    return made


# SKODA: ten sensors on the right arm of one worker in car production, 98 Hz.
SKODA_LENGTH, SKODA_STRIDE = 50, 25
SKODA_VARIABLE = "right_classall_clean"
SKODA_TEST_SHARE = 0.2
SKODA_NAMES = (
    *("none", "write on notepad", "open hood", "close hood", "check gaps of front door", "open left front door"),
    *("close left front door", "close both left doors", "check gaps of trunk", "open and close trunk"),
    "check steering wheel",
)
SKODA_GESTURES = dict(zip((32, *range(48, 58)), SKODA_NAMES, strict=True))


def read_skoda_arm(raw: Path) -> tuple[Array, Array]:
    """Read the .mat file as x (60, T), each time step of length one, and label (T,)."""
    path = raw_files(raw, f"{SKODA_VARIABLE}.mat", SKODA_PAPER.download)[0]
    with naming(path):
        table = loadmat(path)[SKODA_VARIABLE].astype(np.float64)
        # Columns: label, then of each sensor an id, three calibrated and three raw values. 60 channels, not 64 (D-46).
        x = np.delete(table, [0, *range(1, table.shape[1], 7)], axis=1)
        length = np.linalg.norm(x, axis=1, keepdims=True)
        x = (x / np.where(length == 0, 1.0, length)).T.astype(np.float32)
        return x, codes_of(table[:, 0], list(SKODA_GESTURES))


def read_skoda(raw: Path, in_time: bool) -> PreparedParts:
    """Make the paper's windows, or windows in the order of time."""
    x, label = read_skoda_arm(raw)
    train, test = (blocked if in_time else shuffled)(x, label)
    notes = () if in_time else ("Windows are shuffled time steps without an order in time (D-47).",)
    return PreparedParts(train, test, SKODA_NAMES, SKODA_STRIDE, notes)


def shuffled(x: Array, label: Array) -> tuple[Windows, Windows]:
    """Shuffle and share out each gesture's time steps as the paper does, then cut as if they were in order (D-47).

    No window has an order in time, and training and test steps come from the same seconds.
    """
    shares = [
        train_test_split(np.flatnonzero(label == code), test_size=SKODA_TEST_SHARE, random_state=1)
        for code in np.unique(label)
    ]
    train, test = (np.concatenate(rows) for rows in zip(*shares, strict=True))
    worker = np.zeros_like(label)
    first, last = (
        cut(x[:, at], label[at], worker[at], SKODA_LENGTH, SKODA_STRIDE, name=SKODA_PAPER.name) for at in (train, test)
    )
    return first, last


def blocked(x: Array, label: Array) -> tuple[Windows, Windows]:
    """Cut every run of one gesture in time: its end tests, a window before that is dropped, the rest trains (D-96).

    A run tests with a fifth of its time steps and at least a window; one shorter than three windows only trains. The
    group is the number of the run.
    """
    train, test = [], []
    number = np.empty(len(label), dtype=np.int64)
    for count, run in enumerate(runs(label)):
        number[run] = count
        n_times = run.stop - run.start
        if n_times < 3 * SKODA_LENGTH:
            train.append(run)
            continue
        border = run.stop - max(SKODA_LENGTH, round(SKODA_TEST_SHARE * n_times))
        train.append(slice(run.start, border - SKODA_LENGTH))
        test.append(slice(border, run.stop))
    first, last = (
        cut(x, label, number, SKODA_LENGTH, SKODA_STRIDE, inside=inside, name=SKODA_BLOCKED.name)
        for inside in (train, test)
    )
    return first, last


# WISDM2: a phone in the pockets of volunteers, 20 Hz (Actitracker, version 2.0).
WISDM2_LENGTH, WISDM2_STRIDE = 40, 20
WISDM2_TEST_USERS = 22
WISDM2_ACTIVITIES = ("Jogging", "LyingDown", "Sitting", "Stairs", "Standing", "Walking")
_NUMBER = r"[ \t]*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[ \t]*"
_RECORD = re.compile(rf"(\d{{1,18}}),({'|'.join(WISDM2_ACTIVITIES)}),[^,]*,{_NUMBER},{_NUMBER},{_NUMBER}(?:[;,]|\s*$)")
_END = re.compile(r"(?:[^,]*,){5}[ \t]*(?:[;,]|\s*$)")  # the sixth field is empty


def read_wisdm2_log(path: Path) -> tuple[Array, Array, Array, tuple[str, ...]]:
    """Read user (T,), label (T,) and x (3, T) of all records in order, and notes about lines that are none.

    Reading ends at the first record whose last field is empty, as the authors' does.
    """
    users, labels, values, stray, notes = array("q"), array("b"), array("d"), 0, []
    with path.open(encoding="latin-1") as lines:
        for number, line in enumerate(lines, 1):
            if (found := _RECORD.match(line)) is not None:
                users.append(int(found[1]))
                labels.append(WISDM2_ACTIVITIES.index(found[2]))
                values.extend(map(float, found.group(3, 4, 5)))
            elif _END.match(line):
                notes.append(f"Reading ended at line {number}, whose last field is empty.")
                break
            else:
                stray += bool(line.strip())
    if stray:
        notes.append(f"{stray} of {len(users) + stray} lines are not records and were left out.")
    x = np.array(values).reshape(-1, 3).T
    return np.array(users), np.array(labels, dtype=np.int64), x, tuple(notes)


def read_wisdm2(raw: Path, borders: str = "cross") -> PreparedParts:
    """Split the users; each is scaled by its own statistics, test users too, as the paper's loader does."""
    path = raw_files(raw, "WISDM_at_v2.0_raw.txt", WISDM2.download)[0]
    user, label, x, notes = read_wisdm2_log(path)
    in_order = pd.unique(user)
    if len(in_order) <= WISDM2_TEST_USERS:
        raise InputError(f"{path} has lines of {len(in_order)} users; {WISDM2_TEST_USERS} test, and others must train.")
    parts = []
    for users in train_test_split(in_order, test_size=WISDM2_TEST_USERS, random_state=1):
        rows = [np.flatnonzero(user == one) for one in users]
        at, own = np.concatenate(rows), np.concatenate([_standardised(x[:, some]) for some in rows], axis=1)
        parts.append(_cut_joined(own, label[at], user[at], WISDM2_LENGTH, WISDM2_STRIDE, borders, WISDM2.name))
    return PreparedParts(parts[0], parts[1], WISDM2_ACTIVITIES, WISDM2_STRIDE, notes)


def _standardised(x: Array) -> Array:
    """Scale (3, T) to mean 0 and standard deviation 1 per axis; an axis that never changes is only centred."""
    std = x.std(axis=1, keepdims=True)
    scaled: Array = (x - x.mean(axis=1, keepdims=True)) / np.where(std == 0, 1.0, std)
    return scaled
