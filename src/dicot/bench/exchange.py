"""Ledgers and tables: a ledger written as CSV or Parquet, and such a table or another ledger merged into one."""

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dicot.bench.ledger import Ledger
from dicot.bench.lines import COLUMNS, Line
from dicot.errors import InputError, need_extra
from dicot.storage import write_atomic

PLACE = ("suite", "contender")
WANTED = ("suite", "source", "target")
TABLES = (".csv", ".parquet")


def export_ledger(ledger: Ledger, path: str | Path) -> int:
    """Write a table, one row for each place in a suite that a job fills, metrics as columns; how many rows.

    A value is empty where the protocol has no such metric, and NaN where the job failed. A data set that a suite wants
    and that has no record is a row with nothing but that.
    """
    path = Path(path)
    lines = list(ledger.lines())
    metrics = sorted({metric for line in lines for metric in line.values})
    rows = [
        dict(zip(PLACE, member, strict=True)) | line.row | {name: _shown(value) for name, value in line.values.items()}
        for line in lines
        for member in line.members
    ]
    rows += [dict(zip(WANTED, place, strict=True)) for place in ledger.unrecorded()]
    columns = [*PLACE, *COLUMNS, *metrics]
    write_atomic(path, _parquet(rows, columns) if _suffix(path) == ".parquet" else _csv(rows, columns))
    return len(rows)


def merge_ledger(ledger: Ledger, other: str | Path) -> tuple[int, int]:
    """Take over the rows of a ledger or of an exported table; how many there were and how many of them were new.

    Of two rows for one job the newer one stays, but a result is not replaced by a failure.
    """
    other = Path(other)
    if not other.is_file():
        raise InputError(f"There is no file {other} to merge.")
    if other.suffix in TABLES:
        rows = _table_rows(other)
        lines = [_line(cells) for cells in rows if cells["key"]]
        wanted = [(cells["suite"], cells["source"], cells["target"]) for cells in rows if not cells["key"]]
    else:
        with Ledger(other, create=False) as theirs:
            lines, wanted = list(theirs.lines()), theirs.unrecorded()
    ledger.want(wanted)
    return len(lines), sum(ledger.add(line) for line in lines)


def _suffix(path: Path) -> str:
    if path.suffix not in TABLES:
        raise InputError(f"{path}: a ledger is exported as {' or '.join(TABLES)}; got {path.suffix or 'no suffix'!r}.")
    return path.suffix


def _shown(value: float | None) -> float:
    return math.nan if value is None else value


def _csv(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _parquet(rows: list[dict[str, Any]], columns: list[str]) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise need_extra("pyarrow", "tables", "A Parquet file") from error
    kinds = {"TEXT": pa.string(), "INTE": pa.int64(), "REAL": pa.float64()}
    fields = [(name, kinds[COLUMNS[name][:4]] if name in COLUMNS else pa.float64()) for name in columns]
    fields = [(name, pa.string() if name in PLACE else kind) for name, kind in fields]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), file, compression="zstd")
    return file.getvalue()


def _table_rows(path: Path) -> list[dict[str, Any]]:
    rows = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    for number, cells in enumerate(rows, start=1):
        lost = [name for name in (*PLACE, *COLUMNS) if name not in cells]
        if lost:
            raise InputError(f"{path} is no exported ledger: row {number} lacks {', '.join(lost)}.")
    return rows


def _line(cells: Mapping[str, Any]) -> Line:
    row = {name: _cell(cells[name], kind) for name, kind in COLUMNS.items()}
    metrics = [name for name in cells if name not in PLACE and name not in COLUMNS]
    values = {name: float(cells[name]) for name in metrics if cells[name] not in ("", None)}
    return Line(row, values, ((cells["suite"], cells["contender"]),))


def _read_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _read_parquet(path: Path) -> list[dict[str, Any]]:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise need_extra("pyarrow", "tables", "A Parquet file") from error
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def _cell(value: Any, kind: str) -> Any:
    """A cell of either kind of table as the ledger holds it."""
    if value is None or (value == "" and "NOT NULL" not in kind and "KEY" not in kind):
        return None
    convert: Mapping[str, Any] = {"TEXT": str, "INTE": int, "REAL": float}
    return convert[kind[:4]](value)
