"""CSV files: what separates the cells, rows of one width, cells as numbers or names, and files of one case per row."""

import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dicot.core.errors import InputError, did_you_mean
from dicot.data.policies import Array
from dicot.data.texts import plain_text, text_array

SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
_MOST_COLUMNS = 2**16  # of a long table: no recording has as many channels, and each takes its time
# As for .npz: what unpacks to less is harmless; above it a file must be worth a hundredth of what it asks for.
_SMALL = 1 << 28
_MOST_TIMES = 100
_SAMPLE = 100  # rows that decide between two possible separators
_LOST = {"", "?", "na", "nan", "null"}  # a value that is missing, in any case of letters
# Only what pandas, numpy and R write for nothing: a class may well be called "null", "?" or "Na".
_UNNAMED = {"", "nan", "NaN", "NA"}
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_ENDS = {"first": 0, "last": -1}
_RAMP = 8  # values that rise evenly by chance are fewer
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
Cells = list[str]  # of one row


class Sheet(NamedTuple):
    """The rows of a file, all of one width, and the line of the file where each ends."""

    separator: str
    lines: list[int]
    rows: list[Cells]


def read_sheet(path: Path) -> Sheet:
    """Read all rows that are not empty; spaces around cells are dropped."""
    text = _text(path)
    if "\0" in text:  # numpy drops it at the end of a cell, so that two names become one
        line = text[: text.index("\0")].count("\n") + 1
        raise InputError(
            f"Line {line} holds a NUL character. The file is damaged, or no text in UTF-8; write it again."
        )
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
                f"Line {line} has {len(row)} cells; the first row has {len(rows[0])}. The file may be "
                "truncated; a shorter case needs its empty cells too."
            )
    return Sheet(separator, lines, rows)


def _text(path: Path) -> str:
    if path.suffix.lower() != ".gz":
        return path.read_bytes().decode("utf-8-sig")
    most = max(_SMALL, _MOST_TIMES * path.stat().st_size)
    with gzip.open(path) as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        raise InputError(
            f"It unpacks to more than {_MOST_TIMES} times its size, which is refused because such a file may be made "
            "to fill the memory. Unpack it yourself."
        )
    return raw.decode("utf-8-sig")


def check_names(names: Cells) -> None:
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
    """Return the columns of a long table by the names in its first row; those in `named` are ids or labels."""
    header, *rows = sheet.rows
    if len(header) > _MOST_COLUMNS:
        raise InputError(
            f"The table has {len(header):,} columns; at most {_MOST_COLUMNS:,} are read. One row must be one time "
            "step: write the table the other way round."
        )
    check_names(header)
    cells = zip(*rows, strict=True) if rows else ((),) * len(header)
    return {
        name: to_names(column) if name in named else _to_values(column)
        for name, column in zip(header, cells, strict=True)
    }


def is_number(cell: str) -> bool:
    """Tell whether the cell is a number as programs write it; Python would also read 1_000 and other digits."""
    if cell.lower() in _LOST or "_" in cell or not cell.isascii():
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_value(cell: str) -> bool:
    """Tell whether the cell is a number or empty."""
    return cell.lower() in _LOST or is_number(cell)


def to_numbers(cells: Cells, line: int) -> Array:
    """Return values in float64, NaN for an empty cell."""
    numbers = _floats(cells)
    if numbers is None:
        wrong = next(cell for cell in cells if not is_value(cell))
        raise InputError(f"Line {line}: could not convert {wrong!r} to a number. {_remedy(wrong)}")
    return numbers


def to_names(cells: Sequence[str]) -> Array:
    """Return ids or labels: text, "" for none; whole numbers if int64 would write each the same way.

    pandas writes 1.0 for 1 where a cell of the column is empty: it is 1 all the same.
    """
    plain = {cell: plain_text(cell) for cell in set(cells)}
    cells = [plain[cell] for cell in cells]
    try:
        numbers = [int(cell) for cell in cells]
    except ValueError:
        numbers = []
    whole = bool(numbers) and [str(n) for n in numbers] == cells
    if whole and min(numbers) >= -(2**63) and max(numbers) < 2**63:
        return np.array(numbers, dtype=np.int64)
    return text_array(["" if cell in _UNNAMED else cell for cell in cells])


