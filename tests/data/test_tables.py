"""Long tables."""

import importlib.util
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicot.core.errors import InputError
from dicot.data import Windows

# Cases "b" then "a" in order of first appearance; rows in no order of time.
TABLE: dict[str, Any] = {
    "who": ["b", "a", "b", "a"],
    "t": [1, 5, 0, 3],
    "u": [11.0, 21.0, 10.0, 20.0],
    "v": [1, 2, 3, 4],
    "note": ["x", "x", "x", "x"],
    "kind": ["run", "sit", "run", "sit"],
    "person": [7, 8, 7, 8],
}


def forms() -> list[Any]:
    made: list[Any] = [pytest.param(TABLE, id="dict"), pytest.param(pd.DataFrame(TABLE), id="pandas")]
    if importlib.util.find_spec("pyarrow"):
        import pyarrow as pa

        made.append(pytest.param(pa.table(TABLE), id="pyarrow"))
        coded = {**TABLE, "kind": pa.array(TABLE["kind"]).dictionary_encode()}
        made.append(pytest.param(pa.table(coded), id="pyarrow-dictionary"))
    return made


@pytest.mark.parametrize("table", forms())
def test_sorted_by_case_and_time(table: Any) -> None:
    windows = Windows.from_table(table, case="who", time="t", label="kind", group="person", name="n")
    assert windows.x.tolist() == [[[10, 11], [3, 1]], [[20, 21], [4, 2]]]  # channels u and v, not the text
    assert windows.y is not None
    assert windows.group is not None
    assert (windows.y.tolist(), windows.group.tolist(), windows.name) == (["run", "sit"], [7, 8], "n")
    assert Windows.from_table(table, case="who", time="t", channels=["v"]).x.tolist() == [[[3, 1]], [[4, 2]]]


def test_dates_and_iso_text_sort_in_time() -> None:
    days = ["2020-01-10", "2020-01-02", "2019-12-31"]
    table = {"c": [1, 1, 1], "t": days, "v": [3.0, 2.0, 1.0]}
    assert Windows.from_table(table, case="c", time="t").x.tolist() == [[[1, 2, 3]]]
    table["t"] = np.array(days, dtype="datetime64[D]")
    assert Windows.from_table(table, case="c", time="t").x.tolist() == [[[1, 2, 3]]]


