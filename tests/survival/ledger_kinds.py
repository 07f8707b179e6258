"""What a benchmark leaves: its ledger, the ledger's exports, a file of embeddings."""

import math
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dicot.core.errors import DicotError
from dicot.judge.bench.exchange import read_contents, write_table
from dicot.judge.bench.ledger import COLUMNS, Ledger
from dicot.judge.evaluation import TIDY, Contender, Job, JobData
from dicot.judge.report.maps import maps, write_features
from dicot.paper.summary import Marks
from tests.commands import dicot
from tests.survival.array_kinds import parse_npz
from tests.survival.kind import Kind, UnreadableError
from tests.survival.mutations import BINARY, TEXT, ZIP
from tests.survival.reference import csv_rows, number, same_length, whole
from tests.survival.table_kinds import change_column

Tidy = dict[str, Any]
Key = tuple[str, str, str, str]  # key, suite, contender, metric
NUMERIC = {
    "seed": int,
    "draw": int,
    "steps": int,
    "batch_size": int,
    "peak_memory": int,
    "value": float,
    "fit_seconds": float,
    "embed_seconds": float,
    "score_seconds": float,
}


def _fill(path: Path, contenders: tuple[str, ...], sets: tuple[str, ...]) -> None:
    with Ledger(path) as ledger:
        for i, name in enumerate(contenders):
            for j, data in enumerate(sets):
                scores = {"accuracy": 70.5 + 3 * i + j, "macro_f1": 0.25 + i / 8}
                failed = name == "dicot" and j == 2
                values = dict.fromkeys(scores, math.nan) if failed else scores
                error = "InputError: too short" if failed else None
                recipe = {"steps": 200, "batch_size": 8, "lr": 3e-4} if name == "dicot" else {}
                seconds = {"fit_seconds": 1.5, "embed_seconds": 0.1, "score_seconds": 0.2}
                facts = {"source_data": "aa", "target_data": "bb", "device": "cpu", "peak_memory": 7, **seconds}
                result = _job(name, data).result(values, error, recipe=recipe, **facts)
                ledger.record([replace(result, recorded="2026-01-02T03:04:05+00:00")])
        ledger.enrol([_job("random", "Coffee")])


def _job(name: str, data: str) -> Job:
    settings = {"schedule": "per_step", "precision": "float32"} if name == "dicot" else {}
    return Job("ucr", Contender(name, name, {}, settings), JobData(data), JobData(data), "linear", 1)


def _ledgers(folder: Path) -> Path:
    """Ours with one row, and theirs with nine."""
    _fill(folder / "ours.sqlite", ("random",), ("Plane",))
    theirs = folder / "theirs.sqlite"
    _fill(theirs, ("dicot", "random", "calibrated"), ("Beef", "Car", "Fish"))
    (folder / "page.md").write_text("\n".join([*Marks.of(["ucr"]), ""]))
    return theirs