def _to_values(cells: Sequence[str]) -> Array:
    """Return a time or a channel as whole numbers, numbers or text (dates), whatever all cells are."""
    numbers = _floats(cells)
    if numbers is None:
        return text_array(["" if cell.lower() in _LOST else cell for cell in cells])
    try:
        return np.array(cells, dtype=np.int64)  # times in nanoseconds are too long for float64
    except (ValueError, OverflowError):
        return numbers


def _floats(cells: Sequence[str]) -> Array | None:
    joined = "".join(cells)
    if "_" in joined or not joined.isascii():  # as in is_number
        return None
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:  # most columns miss nothing, and looking at every cell takes longer than reading it
        pass
    try:
        return np.array(["nan" if c.lower() in _LOST else c for c in cells], dtype=np.float64)
    except ValueError:
        return None


def decimal_comma(cell: str) -> str:
    """Return what to do about a number with a decimal comma; nothing if the cell is none."""
    said = "Write numbers with a decimal point, not a comma (pandas: read_csv(..., decimal=',') and to_csv)."
    return said if _DECIMAL_COMMA.fullmatch(cell) else ""


def _remedy(wrong: str) -> str:
    if said := decimal_comma(wrong):
        return said
    return (
        "If the column is not one of values, name it as label, group or ignore (--label, --group, --ignore); it may be "
        "the first or the last. Cells are separated by commas, semicolons or tabs."
    )


def _parsed(text: str, separator: str) -> Iterator[tuple[int, Cells]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    for row in reader:
        cells = [cell.strip() for cell in row]
        if cells not in ([], [""]):
            yield reader.line_num, cells


def _separator(text: str) -> str:
    """Return the separator that divides the rows most evenly and leaves most numbers."""
    present = [s for s in SEPARATORS if s in text]
    if len(present) < 2:
        return present[0] if present else ","
    fits = {s: _fit(text, s) for s in present}
    best = [s for s in present if fits[s] == max(fits.values())]
    if len(best) > 1:
        raise InputError(
            f"It is not clear what separates the cells: {' or '.join(SEPARATORS[s] for s in best)}. Write the file "
            "with one of them alone, and text that holds it in quotes."
        )
    return best[0]


def _fit(text: str, separator: str) -> tuple[bool, float]:
    """Tell whether all rows have one width of at least two cells, and the share of numbers among the cells."""
    try:
        rows = [row for _, row in islice(_parsed(text, separator), _SAMPLE)]
    except csv.Error:
        return False, -1.0
    cells = [cell for row in rows for cell in row]
    numbers = sum(is_value(c) or (separator != "," and bool(_DECIMAL_COMMA.fullmatch(c))) for c in cells)
    widths = {len(row) for row in rows}
    return len(widths) == 1 and widths != {1}, numbers / max(len(cells), 1)


def read_rows(
    sheet: Sheet,
    label: str | None = None,
    group: str | None = None,
    ignore: Sequence[str] = (),
    header: bool | None = None,
) -> tuple[list[Array], Array | None, Array | None, str]:
    """Return (cases, labels, groups, what was read in words).

    `label`, `group` and those to `ignore` are names of columns, or "first" or "last". Empty cells are missing values,
    and after the last value of a row mean a shorter case. Where `header` is None, the first row is taken for names if a
    column is named or all its cells are text, and for a case if all are numbers; anything in between is refused.
    """
    given = [c for c in (label, group, *ignore) if c is not None]
    by_name = [c for c in given if c not in _ENDS]
    ends = {_ENDS[c] % len(sheet.rows[0]) for c in given if c in _ENDS}
    if header is None:
        header = bool(by_name) or _has_header(sheet.rows, ends)
    names, rows, lines = (sheet.rows[0], sheet.rows[1:], sheet.lines[1:]) if header else ([], sheet.rows, sheet.lines)
    lost = [c for c in by_name if c not in names]
    if lost and not header:
        raise InputError(f"Column {lost[0]!r} needs a row of names. Read the file with header=True (--header).")
    if lost:
        raise InputError(" ".join(f"There is no column {c!r}. {_suggestion(c, names)}" for c in lost))
    if header:
        check_names(names)
    if not rows:
        raise InputError("The file has no case below its header row.")
    places = {c: _ENDS[c] % len(rows[0]) if c in _ENDS else names.index(c) for c in given}
    values = [i for i in range(len(rows[0])) if i not in places.values()]
    _check_roles(label, group, ignore, places, values)
    if header:
        _check_steps([names[i] for i in values])
    cases = [to_numbers([row[i] for i in values], line) for line, row in zip(lines, rows, strict=True)]
    y, groups = (None if c is None else to_names([row[places[c]] for row in rows]) for c in (label, group))
    roles = {role: c for role, c in (("label", label), ("group", group)) if c is not None}
    first = [_brief([f"{v:g}" for v in cases[0]], " "), *(f"{role} {rows[0][places[c]]}" for role, c in roles.items())]
    about = [
        f"header: {'yes' if header else 'no'}",
        f"{len(rows)} cases of {len(values)} time steps"
        + (f" ({_brief([names[i] for i in values])})" if header else ""),
        *(f"{role}: {c}" for role, c in roles.items()),
        *([f"ignored: {', '.join(ignore)}"] if ignore else []),
        f"first case: {', '.join(first)}",
    ]
    return cases, y, groups, "; ".join(about)


def _has_header(rows: list[Cells], ends: set[int]) -> bool:
    """Tell whether the first row holds names, judging by its own cells and the other rows."""
    cells, *others = ([cell for i, cell in enumerate(row) if i not in ends] for row in rows)
    text = [cell for cell in cells if not is_value(cell)]
    if text and len(set(text)) == len(cells):
        return True
    if text and len(text) == len(cells):
        why = "all cells are text, but not all differ"
    elif text:
        why = f"{_brief(text)} cannot be read as a number, other cells can"
    elif _counts(cells):
        why = "it may number the columns or be a case of small numbers"
    elif others and _is_ramp(cells) and not any(map(_is_ramp, others)):
        why = "it rises evenly like times, and no other row does"
    else:
        return False
    raise InputError(
        f"It is not clear whether the first row holds names or a case: {_brief(rows[0])} ({why}). Say header=True or "
        "header=False (--header or --no-header), and name a column that is not one of values as label, group or ignore "
        "(--label, --group, --ignore): by its name, first or last."
    )


def _counts(cells: Cells) -> bool:
    cells = cells[1:] if cells[:1] == [""] else cells  # the nameless index of a data frame
    return len(cells) > 1 and cells == [str(i) for i in range(len(cells))]


def _is_ramp(cells: Cells) -> bool:
    if len(cells) < _RAMP or not all(is_value(cell) for cell in cells):
        return False
    steps = np.diff(to_numbers(cells, 0))
    return bool(steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-3, atol=0))


