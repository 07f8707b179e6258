"""Tidy rows in a CSV file, one number each, as a report writes them."""

import csv
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dicot.bench.exchange import read_csv
from dicot.errors import InputError, MissingDataError
from dicot.evaluation.result import TIDY

OPTIONAL = {"draw": "1"}  # left out where no labelled cases were drawn twice
NOT_EMPTY = ("suite", "contender", "source", "target", "protocol", "metric")
READERS: dict[str, Callable[[str], Any]] = {
    "seed": int,
    "draw": int,
    "value": float,
    "error": lambda text: text or None,
    "steps": int,
    "batch_size": int,
    "trial": {"True": True, "False": False}.__getitem__,
    "fit_seconds": float,
    "peak_memory": int,
}


def is_tidy(path: Path) -> bool:
    """Tell a CSV file of tidy rows from another, such as an exported ledger, by its first line."""
    try:
        with path.open("rb") as file:
            first = file.readline(1 << 16).decode("utf-8-sig")
        names = {*next(csv.reader([first]), []), *OPTIONAL}
        return path.suffix.lower() == ".csv" and names == set(TIDY)
    except (OSError, UnicodeDecodeError, csv.Error):
        return False


def read_tidy(path: Path) -> list[dict[str, Any]]:
    """Read the rows, all of them or none; the columns are those of `Result.tidy`, in any order."""
    if not path.is_file():
        raise MissingDataError(f"There is no file of results at {path}.")
    columns, rows = read_csv(path)
    missing, foreign = sorted(set(TIDY) - {*columns, *OPTIONAL}), sorted(set(columns) - set(TIDY))
    if missing or foreign:
        raise InputError(f"{path} is not a file of results. Missing columns: {missing}; unknown columns: {foreign}.")
    return [_row({**OPTIONAL, **row.cells}, f"{path}, line {row.line}") for row in rows]


def _row(cells: Mapping[str, str], where: str) -> dict[str, Any]:
    try:
        numbers = [cells[name] for name, read in READERS.items() if read in (int, float)]
        if odd := [text for text in numbers if not text.isascii() or "_" in text]:  # Python would read these
            raise ValueError(f"{odd[0]!r} is not a plain number")
        row = {name: READERS.get(name, str)(cells[name]) for name in TIDY}
    except (ValueError, KeyError) as error:
        raise InputError(f"{where}: {error}. The row is {dict(cells)}.") from error
    if empty := [name for name in NOT_EMPTY if not cells[name]]:
        raise InputError(f"{where}: there is no {' and no '.join(empty)}. The row is {dict(cells)}.")
    failed = row["error"] is not None
    if math.isinf(row["value"]) or math.isnan(row["value"]) != failed:
        what = "a failed job has no score" if failed else "a score must be a number, or an error say why not"
        raise InputError(f"{where}: {what}; got {row['value']}. The row is {dict(cells)}.")
    return row
