"""Tables of cases that are cut already: long ones with a row per time step, and .csv files with a row per case."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import InputError, did_you_mean, listed
from dicot.core.settings import COLUMN, COLUMNS, as_option, how_to_set
from dicot.data.cases import Array, RawCases
from dicot.data.csvfile import Sheet, check_names, to_names
from dicot.data.labelcolumns import with_one_label
from dicot.data.labels import check_labels, decimal_comma, is_number, is_value
from dicot.data.reading import Reading
from dicot.data.recording import numbers
from dicot.data.tables import is_channel, numbered, refuse_lost, require_columns, sortable_times, table_columns


class Content(NamedTuple):
    """Cases as a file holds them, in the order channels, time: lengths may differ and NaN is kept."""

    X: RawCases
    y: Array | None = None
    group: Array | None = None
    about: str = ""  # a table: its columns, what they were taken for and the first case, in words
    channels: tuple[str, ...] | None = None  # a long table: their names


@dataclass(frozen=True)
class LongTable:
    """A table with one row per time step of a case, in the order of cases and time."""

    columns: Mapping[str, Array]
    roles: Mapping[str, str]  # case, time, label and group -> the column that has this role
    channels: list[str]
    ignored: tuple[str, ...]
    order: NDArray[np.intp]  # of the rows: by case, then by time
    cases: NDArray[np.intp]  # the number of the case of each row, in that order
    names: Array  # of the cases

    @property
    def starts(self) -> NDArray[np.intp]:
        """Return the first row of each case."""
        return np.flatnonzero(np.diff(self.cases, prepend=-1))

    @property
    def is_next(self) -> NDArray[np.bool_]:
        """Tell which rows but the first are of the same case as the row before."""
        is_next: NDArray[np.bool_] = np.diff(self.cases) == 0
        return is_next


def needs_case_and_time(what: str) -> str:
    """Say that cases in a long table need two columns, and how they are named."""
    options = f"{as_option('case', COLUMN)} {as_option('time', COLUMN)}"
    return f'{what} needs the columns of cases and of time: {options} (in Python case="{COLUMN}", time="{COLUMN}").'


def table_cases(table: Any, reading: Reading) -> Content:
    """Return the cases (C, T_i) of a long table before any policy."""
    long_table = _long_table(table_columns(table), reading)
    channels = long_table.channels
    values = np.stack([numbers(long_table.columns[channel], channel) for channel in channels])
    values = values[:, long_table.order]  # (C, rows)
    cases = np.split(values, long_table.starts[1:], axis=1)
    known = {role: _one_per_case(long_table, role) for role in ("label", "group") if role in long_table.roles}
    if reading.channels is None:
        _refuse_constant_channels(long_table, values)
    about = _about_long_table(long_table, cases, known)
    return Content(cases, known.get("label"), known.get("group"), about, tuple(channels))


def _long_table(columns: Mapping[str, Array], reading: Reading) -> LongTable:
    """Give the columns of a long table their roles, and sort its rows."""
    reading = with_one_label(reading, columns)
    case, time = reading.case, reading.time
    if case is None or time is None:
        raise InputError(f"{needs_case_and_time('A long table')} It has the columns {', '.join(columns)}.")
    named = {"case": case, "time": time, "label": reading.label, "group": reading.group}
    roles = {role: column for role, column in named.items() if column is not None}
    ignored = reading.ignore or ()
    require_columns(columns, [*roles.values(), *(reading.channels or ()), *ignored])

    channels = list(reading.channels or ())
    if not channels:
        free = [name for name in columns if name not in roles.values() and name not in ignored]
        channels = [name for name in free if is_channel(columns[name])]
    if not channels or not len(columns[case]):
        raise InputError(
            f"The table has 0 rows, or no column of numbers beside {case!r} and {time!r}. Name the channels: "
            f"{how_to_set('channels', COLUMNS)}."
        )

    codes, times = numbered(columns[case]), sortable_times(columns[time], time)
    refuse_lost(codes < 0, case)
    names = columns[case][np.unique(codes, return_index=True)[1]]
    order = np.lexsort((times, codes))
    long_table = LongTable(columns, roles, channels, ignored, order, codes[order], names)
    _refuse_two_rows_at_one_time(long_table, times[order])
    return long_table


def _refuse_two_rows_at_one_time(table: LongTable, times: Array) -> None:
    twice = np.flatnonzero(table.is_next & (times[1:] == times[:-1]))
    if len(twice) == 0:
        return
    some = ", ".join(f"case {table.names[table.cases[i]]!s} at time {times[i]!s}" for i in twice[:5])
    raise InputError(f"A case may have one row per time; {len(twice) + 1} came for {some}. Drop or average them.")


def _one_per_case(table: LongTable, role: str) -> Array:
    """Return the label or the group of each case, which its column says in every row."""
    column = table.columns[table.roles[role]]
    codes = numbered(column)[table.order]
    changes = codes != codes[table.starts][table.cases]
    if changes.any():
        changing = table.names[np.unique(table.cases[changes])]
        raise InputError(
            f"Column {table.roles[role]!r} must have one value per case; it changes within "
            f"{listed([*map(str, changing)])}. If these are recordings, leave out the column of cases and cut windows: "
            f"{how_to_set('window', '5s')} of Windows."
        )
    firsts = table.order[table.starts]
    return check_labels(column[firsts], len(firsts), role)


def _refuse_constant_channels(table: LongTable, values: Array) -> None:
    """Ask about channels that nobody named, that tell cases apart and that never change within one: ids or labels."""
    is_next = table.is_next
    if not is_next.any():
        return
    never_changes = (values[:, 1:] == values[:, :-1])[:, is_next].all(axis=1)
    tells_cases_apart = (values != values[:, :1]).any(axis=1)
    is_constant = never_changes & tells_cases_apart
    if not is_constant.any():
        return
    pairs = zip(table.channels, is_constant, strict=True)
    constants = ", ".join(channel for channel, channel_is_constant in pairs if channel_is_constant)
    raise InputError(
        f"These never change within a case: {constants}. Say what they are: --label {COLUMN} or "
        f"--group {COLUMN}; or leave them out: --ignore {COLUMN}; or name the channels: "
        f"{how_to_set('channels', COLUMNS)}."
    )


def _about_long_table(table: LongTable, cases: Sequence[Array], known: Mapping[str, Array]) -> str:
    """Say what the columns were taken for, and what the first case is."""
    used = {*table.roles.values(), *table.channels, *table.ignored}
    unused = [name for name in table.columns if name not in used] + list(table.ignored)
    parts = [f"{role}: {column}" for role, column in table.roles.items()]
    parts.append(f"channels: {', '.join(table.channels)}")
    if unused:
        parts.append(f"not used: {', '.join(unused)}")
    parts.append(f"{len(cases)} cases")
    parts.append(f"first case: {table.names[0]}, {cases[0].shape[1]} time steps")
    for channel, values in zip(table.channels[:3], cases[0], strict=False):
        parts.append(f"{channel} = {_first_values(values)}")
    parts += [f"{role} {values[0]}" for role, values in known.items()]
    return "; ".join(parts)


def _first_values(values: Array) -> str:
    return " ".join(f"{value:g}" for value in values[:3]) + " ..."


# ---- one case per row ----

_ENDS = {"first": 0, "last": -1}  # words for columns of a table without a header
_LEAST_RAMP = 7  # steps of a row that rises evenly: fewer are even by chance
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class RowColumns:
    """Which columns of a table with one case per row are what."""

    has_header: bool
    names: list[str]  # of all columns; [] without a header
    roles: Mapping[str, str]  # label and group -> how the user called their columns
    ignored: tuple[str, ...]
    places: Mapping[str, int]  # of the columns that were named
    values: list[int]  # places of the columns of values

    @property
    def value_names(self) -> list[str]:
        return [self.names[place] for place in self.values]


def read_rows(sheet: Sheet, reading: Reading) -> Content:
    """Return cases (N, 1, T) of a table with one case per row.

    `label`, `group` and those to `ignore` are names of columns, or "first" or "last". Empty cells are missing values,
    and after the last value of a row mean a shorter case. Where `header` is None, the first row is taken for names if a
    column is named or all its cells are text, and for a case if all are numbers; anything in between is refused.
    """
    columns = _row_columns(sheet, reading)
    frame = sheet.frame(columns.has_header, [columns.places[column] for column in columns.roles.values()])
    if not len(frame):
        raise InputError("The file has no case below its header row.")
    _refuse_text_among_values(sheet, frame, columns)
    cases = frame[columns.values].to_numpy(np.float64)
    known = {role: to_names(frame[columns.places[column]]) for role, column in columns.roles.items()}
    about = _about_rows(columns, cases, known)
    return Content(cases[:, None], known.get("label"), known.get("group"), about)


def _row_columns(sheet: Sheet, reading: Reading) -> RowColumns:
    """Find the columns that were named, and take the others for values."""
    first_row = sheet.rows[0]
    width = len(first_row)
    roles = {role: name for role, name in (("label", reading.label), ("group", reading.group)) if name is not None}
    ignored = reading.ignore or ()
    named = [*roles.values(), *ignored]
    called = [name for name in named if name not in _ENDS]

    has_header = reading.header
    if has_header is None:
        ends = {_ENDS[name] % width for name in named if name in _ENDS}
        others = [cell for place, cell in enumerate(first_row) if place not in ends]
        has_header = bool(called) or _are_names(others)
    names = first_row if has_header else []
    absent = [name for name in called if name not in names]
    if absent:
        remedy = did_you_mean(absent[0], names) if has_header else "Without header=True it has no names."
        raise InputError(f"There is no column {absent[0]!r}. {remedy}")

    places = {name: _ENDS[name] % width if name in _ENDS else names.index(name) for name in named}
    places_ignored = {places[name] for name in ignored}
    for name in roles.values():
        if places[name] in places_ignored:
            raise InputError(f"Column {name!r} cannot be used and ignored. Leave it out of ignore.")
    values = [place for place in range(width) if place not in places.values()]
    if not values:
        raise InputError("No column of values is left beside label, group and those to ignore. Leave one of them out.")
    columns = RowColumns(has_header, names, roles, ignored, places, values)
    if has_header:
        check_names(names)
        _refuse_odd_names(columns.value_names)
    return columns


def _are_names(cells: list[str]) -> bool:
    """Tell whether the first row holds names: all are text, and all differ. A row that may be either is refused."""
    text = [cell for cell in cells if not is_value(cell)]
    if text and len(set(text)) == len(cells):
        return True
    # The columns of a data frame without names are called 0, 1, 2 ...; times rise evenly.
    values = np.array([float(cell) if is_number(cell) else np.nan for cell in cells])
    values = values[1:] if cells[:1] == [""] else values
    steps = np.diff(values)
    counts_up = len(steps) > 0 and values[0] == 0 and bool((steps == 1).all())
    is_ramp = len(steps) >= _LEAST_RAMP and steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-3, atol=0)
    if not text and not counts_up and not is_ramp:
        return False
    raise InputError(
        f"It is not clear whether the first row holds names or a case: {listed(cells)}. Say header=True or "
        "header=False, and name a column that is not one of values as label, group or ignore "
        "by its name, first or last."
    )


def _refuse_odd_names(names: list[str]) -> None:
    """Refuse columns that are called differently where the others are numbered: an id is not a time step."""
    forms = [_NUMBER.sub("#", name) for name in names]
    numbered_forms = Counter(form for form in forms if "#" in form)
    if not numbered_forms:
        return
    usual, count = numbered_forms.most_common(1)[0]
    odd = [name for name, form in zip(names, forms, strict=True) if form != usual]
    if count > 1 and odd:
        raise InputError(
            f"The other columns are called like time steps ({names[forms.index(usual)]} ...), these are not: "
            f"{listed(odd)}. Name each as label, group or ignore, or rename it if it is a "
            "time step. Several channels need a long table."
        )


def _refuse_text_among_values(sheet: Sheet, frame: pd.DataFrame, columns: RowColumns) -> None:
    """Refuse a cell of values that is no number, with its line."""
    for place in columns.values:
        if frame.dtypes[place].kind in "iuf":
            continue
        cells = [str(cell) for cell in frame[place]]
        row = next(row for row, cell in enumerate(cells) if not is_value(cell))
        remedy = decimal_comma(cells[row]) or (
            "If the column is not one of values, name it as label, group or ignore; it may be the first or the "
            "last. Cells are separated by commas, semicolons or tabs."
        )
        line = sheet.line(row + columns.has_header).capitalize()
        raise InputError(f"{line}: could not convert {cells[row]!r} to a number. {remedy}")


def _about_rows(columns: RowColumns, cases: Array, known: Mapping[str, Array]) -> str:
    """Say what the columns were taken for, and what the first case is."""
    count = f"{len(cases)} cases of {len(columns.values)} time steps"
    if columns.has_header:
        count += f" ({listed(columns.value_names)})"
    first = [_first_values(cases[0]), *(f"{role} {values[0]}" for role, values in known.items())]
    parts = [f"header: {'yes' if columns.has_header else 'no'}", count]
    parts += [f"{role}: {column}" for role, column in columns.roles.items()]
    if columns.ignored:
        parts.append(f"ignored: {', '.join(columns.ignored)}")
    parts.append(f"first case: {', '.join(first)}")
    return "; ".join(parts)