def _check_roles(
    label: str | None, group: str | None, ignore: Sequence[str], places: dict[str, int], values: list[int]
) -> None:
    ignored = {places[c] for c in ignore}
    if torn := [c for c in (label, group) if c is not None and places[c] in ignored]:
        raise InputError(f"Column {torn[0]!r} cannot be used and ignored. Leave it out of ignore (--ignore).")
    if not values:
        raise InputError("No column of values is left beside label, group and those to ignore. Leave one of them out.")


def _check_steps(names: Cells) -> None:
    """Refuse columns that are called differently where the others are numbered: an id is not a time step."""
    forms = [_NUMBER.sub("#", name) for name in names]
    usual, count = max(
        Counter(form for form in forms if "#" in form).items(), key=lambda item: item[1], default=("", 0)
    )
    odd = [name for name, form in zip(names, forms, strict=True) if form != usual]
    if count > 1 and odd:
        raise InputError(
            f"The other columns are called like time steps ({names[forms.index(usual)]} ...), these are not: "
            f"{_brief(odd)}. Name each as label, group or ignore (--label, --group, --ignore), or rename it if it is a "
            "time step. Several channels need a long table."
        )


def _suggestion(column: str, names: Cells) -> str:
    said = did_you_mean(column, names)
    return said if len(said) < 200 else f"The first row holds {_brief(names)}."


def _brief(cells: Cells, comma: str = ", ") -> str:
    shown = [cell or "(empty)" for cell in (cells if len(cells) < 6 else [*cells[:3], "...", cells[-1]])]
    return comma.join(shown)
