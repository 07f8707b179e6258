"""SKODA from a .mat file of its publisher's form: the paper's shuffled windows and the blocked ones."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.model_selection import train_test_split

from bench.paper.raw.movement import SKODA_GESTURES as GESTURES
from bench.paper.raw.movement import SKODA_VARIABLE as VARIABLE
from bench.paper.raw.movement import blocked, read_skoda, read_skoda_arm, shuffled

RUNS = [(32, 400), (48, 260), (32, 149), (50, 150), (57, 49), (48, 260)]


def table(runs: list[tuple[int, int]] = RUNS) -> np.ndarray:
    """71 columns: label, then ten sensors of id, three calibrated and three raw values."""
    labels = np.concatenate([np.full(n, code) for code, n in runs])
    values = np.random.default_rng(0).normal(size=(len(labels), 10, 7)) * 100
    values[:, :, 0] = np.arange(1, 11) * 1e6  # ids would swamp everything if they stayed
    return np.column_stack([labels, values.reshape(len(labels), -1)])


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (tmp_path / "SkodaMiniCP_2015_08").mkdir()
    savemat(tmp_path / "SkodaMiniCP_2015_08" / f"{VARIABLE}.mat", {VARIABLE: table()})
    return tmp_path


def test_the_papers_windows_are_shuffled_rows(raw: Path) -> None:
    prepared = read_skoda(raw, in_time=False)
    x, label = read_skoda_arm(raw)
    for number, part in enumerate((prepared.train, prepared.test)):
        rows = np.concatenate([
            train_test_split(np.flatnonzero(label == code), test_size=0.2, random_state=1)[number]
            for code in np.unique(label)
        ])  # fmt: skip
        starts = range(0, len(rows) - 49, 25)
        np.testing.assert_array_equal(part.x, np.stack([x[:, rows[s : s + 50]] for s in starts]))
        assert part.y.tolist() == [np.bincount(label[rows[s : s + 50]]).argmax() for s in starts]
        assert set(part.group) == {0}


def test_blocked_windows_never_share_or_touch_a_row() -> None:
    """Channel 0 counts the rows, so that every window says which rows it holds."""
    label = np.concatenate([np.full(n, list(GESTURES).index(code)) for code, n in RUNS])
    x = np.arange(len(label), dtype=np.float32)[None]
    train, test = blocked(x, label)
    for part in (train, test):
        assert (np.diff(part.x, axis=2) == 1).all()  # in order of time
        for window, code in zip(part.x, part.y, strict=True):  # type: ignore[arg-type]
            assert set(label[window[0].astype(int)]) == {code}
    rows = [np.unique(part.x) for part in (train, test)]
    for run, owners in ((0, (0, 400)), (1, (400, 660)), (3, (809, 959))):
        inside = [part[(part >= owners[0]) & (part < owners[1])] for part in rows]
        assert inside[1].min() - inside[0].max() > 50, f"run {run}: a window lies between training and test"
        assert inside[1].max() < owners[1] and len(inside[1]) >= 50
    # A fifth of the rows and at least a window; 149 rows only train, 49 are no window.
    assert test.group.tolist() == [0] * 2 + [1, 3, 5]  # type: ignore[union-attr]
    assert 2 in train.group and 4 not in train.group  # type: ignore[operator]


def test_shuffled_rows_are_in_one_part_only() -> None:
    label = np.zeros(500, dtype=int)
    train, test = shuffled(np.arange(500, dtype=np.float32)[None], label)
    assert not set(np.unique(train.x)) & set(np.unique(test.x))
    assert (np.diff(train.x, axis=2) != 1).any()
