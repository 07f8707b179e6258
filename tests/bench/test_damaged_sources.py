"""Merging what is damaged, foreign or cut off: an error of ours that says where, and nothing has changed."""

import csv
import hashlib
import io
import math
import sqlite3
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from tests.bench.test_ledger import record
from tests.commands import bench

from bench.ledger import Ledger, read_contents, write_table
from dicot.core.errors import DicotError, InputError
from dicot.judge.evaluation import Contender
from dicot.judge.evaluation.jobs import Job, JobData

JOB = Job("ucr", Contender("dicot", "dicot"), JobData("GunPoint"), JobData("GunPoint"), "linear", 1)
GOOD = {
    "values": {"accuracy": 81.3, "macro_f1": 80.0},
    "source_data": "aa",
    "target_data": "aa",
    "fit_seconds": 1.5,
}
BAD = {"values": {"accuracy": math.nan, "macro_f1": math.nan}, "error": "InputError: too short\nsee log"}
SEEDS = (1, 2, 3)


@pytest.fixture
def target(tmp_path):
    """A ledger with all three jobs."""
    path = tmp_path / "all.sqlite"
    with Ledger(path) as ledger:
        for seed in SEEDS:
            record(ledger, replace(JOB, seed=seed), GOOD)
    return path


@pytest.fixture
def source(tmp_path):
    """Another one with newer results of two of them, a failure, and a data set that was not at hand."""
    path = tmp_path / "other.sqlite"
    with Ledger(path) as ledger:
        ledger.enrol([replace(JOB, source=JobData("Beef"), target=JobData("Beef"))])
        for seed in SEEDS[1:]:
            record(ledger, replace(JOB, seed=seed), GOOD, values={"accuracy": 90.0 + seed})
        record(ledger, replace(JOB, protocol="ridge", seed=9), BAD)
    return path


@pytest.fixture
def table(tmp_path, source):
    """That one's export."""
    path = tmp_path / "other.csv"
    with Ledger(source) as ledger:
        write_table(path, *ledger.contents())
    return path


def content(path):
    with Ledger(path) as ledger:
        return list(map(repr, ledger.results())), ledger.contents().wanted


def refused(target, other, match=None):
    """Merging ends with an error of ours and leaves the ledger as it was."""
    before, bytes_before = content(target), other.read_bytes()
    with pytest.raises(DicotError, match=match) as caught:
        bench("merge", other, "--ledger", target)
    assert other.name in str(caught.value)
    assert content(target) == before and other.read_bytes() == bytes_before


def edited(path, change):
    """The table with its cells changed by a function of (header, rows)."""
    header, *rows = csv.reader(io.StringIO(path.read_text(), newline=""))
    change(header, rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    path.write_text(text.getvalue())
    return path


def test_an_export_cut_off_anywhere_replaces_nothing(target, table):
    """Also where the cut leaves a number that looks whole; at the end of a line there are only fewer rows."""
    whole = table.read_bytes()
    before = content(target)
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for size in range(1, len(whole), 7):
        if size in ends:
            continue
        table.write_bytes(whole[:size])
        with Ledger(target) as ledger, pytest.raises(InputError, match=r"other\.csv"):
            ledger.take([read_contents(table)])
    assert content(target) == before


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("key", "0" * 64), ("config", "{}"), ("config", "[" * 9000), ("protocol", "ridge")),
        *(("seed", ""), ("seed", "2.5"), ("seed", "7"), ("source", "Beef")),
        *(("seconds_fit", "x"), ("accuracy", ""), ("accuracy", "high"), ("accuracy", "nan"), ("accuracy", "inf")),
        ("error", "it broke"),
    ],
)
def test_a_cell_that_no_job_can_have_left_is_refused_with_its_row(target, table, column, value):
    def change(header, rows):
        (row,) = (row for row in rows if row[header.index("protocol")] == "linear" and row[header.index("seed")] == "3")
        row[header.index(column)] = value

    refused(target, edited(table, change), r"row \d+")


def test_two_rows_that_contradict_each_other_are_refused(target, table):
    def change(header, rows):
        rows.append(list(rows[0]))
        rows[-1][header.index("contender")], rows[-1][header.index("accuracy")] = "w/o Overlap", "12.0"

    refused(target, edited(table, change), "something else about the same job")


