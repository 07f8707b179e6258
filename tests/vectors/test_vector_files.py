import importlib
import re

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.store.vectors import check_vector_file, read_vectors, row_files, write_vectors

X = np.array([[1.5, 2.5], [3.5, 4.5]], np.float32)
TWO = {"train": {"X": X, "y": np.array(["a", "b"])}, "test": {"X": X[:1], "group": np.array([7])}}


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_objects_are_not_written(tmp_path, suffix):
    parts = {"": {"X": X, "y": np.array(["a", None], dtype=object)}}
    with pytest.raises(InputError, match="y must be numbers or text"):
        write_vectors(tmp_path / f"v.{suffix}", parts)
    assert not list(tmp_path.iterdir())


WINDOWS = {
    "X": X,
    "recording": np.array(["a.csv", "b.csv"]),
    "start": np.array([0.0, 2.5]),
    "end": np.array([2.5, 5.0]),
    "group": np.array([3, 4]),
    "y": np.array(["walk", ""]),
}


def frame(path):
    return pytest.importorskip("pandas", reason="pandas is not installed").read_parquet(path)


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
def test_what_is_written_is_read(tmp_path, arrow, suffix):
    path = tmp_path / f"v.{suffix}"
    write_vectors(path, {"": WINDOWS})
    held = read_vectors(path)
    assert held.x.dtype == np.float32 and np.array_equal(held.x, X) and held.part is None
    for name in ("recording", "start", "end", "group"):
        assert np.array_equal(getattr(held, name), WINDOWS[name])
    assert held.label.tolist() == ["walk", ""] and len(held) == 2


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_both_parts_are_read_one_after_the_other(tmp_path, arrow, suffix):
    path = tmp_path / f"v.{suffix}"
    write_vectors(path, TWO)
    held = read_vectors(path)
    assert np.array_equal(held.x, [*X, X[0]]) and held.part.tolist() == ["train", "train", "test"]
    assert held.label.tolist() == ["a", "b", ""]
    assert np.array_equal(held.group, [np.nan, np.nan, 7], equal_nan=True)


@pytest.mark.slow
def test_writing_a_parquet_does_not_hold_all_rows(tmp_path, arrow):
    from dicot.core.gpu.device import peak_memory

    n, f = 150_000, 256  # 146 MiB
    with row_files(tmp_path / "v.parquet") as make:
        file = make(n, f)
        for at in range(0, n, 10_000):
            file[at : at + 10_000] = np.full((10_000, f), at, np.float32)
        write_vectors(tmp_path / "w.parquet", {"": {"X": X}})  # pyarrow is loaded before the measurement
        with peak_memory("cpu") as peak:
            write_vectors(tmp_path / "v.parquet", {"": {"X": file.read()}})
            grown = peak()
    assert grown < 90 * 2**20
    assert read_vectors(tmp_path / "v.parquet").x[::10_000, 0].tolist() == list(range(0, n, 10_000))


def test_a_table_that_pandas_wrote_again_is_read(tmp_path, arrow):
    write_vectors(tmp_path / "v.parquet", {"": WINDOWS})
    table = frame(tmp_path / "v.parquet").assign(note="seen", label=["walk", "sit"])
    table["recording"] = table["recording"].astype("category")
    table.iloc[::-1].to_parquet(tmp_path / "w.parquet")
    held = read_vectors(tmp_path / "w.parquet")
    assert np.array_equal(held.x, X[::-1]) and held.recording.tolist() == ["b.csv", "a.csv"]
    assert held.label.tolist() == ["sit", "walk"]


def test_a_write_that_fails_leaves_the_old_parquet(tmp_path, arrow):
    path = tmp_path / "v.parquet"
    write_vectors(path, {"": WINDOWS})
    before = path.read_bytes()
    with pytest.raises(InputError, match="start must be numbers"):
        write_vectors(path, {"": {**WINDOWS, "start": np.array(["now", "then"])}})
    with pytest.raises(InputError, match="group must be numbers or text, one for each of the 2"):
        write_vectors(path, {"": {**WINDOWS, "group": np.arange(3)}})
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def bad_tables(pa):
    lists = pa.array([[1.0, 2.0], [3.0, 4.0]])
    return {
        "one column 'vector'": {"vectors": lists},
        "column 'vector' must hold lists": {"vector": pa.array([1.0, 2.0])},
        "lists of other lengths from row 0": {"vector": pa.array([[1.0], [2.0, 3.0]])},
        "empty cells": {"vector": pa.array([[1.0], None])},
        "missing numbers": {"vector": pa.array([[1.0], [None]])},
        "'start' must hold seconds": {"vector": lists, "start": pa.array(["a", "b"])},
        "column 'label' must hold numbers or text": {"vector": lists, "label": lists},
        "holds 0 vectors": {"vector": pa.array([], pa.list_(pa.float32()))},
    }


@pytest.mark.parametrize("number", range(8))
def test_a_parquet_that_does_not_fit_is_named_with_its_column(tmp_path, arrow, number):
    said, columns = list(bad_tables(arrow).items())[number]
    importlib.import_module("pyarrow.parquet").write_table(arrow.table(columns), tmp_path / "v.parquet")
    with pytest.raises(InputError, match=said) as caught:
        read_vectors(tmp_path / "v.parquet")
    assert "v.parquet" in str(caught.value)


def test_files_that_hold_no_vectors_are_refused(tmp_path):
    with pytest.raises(InputError, match="unknown suffix '.csv'"):
        check_vector_file(tmp_path / "v.csv")
    for name, said in (("v.csv", "suffix '.csv'"), ("absent.npz", "There is no file")):
        with pytest.raises(InputError, match=said):
            read_vectors(tmp_path / name)
    for arrays, said in (
        ({"Z": X}, "no array 'X'"),
        ({"X": X[0]}, "(cases, features)"),
        ({"X": X, "y": np.arange(3)}, "'label' holds int64 (3,) beside 2"),
        ({"X": X, "start": np.array(["a", "b"])}, "'start' must hold seconds"),
    ):
        np.savez(tmp_path / "v.npz", **arrays)
        with pytest.raises(InputError, match=re.escape(said)) as caught:
            read_vectors(tmp_path / "v.npz")
        assert "v.npz" in str(caught.value)
