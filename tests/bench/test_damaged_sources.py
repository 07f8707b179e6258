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
from tests.commands import dicot

from dicot.core.errors import DicotError, InputError
from dicot.judge.bench.exchange import export_ledger, merge_ledger
from dicot.judge.bench.ledger import Ledger
from dicot.judge.evaluation import Contender, Job, JobData

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
        export_ledger(ledger, path)
    return path


def content(path):
    with Ledger(path) as ledger:
        return list(map(repr, ledger.results())), ledger.unrecorded()


def refused(target, other, match=None):
    """Merging ends with an error of ours and leaves the ledger as it was."""
    before, bytes_before = content(target), other.read_bytes()
    with pytest.raises(DicotError, match=match) as caught:
        dicot("bench", "merge", other, "--ledger", target)
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


def test_the_table_itself_is_taken_over(target, table, source):
    assert "3 rows, 3 of them taken over" in dicot("bench", "merge", table, "--ledger", target)
    (lines, wanted), (theirs, _) = content(target), content(source)
    assert wanted == [("ucr", "Beef", "Beef")] and all(line in lines for line in theirs) and len(lines) == 4


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
            merge_ledger(ledger, table)
    assert content(target) == before


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("key", "", "no key"),
        ("key", "0" * 64, "config"),
        ("config", "{}", "config"),
        ("config", "[" * 9000, "config"),
        ("seed", "", "seed"),
        ("seed", "2.5", "seed"),
        ("seed", "99999999999999999999", "seed"),
        ("seed", "7", "seed"),
        ("source", "Beef", "source"),
        ("protocol", "ridge", "protocol"),
        ("steps", "-1", "steps"),
        ("trial", "2", "trial"),
        ("recipe", "{", "recipe"),
        ("recorded", "yesterday", "recorded"),
        ("recorded", "", "recorded"),
        ("seconds_fit", "x", "seconds_fit"),
        ("suite", "", "suite"),
        ("contender", "", "contender"),
        ("accuracy", "", "no scores and no error"),
        ("accuracy", "high", "accuracy"),
        ("accuracy", "nan", "accuracy"),
        ("accuracy", "inf", "accuracy"),
        ("error", "it broke", "failed"),
    ],
)
def test_a_cell_that_no_job_can_have_left_is_refused_with_its_line(target, table, column, value, said):
    def change(header, rows):
        (row,) = (row for row in rows if row[header.index("protocol")] == "linear" and row[header.index("seed")] == "3")
        row[header.index(column)] = value

    refused(target, edited(table, change), rf"line \d+.*{said}")


def test_short_and_long_rows_are_refused_with_their_line(target, table):
    refused(target, edited(table, lambda header, rows: rows[1].pop()), "line 3")
    refused(target, edited(table, lambda header, rows: rows[1].extend(["", ""])), "line 3")


def test_columns_must_be_those_of_a_ledger(target, table):
    whole = table.read_text()
    for old, new, said in (
        ("seed,", "sed,", "lacks seed"),
        ("macro_f1", "accuracy", "same name: 'accuracy'"),
        ("macro_f1", "my_notes", "my_notes"),
    ):
        table.write_text(whole.replace(old, new, 1))
        refused(target, table, said)


def test_two_rows_that_contradict_each_other_are_refused(target, table):
    def change(header, rows):
        rows.append(list(rows[0]))
        rows[-1][header.index("contender")], rows[-1][header.index("accuracy")] = "w/o Overlap", "12.0"

    refused(target, edited(table, change), "line 7.*line 2")


def test_of_several_sources_none_is_taken_over_where_one_is_damaged(tmp_path, target, source):
    before = content(target)
    (tmp_path / "text.sqlite").write_text("no database " * 100)
    with pytest.raises(InputError, match=r"text\.sqlite"):
        dicot("bench", "merge", source, tmp_path / "text.sqlite", "--ledger", target)
    assert content(target) == before
    with pytest.raises(InputError, match=r"text\.sqlite"):
        dicot("bench", "merge", tmp_path / "text.sqlite", "--ledger", tmp_path / "new.sqlite")
    assert not (tmp_path / "new.sqlite").exists()


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.parquet", "a.sqlite"])
@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe" * 700, b"PAR1 and more" * 50], ids=["empty", "bytes", "other"])
def test_what_is_no_ledger_stays_what_it_is(tmp_path, target, name, data):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(data)
    before = set(tmp_path.iterdir())
    refused(target, tmp_path / name)
    assert set(tmp_path.iterdir()) == before


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
        dicot("bench", "merge", target, "--ledger", path)
    with pytest.raises(InputError, match="no ledger"):
        dicot("report", "ucr", "--records", path, "--out", tmp_path / "report")
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), sorted(tmp_path.iterdir())) == before


