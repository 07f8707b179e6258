"""Long tables."""

import importlib.util
from typing import Any

import numpy as np
import pytest

from dicot.errors import InputError
from dicot.windows.tables import from_table

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
    made: list[Any] = [pytest.param(TABLE, id="dict")]
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        made.append(pytest.param(pd.DataFrame(TABLE), id="pandas"))
    if importlib.util.find_spec("pyarrow"):
        import pyarrow as pa

        made.append(pytest.param(pa.table(TABLE), id="pyarrow"))
        coded = {**TABLE, "kind": pa.array(TABLE["kind"]).dictionary_encode()}
        made.append(pytest.param(pa.table(coded), id="pyarrow-dictionary"))
    return made


@pytest.mark.parametrize("table", forms())
def test_sorted_by_case_and_time(table: Any) -> None:
    windows = from_table(table, case="who", time="t", label="kind", group="person", name="n")
    assert windows.x.tolist() == [[[10, 11], [3, 1]], [[20, 21], [4, 2]]]  # channels u and v, not the text
    assert windows.y is not None
    assert windows.group is not None
    assert (windows.y.tolist(), windows.group.tolist(), windows.name) == (["run", "sit"], [7, 8], "n")
    assert from_table(table, case="who", time="t", channels=["v"]).x.tolist() == [[[3, 1]], [[4, 2]]]


def test_dates_and_iso_text_sort_in_time() -> None:
    days = ["2020-01-10", "2020-01-02", "2019-12-31"]
    table = {"c": [1, 1, 1], "t": days, "v": [3.0, 2.0, 1.0]}
    assert from_table(table, case="c", time="t").x.tolist() == [[[1, 2, 3]]]
    table["t"] = np.array(days, dtype="datetime64[D]")
    assert from_table(table, case="c", time="t").x.tolist() == [[[1, 2, 3]]]


def test_policies_are_handed_on() -> None:
    table = {"c": [0, 0, 0, 1], "t": [0, 1, 2, 0], "v": [1.0, np.nan, 3.0, 9.0]}
    with pytest.raises(InputError, match="NaN in case 0"):
        from_table(table, case="c", time="t", unequal="pad")
    windows = from_table(table, case="c", time="t", unequal="pad", missing="interpolate")
    assert windows.x.tolist() == [[[1, 2, 3]], [[9, 0, 0]]]


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"t": [1, 5, 1, 3]}, {}, "several came for case b at time 1"),
        ({"kind": ["run", "sit", "walk", "sit"]}, {"label": "kind"}, r"'kind' must have one value per case; .* b\."),
        ({"person": [7.0, 8.0, np.nan, 8.0]}, {"group": "person"}, "'person' must have one value per case"),
        ({}, {"case": "hwo"}, "no column 'hwo'. Did you mean 'who'"),
        ({}, {"channels": ["u", "w"]}, "no column 'w'"),
        ({}, {"channels": ["note"]}, "'note' must hold numbers"),
        ({"t": ["now", "then", "a", "b"]}, {}, "numbers or ISO dates"),
        ({"t": [0.0, 1.0, np.nan, 2.0]}, {}, "'t' has no value in row 2"),
        ({"who": ["a", None, "a", "b"]}, {}, "'who' has no value in row 1"),
        ({"who": [1.0, np.nan, 1.0, 2.0]}, {}, "'who' has no value in row 1"),
        ({"v": [1]}, {}, "equally long"),
        ({"u": list("abcd"), "v": list("abcd"), "person": list("abcd")}, {}, "no channel"),
        ({k: [] for k in TABLE}, {"channels": ["u"]}, "0 rows"),
    ],
)
def test_malformed_tables(change: dict[str, Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        from_table({**TABLE, **change}, **{"case": "who", "time": "t", **arguments})


def test_not_a_table() -> None:
    with pytest.raises(InputError, match="got list"):
        from_table([1, 2], case="c", time="t")
