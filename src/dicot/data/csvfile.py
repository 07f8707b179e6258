"""CSV files by pandas: what separates the cells, rows of one width, and columns by their names."""

import csv
import gzip
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import pandas as pd

from dicot.core.errors import InputError
from dicot.data.cases import Array
from dicot.data.labelcolumns import with_one_label
from dicot.data.labels import LOST, decimal_comma, is_number, is_value, plain_text
from dicot.data.reading import Reading
from dicot.data.recording import Parts
from dicot.data.tables import parts_of_table

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
_SAMPLE = 100  # lines that decide what separates the cells
# Only what pandas, numpy and R write for nothing: a class may well be called "null", "?" or "Na".
_UNNAMED = ["", "nan", "NaN", "NA"]


# Numbers that Python and pandas read alike: whole ones that float64 has exactly, divided by a power of ten.
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?")
_PLAIN_LONGEST = 15  # characters, so that there are no more digits


class Sheet(NamedTuple):
    """A CSV file, of which only the first rows are read."""

    path: Path
    separator: str
    rows: list[list[str]]
    is_whole: bool = False  # whether these are all of its rows

    def line(self, row: int) -> str:
        """Name the line of a row of cells, the first of which is row 0; empty lines are none."""
        with _opened(self.path) as file:
            return f"line {next(islice(_parsed(file, self.separator), row, None))[0]}"

    def line_numbers(self) -> list[int]:
        """Return the line of every row of cells, the header's first."""
        with _opened(self.path) as file:
            return [line for line, _ in _parsed(file, self.separator)]

    def frame(self, header: bool, texts: Collection[int] = ()) -> pd.DataFrame:
        """Read all rows, below the first where that is a header; columns in these places stay text."""
        width = len(self.rows[0])

        def read(kept: Collection[int], only: Sequence[int] | None, lost: Sequence[str] = LOST) -> pd.DataFrame:
            return pd.read_csv(
                self.path,
                sep=self.separator,
                encoding="utf-8-sig",
                header=0 if header else None,
                names=range(width),
                index_col=False,
                usecols=only,
                dtype=dict.fromkeys(kept, str),
                skipinitialspace=True,
                keep_default_na=False,
                na_values=lost,
            )

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pd.errors.DtypeWarning)
                warnings.simplefilter("error", pd.errors.ParserWarning)  # of cells that it leaves out
                frame = read(texts, None)
        except (pd.errors.ParserError, pd.errors.ParserWarning):
            self._refuse_widths()
            raise
        if len(frame) and frame[width - 1].isna().any():  # as where pandas filled a row that is too short
            self._refuse_widths()
        # Of a long file pandas reads parts, which may differ in type; and True is the text of a label, not a number.
        mixed = [i for i, kind in enumerate(frame.dtypes) if kind in (object, bool) and i not in texts]
        if mixed:
            frame[mixed] = read(mixed, mixed)
        if named := [i for i in texts if frame[i].isna().any()]:
            frame[named] = read(named, named, _UNNAMED)
        return frame

    def _refuse_widths(self) -> None:
        """Refuse rows of another width than the first."""
        width = len(self.rows[0])
        with _opened(self.path) as file:
            for line, row in _parsed(file, self.separator):
                if len(row) != width:
                    raise InputError(
                        f"Line {line} has {len(row)} cells; the first row has {width}. The file may be truncated; a "
                        "shorter case needs its empty cells too."
                    )


def open_sheet(path: Path) -> Sheet:
    """Look at the first rows of a file: find what separates the cells, and refuse rows of unequal width."""
    with _opened(path) as file:
        lines = list(islice(file, _SAMPLE))
    if "\0" in "".join(lines):  # as in text of two bytes for each character
        raise InputError("It holds NUL characters. The file is damaged, or no text in UTF-8; write it again.")
    separator = _separator(lines)
    rows = [[cell.strip() for cell in row] for _, row in _parsed(lines, separator)]
    if not rows:
        raise InputError("The file is empty.")
    sheet = Sheet(path, separator, rows, is_whole=len(lines) < _SAMPLE)
    if any(len(row) != len(rows[0]) for row in rows):
        sheet._refuse_widths()
    return sheet


