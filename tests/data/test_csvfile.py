"""CSV files as text: separators, rows of one width, names and numbers in cells."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data import read_recording
from dicot.data.csvfile import _short_columns, columns_of, open_sheet
from dicot.data.splits import read_split


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def write(content: str) -> Path:
        (tmp_path / "a.csv").write_text(content)
        return tmp_path / "a.csv"

    return write


def labels(windows: Any) -> list[Any]:
    return windows.y.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("t0,t1,t2,kind\n1,2,3,7\n4,5,8\n", {"label": "kind"}),  # once: label 4
        ("t0,t1,kind,t2\n1,2,7,3\n4,5\n", {"label": "kind"}),
        ("t0,t1,kind\n1,2,7\n4,5,8,9\n", {"label": "kind"}),
        ("1,2,3,7\n4,5,8,6\n9,8\n", {"label": "last"}),  # cut off: label 8
        ("5,2,3\n4,9\n", {}),
    ],
)
def test_a_row_of_another_width_is_refused_with_its_line(file: Any, content: str, options: dict[str, Any]) -> None:
    line = content.count("\n")
    with pytest.raises(InputError, match=rf"a\.csv.*Line {line}\b"):
        read_split(file(content), unequal="pad", **options)


def test_empty_cells_make_a_shorter_case(file: Any) -> None:
    windows = read_split(file("t0,t1,t2,kind\n1,2,3,a\n\n4,5,,b\n"), label="kind", unequal="pad").train
    assert windows.x.tolist() == [[[1, 2, 3]], [[4, 5, 0]]]
    assert labels(windows) == ["a", "b"]


@pytest.mark.parametrize(
    "names",
    [
        ["18446744073709551615", "18446744073709551614"],
        ["9223372036854775808", "1"],
        ["007", "7"],
        ["1e5", "100000"],
        ["1.50", "1.5"],
        ["+1", "1"],
        ["1_0", "10"],
        ["-0", "0"],
        ["null", "?"],
    ],
)
def test_names_that_differ_in_a_digit_stay_apart(file: Any, names: list[str]) -> None:
    one, two = names
    rows = read_split(file(f"kind,who,t0,t1\n{one},{one},1,2\n{two},{two},5,3\n"), label="kind", group="who").train
    assert labels(rows) == names
    assert rows.group.tolist() == names  # type: ignore[union-attr]
    table = file(f"id,t,v\n{one},0,1\n{two},0,2\n{one},1,3\n{two},1,4\n")
    long = read_split(table, case="id", time="t", label="id", group="id").train
    assert long.x.tolist() == [[[1, 3]], [[2, 4]]]
    assert labels(long) == names


def test_plain_whole_numbers_are_numbers(file: Any) -> None:
    windows = read_split(file("kind,t0,t1\n-9223372036854775808,1,2\n9223372036854775807,5,3\n"), label="kind").train
    assert windows.y is not None
    assert windows.y.dtype == "int64"
    assert labels(windows) == [-(2**63), 2**63 - 1]


def test_a_label_that_is_not_there_is_empty_text(file: Any) -> None:
    from dicot.data.splits import read_parts

    y = read_parts(file("kind,t0,t1\n1,1,2\n,5,3\nNA,1,1\n"), label="kind")[""].y
    assert y is not None
    assert (y.dtype.kind, y.tolist()) == ("U", ["1", "", ""])


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators(file: Any, separator: str) -> None:
    content = "t0,t1,kind\n1.5,2,a\n4,5,b\n".replace(",", separator)
    windows = read_split(file(content), label="kind").train
    assert windows.x.tolist() == [[[1.5, 2]], [[4, 5]]]
    assert labels(windows) == ["a", "b"]
    assert read_split(file("1.5,2\n4,5\n".replace(",", separator))).train.x.tolist() == [[[1.5, 2]], [[4, 5]]]
    long = read_split(file("id,t,v\n1,0,5\n1,1,6\n".replace(",", separator)), case="id", time="t").train
    assert long.x.tolist() == [[[5, 6]]]


@pytest.mark.parametrize("content", ["1,5;2,5;3\n1,25;2;3\n", "t0;t1\n1,5;2,5\n", 'a,b\n"1,5","2,5"\n'])
def test_decimal_commas_are_refused(file: Any, content: str) -> None:
    with pytest.raises(InputError, match=r"Line \d: .*'1,2?5' .*decimal point"):
        read_split(file(content), header=content[0] in "ta")


@pytest.mark.parametrize("cell", ["1_5", "٣", "0x1"])
def test_numbers_as_only_python_reads_them_are_text(file: Any, cell: str) -> None:
    with pytest.raises(InputError, match=cell):
        read_split(file(f"5,2\n3,{cell}\n"))


def test_true_and_false_are_text_and_no_channel(file: Any) -> None:
    one = read_recording(file("time,a,on\n0, 1 ,True\n1,2,False\n2,,TRUE\n"), label="on")
    assert one.channels == ("a",) and one.label.tolist() == ["True", "False", "TRUE"]
    assert read_recording(file("time,a,on\n0,1,True\n1,2,False\n")).channels == ("a",)


def test_what_was_read_is_said_in_words(file: Any) -> None:
    assert read_split(file("t0,t1,kind\n1,2,a\n"), label="kind").about.endswith("; first case: 1 2 ..., label a")


_CELLS = ["1", "-2", "007", "0.25", "-0", "123456.789012345", "", "NA", "null", "x", " y ", "1e5", "inf", "True", "+1"]


def test_a_short_file_is_read_as_pandas_reads_it(file: Any) -> None:
    """Cells of few kinds in a column, so that there are whole numbers, numbers with holes, text and mixtures."""
    rng = np.random.default_rng(0)
    n_short = 0
    for _ in range(100):
        kinds = rng.choice(_CELLS, rng.integers(1, 4), replace=False)
        cells = rng.choice(kinds, 10)
        sheet = open_sheet(file("\n".join(["a,b", *(f"{cell},{number}" for number, cell in enumerate(cells))])))
        assert sheet.is_whole
        n_short += _short_columns(sheet, []) is not None
        for named in ([], ["a"]):
            by_cells = columns_of(sheet, named)["a"]
            by_pandas = columns_of(sheet._replace(is_whole=False), named)["a"]
            assert by_cells.dtype == by_pandas.dtype, kinds
            np.testing.assert_array_equal(by_cells, by_pandas)
    assert 20 < n_short < 80, "some are left to pandas, and some are not"


def test_plain_numbers_of_short_files_have_the_bits_that_pandas_gives_them(file: Any) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(40, 12)) * 10.0 ** rng.integers(-4, 6, (40, 12))
    rows = [",".join(f"{number:.{digit}f}" for digit, number in enumerate(row)) for row in numbers]
    short = open_sheet(file("\n".join([",".join("abcdefghijkl"), *rows])))
    by_pandas = columns_of(short._replace(is_whole=False), [])
    for name, column in columns_of(short, []).items():
        assert column.tobytes() == by_pandas[name].tobytes()
