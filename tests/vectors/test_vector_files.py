import importlib

import numpy as np
import pytest
from pandas import read_parquet as frame

from dicot.store.vectors import read_vectors, write_vectors

X = np.array([[1.5, 2.5], [3.5, 4.5]], np.float32)
TWO = {"train": {"X": X, "y": np.array(["a", "b"])}, "test": {"X": X[:1], "group": np.array([7])}}


WINDOWS = {
    "X": X,
    "recording": np.array(["a.csv", "b.csv"]),
    "start": np.array([0.0, 2.5]),
    "end": np.array([2.5, 5.0]),
    "group": np.array([3, 4]),
    "y": np.array(["walk", ""]),
}


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def test_a_parquet_is_a_plain_table(tmp_path, arrow):
    write_vectors(tmp_path / "v.parquet", {"": WINDOWS})
    table = frame(tmp_path / "v.parquet")
    assert list(table.columns) == ["recording", "start", "end", "group", "label", "vector"]
    assert table["recording"].tolist() == ["a.csv", "b.csv"] and table["start"].tolist() == [0.0, 2.5]
    assert table["group"].tolist() == [3, 4]
    assert table["label"][0] == "walk" and table["label"].isna().tolist() == [False, True]
    assert np.array_equal(np.stack(table["vector"]), X) and table["vector"][0].dtype == np.float32
    schema = importlib.import_module("pyarrow.parquet").read_schema(tmp_path / "v.parquet")
    assert schema.field("vector").type == arrow.list_(arrow.float32(), 2)


def test_columns_of_which_nothing_is_known_are_left_out(tmp_path, arrow):
    parts = {"": {"X": X, "y": np.array([np.nan, np.nan]), "group": np.array(["", ""])}}
    write_vectors(tmp_path / "v.parquet", parts)
    assert list(frame(tmp_path / "v.parquet").columns) == ["vector"]
    held = read_vectors(tmp_path / "v.parquet")
    assert held.label is None and held.group is None and held.recording is None


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_what_is_written_is_read_one_part_after_the_other(tmp_path, arrow, suffix):
    path = tmp_path / f"v.{suffix}"
    write_vectors(path, {"": WINDOWS})
    held = read_vectors(path)
    assert held.x.dtype == np.float32 and np.array_equal(held.x, X) and held.part is None
    for name in ("recording", "start", "end", "group"):
        assert np.array_equal(getattr(held, name), WINDOWS[name])
    assert held.label.tolist() == ["walk", ""] and len(held) == 2
    write_vectors(path, TWO)
    held = read_vectors(path)
    assert np.array_equal(held.x, [*X, X[0]]) and held.part.tolist() == ["train", "train", "test"]
    assert held.label.tolist() == ["a", "b", ""]
    assert np.array_equal(held.group, [np.nan, np.nan, 7], equal_nan=True)


def test_a_table_that_pandas_wrote_again_is_read(tmp_path, arrow):
    write_vectors(tmp_path / "v.parquet", {"": WINDOWS})
    table = frame(tmp_path / "v.parquet").assign(note="seen", label=["walk", "sit"])
    table["recording"] = table["recording"].astype("category")
    table.iloc[::-1].to_parquet(tmp_path / "w.parquet")
    held = read_vectors(tmp_path / "w.parquet")
    assert np.array_equal(held.x, X[::-1]) and held.recording.tolist() == ["b.csv", "a.csv"]
    assert held.label.tolist() == ["sit", "walk"]