def _opened(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _parsed(lines: IO[str] | list[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of cells that are not empty, each with the number of its line."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    return ((reader.line_num, row) for row in reader if len(row) > 1 or "".join(row).strip())


def _separator(lines: list[str]) -> str:
    """Return the separator that divides the rows most evenly and leaves most numbers."""
    text = "".join(lines)
    present = [separator for separator in SEPARATORS if separator in text]
    if len(present) < 2:
        return present[0] if present else ","
    fits = {s: _fit(lines, s) for s in present}
    best = [s for s in present if fits[s] == max(fits.values())]
    if len(best) > 1:
        raise InputError(
            f"It is not clear what separates the cells: {' or '.join(SEPARATORS[s] for s in best)}. Write the file "
            "with one of them alone, and text that holds it in quotes."
        )
    return best[0]


def _fit(lines: list[str], separator: str) -> tuple[bool, float]:
    """Tell whether all rows have one width of at least two cells, and the share of numbers among the cells."""
    rows = [[cell.strip() for cell in row] for _, row in _parsed(lines, separator)]
    cells = [cell for row in rows for cell in row]
    numbers = sum(is_value(c) or (separator != "," and bool(decimal_comma(c))) for c in cells)
    widths = {len(row) for row in rows}
    return len(widths) == 1 and widths != {1}, numbers / max(len(cells), 1)


def check_names(names: list[str]) -> None:
    """Refuse a header that does not name every column once."""
    if wrong := [name or "an empty one, as of a row index," for name, n in Counter(names).items() if n > 1 or not name]:
        raise InputError(
            f"The first row must name every column once; {', '.join(wrong[:5])} is no such name. Rename it, or write "
            "the file without it (pandas: to_csv(..., index=False))."
        )


def columns_of(sheet: Sheet, named: Collection[str | None]) -> dict[str, Array]:
    """Return the columns of a table by the names in its first row; those in `named` are ids or labels."""
    names = sheet.rows[0]
    check_names(names)
    texts = [i for i, name in enumerate(names) if name in named]
    short = _short_columns(sheet, texts)
    if short is not None:
        return short
    frame = sheet.frame(True, texts)
    columns = {}
    for i, name in enumerate(names):
        if i in texts:
            columns[name] = to_names(frame[i])
        elif frame[i].dtype.kind in "iuf":
            columns[name] = np.asarray(frame[i])
        else:  # text, such as dates; "" for none
            columns[name] = np.asarray(frame[i].fillna("").str.strip(), dtype=object)
    return columns


def _short_columns(sheet: Sheet, texts: Collection[int]) -> dict[str, Array] | None:
    """Return the columns of a short file as pandas would read them; None where only pandas knows.

    pandas takes a millisecond to begin with a file, which is most of the time of thousands of short recordings.
    """
    if not sheet.is_whole or len(sheet.rows) < 2:
        return None
    columns = {}
    for i, (name, *cells) in enumerate(zip(*sheet.rows, strict=True)):
        column = _names_of_cells(cells) if i in texts else _values_of_cells(cells)
        if column is None:
            return None
        columns[name] = column
    return columns


def _names_of_cells(cells: Sequence[str]) -> Array:
    """Return ids or labels."""
    return to_names(pd.Series([None if cell in _UNNAMED else cell for cell in cells], dtype=object))


def _values_of_cells(cells: Sequence[str]) -> Array | None:
    """Return a column of plain numbers, or one of text alone; None for anything else."""
    numbers = [cell for cell in cells if cell]
    if numbers and max(map(len, numbers)) <= _PLAIN_LONGEST and all(map(_PLAIN.fullmatch, numbers)):
        if len(numbers) == len(cells) and not any("." in cell for cell in numbers):
            return np.array([int(cell) for cell in cells], dtype=np.int64)
        return np.array([float(cell) if cell else np.nan for cell in cells])
    present = [cell for cell in cells if cell not in LOST]
    if present and not any(is_value(cell) for cell in present):
        return np.array([cell if cell not in LOST else "" for cell in cells], dtype=object)
    return None


def to_names(column: pd.Series) -> Array:
    """Return ids or labels: text, "" for none; whole numbers if int64 would write each the same way."""
    codes, found = column.factorize()
    texts = [plain_text(str(text).strip()) for text in found]  # beside an empty cell pandas writes 1.0 for 1
    if not (codes < 0).any():
        numbers = [int(text) if text.lstrip("-").isdecimal() and len(text) < 21 else None for text in texts]
        whole = all(n is not None and str(n) == text for n, text in zip(numbers, texts, strict=True))
        if texts and whole and all(-(2**63) <= n < 2**63 for n in numbers if n is not None):
            return np.asarray(np.array(numbers, dtype=np.int64)[codes])
    return np.asarray(np.array([*texts, ""], dtype=np.str_)[codes])


def read_csv(path: Path, reading: Reading) -> Parts:
    """Read a table with one row per time step."""
    sheet = open_sheet(path)
    header = sheet.rows[0]
    if all(is_number(cell) for cell in header):
        raise InputError(f"The first row holds numbers: {', '.join(header[:5])}. Add a row that names the columns.")
    reading = with_one_label(reading, header)
    columns = columns_of(sheet, [reading.label, reading.group])
    return parts_of_table(columns, reading, lambda row: sheet.line(row + 1))