def _exported(suffix: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        theirs = _ledgers(folder)
        with Ledger(theirs) as ledger:
            write_table(folder / f"theirs{suffix}", *ledger.contents())
        theirs.unlink()

    return make


def _summary(folder: Path, option: str, name: str) -> str:
    """The report's short table; that there is none to be had may have good reasons."""
    try:
        dicot("report", "ucr", option, folder / name, "--into", folder / "page.md")
    except DicotError:
        return ""
    return (folder / "page.md").read_text()


def _records(ledger: Ledger) -> list[Tidy]:
    return [row for result in ledger.results() for row in result.tidy()]


def _read_ledger(folder: Path) -> Any:
    with Ledger(folder / "theirs.sqlite") as ledger:
        records = _records(ledger)
        write_table(folder / "out.csv", *ledger.contents())
    return records, _summary(folder, "--ledger", "theirs.sqlite")


def _merge(name: str) -> Callable[[Path], Any]:
    def read(folder: Path) -> Any:
        with Ledger(folder / "ours.sqlite") as ledger:
            ledger.take([read_contents(folder / name)])[0]
            records = _records(ledger)
        return records, _summary(folder, "--records", name) if not name.endswith(".sqlite") else ""

    return read


def change_row(data: bytes, dice: Random) -> bytes:
    """A sound database that holds something else: a cell of another type, a table lost or made of other columns."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    try:
        db.deserialize(data[:18] + b"\x01\x01" + data[20:])  # a write-ahead log cannot be had in memory
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        table = dice.choice([*tables, *["jobs"] * 2 * ("jobs" in tables)])
        columns = [f'"{row[1]}"' for row in db.execute(f"PRAGMA table_info({table})")]
        column, wild = (
            dice.choice(columns),
            ["text", "''", "NULL", "-1", "0", "1.5", "'x'", "x'ff00'", "9223372036854775807"],
        )
        wild += ["1e999", "-1e999", "1e308", "CAST(x'ff41' AS TEXT)", "'nan'", "'../../x'", "'{'", "'1_0'"]
        rest = f"SELECT {', '.join(name for name in columns if name != column)} FROM {table}"
        db.execute(
            dice.choice(
                [
                    *[f"UPDATE OR REPLACE {table} SET {column} = {dice.choice(wild[1:])} WHERE 1"] * 4,
                    *[f"UPDATE OR IGNORE {table} SET {column} = {dice.choice(wild[1:])} WHERE 1"] * 4,
                    f"DROP TABLE {table}",
                    f"DELETE FROM {table}",
                    f"ALTER TABLE {table} RENAME COLUMN {column} TO other",
                    f"ALTER TABLE {table} ADD COLUMN more TEXT",
                    f"PRAGMA user_version = {dice.choice([0, 1, 99])}",
                    f"CREATE TABLE new AS {rest}",
                    f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END",
                ]
            )
        )
        if dice.random() < 0.1:
            db.execute(f"DROP TABLE {table}")
            db.execute(f"CREATE VIEW {table} AS SELECT 1 AS {column}")
        changed = db.serialize()
    except sqlite3.Error:
        return data
    finally:
        db.close()
    return changed[:18] + b"\x02\x02" + changed[20:]


def values_of(records: list[Tidy]) -> dict[Key, float]:
    return {(r["key"], r["suite"], r["contender"], r["metric"]): r["value"] for r in records}


def ill_typed(records: list[Tidy]) -> str:
    """Every cell of a row is of the type of its column, and no number is infinite."""
    kinds: Mapping[str, Any] = {**NUMERIC, "trial": bool, "error": (str, type(None))}
    for record in records:
        for name in TIDY:
            value = record[name]
            wanted = kinds.get(name, str)
            plain = type(value) is wanted if isinstance(wanted, type) else isinstance(value, wanted)
            if not plain and not (wanted is float and type(value) is int):
                return f"{name} is {value!r}"
            if isinstance(value, float) and math.isinf(value):
                return f"{name} is infinite"
    return ""


def _same(found: dict[Key, float], wanted: dict[Key, float]) -> str:
    if found.keys() != wanted.keys():
        return f"{len(found)} values instead of {len(wanted)}: {sorted(found.keys() ^ wanted.keys())[:2]}"
    for key, value in wanted.items():
        if not (found[key] == value or (math.isnan(found[key]) and math.isnan(value))):
            return f"{key}: {found[key]!r} where the file has {value!r}"
    return ""


def _select(path: Path) -> dict[Key, float]:
    """The values of a ledger by SQL alone."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    joined = (
        "SELECT jobs.key, members.suite, members.contender, scores.metric, scores.value FROM jobs "
        "JOIN members ON members.key = jobs.key JOIN scores ON scores.key = jobs.key"
    )
    try:
        return {(a, b, c, d): math.nan if e is None else e for a, b, c, d, e in db.execute(joined)}
    except sqlite3.Error as error:
        raise UnreadableError(str(error)) from error
    finally:
        db.close()


def judge_ledger(folder: Path, result: Any, sound: Any) -> str:
    records, _ = result
    return ill_typed(records) or _same(values_of(records), _select(folder / "theirs.sqlite"))


def judge_merge(folder: Path, result: Any, sound: Any) -> str:
    records, _ = result
    own = {key: value for key, value in values_of(records).items() if key[0] in _own(folder)}
    theirs = _select(folder / "theirs.sqlite")
    return ill_typed(records) or _same(values_of(records), theirs | own)


def _own(folder: Path) -> set[str]:
    with Ledger(folder / "ours.sqlite") as ledger:
        return {one.key for one in ledger.results() if one.source == "Plane"}


def judge_export(suffix: str) -> Callable[[Path, Any, Any], str]:
    def judge(folder: Path, result: Any, sound: Any) -> str:
        records, _ = result
        if complaint := ill_typed(records):
            return complaint
        rows = _csv_cells(folder / "theirs.csv") if suffix == ".csv" else _parquet_cells(folder / "theirs.parquet")
        wanted: dict[Key, float] = {}
        seen: dict[str, Any] = {}
        for row in rows:
            if not row["key"]:
                continue
            facts = {name: value for name, value in row.items() if name not in ("suite", "contender")}
            if repr(seen.setdefault(row["key"], facts)) != repr(facts):
                return ""  # two rows of one job: which of them counts is another test's matter
            metrics = [name for name in row if name not in ("suite", "contender", *COLUMNS)]
            taken = {name: row[name] for name in metrics if row[name] is not None}
            wanted |= {(row["key"], row["suite"], row["contender"], name): value for name, value in taken.items()}
        own = {key: value for key, value in values_of(records).items() if key[0] in _own(folder)}
        return _same(values_of(records), wanted | own)

    return judge


