"""A CSV file as rows with the numbers of their lines, all of it or none: a file that was cut off is refused."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dicot.errors import InputError


class Row(NamedTuple):
    """The cells of a row by column, and the line of the file that it begins in."""

    line: int
    cells: dict[str, str]


def read_table(path: Path) -> tuple[list[str], list[Row]]:
    """The names of the columns, which are all different, and rows that have a cell in each."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no text in UTF-8 (byte {error.start}). Write or fetch the file again.") from error
    if text and not text.endswith("\n"):
        raise InputError(f"{path} was cut off in its last line, which has no end. Write or fetch the file again.")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] = []
    rows: list[Row] = []
    begin = 1
    try:
        for cells in reader:
            if not columns:
                columns = cells
                check_columns(path, columns)
            elif cells:
                if len(cells) != len(columns):
                    where = f"{path}, line {begin}, record {len(rows) + 1}"
                    raise InputError(f"{where}: {len(cells)} cells instead of {len(columns)}.")
                rows.append(Row(begin, dict(zip(columns, cells, strict=True))))
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, line {begin}: {error}. Write or fetch the file again.") from error
    return columns, rows


def check_columns(path: Path, columns: Sequence[str]) -> None:
    """No name twice."""
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise InputError(f"{path} has columns of the same name: {', '.join(map(repr, twice))}. Remove one of each.")


def has_columns(path: Path, columns: Sequence[str]) -> bool:
    """Whether the first line of this file names these columns, in any order."""
    try:
        with path.open("rb") as file:
            first = file.readline(1 << 16).decode("utf-8-sig")
        return sorted(next(csv.reader([first]), [])) == sorted(columns)
    except (OSError, UnicodeDecodeError, csv.Error):
        return False
