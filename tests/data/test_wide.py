"""One case per row: whether the first row holds names, and which columns are time steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.splits import read_split


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(content: str) -> Path:
        (tmp_path / "a.csv").write_text(content)
        return tmp_path / "a.csv"

    return write


TIMES = ",".join(f"{i / 100:.2f}" for i in range(10))  # a header of seconds
CASE = "3,1,4,1,5,9,2,6,5,3"


@pytest.mark.parametrize(
    ("content", "options", "shown"),
    [
        ("1,2.O,3\n4,5,6\n", {}, r"2\.O"),
        ("0,1,2\n4,5,7\n", {}, "0, 1, 2"),
        ("0,1,2,kind\n4,5,7,a\n", {"label": "last"}, "0, 1, 2"),
        (",0,1,2\n0,4,5,7\n", {}, "0, 1, 2"),
        ("0.5,2,up\n4,1,down\n", {}, "up"),  # a label that nobody named
        ("id,0,1\n7,4,5\n", {}, "id"),
        ("a,a\n1,2\n", {}, "a, a"),
        (f"{TIMES}\n{CASE}\n", {}, r"0\.00"),
        (f"{TIMES},kind\n{CASE},b\n", {"label": "last"}, r"0\.00"),
    ],
)
def test_an_unclear_first_row_is_asked_about(file: Any, content: str, options: dict[str, Any], shown: str) -> None:
    with pytest.raises(InputError, match=rf"first row .*{shown}.*header=.*header"):
        read_split(file(content), **options)


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("0,1,2\n4,5,7\n", {"header": False}, [[0, 1, 2], [4, 5, 7]]),
        ("0,1,2\n4,5,7\n", {"header": True}, [[4, 5, 7]]),
        ("1,2,3\n4,5,7\n", {}, [[1, 2, 3], [4, 5, 7]]),
        ("t0,t1\n4,5\n", {}, [[4, 5]]),
        ("jan,feb\n4,5\n", {}, [[4, 5]]),
        ("0,1,kind\n4,5,a\n", {"label": "kind"}, [[4, 5]]),
        ("2020-01-31,2020-02-01\n4,5\n", {}, [[4, 5]]),
        ("-0.5,0,1.5,who\n4,5,6,a\n", {"group": "who"}, [[4, 5, 6]]),
    ],
)
def test_a_clear_first_row_is_read(file: Any, content: str, options: dict[str, Any], expected: Any) -> None:
    np.testing.assert_allclose(read_split(file(content), **options).train.x[:, 0], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("names", "options", "odd"),
    [
        ("record,t0,t1,t2,beat", {"label": "beat"}, "record"),
        ("record,t0,t1,t2,beat", {}, "record, beat"),
        ("record,0,1,2,beat", {"label": "beat"}, "record"),
        ("x0,x1,y0,y1,beat", {"label": "beat"}, "y0, y1"),
        ("Unnamed: 0,0,1,2,beat", {"label": "beat"}, "Unnamed: 0"),
    ],
)
def test_a_column_that_is_no_time_step_is_asked_about(file: Any, names: str, options: dict[str, Any], odd: str) -> None:
    with pytest.raises(InputError, match=rf"{odd}\. .*ignore"):
        read_split(file(f"{names}\n100,1,2,3,9\n101,4,5,7,8\n"), **options)


def test_ignored_columns(file: Any) -> None:
    content = "record,t0,t1,beat\n100,1,2,N\n101,4,5,V\n"
    windows = read_split(file(content), label="beat", ignore=["record"]).train
    assert windows.x.tolist() == [[[1, 2]], [[4, 5]]]
    assert read_split(file(content), label="last", ignore=["first"]).train.x.tolist() == windows.x.tolist()
    with pytest.raises(InputError, match="'recrod'.*'record'"):
        read_split(file(content), label="beat", ignore=["recrod"])
    with pytest.raises(InputError, match="'beat'.*ignore"):
        read_split(file(content), label="beat", ignore=["record", "beat"])
    with pytest.raises(InputError, match="values"):
        read_split(file("7\n8\n"), label="first")
    with pytest.raises(InputError, match="'beat'.*header"):
        read_split(file(content), label="beat", header=False)


def test_values_keep_their_digits(file: Any) -> None:
    from dicot.data.splits import read_parts

    case = read_parts(file("1000000001,1000000002\n1000000003,1000000005\n"))[""].X[0, 0]
    assert np.diff(case).tolist() == [1]
