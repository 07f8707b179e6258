import csv

import numpy as np
import pytest

from dicot.errors import InputError
from dicot.vectors import check_vector_file, write_vectors

X = np.array([[1.5, 2.5], [3.5, 4.5]], np.float32)
TWO = {"train": {"X": X, "y": np.array(["a", "b"])}, "test": {"X": X[:1], "group": np.array([7])}}


def test_npz(tmp_path):
    write_vectors(tmp_path / "v.npz", TWO)
    with np.load(tmp_path / "v.npz", allow_pickle=False) as held:
        assert sorted(held) == ["X_test", "X_train", "group_test", "y_train"]
        assert np.array_equal(held["X_train"], X)
    write_vectors(tmp_path / "v.npz", {"": {"X": X}})
    with np.load(tmp_path / "v.npz") as held:
        assert held.files == ["X"]


def test_npy_holds_one_part(tmp_path):
    write_vectors(tmp_path / "v.npy", {"": {"X": X}})
    assert np.array_equal(np.load(tmp_path / "v.npy"), X)
    with pytest.raises(InputError, match=r"Use .npz or .csv"):
        write_vectors(tmp_path / "w.npy", TWO)
    assert not (tmp_path / "w.npy").exists()


def test_csv(tmp_path):
    write_vectors(tmp_path / "v.csv", TWO)
    rows = list(csv.reader((tmp_path / "v.csv").read_text().splitlines()))
    assert rows == [
        ["part", "y", "group", "f0", "f1"],
        ["train", "a", "", "1.5", "2.5"],
        ["train", "b", "", "3.5", "4.5"],
        ["test", "", "7", "1.5", "2.5"],
    ]


def test_unknown_suffix(tmp_path):
    with pytest.raises(InputError, match="unknown suffix '.xlsx'"):
        check_vector_file(tmp_path / "v.xlsx")


@pytest.mark.parametrize("suffix", ["npz", "npy", "csv"])
def test_objects_are_not_written(tmp_path, suffix):
    parts = {"": {"X": X, "y": np.array(["a", None], dtype=object)}}
    with pytest.raises(InputError, match="y must be numbers or text"):
        write_vectors(tmp_path / f"v.{suffix}", parts)
    assert not list(tmp_path.iterdir())
