"""Records in a CSV file, one per row and nothing left out: how results are published and read back."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from dicot.bench.exchange import read_csv
from dicot.bench.record import Record
from dicot.errors import InputError, MissingDataError
from dicot.storage import write_atomic

COLUMNS = tuple(field.name for field in fields(Record))
NOT_EMPTY = ("suite", "contender", "source", "target", "protocol", "metric")
TRUTH = {"True": True, "False": False}
READERS: dict[str, Callable[[str], Any]] = {
    "seed": int,
    "value": float,
    "error": lambda text: text or None,
    "steps": int,
    "batch_size": int,
    "trial": TRUTH.__getitem__,
    "fit_seconds": float,
    "peak_memory": int,
}


def records_csv(records: Iterable[Record]) -> str:
    """Every field of every record; numbers as Python writes them, so that reading gives the same bits."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(record) for record in records)
    return out.getvalue()


def write_records(path: Path, records: Iterable[Record]) -> None:
    """The file whole or not at all."""
    write_atomic(path, records_csv(records).encode())


def holds_records(path: Path) -> bool:
    """Whether this is a CSV file with the columns of a Record, and not, say, an exported ledger."""
    try:
        with path.open("rb") as file:
            first = file.readline(1 << 16).decode("utf-8-sig")
        return path.suffix.lower() == ".csv" and sorted(next(csv.reader([first]), [])) == sorted(COLUMNS)
    except (OSError, UnicodeDecodeError, csv.Error):
        return False


def read_records(path: Path) -> list[Record]:
    """What `write_records` wrote. The columns are the fields of a Record, in any order."""
    if not path.is_file():
        raise MissingDataError(f"There is no file of records at {path}.")
    found, rows = read_csv(path)
    if sorted(found) != sorted(COLUMNS):
        missing, foreign = sorted(set(COLUMNS) - set(found)), sorted(set(found) - set(COLUMNS))
        raise InputError(
            f"{path} is no file of records. Missing columns: {', '.join(missing) or 'none'}; "
            f"unknown columns: {', '.join(foreign) or 'none'}."
        )
    return [_record(row.cells, f"{path}, line {row.line}, record {n}") for n, row in enumerate(rows, start=1)]


def _record(cells: Mapping[str, str], where: str) -> Record:
    try:
        numbers = [cells[name] for name, read in READERS.items() if read in (int, float)]
        if odd := [text for text in numbers if not text.isascii() or "_" in text]:  # Python would read these
            raise ValueError(f"{odd[0]!r} is no plain number")
        record = Record(**{name: READERS.get(name, str)(cells[name]) for name in COLUMNS})
    except (ValueError, KeyError) as error:
        raise InputError(f"{where}: {error}. The row is {dict(cells)}.") from error
    if empty := [name for name in NOT_EMPTY if not cells[name]]:
        raise InputError(f"{where}: there is no {' and no '.join(empty)}. The row is {dict(cells)}.")
    if math.isinf(record.value) or math.isnan(record.value) != record.failed:
        what = "a failed job has no score" if record.failed else "a score must be a number, or an error say why not"
        raise InputError(f"{where}: {what}; got {record.value}. The row is {dict(cells)}.")
    return record
