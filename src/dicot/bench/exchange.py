"""Ledgers and tables: a ledger written as CSV or Parquet, and such a table or another ledger merged into one."""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dicot.bench.checks import check_metrics, checked_line, checked_wanted, known_metrics
from dicot.bench.csvtable import check_columns, read_table
from dicot.bench.ledger import Ledger
from dicot.bench.lines import COLUMNS, Contents, Line, Wanted
from dicot.errors import InputError, need_extra
from dicot.storage import write_atomic

PLACE = ("suite", "contender")
WANTED = ("suite", "source", "target")
TABLES = (".csv", ".parquet")
WHOLE = re.compile(r"-?[0-9]+")
Cells = Mapping[str, Any]


def export_ledger(ledger: Ledger, path: str | Path) -> int:
    """Write a table, one row for each place in a suite that a job fills, metrics as columns; how many rows.

    A value is empty where the protocol has no such metric, and NaN where the job failed. A data set that a suite wants
    and that has no record is a row with nothing but that.
    """
    path = Path(path)
    check_export(path)
    lines, wanted = ledger.contents()
    metrics = sorted({metric for line in lines for metric in line.values})
    rows = [
        dict(zip(PLACE, member, strict=True)) | line.row | {name: _shown(value) for name, value in line.values.items()}
        for line in lines
        for member in line.members
    ]
    rows += [dict(zip(WANTED, place, strict=True)) for place in wanted]
    columns = [*PLACE, *COLUMNS, *metrics]
    write_atomic(path, _parquet(rows, columns) if path.suffix == ".parquet" else _csv(rows, columns))
    return len(rows)


def check_export(path: Path) -> None:
    """Refuse what cannot be written, before any work is done."""
    if path.suffix not in TABLES:
        raise InputError(f"{path}: a ledger is exported as {' or '.join(TABLES)}; got {path.suffix or 'no suffix'!r}.")
    if path.suffix == ".parquet":
        _pyarrow()


def merge_ledger(ledger: Ledger, other: str | Path) -> tuple[int, int]:
    """Take over the rows of a ledger or of an exported table; how many there were and how many of them were new.

    Of two rows for one job the newer one stays, but a result is not replaced by a failure. Where anything is wrong
    with the other file, nothing is taken over.
    """
    ((found, taken),) = ledger.take([read_contents(other)])
    return found, taken


def read_contents(path: str | Path) -> Contents:
    """All of a ledger or of an exported table; the file is only read. An InputError where a part of it is wrong."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no file {path} to merge.")
    if path.suffix.lower() not in TABLES:
        with Ledger(path, read_only=True) as ledger:
            return ledger.contents()
    columns, rows = _read_parquet(path) if path.suffix.lower() == ".parquet" else read_table(path)
    return _contents(path, columns, rows)


def _contents(path: Path, columns: Sequence[str], rows: Iterable[tuple[int, Cells]]) -> Contents:
    if lost := [name for name in (*PLACE, *COLUMNS) if name not in columns]:
        raise InputError(f"{path} is no exported ledger: row 1 lacks {', '.join(lost)}.")
    metrics = [name for name in columns if name not in PLACE and name not in COLUMNS]
    known = known_metrics()
    lines: dict[tuple[str, str], tuple[int, Line]] = {}  # by key and time
    contents = Contents([], [])
    for number, cells in rows:
        try:
            if cells["key"] in ("", None):
                contents.wanted.append(_wanted(cells))
                continue
            line = _line(cells, metrics)
            check_metrics(known, line.row["protocol"], line.values)
            first, same = lines.setdefault((line.row["key"], line.row["recorded"]), (number, line))
            if (same.row, same.values) != (line.row, line.values):
                raise InputError(f"it says something else about the job of line {first}, of the same key and time.")
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        contents.lines.append(line)
    filled = {metric for line in contents.lines for metric in line.values}.union(*known.values())
    if foreign := [name for name in metrics if name not in filled]:
        raise InputError(f"{path} has columns that no ledger has: {', '.join(map(repr, foreign))}. Remove them.")
    return contents


def _shown(value: float | None) -> float:
    return math.nan if value is None else value


def _csv(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise need_extra("pyarrow", "tables", "A Parquet file") from error
    return pyarrow, parquet


def _parquet(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    pa, pq = _pyarrow()
    kinds = {"TEXT": pa.string(), "INTE": pa.int64(), "REAL": pa.float64()}
    fields = [(name, kinds[COLUMNS[name][:4]] if name in COLUMNS else pa.float64()) for name in columns]
    fields = [(name, pa.string() if name in PLACE else kind) for name, kind in fields]
    table, file = pa.Table.from_pylist(rows, schema=pa.schema(fields)), io.BytesIO()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def _read_parquet(path: Path) -> tuple[list[str], Iterable[tuple[int, Cells]]]:
    _, pq = _pyarrow()
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        names = list(table.schema.names)
        check_columns(path, names)
        return names, enumerate(table.to_pylist(), start=1)
    except InputError:
        raise
    except Exception as error:  # pyarrow has many for what a damaged file may hold
        raise InputError(f"{path} cannot be read as Parquet ({error}). Write or fetch the file again.") from error


def _line(cells: Cells, metrics: Sequence[str]) -> Line:
    row = {name: _cell(cells[name], name, kind) for name, kind in COLUMNS.items()}
    values = {name: _number(cells[name], name) for name in metrics if cells[name] not in ("", None)}
    return checked_line(row, values, ((cells["suite"], cells["contender"]),))


def _wanted(cells: Cells) -> Wanted:
    """A row without a key says what a suite was to cover, and nothing else."""
    if filled := [name for name, cell in cells.items() if name not in WANTED and cell not in ("", None)]:
        raise InputError(f"there is no key, but {', '.join(filled[:3])}: the row is not whole.")
    return checked_wanted(*(cells[name] for name in WANTED))


def _cell(value: Any, name: str, kind: str) -> Any:
    """A cell of either kind of table as the ledger holds it."""
    if value in ("", None):
        return "" if "TEXT NOT NULL" in kind else None
    if kind.startswith("INTE"):
        if isinstance(value, str) and WHOLE.fullmatch(value) and len(value) < 20:
            return int(value)
        return int(value) if isinstance(value, float) and value.is_integer() else value
    return _number(value, name) if kind.startswith("REAL") else value


def _number(value: Any, name: str) -> Any:
    """Text as a number; what is none already is left to the checks."""
    if not isinstance(value, str):
        return value
    try:
        if not value.isascii() or "_" in value:
            raise ValueError
        return float(value)
    except ValueError:
        raise InputError(f"{name} must be a number; got {value[:80]!r}.") from None