def test_of_several_sources_none_is_taken_over_where_one_is_damaged(tmp_path, target, source):
    before = content(target)
    (tmp_path / "text.sqlite").write_text("no database " * 100)
    with pytest.raises(InputError, match=r"text\.sqlite"):
        bench("merge", source, tmp_path / "text.sqlite", "--ledger", target)
    assert content(target) == before
    with pytest.raises(InputError, match=r"text\.sqlite"):
        bench("merge", tmp_path / "text.sqlite", "--ledger", tmp_path / "new.sqlite")
    assert not (tmp_path / "new.sqlite").exists()


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("version", [0, 1])
def test_a_foreign_database_is_neither_taken_for_a_ledger_nor_changed(tmp_path, target, version, mode):
    path = tmp_path / "mail.sqlite"
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA journal_mode = {mode}")
    database.execute(f"PRAGMA user_version = {version}")
    database.execute("CREATE TABLE mail (sender TEXT)")
    database.close()
    before = hashlib.sha256(path.read_bytes()).hexdigest(), sorted(tmp_path.iterdir())
    refused(target, path, "no ledger")
    with pytest.raises(InputError, match="no ledger"):
        bench("merge", target, "--ledger", path)
    with pytest.raises(InputError, match="no ledger"):
        bench("report", "ucr", "--records", path, "--out", tmp_path / "report")
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), sorted(tmp_path.iterdir())) == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs SET seed = 'three' WHERE seed = 3",
        "UPDATE jobs SET config = '{}' WHERE seed = 3",
        "UPDATE jobs SET source = X'ff00' WHERE seed = 3",
        "UPDATE jobs SET source = CAST(X'ff' AS TEXT) WHERE seed = 3",
        "UPDATE scores SET value = 'high'",
        "DELETE FROM scores",
        "CREATE VIEW more AS SELECT * FROM jobs",
    ],
)
def test_a_ledger_with_a_wrong_cell_is_no_source(tmp_path, target, source, statement):
    with sqlite3.connect(source) as database:
        database.execute(statement)
    database.close()
    refused(target, source)
    for words in (
        ["run", "smoke", "--dry-run", "--export", tmp_path / "a.csv"],
        ["report", "ucr", "--out", tmp_path / "report"],
    ):
        with pytest.raises(InputError, match=r"other\.sqlite"):
            bench(*words, "--ledger", source)


def test_flipped_bits_of_a_ledger_end_in_an_error_of_ours_or_in_no_error(tmp_path, target, source):
    whole, before = source.read_bytes(), content(target)
    random = np.random.default_rng(0)
    for at in random.integers(len(whole), size=150):
        source.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << random.integers(8))]) + whole[at + 1 :])
        with Ledger(":memory:") as ledger, suppress(DicotError):
            ledger.take([read_contents(target)])
            ledger.take([read_contents(source)])
    assert content(target) == before


@pytest.mark.slow
def test_a_flipped_bit_of_a_parquet_table_is_noticed_or_changes_nothing(tmp_path, table):
    pytest.importorskip("pyarrow")
    path = tmp_path / "other.parquet"
    with Ledger(":memory:") as ledger:
        ledger.take([read_contents(table)])
        write_table(path, *ledger.contents())
        right = repr(ledger.results())
    data, noticed = bytearray(path.read_bytes()), 0
    for at in range(4, len(data), 37):
        data[at] ^= 1
        path.write_bytes(data)
        data[at] ^= 1
        with Ledger(":memory:") as ledger:
            try:
                ledger.take([read_contents(path)])
            except InputError as error:
                noticed += path.name in str(error)
            else:
                assert repr(ledger.results()) == right
    assert noticed > 50


def test_a_cell_lost_from_a_parquet_table_is_not_taken_for_an_empty_one(tmp_path, target, table):
    column = "device"
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "other.parquet"
    with Ledger(":memory:") as ledger:
        ledger.take([read_contents(table)])
        write_table(path, *ledger.contents())
    whole = pq.read_table(path)
    at = whole.column_names.index(column)
    pq.write_table(whole.set_column(at, column, pa.array([None] * len(whole), pa.string())), path)
    refused(target, path, "a cell is lost")
