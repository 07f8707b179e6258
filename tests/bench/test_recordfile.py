"""Records survive a file bit by bit; a file that is none is refused with the reason."""

import math

import pytest

from dicot.bench.record import Record
from dicot.bench.recordfile import holds_records, read_records, records_csv, write_records
from dicot.errors import InputError, MissingDataError

RECORDS = [
    Record("ucr", "dicot", "Beef", "Beef", "linear", "accuracy", 1, 100 / 3, schedule="per_step", steps=200),
    Record("ucr", "tnc", "Beef", "Beef", "linear", "accuracy", 2, math.nan, 'too short, "T" = 8\nsee log', trial=True),
    Record("ucr", "raw-mean", "a,b", "é", "linear", "accuracy", 1, 0.1, peak_memory=2**40, fit_seconds=1e-9, key="k"),
]


def test_what_is_written_is_read_back(tmp_path):
    write_records(tmp_path / "records.csv", RECORDS)
    assert repr(read_records(tmp_path / "records.csv")) == repr(RECORDS)  # repr: NaN is not equal to itself
    assert read_records(tmp_path / "records.csv")[1].failed


def test_a_file_of_records_is_told_from_another(tmp_path):
    write_records(tmp_path / "records.csv", RECORDS)
    (tmp_path / "other.csv").write_text("suite,contender,accuracy\n", encoding="utf-8")
    found = [holds_records(tmp_path / name) for name in ("records.csv", "other.csv", "none.csv")]
    assert found == [True, False, False]


def test_no_records_are_a_header(tmp_path):
    write_records(tmp_path / "records.csv", [])
    assert read_records(tmp_path / "records.csv") == []


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(MissingDataError, match=r"none\.csv"):
        read_records(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Missing columns: .*contender"),
        (records_csv(RECORDS).replace("suite,", "suit,", 1), "Missing columns: suite; unknown columns: suit"),
        (records_csv(RECORDS[:1]).replace("33.333", "x33", 1), "record 1: could not convert"),
        (records_csv(RECORDS[:1]).replace("False", "no", 1), "record 1: 'no'"),
        (records_csv(RECORDS[:1]) + "ucr,dicot\n", "record 2"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, text, message):
    (tmp_path / "records.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_records(tmp_path / "records.csv")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-4], "cut off"),
        (lambda data: data.replace("é".encode(), b"\xe9"), "UTF-8"),
        (lambda data: data.replace(b"33.333333333333336", b"nan", 1), "line 2"),
        (lambda data: data.replace(b',nan,"too', b',1.5,"too', 1), "line 3"),
        (lambda data: data.replace(b"ucr,dicot", b"ucr,", 1), "contender"),
    ],
)
def test_a_damaged_file_is_refused_in_our_words(tmp_path, damage, said):
    write_records(tmp_path / "records.csv", RECORDS)
    (tmp_path / "records.csv").write_bytes(damage((tmp_path / "records.csv").read_bytes()))
    with pytest.raises(InputError, match=said):
        read_records(tmp_path / "records.csv")


def test_digits_of_another_alphabet_are_no_number(tmp_path):
    path, wide = tmp_path / "records.csv", "\uff12\uff10\uff10"  # 200 in full width
    write_records(path, RECORDS[:1])
    path.write_text(path.read_text().replace(",200,", f",{wide},"))
    with pytest.raises(InputError, match=wide):
        read_records(path)
