"""Tables that other programs read, written whole or not at all."""

from pathlib import Path

import numpy as np
import pytest

from dicot.store.vectors import write_columns

COLUMNS = {
    "recording": np.array(["a,b", "", 'say "no"']),
    "start": np.array([0.1, np.nan, 1 / 3]),
    "n": np.array([1, 2, 3]),
    "whole": np.array([1.0, 2.0, 3.0]),
    "alarm": np.array([True, False, False]),
    "given": np.ma.masked_array([7, 8, 9], [False, False, True]),
}


def test_a_csv_keeps_every_digit_and_leaves_unknown_cells_empty(tmp_path: Path) -> None:
    write_columns(tmp_path / "t.csv", COLUMNS)
    assert (tmp_path / "t.csv").read_text() == (
        'recording,start,n,whole,alarm,given\n"a,b",0.1,1,1.0,True,7\n,,2,2.0,False,8\n'
        '"say ""no""",0.3333333333333333,3,3.0,False,\n'
    )


def test_a_parquet_keeps_types(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    write_columns(tmp_path / "t.parquet", COLUMNS)
    assert parquet.read_table(tmp_path / "t.parquet").to_pydict() == {
        "recording": ["a,b", None, 'say "no"'],
        "start": [0.1, None, 1 / 3],
        "n": [1, 2, 3],
        "whole": [1.0, 2.0, 3.0],
        "alarm": [True, False, False],
        "given": [7, 8, None],
    }
