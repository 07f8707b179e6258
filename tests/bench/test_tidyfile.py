"""Tidy rows survive a file bit by bit; a file of something else is refused with the reason."""

import csv
import io
import math

import pytest

from dicot.bench.tidyfile import is_tidy, read_tidy
from dicot.errors import InputError, MissingDataError
from dicot.evaluation import TIDY, Result

PLACE = {"suite": "ucr", "source": "Beef", "target": "Beef", "protocol": "linear"}
FAILED = {"values": {"accuracy": math.nan}, "error": 'too short, "T" = 8\nsee log', "trial": True}
RESULTS = [
    Result(**PLACE, contender="dicot", seed=1, values={"accuracy": 100 / 3}, schedule="per_step", steps=200),
    Result(**PLACE, contender="tnc", seed=2, **FAILED),
    Result(
        **{**PLACE, "source": "a,b", "target": "é"},
        contender="raw-mean",
        seed=1,
        values={"accuracy": 0.1},
        peak_memory=2**40,
        fit_seconds=1e-9,
        key="k",
    ),
]
ROWS = [row for result in RESULTS for row in result.tidy()]


def text_of(rows, columns=TIDY) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize("columns", [TIDY, [name for name in TIDY if name != "draw"], TIDY[::-1]], ids=len)
def test_what_is_written_is_read_back(tmp_path, columns):
    path = tmp_path / "rows.csv"
    path.write_text(text_of(ROWS, columns), encoding="utf-8")
    assert repr(read_tidy(path)) == repr(ROWS)  # repr: NaN is not equal to itself
    assert is_tidy(path)


def test_it_is_told_from_another_file(tmp_path):
    (tmp_path / "other.csv").write_text("suite,contender,accuracy\n", encoding="utf-8")
    assert not is_tidy(tmp_path / "other.csv") and not is_tidy(tmp_path / "none.csv")
    with pytest.raises(MissingDataError, match=r"none\.csv"):
        read_tidy(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "contender"),
        (text_of(ROWS).replace("suite,", "suit,", 1), r"\['suite'\].*\['suit'\]"),
        (text_of(ROWS[:1]).replace("33.333", "x33", 1), "line 2.*x33"),
        (text_of(ROWS[:1]).replace("False", "no", 1), "line 2.*'no'"),
        (text_of(ROWS[:1]) + "ucr,dicot\n", "line 3"),
        (text_of(ROWS)[:-4], "cut off"),
        (text_of(ROWS).replace("33.333333333333336", "nan", 1), "line 2"),
        (text_of(ROWS).replace(',nan,"too', ',1.5,"too', 1), "line 3.*1.5"),
        (text_of(ROWS).replace("ucr,dicot", "ucr,", 1), "contender"),
        (text_of(ROWS[:1]).replace(",200,", ",\uff12\uff10\uff10,"), "\uff12\uff10\uff10"),  # in full width
    ],
    ids=("empty", "column", "number", "truth", "short", "cut", "nan", "score", "name", "digits"),
)
def test_a_file_of_something_else_or_damaged_is_refused(tmp_path, text, named):
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=named):
        read_tidy(tmp_path / "rows.csv")


def test_other_bytes_than_utf_are_refused(tmp_path):
    (tmp_path / "rows.csv").write_bytes(text_of(ROWS).encode().replace("é".encode(), b"\xe9"))
    with pytest.raises(InputError, match="UTF-8"):
        read_tidy(tmp_path / "rows.csv")
