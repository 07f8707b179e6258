"""SKODA: ten accelerometers on the right arm of one worker in car production, 98 Hz, ten gestures and none."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.datasets.preparation import PreparedSet, Sizes, Workspace, raw_files, read_each
from dicot.data.datasets.prepared import PreparedParts
from dicot.data.datasets.tracks import cut_track, runs
from dicot.data.matfile import read_matrix
from dicot.data.naming import naming
from dicot.data.policies import Array

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


def read_arm(path: Path) -> dict[str, Array]:
    """Read the .mat file (or the same table as text) as x (60, T), each time step of length one, and label (T,)."""
    with naming(path):
        table = _table(path)
        if table.ndim != 2 or table.shape[1] != COLUMNS:
            raise InputError(f"Expected a table of {COLUMNS} columns; got shape {table.shape}.")
        codes = np.array(list(GESTURES))
        unknown = np.setdiff1d(table[:, 0], codes)
        if len(unknown):
            raise InputError(f"Unknown labels {unknown[:5].tolist()}; known are {codes.tolist()}.")
        ids = range(1, COLUMNS, SENSOR_COLUMNS)
        x = np.delete(table, [0, *ids], axis=1).astype(np.float64)  # 60 channels, not 64 (D-46)
        with np.errstate(over="ignore"):
            length = np.linalg.norm(x, axis=1, keepdims=True)
        if not np.isfinite(length).all():
            row = int(np.argmin(np.isfinite(length)))
            raise InputError(f"Time step {row} holds NaN or a number that is too large. Fetch the file again.")
        x /= np.where(length == 0, 1.0, length)
        return {"x": x.T.astype(np.float32), "label": np.searchsorted(codes, table[:, 0])}


def _table(path: Path) -> Array:
    if path.suffix != ".mat":
        return np.loadtxt(path, ndmin=2, comments=None)
    return read_matrix(path, VARIABLE)


def shuffled(x: Array, label: Array, name: str) -> tuple[Windows, Windows]:
    """Shuffle and share out each gesture's time steps as the paper does, then cut as if they were in order (D-47).

    No window has an order in time, and training and test steps come from the same seconds.
    """
    from sklearn.model_selection import train_test_split

    shares = [
        train_test_split(np.flatnonzero(label == code), test_size=TEST_SHARE, random_state=1)
        for code in np.unique(label)
    ]
    worker = np.zeros_like(label)
    train, test = (
        cut_track(x[:, at], label[at], worker[at], LENGTH, STRIDE, borders="cross", name=name)
        for at in (np.concatenate([share[part] for share in shares]) for part in (0, 1))
    )
    return train, test


def blocked(x: Array, label: Array, name: str) -> tuple[Windows, Windows]:
    """Cut every run of one gesture in time: its end tests, a window before that is dropped, the rest trains (D-96).

    A run tests with a fifth of its time steps and at least a window; one shorter than three windows only trains. The
    group is the number of the run.
    """
    pieces: tuple[list[slice], list[slice]] = ([], [])
    numbers: tuple[list[int], list[int]] = ([], [])
    for number, run in enumerate(runs(label)):
        n_times = run.stop - run.start
        n_test = max(LENGTH, round(TEST_SHARE * n_times)) if n_times >= 3 * LENGTH else 0
        border = run.stop - n_test
        both = (slice(run.start, border - LENGTH if n_test else border), slice(border, run.stop))
        for part, piece in enumerate(both):
            if piece.stop - piece.start >= LENGTH:
                pieces[part].append(piece)
                numbers[part].append(number)
    if not pieces[1]:
        raise InputError(f"No gesture is as long as three windows of {LENGTH} time steps. Check the raw file.")
    train, test = (
        Windows.from_array(
            [x[:, piece] for piece in some],
            [label[p.start] for p in some],
            group=of,
            window=LENGTH,
            stride=STRIDE,
            name=name,
        )
        for some, of in zip(pieces, numbers, strict=True)
    )
    return train, test


def _preparer(
    name: str, cut: Callable[[Array, Array, str], tuple[Windows, Windows]], expected: Sizes, *notes: str
) -> PreparedSet:
    def prepare(raw: Path, workspace: Workspace) -> PreparedParts:
        path = raw_files(raw, f"{VARIABLE}.*", f"{VARIABLE}.mat")[0]
        (arrays,) = read_each([path], read_arm, workspace, until=0.5)
        train, test = cut(arrays["x"], arrays["label"], name)
        return PreparedParts(train, test, tuple(GESTURES.values()), STRIDE, notes)

    return PreparedSet(
        name=name,
        source="http://har-dataset.org/doku.php?id=wiki:dataset",
        licence="see the source",
        citation="Zappi et al., Activity recognition from on-body sensors: accuracy-power trade-off by dynamic sensor "
        "selection, EWSN, 2008",
        download=f"SkodaMiniCP_2015_08.zip; unpacked it holds {VARIABLE}.mat.",
        read=prepare,
        expected=expected,
        paper=Sizes(22_587, 5_646, 64, LENGTH, 11),  # D-46
        shared_groups=True,  # there is one worker only
    )


SKODA_PAPER = _preparer(
    "skoda-paper",
    shuffled,
    Sizes(22_587, 5_646, 60, LENGTH, 11),
    "Windows are shuffled time steps without an order in time (D-47).",
)
SKODA_BLOCKED = _preparer("skoda-blocked", blocked, Sizes(n_channels=60, n_times=LENGTH, n_classes=11))
