"""CSV files: long tables read into columns, or one case per row."""

import csv
from pathlib import Path

import numpy as np

from dicot.errors import InputError, did_you_mean
from dicot.windows.policies import Array, FloatArray

_LOST = {"", "?", "na", "nan", "null"}
Row = list[str]


def read_columns(path: Path) -> dict[str, Array]:
    """The columns of a long table; the first row must hold their names."""
    rows = _rows(path)
    names = rows[0][1]
    if len(set(names)) != len(names) or "" in names:
        raise InputError(f"The first row must name every column once; got {names}.")
    ragged = [number for number, row in rows if len(row) != len(names)]
    if ragged:
        raise InputError(
            f"Line {ragged[0]} has not the {len(names)} cells of the first row. The file may be truncated."
        )
    cells = zip(*(row for _, row in rows[1:]), strict=True) if len(rows) > 1 else ((),) * len(names)
    return {name: _column(list(column)) for name, column in zip(names, cells, strict=True)}


def read_rows(
    path: Path, label: str | None = None, group: str | None = None, header: bool | None = None
) -> tuple[list[FloatArray], Array | None, Array | None]:
    """One case of one channel per row: (cases, labels, groups).

    `label` and `group` are column names, or "first" or "last". Empty cells are missing values, and at the end of a row
    mean a shorter case. Without `header`, the first row is taken for names when it holds anything but numbers, or
    exactly 0, 1, 2 ... (numbered columns).
    """
    rows = _rows(path)
    by_name = [c for c in (label, group) if c not in (None, "first", "last")]
    if header is None:
        header = bool(by_name) or _looks_like_names(rows[0][1], {label, group})
    names = rows.pop(0)[1] if header else []
    if not rows:
        raise InputError("The file holds no case below its header row.")
    if header and "" in names:
        raise InputError("A column has no name, like a row index that was written along. Write the file without it.")
    lost = [c for c in by_name if c not in names]
    if lost:
        raise InputError(" ".join(f"There is no column {c!r}. {did_you_mean(str(c), names)}" for c in lost))
    columns = [None if c is None else _position(c, names) for c in (label, group)]
    picked: list[list[str]] = [[], []]
    cases = []
    for number, row in rows:
        taken = [None if c is None else c % len(row) for c in columns]
        for out, c in zip(picked, taken, strict=True):
            if c is not None:
                out.append(row[c].strip())
        cases.append(_numbers([cell for c, cell in enumerate(row) if c not in taken], number))
    y, groups = (None if c is None else _column(out) for c, out in zip(columns, picked, strict=True))
    return cases, y, groups


def _rows(path: Path) -> list[tuple[int, Row]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, strict=True)
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    if not rows:
        raise InputError("The file is empty.")
    return rows


def _looks_like_names(row: Row, special: set[str | None]) -> bool:
    cells = row[1 if "first" in special else 0 : len(row) - ("last" in special)]
    if cells == [str(i) for i in range(len(cells))] and len(cells) > 1:
        return True
    return any(not _is_number(cell) for cell in cells)


def _is_number(cell: str) -> bool:
    if cell.lower() in _LOST:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _position(column: str, names: Row) -> int:
    return {"first": 0, "last": -1}[column] if column in ("first", "last") else names.index(column)


def _numbers(cells: Row, number: int) -> FloatArray:
    try:
        values = np.array(["nan" if c.lower() in _LOST else c for c in cells], dtype=np.float64)
    except ValueError as error:
        raise InputError(
            f'Line {number}: {error}. For a label column set label="first", "last" or its name.'
        ) from error
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def _column(cells: list[str]) -> Array:
    """Whole numbers, numbers or text, whatever all cells are."""
    lost = np.array([c.lower() in _LOST for c in cells], dtype=bool)
    for dtype, filled in (
        (np.int64, cells),
        (np.float64, ["nan" if x else c for c, x in zip(cells, lost, strict=True)]),
    ):
        try:
            return np.array(filled, dtype=dtype)
        except (ValueError, OverflowError):
            continue
    text = np.array(cells, dtype=object)
    text[lost] = None
    return text
