"""CSV files as text: what separates the cells, rows of one width, and cells as numbers or as names."""

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dicot.data.policies import Array
from dicot.errors import InputError

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
_SAMPLE = 100  # rows that decide between two possible separators
_LOST = {"", "?", "na", "nan", "null"}  # a value that is missing, in any case of letters
# Only what pandas, numpy and R write for nothing: a class may well be called "null", "?" or "Na".
_UNNAMED = {"", "nan", "NaN", "NA"}
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
Row = list[str]


class Sheet(NamedTuple):
    """The rows of a file, all of one width, and the line of the file where each ends."""

    separator: str
    lines: list[int]
    rows: list[Row]


def read_sheet(path: Path) -> Sheet:
    """All rows with anything in them; cells lose the spaces around them."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        text = file.read()
    separator = _separator(text)
    lines, rows = [], []
    for line, row in _parsed(text, separator):
        lines.append(line)
        rows.append(row)
    if not rows:
        raise InputError("The file is empty.")
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(rows[0]):
            raise InputError(
                f"Line {line} has not the {len(rows[0])} cells of the first row but {len(row)}. The file may be "
                "truncated; a shorter case needs its empty cells too."
            )
    return Sheet(separator, lines, rows)


def check_names(names: Row) -> None:
    """Refuse a header that does not name every column once."""
    if "" in names:
        raise InputError(
            "A column has no name in the first row, like a row index that was written along. Name it, or write the "
            "file without it (pandas: to_csv(..., index=False))."
        )
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) != len(names) else []
    if twice:
        raise InputError(f"The first row must name every column once; {', '.join(twice[:5])} came more than once.")


def columns_of(sheet: Sheet, named: Collection[str | None]) -> dict[str, Array]:
    """The columns of a long table with names in its first row; those in `named` hold names (ids, labels)."""
    header, *rows = sheet.rows
    check_names(header)
    cells = zip(*rows, strict=True) if rows else ((),) * len(header)
    return {
        name: to_names(column) if name in named else _to_values(column)
        for name, column in zip(header, cells, strict=True)
    }


def is_number(cell: str) -> bool:
    """Whether the cell holds a number, written as programs write it: Python also reads 1_000 and other digits."""
    if cell.lower() in _LOST or "_" in cell or not cell.isascii():
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_value(cell: str) -> bool:
    """Whether the cell holds a number or nothing."""
    return cell.lower() in _LOST or is_number(cell)


def to_numbers(cells: Row, line: int) -> Array:
    """Values in float64, NaN where a cell holds nothing."""
    numbers = _floats(cells)
    if numbers is None:
        wrong = next(cell for cell in cells if not is_value(cell))
        raise InputError(f"Line {line}: could not convert {wrong!r} to a number. {_remedy(wrong)}")
    return numbers


def to_names(cells: Sequence[str]) -> Array:
    """Ids or labels: text, "" for none; whole numbers if each is written as int64 writes it, so that none is lost."""
    try:
        numbers = [int(cell) for cell in cells]
    except ValueError:
        numbers = []
    whole = bool(numbers) and [str(n) for n in numbers] == list(cells)
    if whole and min(numbers) >= -(2**63) and max(numbers) < 2**63:
        return np.array(numbers, dtype=np.int64)
    return np.array(["" if cell in _UNNAMED else cell for cell in cells], dtype=np.str_)


def _to_values(cells: Sequence[str]) -> Array:
    """A time or a channel: whole numbers, numbers or text (dates), whatever all cells are."""
    numbers = _floats(cells)
    if numbers is None:
        return np.array(["" if cell.lower() in _LOST else cell for cell in cells], dtype=np.str_)
    try:
        return np.array(cells, dtype=np.int64)  # times in nanoseconds are too long for float64
    except (ValueError, OverflowError):
        return numbers


def _floats(cells: Sequence[str]) -> Array | None:
    joined = "".join(cells)
    if "_" in joined or not joined.isascii():  # as in is_number
        return None
    try:
        return np.array(["nan" if c.lower() in _LOST else c for c in cells], dtype=np.float64)
    except ValueError:
        return None


def _remedy(wrong: str) -> str:
    if _DECIMAL_COMMA.fullmatch(wrong):
        return "Write numbers with a decimal point, not a comma (pandas: read_csv(..., decimal=',') and to_csv)."
    return (
        "If the column holds no values, name it as label, group or ignore (--label, --group, --ignore); it may be the "
        "first or the last. Cells are separated by commas, semicolons or tabs."
    )


def _parsed(text: str, separator: str) -> Iterator[tuple[int, Row]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    for row in reader:
        cells = [cell.strip() for cell in row]
        if cells not in ([], [""]):
            yield reader.line_num, cells


def _separator(text: str) -> str:
    """The separator that divides the rows most evenly and leaves most numbers."""
    found = [s for s in SEPARATORS if s in text]
    if len(found) < 2:
        return found[0] if found else ","
    fits = {s: _fit(text, s) for s in found}
    best = [s for s in found if fits[s] == max(fits.values())]
    if len(best) > 1:
        raise InputError(
            f"It is not clear what separates the cells: {' or '.join(SEPARATORS[s] for s in best)}. Write the file "
            "with one of them alone, and text that holds it in quotes."
        )
    return best[0]


def _fit(text: str, separator: str) -> tuple[bool, float]:
    """Whether all rows have one width of at least two cells, and the share of numbers among the cells."""
    try:
        rows = [row for _, row in islice(_parsed(text, separator), _SAMPLE)]
    except csv.Error:
        return False, -1.0
    cells = [cell for row in rows for cell in row]
    numbers = sum(is_value(c) or (separator != "," and bool(_DECIMAL_COMMA.fullmatch(c))) for c in cells)
    widths = {len(row) for row in rows}
    return len(widths) == 1 and widths != {1}, numbers / max(len(cells), 1)