def _csv_cells(path: Path) -> list[dict[str, Any]]:
    names, *rows = csv_rows(path)
    same_length([names, *rows])
    return [_typed(dict(zip(names, row, strict=True)), names) for row in rows]


def _typed(row: dict[str, str], names: list[str]) -> dict[str, Any]:
    if len(set(names)) < len(names) or {"suite", "contender", *COLUMNS} - set(names):
        raise UnreadableError("columns are missing or come twice")
    out: dict[str, Any] = {}
    for name, cell in row.items():
        kind = COLUMNS.get(name, "REAL" if name not in ("suite", "contender") else "TEXT")
        if not row["key"] or kind.startswith("TEXT"):
            out[name] = cell
        elif kind.startswith("INTE"):
            out[name] = whole(cell)
        else:
            out[name] = None if cell == "" else number(cell)
        if row["key"] and cell == "" and kind.startswith("INTE"):
            raise UnreadableError(f"{name} is empty")
    return out


def _parquet_cells(path: Path) -> list[dict[str, Any]]:
    try:
        table = pq.read_table(path)
        rows = table.to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableError(str(error)) from error
    names = table.column_names
    if len(set(names)) < len(names) or {"suite", "contender", *COLUMNS} - set(names):
        raise UnreadableError("columns are missing or come twice")
    for row in rows:
        for name, cell in row.items():
            kind = COLUMNS.get(name, "REAL" if name not in ("suite", "contender") else "TEXT")
            if row["key"] and isinstance(cell, str) and cell and not kind.startswith("TEXT"):
                row[name] = cell = whole(cell) if kind.startswith("INTE") else number(cell)  # text may say it as well
            allowed = {"TEXT": str, "INTE": int, "REAL": float | int}[kind[:4]]
            if row["key"] and not isinstance(cell, allowed) and not (cell is None and "NOT NULL" not in kind):
                raise UnreadableError(f"{name} is {cell!r}")
            if row["key"] and isinstance(cell, float) and math.isinf(cell):
                raise UnreadableError(f"{name} is infinite")
    return rows


def unchanged(folder: Path) -> str:
    """A merge that was refused has left ours as it was."""
    with Ledger(folder / "ours.sqlite") as ledger:
        held = len(ledger.results()), len(_records(ledger)), ledger.contents().wanted
    return "" if held == (1, 2, [("ucr", "Coffee", "Coffee")]) else f"a refused merge has left {held} in ours"


def _make_features(folder: Path) -> None:
    rng = np.random.default_rng(5)
    embeddings = {name: rng.normal(size=(9, 4)).astype(np.float32) for name in ("dicot", "random")}
    write_features(folder / "features.npz", "Beef", np.arange(9) % 3, embeddings)


def judge_features(folder: Path, result: Any, sound: Any) -> str:
    held = {name: arrays[-1] for name, arrays in parse_npz(folder / "features.npz").items()}
    labels = held.pop("labels", None)
    held.pop("data_set", None)
    if labels is None or labels.ndim != 1 or not held:
        raise UnreadableError("there are no labels or no embeddings")
    for name, array in held.items():
        if array is None or array.ndim != 2 or array.dtype.kind not in "biuf" or len(array) != len(labels):
            raise UnreadableError(f"{name} is no array with a row per label")
        if not array.size or not np.isfinite(array.astype(float)).all():
            raise UnreadableError(f"{name} is empty or holds NaN or inf")
    return "" if result.figures else "there is no figure"


SQLITE = (*BINARY, *(change_row,) * 16)
EXPORTS = {".csv": TEXT, ".parquet": (*BINARY, *(change_column,) * 12)}

KINDS = [
    Kind(
        "ledger",
        lambda folder: _ledgers(folder) and None,
        {"theirs.sqlite": SQLITE},
        _read_ledger,
        judge_ledger,
        only_reads=False,
        heavy=True,
    ),
    Kind(
        "ledger-merge",
        lambda folder: _ledgers(folder) and None,
        {"theirs.sqlite": SQLITE},
        _merge("theirs.sqlite"),
        judge_merge,
        refused=unchanged,
        heavy=True,
    ),
    *(
        Kind(
            f"export-{suffix[1:]}",
            _exported(suffix),
            {f"theirs{suffix}": ways},
            _merge(f"theirs{suffix}"),
            judge_export(suffix),
            refused=unchanged,
            heavy=True,
        )
        for suffix, ways in EXPORTS.items()
    ),
    Kind(
        "features",
        _make_features,
        {"features.npz": ZIP},
        lambda folder: maps(folder / "features.npz"),
        judge_features,
        heavy=True,
    ),
]
