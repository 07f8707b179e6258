"""Reading files by suffix; every failure names the file."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dicot.core.errors import InputError, WindowLengthWarning
from dicot.data.splits import read_parts, read_split

X = np.arange(12, dtype=np.float32).reshape(3, 2, 2)


def text(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def test_npz_and_npy(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=X, y=["u", "v", "u"], group=[1, 2, 1])
    windows = read_split(tmp_path / "a.npz").train
    np.testing.assert_array_equal(windows.x, X)
    assert (windows.y.tolist(), windows.group.tolist()) == (["u", "v", "u"], [1, 2, 1])  # type: ignore[union-attr]
    assert windows.name == "a"
    np.save(tmp_path / "b.npy", X.transpose(0, 2, 1))
    np.testing.assert_array_equal(read_split(str(tmp_path / "b.npy"), layout="ntc").train.x, X)
    np.savez(tmp_path / "c.npz", x=X)
    assert read_split(tmp_path / "c.npz").train.y is None
    split = read_split(tmp_path / "c.npz")
    assert (split.test, split.name, len(split.train)) == (None, "c", 3)


def test_npz_split_shares_length_and_scale(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    train, test = np.array([[0.0, 2, np.nan]]), np.array([[1.0, 3, 5]])
    np.savez(path, X_train=train, y_train=[0], X_test=test, y_test=[1])
    with pytest.warns(WindowLengthWarning, match="Test case 0: .*cut off"):
        split = read_split(path, unequal="pad")  # to the length of the training part
    assert split.test is not None
    assert split.train.x.tolist() == [[[0, 2]]]
    assert split.test.x.tolist() == [[[1, 3]]]
    cropped = read_split(path, unequal="crop", scale="dataset")
    assert cropped.test is not None
    assert cropped.train.x.tolist() == [[[-1, 1]]]
    assert cropped.test.x.tolist() == [[[0, 2]]]  # in units of the training part
    with pytest.raises(InputError, match=r"s\.npz.*NaN"):
        read_split(path)
    with pytest.raises(InputError, match="split"):
        read_split(path)
    np.savez(path, X_train=test, X_test=test[:, :2])
    with pytest.raises(InputError, match=r"\(1, 3\) and \(1, 2\)"):
        read_split(path)
    np.savez(path, X_train=test)
    assert read_split(path).test is None


def test_csv_with_one_case_per_row(tmp_path: Path) -> None:
    plain = text(tmp_path / "plain.csv", "1,2,3\n4,5,6\n")
    assert read_split(plain).train.x.tolist() == [[[1, 2, 3]], [[4, 5, 6]]]
    last = text(tmp_path / "last.csv", "1,2,up\n4,,down\n")
    windows = read_split(last, label="last", unequal="pad").train
    assert windows.x.tolist() == [[[1, 2]], [[4, 0]]]
    assert windows.y.tolist() == ["up", "down"]  # type: ignore[union-attr]
    first = text(tmp_path / "first.csv", "kind,t0,t1\n1,2,3\n2,4,5\n")
    assert read_split(first, label="first").train.y.tolist() == [1, 2]  # type: ignore[union-attr]
    named = text(tmp_path / "named.csv", "t0,kind,t1,who\n1,a,2,7\n3,b,4,8\n")
    windows = read_split(named, label="kind", group="who").train
    assert windows.x.tolist() == [[[1, 2]], [[3, 4]]]
    assert (windows.y.tolist(), windows.group.tolist()) == (["a", "b"], [7, 8])  # type: ignore[union-attr]


def test_csv_as_a_long_table(tmp_path: Path) -> None:
    path = text(tmp_path / "long.csv", "id,when,v,kind\n1,1,5,a\n1,0,4,a\n2,0,6,b\n2,1,,b\n")
    windows = read_split(path, case="id", time="when", label="kind", unequal="pad").train
    assert windows.x.tolist() == [[[4, 5]], [[6, 0]]]
    assert windows.y.tolist() == ["a", "b"]  # type: ignore[union-attr]


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    parquet.write_table(pa.table({"id": [1, 1, 2, 2], "t": [1, 0, 0, 1], "v": [5.0, 4.0, 6.0, 7.0]}), path)
    assert read_split(path, case="id", time="t").train.x.tolist() == [[[4, 5]], [[6, 7]]]
    with pytest.raises(InputError, match=r"long\.parquet: .*cases and of time: --set case=COLUMN --time COLUMN "):
        read_split(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"long\.parquet"):
        read_split(path, case="id", time="t")


def test_names_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "long.parquet"
    ids = np.array([2**64 - 1, 2**64 - 2], dtype=np.uint64)
    table = {"id": ids, "t": [0, 0], "v": [5.0, 4.0], "kind": ["a", "b"]}
    parquet.write_table(pa.table(table), path)
    content = read_parts(path, case="id", time="t", label="kind", group="id")[""]
    assert content.y is not None
    assert content.group is not None
    assert (content.y.dtype.kind, content.group.dtype.kind) == ("U", "u")  # no objects, and no digit lost
    assert (content.y.tolist(), content.group.tolist()) == (["a", "b"], ids.tolist())
