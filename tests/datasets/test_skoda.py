"""SKODA from a .mat file of its publisher's form: the paper's shuffled windows and the blocked ones."""

from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.model_selection import train_test_split

from dicot.core.errors import InputError
from dicot.data.datasets.preparation import Workspace
from dicot.data.datasets.skoda import GESTURES, SKODA_BLOCKED, SKODA_PAPER, VARIABLE, blocked, read_arm, shuffled

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


def test_sixty_channels_of_length_one(raw: Path, tmp_path: Path) -> None:
    arrays = read_arm(raw / "SkodaMiniCP_2015_08" / f"{VARIABLE}.mat")
    without_ids = table()[:, 1:].reshape(-1, 10, 7)[:, :, 1:].reshape(-1, 60)
    np.testing.assert_allclose(
        arrays["x"].T, without_ids / np.linalg.norm(without_ids, axis=1, keepdims=True), atol=1e-6
    )
    assert arrays["label"][[0, 400, 660, 809, 959]].tolist() == [0, 1, 0, 3, 10]
    np.savetxt(tmp_path / f"{VARIABLE}.txt", table())
    np.testing.assert_array_equal(read_arm(tmp_path / f"{VARIABLE}.txt")["x"], arrays["x"])
    assert list(GESTURES) == sorted(GESTURES) and len(GESTURES) == 11


def test_the_papers_windows_are_shuffled_rows(raw: Path, tmp_path: Path) -> None:
    prepared = SKODA_PAPER.read(raw, Workspace({}, tmp_path / "partial"))
    arrays = read_arm(raw / "SkodaMiniCP_2015_08" / f"{VARIABLE}.mat")
    for number, part in enumerate((prepared.train, prepared.test)):
        rows = np.concatenate([
            train_test_split(np.flatnonzero(arrays["label"] == code), test_size=0.2, random_state=1)[number]
            for code in np.unique(arrays["label"])
        ])  # fmt: skip
        starts = range(0, len(rows) - 49, 25)
        np.testing.assert_array_equal(part.x, np.stack([arrays["x"][:, rows[s : s + 50]] for s in starts]))
        wanted = [np.bincount(arrays["label"][rows[s : s + 50]]).argmax() for s in starts]
        assert part.y.tolist() == wanted  # type: ignore[union-attr]
        assert set(part.group) == {0}  # type: ignore[arg-type]
    assert SKODA_PAPER.shared_groups and SKODA_BLOCKED.shared_groups  # one worker is in both parts


def test_blocked_windows_never_share_or_touch_a_row() -> None:
    """Channel 0 counts the rows, so that every window says which rows it holds."""
    label = np.concatenate([np.full(n, list(GESTURES).index(code)) for code, n in RUNS])
    x = np.arange(len(label), dtype=np.float32)[None]
    train, test = blocked(x, label, "skoda-blocked")
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
    train, test = shuffled(np.arange(500, dtype=np.float32)[None], label, "skoda-paper")
    assert not set(np.unique(train.x)) & set(np.unique(test.x))
    assert (np.diff(train.x, axis=2) != 1).any()


def test_faulty_files(tmp_path: Path) -> None:
    path = tmp_path / f"{VARIABLE}.mat"
    savemat(path, {"left": np.zeros((3, 71))})
    with pytest.raises(InputError, match=r"right_classall_clean.*\['left'\]"):
        read_arm(path)
    savemat(path, {VARIABLE: np.zeros((3, 70))})
    with pytest.raises(InputError, match=r"71.*\(3, 70\)"):
        read_arm(path)
    savemat(path, {VARIABLE: np.zeros((3, 71))})
    with pytest.raises(InputError, match=r"\[0.0\]"):
        read_arm(path)
    for damaged in (b"", b"<html>" * 50, b"MATLAB 5.0 MAT-file".ljust(124) + bytes([0, 1]) + b"IM" + b"?" * 60):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"right_classall_clean\.mat: .*Fetch it again"):
            read_arm(path)
    savemat(path, {VARIABLE: table()}, do_compression=True)
    old = np.array([0, 3, 71, 0, 1 << 30], "<i4").tobytes()  # of MATLAB 4, with a name of a gigabyte
    for damaged in (old + bytes(99), path.read_bytes()[:129]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"right_classall_clean\.mat: .*Fetch it again"):
            read_arm(path)
    for value in (np.nan, 1e200):
        broken = table()
        broken[7, 5] = value
        savemat(path, {VARIABLE: broken})
        with pytest.raises(InputError, match=r"right_classall_clean\.mat: Time step 7 "):
            read_arm(path)
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + bytes([0, 2]) + b"IM")
    with pytest.raises(InputError, match="-v7"):
        read_arm(path)
    with pytest.raises(InputError, match="three windows"):
        blocked(np.zeros((1, 100), np.float32), np.zeros(100, int), "skoda-blocked")
