"""Cases, labels and groups of an .npz file by the names that people give them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.splits import read_split

X = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
WHO = ["ann", "bob", "ann"]


def save(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "a.npz", **arrays)
    return folder / "a.npz"


@pytest.mark.parametrize(
    "name", ["group", "groups", "users", "Subject", "subject_id", "PATIENTS", "participant", "recording", "session"]
)
def test_groups(tmp_path: Path, name: str) -> None:
    windows = read_split(save(tmp_path, X=X, **{name: WHO})).train
    assert windows.group is not None and windows.group.tolist() == WHO


@pytest.mark.parametrize("name", ["y", "Y", "label", "labels", "target"])
def test_labels(tmp_path: Path, name: str) -> None:
    windows = read_split(save(tmp_path, X=X, **{name: [1, 2, 1]})).train
    assert windows.y is not None and windows.y.tolist() == [1, 2, 1]


@pytest.mark.parametrize("name", ["X", "x", "data", "Values"])
def test_cases(tmp_path: Path, name: str) -> None:
    np.testing.assert_array_equal(read_split(save(tmp_path, **{name: X})).train.x, X)


def test_both_parts_of_a_split_have_groups(tmp_path: Path) -> None:
    path = save(tmp_path, X_train=X, y_train=[1, 2, 1], users_train=WHO, x_test=X[:1], Y_test=[2], Users_test=["cid"])
    split = read_split(path)
    assert split.test is not None and split.train.group is not None and split.test.group is not None
    assert (split.train.group.tolist(), split.test.group.tolist()) == (WHO, ["cid"])
    assert split.test.y is not None and split.test.y.tolist() == [2]


def test_several_candidates_are_named_and_one_can_be_chosen(tmp_path: Path) -> None:
    path = save(tmp_path, X=X, user=WHO, session=[1, 2, 3], y=[0, 1, 0], label=[5, 6, 7])
    with pytest.raises(InputError, match=r"a\.npz: 'y', 'label'.*label="):
        read_split(path)
    with pytest.raises(InputError, match=r"'user', 'session'.*group="):
        read_split(path, label="label")
    with pytest.raises(InputError, match="'sesion'.*'session'"):
        read_split(path, group="sesion", label="y")
    with pytest.warns(UserWarning, match=r"not used: user, y"):
        windows = read_split(path, group="session", label="label").train
    assert windows.group is not None and windows.y is not None
    assert (windows.group.tolist(), windows.y.tolist()) == ([1, 2, 3], [5, 6, 7])
    with pytest.raises(InputError, match="'X', 'data'"):
        read_split(save(tmp_path, X=X, data=X))