def test_a_ledger_is_read_while_another_process_writes_to_it_and_nothing_stays_beside_it(tmp_path, source, target):
    with Ledger(source) as writer:
        record(writer, replace(JOB, seed=4), GOOD)  # in the log beside the file, not in the file yet
        assert "4 rows" in dicot("bench", "merge", source, "--ledger", target)
        assert "Wrote 5 rows" in dicot(
            "bench", "smoke", "--dry-run", "--export", tmp_path / "now.csv", "--ledger", source
        )
    before = sorted(tmp_path.iterdir())
    dicot("bench", "smoke", "--dry-run", "--export", tmp_path / "now.csv", "--ledger", source)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs SET seed = 'three' WHERE seed = 3",
        "UPDATE jobs SET config = '{}' WHERE seed = 3",
        "UPDATE jobs SET source = X'ff00' WHERE seed = 3",
        "UPDATE jobs SET source = CAST(X'ff' AS TEXT) WHERE seed = 3",
        "UPDATE scores SET value = 'high'",
        "DELETE FROM scores",
        "DELETE FROM jobs WHERE seed = 3",
        "UPDATE members SET suite = ''",
        "CREATE VIEW more AS SELECT * FROM jobs",
    ],
)
def test_a_ledger_with_a_wrong_cell_is_no_source(tmp_path, target, source, statement):
    with sqlite3.connect(source) as database:
        database.execute(statement)
    database.close()
    refused(target, source)
    for words in (
        ["bench", "smoke", "--dry-run", "--export", tmp_path / "a.csv"],
        ["report", "ucr", "--out", tmp_path / "report"],
    ):
        with pytest.raises(InputError, match=r"other\.sqlite"):
            dicot(*words, "--ledger", source)


def test_a_ledger_damaged_in_the_middle_is_refused(tmp_path, target, source):
    whole = source.read_bytes()
    for start in range(4096, len(whole), 4096):
        source.write_bytes(whole[:start] + b"\xa5" * 512 + whole[start + 512 :])
        refused(target, source)
        with pytest.raises(InputError, match=r"other\.sqlite"):
            dicot("report", "ucr", "--ledger", source, "--out", tmp_path / "report")


def test_flipped_bits_of_a_ledger_end_in_an_error_of_ours_or_in_no_error(tmp_path, target, source):
    whole, before = source.read_bytes(), content(target)
    random = np.random.default_rng(0)
    for at in random.integers(len(whole), size=150):
        source.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << random.integers(8))]) + whole[at + 1 :])
        with Ledger(":memory:") as ledger, suppress(DicotError):
            merge_ledger(ledger, target)
            merge_ledger(ledger, source)
    assert content(target) == before


@pytest.mark.parametrize("cut", [0.3, 0.7, 0.97])
def test_records_of_a_report_are_read_whole_or_not_at_all(tmp_path, table, cut):
    pytest.importorskip("pyarrow")
    with Ledger(":memory:") as ledger:
        merge_ledger(ledger, table)
        export_ledger(ledger, tmp_path / "other.parquet")
    for name in ("other.csv", "other.parquet"):
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data[: int(cut * len(data))])
        with pytest.raises(InputError, match=name):
            dicot("report", "ucr", "--records", tmp_path / name, "--out", tmp_path / "report")
    assert not (tmp_path / "report").exists()


@pytest.mark.slow
def test_a_flipped_bit_of_a_parquet_table_is_noticed_or_changes_nothing(tmp_path, table):
    pytest.importorskip("pyarrow")
    path = tmp_path / "other.parquet"
    with Ledger(":memory:") as ledger:
        merge_ledger(ledger, table)
        export_ledger(ledger, path)
        right = repr(ledger.results())
    data, noticed = bytearray(path.read_bytes()), 0
    for at in range(4, len(data), 37):
        data[at] ^= 1
        path.write_bytes(data)
        data[at] ^= 1
        with Ledger(":memory:") as ledger:
            try:
                merge_ledger(ledger, path)
            except InputError as error:
                noticed += path.name in str(error)
            else:
                assert repr(ledger.results()) == right
    assert noticed > 50


@pytest.mark.parametrize("column", ["schedule", "device", "source_data"])
def test_a_cell_lost_from_a_parquet_table_is_not_taken_for_an_empty_one(tmp_path, target, table, column):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "other.parquet"
    with Ledger(":memory:") as ledger:
        merge_ledger(ledger, table)
        export_ledger(ledger, path)
    whole = pq.read_table(path)
    at = whole.column_names.index(column)
    pq.write_table(whole.set_column(at, column, pa.array([None] * len(whole), pa.string())), path)
    refused(target, path, f"{column} must be text; got None")


def test_a_score_that_sqlite_cannot_hold_is_refused(tmp_path, target, table):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "other.parquet"
    with Ledger(":memory:") as ledger:
        merge_ledger(ledger, table)
        export_ledger(ledger, path)
    first = pq.read_table(path).slice(0, 1)
    at = first.column_names.index("accuracy")
    pq.write_table(first.set_column(at, "accuracy", pa.array([2**64 - 1], pa.uint64())), path)
    refused(target, path, "accuracy must be a number of usual size; got 18446744073709551615")