def test_policies_are_handed_on() -> None:
    table = {"c": [0, 0, 0, 1], "t": [0, 1, 2, 0], "v": [1.0, np.nan, 3.0, 9.0]}
    with pytest.raises(InputError, match="NaN in case 0"):
        Windows.from_table(table, case="c", time="t", unequal="pad")
    windows = Windows.from_table(table, case="c", time="t", unequal="pad", missing="interpolate")
    assert windows.x.tolist() == [[[1, 2, 3]], [[9, 0, 0]]]


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"t": [1, 5, 1, 3]}, {}, "case b at time 1"),
        ({"kind": ["run", "sit", "walk", "sit"]}, {"label": "kind"}, r"'kind'.* b\."),
        ({"person": [7.0, 8.0, np.nan, 8.0]}, {"group": "person"}, "'person'"),
        ({}, {"case": "hwo"}, "'hwo'.*'who'"),
        ({}, {"channels": ["u", "w"]}, "'w'"),
        ({}, {"channels": ["note"]}, "'note'"),
        ({"t": ["now", "then", "a", "b"]}, {}, "dates"),
        ({"t": [0.0, 1.0, np.nan, 2.0]}, {}, "'t'.*row 2"),
        ({"who": ["a", None, "a", "b"]}, {}, "'who'.*row 1"),
        ({"who": [1.0, np.nan, 1.0, 2.0]}, {}, "'who'.*row 1"),
        ({"who": ["a", "", "a", "b"]}, {}, "'who'.*row 1"),
        ({"who": np.array(["2020", "NaT", "2020", "2021"], "M8[Y]")}, {}, "'who'.*row 1"),
        ({"v": [1]}, {}, "equally long"),
        ({"u": list("abcd"), "v": list("abcd"), "person": list("abcd")}, {}, "no column of numbers"),
        ({k: [] for k in TABLE}, {"channels": ["u"]}, "0 rows"),
    ],
)
def test_malformed_tables(change: dict[str, Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Windows.from_table({**TABLE, **change}, **{"case": "who", "time": "t", **arguments})


def frames(columns: dict[str, Any], mixed: str) -> list[Any]:
    """The table as a dict and as a data frame in which one column holds objects."""
    return [columns, pd.DataFrame({**columns, mixed: pd.Series(columns[mixed], dtype=object)})]


@pytest.mark.parametrize("ids", [[1, "1"], [1.5, "1.5"], [2**53 + 1, 2.0**53]])
def test_ids_that_differ_stay_apart(ids: list[Any]) -> None:
    for table in frames({"c": ids * 2, "t": [0, 0, 1, 1], "v": [1.0, 2.0, 3.0, 4.0]}, "c"):
        assert Windows.from_table(table, case="c", time="t").x.tolist() == [[[1, 3]], [[2, 4]]]


def test_long_labels_beside_missing_ones_keep_their_digits() -> None:
    pa = pytest.importorskip("pyarrow")
    kinds = [2**60 + 1, 2**60, None]
    table = {"c": [0, 0, 1], "t": [0, 1, 0], "v": [1.0, 2.0, 3.0], "kind": kinds}
    for form in (pa.table(table), pd.DataFrame({**table, "kind": pd.array(kinds, dtype="Int64")})):
        with pytest.raises(InputError, match=r"'kind'.* 0\."):  # once: both 2.0**60
            Windows.from_table(form, case="c", time="t", label="kind")


def test_a_missing_value_of_a_pyarrow_dictionary_is_missing() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"c": [0, 1], "t": [0, 0], "v": pa.array([5, None]).dictionary_encode()})
    windows = Windows.from_table(table, case="c", time="t", missing="zero", unequal="pad", channels=["v", "t"])
    assert windows.x.tolist() == [[[5], [0]], [[0], [0]]]


@pytest.mark.parametrize("column", [["1.5", "2.O", "3"], [1.5, "2.O", 3]])
def test_a_column_with_a_typo_is_not_left_out(column: list[Any]) -> None:
    for table in frames({"c": [1, 1, 1], "t": [0, 1, 2], "u": [1.0, 2.0, 3.0], "v": column}, "v"):
        with pytest.raises(InputError, match="row 1, column 'v': '2.O'"):
            Windows.from_table(table, case="c", time="t")
        assert Windows.from_table(table, case="c", time="t", ignore=["v"]).n_channels == 1
        with pytest.raises(InputError, match="'v'"):
            Windows.from_table(table, case="c", time="t", channels=["v"])


def test_a_column_that_never_changes_within_a_case_is_asked_about() -> None:
    table = {"c": [0, 0, 1, 1], "t": [0, 1, 0, 1], "v": [1.0, 1.0, 2.0, 3.0], "who": [7, 7, 8, 8], "off": [0] * 4}
    with pytest.raises(InputError, match=r": who\. .*ignore"):
        Windows.from_table(table, case="c", time="t")
    assert Windows.from_table(table, case="c", time="t", group="who").n_channels == 2
    assert Windows.from_table(table, case="c", time="t", channels=["v", "who"]).n_channels == 2


@pytest.mark.parametrize("first", [1, "1"])
def test_numbers_in_objects_or_text_are_a_channel(first: Any) -> None:
    table = {"c": [1, 1, 1], "t": [0, 1, 2], "v": np.array([first, None, 3], dtype=object)}
    assert Windows.from_table(table, case="c", time="t", missing="interpolate").x.tolist() == [[[1, 2, 3]]]


def test_two_columns_of_one_name() -> None:
    frame = pd.DataFrame([[0, 0, 1.0, 2.0]], columns=["c", "t", 1, "1"])
    with pytest.raises(InputError, match="1"):
        Windows.from_table(frame, case="c", time="t")
