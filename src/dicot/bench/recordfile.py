"""Records in a CSV file, one per row and nothing left out: how results are published and read back."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from dicot.bench.record import Record
from dicot.errors import InputError, MissingDataError
from dicot.storage import write_atomic

COLUMNS = tuple(field.name for field in fields(Record))
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
    if path.suffix != ".csv" or not path.is_file():
        return False
    with path.open(newline="", encoding="utf-8") as file:
        return sorted(next(csv.reader(file), [])) == sorted(COLUMNS)


def read_records(path: Path) -> list[Record]:
    """What `write_records` wrote. The columns are the fields of a Record, in any order."""
    if not path.is_file():
        raise MissingDataError(f"There is no file of records at {path}.")
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        found = reader.fieldnames or []
        if sorted(found) != sorted(COLUMNS):
            missing, foreign = sorted(set(COLUMNS) - set(found)), sorted(set(found) - set(COLUMNS))
            raise InputError(
                f"{path} is no file of records. Missing columns: {', '.join(missing) or 'none'}; "
                f"unknown columns: {', '.join(foreign) or 'none'}."
            )
        return [_record(row, path, number) for number, row in enumerate(reader, start=2)]


def _record(row: Mapping[str, str], path: Path, number: int) -> Record:
    try:
        return Record(**{name: READERS.get(name, str)(row[name]) for name in COLUMNS})
    except (ValueError, KeyError, TypeError, AttributeError) as error:  # a short row holds None
        raise InputError(f"{path}, record {number - 1}: {error}. The row is {dict(row)}.") from error
