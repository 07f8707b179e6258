"""SKODA: ten accelerometers on the right arm of one worker in car production, 98 Hz, ten gestures and none."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat
from scipy.io.matlab import MatReadError
from sklearn.model_selection import train_test_split

from dicot.core.errors import InputError, naming
from dicot.data import Windows
from dicot.data.cases import Array
from dicot.data.datasets.base import cut, runs
from dicot.data.datasets.large import SKODA_BLOCKED, SKODA_PAPER
from dicot.paper.preparation import OnProgress, PreparedParts, codes_of, raw_files

LENGTH, STRIDE = 50, 25
VARIABLE = "right_classall_clean"
COLUMNS = 71  # label, then ten sensors of id, three calibrated and three raw values
SENSOR_COLUMNS = 7
TEST_SHARE = 0.2
GESTURES = {
    32: "none",
    48: "write on notepad",
    49: "open hood",
    50: "close hood",
    51: "check gaps of front door",
    52: "open left front door",
    53: "close left front door",
    54: "close both left doors",
    55: "check gaps of trunk",
    56: "open and close trunk",
    57: "check steering wheel",
}


def read_arm(raw: Path) -> tuple[Array, Array]:
    """Read the .mat file as x (60, T), each time step of length one, and label (T,)."""
    path = raw_files(raw, f"{VARIABLE}.mat", SKODA_PAPER.download)[0]
    with naming(path):
        try:
            found = loadmat(path)
        except (MatReadError, TypeError) as error:
            raise ValueError(error) from error
        if VARIABLE not in found or found[VARIABLE].shape[1:] != (COLUMNS,):
            raise InputError(f"Expected a table {VARIABLE} of {COLUMNS} columns. Fetch it again.")
        table = found[VARIABLE].astype(np.float64)
        label = codes_of(table[:, 0], list(GESTURES))
        x = np.delete(table, [0, *range(1, COLUMNS, SENSOR_COLUMNS)], axis=1)  # 60 channels, not 64 (D-46)
        length = np.linalg.norm(x, axis=1, keepdims=True)
        return (x / np.where(length == 0, 1.0, length)).T.astype(np.float32), label


def read_shuffled(raw: Path, settings: Mapping[str, Any], on_progress: OnProgress) -> PreparedParts:
    """Make the paper's windows."""
    note = "Windows are shuffled time steps without an order in time (D-47)."
    return PreparedParts(*shuffled(*read_arm(raw)), tuple(GESTURES.values()), STRIDE, (note,))


def read_blocked(raw: Path, settings: Mapping[str, Any], on_progress: OnProgress) -> PreparedParts:
    """Make windows in the order of time."""
    return PreparedParts(*blocked(*read_arm(raw)), tuple(GESTURES.values()), STRIDE)


def shuffled(x: Array, label: Array) -> tuple[Windows, Windows]:
    """Shuffle and share out each gesture's time steps as the paper does, then cut as if they were in order (D-47).

    No window has an order in time, and training and test steps come from the same seconds.
    """
    shares = [
        train_test_split(np.flatnonzero(label == code), test_size=TEST_SHARE, random_state=1)
        for code in np.unique(label)
    ]
    train, test = (np.concatenate(rows) for rows in zip(*shares, strict=True))
    worker = np.zeros_like(label)
    first, last = (cut(x[:, at], label[at], worker[at], LENGTH, STRIDE, name=SKODA_PAPER.name) for at in (train, test))
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
        if n_times < 3 * LENGTH:
            train.append(run)
            continue
        border = run.stop - max(LENGTH, round(TEST_SHARE * n_times))
        train.append(slice(run.start, border - LENGTH))
        test.append(slice(border, run.stop))
    first, last = (
        cut(x, label, number, LENGTH, STRIDE, inside=inside, name=SKODA_BLOCKED.name) for inside in (train, test)
    )
    return first, last
