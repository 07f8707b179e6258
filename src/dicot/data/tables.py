"""Tables with one row per time step: their columns, and which are time stamps, channels, label and group."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import InputError, UnusedKeysWarning, did_you_mean
from dicot.core.settings import COLUMN, COLUMNS, as_option, how_to_set
from dicot.core.storage import arrow
from dicot.data.cases import Array, name_cases, to_array
from dicot.data.clocks import Where, row_name
from dicot.data.labelcolumns import FewValues, check_lacking, refuse_second_label, text_classes, with_one_label
from dicot.data.labels import (
    as_text,
    decimal_comma,
    is_number,
    lost_values,
    plain_values,
)
from dicot.data.npyfile import ROLES
from dicot.data.reading import Reading
from dicot.data.recording import Parts, Recording, recordings_of


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a .parquet file to read from, checked by the checksums of its pages."""
    _, parquet = arrow()
    # Not by memory map, which a truncated file would turn into a crash of the process.
    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        yield file


def read_table(path: Path) -> Any:
    """Read a .parquet file as a pyarrow Table."""
    with open_parquet(path) as file:
        return file.read()


def table_columns(table: Any) -> dict[str, Array]:
    """Return the columns of a pandas DataFrame, a pyarrow Table or a dict by name, all equally long."""
    arrow_names = getattr(table, "column_names", None)
    pairs = table.items() if arrow_names is None else zip(arrow_names, table.columns, strict=True)
    columns: dict[str, Array] = {}
    for name, values in pairs:
        if str(name) in columns:
            raise InputError(f"Every column must have a name of its own; {name} came more than once. Rename one.")
        columns[str(name)] = _column(values)
    if len({c.shape for c in columns.values()}) > 1 or any(c.ndim != 1 for c in columns.values()):
        raise InputError(f"The columns must be 1-D and equally long; got { {k: v.shape for k, v in columns.items()} }.")
    return columns


def _column(values: Any) -> Array:
    """Return the values of a column as they are; what may not become another type stays an object."""
    if isinstance(values, list | tuple) and len({type(value) for value in values}) > 1:
        array = np.empty(len(values), dtype=object)  # numpy makes 1 beside text "1", and 2**64 - 1 beside -1 a float
        array[:] = values
        return array
    if hasattr(values, "null_count"):  # pyarrow; a dictionary's nulls come out of it as some other value
        if hasattr(values.type, "index_type"):
            values = values.cast(values.type.value_type)
        if values.null_count and str(values.type).startswith(("int", "uint")):
            return _column(values.to_pylist())
        return np.asarray(values.to_numpy())
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:  # pandas' dates, in UTC
        return np.asarray(values.dt.tz_convert(None).to_numpy())
    if getattr(getattr(values, "dtype", None), "kind", "") in "iu" and hasattr(values, "isna") and values.isna().any():
        return np.asarray(values.to_numpy(dtype=object, na_value=None))  # pandas' Int64 and its kin
    return to_array(values)


def require_columns(columns: Mapping[str, Array], wanted: Sequence[str]) -> None:
    if lost := [w for w in wanted if w not in columns]:
        hints = list(dict.fromkeys(did_you_mean(w, columns) for w in lost))
        raise InputError(f"The table has no column {' or '.join(map(repr, lost))}. {' '.join(hints)}")


def is_channel(column: Array) -> bool:
    """Tell whether a column that nobody named holds any number; text among numbers is refused later, with its row."""
    if column.dtype.kind not in "OUS":
        return column.dtype.kind in "biuf"
    return any(isinstance(v, Real) or is_number(str(v)) for v in column[~lost_values(column)])


def sortable_times(column: Array, name: str) -> Array:
    """Return what to sort the rows of a case by."""
    refuse_lost(lost_values(column), name)
    if column.dtype.kind == "O" and all(isinstance(v, Real) for v in column):
        column = np.array(column.tolist())
    if column.dtype.kind not in "biufMm":
        try:
            column = column.astype("datetime64[us]")
        except (TypeError, ValueError) as error:
            raise InputError(f"Column {name!r} must hold numbers or ISO dates to sort by; {error}.") from error
    refuse_lost(np.isnat(column) if column.dtype.kind in "Mm" else ~np.isfinite(column), name)
    return column


def refuse_lost(lost: NDArray[np.bool_], name: str) -> None:
    if lost.any():
        which = name_cases(np.flatnonzero(lost), "row", "rows")
        raise InputError(f"Column {name!r} has no value in {which}. Drop them.")


def numbered(column: Array) -> NDArray[np.intp]:
    """Number the values in order of first appearance; -1 for no value."""
    numbers = np.full(len(column), -1, dtype=np.intp)
    present = ~lost_values(column)
    numbers[present] = pd.factorize(column[present])[0]
    return numbers


# Columns that are taken for time stamps if none is named, in any capitalisation.
_TIMES = ("time", "times", "timestamp", "timestamps", "datetime", "date_time", "date", "t")
_UNIT_WORDS = {
    word: unit
    for unit, words in {
        "s": "s sec secs second seconds",
        "ms": "ms msec millis millisecond milliseconds",
        "us": "us usec µs μs micros microsecond microseconds",
        "ns": "ns nsec nanos nanosecond nanoseconds",
    }.items()
    for word in words.split()
}
# Words of a name that say time, and names of counters of rows.
_TIME_WORDS = {*_TIMES, "ts", "stamp", "epoch", "elapsed", "utc", "unix", "clock", "sec", "secs", "second", "seconds"}
_TIME_WORDS |= {"millis", "milliseconds", "micros", "microseconds", "nanos", "nanoseconds"}
_COUNTERS = {"", "index", "idx", "row", "rows", "sample", "samples", "frame", "frames", "counter", "seq", "n"}
_EVEN, _MOST, _ENOUGH = 0.5, 0.9, 64  # a column is a clock if so many steps are so near the median, of so many rows
# Columns that must not be taken for channels unasked; "y" may, because it is as often an axis.
_ROLES = {"label": {*ROLES["y"], "activity"} - {"y"}, "group": set(ROLES["group"])}
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Roles:
    """What the columns of a table with one row per time step are."""

    time: str | None
    label: str | None
    group: str | None
    channels: tuple[str, ...]


def parts_of_table(columns: Mapping[str, Array], reading: Reading, where: Where = row_name) -> Parts:
    """Return the columns of a table with one row per time step by their roles."""
    reading = with_one_label(reading, columns)
    _check_named(columns, reading)
    # Other recordings of the same call may have these columns.
    wanted = (reading.label, *(reading.ignore or ()))
    lacking = tuple(name for name in wanted if name is not None and name not in columns)
    used = {name: column for name, column in columns.items() if name not in (reading.ignore or ())}

    roles = _roles(used, reading)
    if reading.label is not None and reading.channels is None and not lacking:
        # A label that is misspelled is refused as such.
        refuse_second_label(used, roles.channels, reading.label)
    if not roles.channels:
        raise _no_channel(used)
    stamps = None if roles.time is None else used[roles.time]
    return Parts(
        columns={channel: used[channel] for channel in roles.channels},
        stamps=stamps,
        label=None if roles.label is None else used.get(roles.label),
        group=None if roles.group is None else columns[roles.group],
        where=where,
        unit=_unit_by_name(roles.time, stamps),
        held=tuple(columns),
        lacking=lacking,
        texts=_columns_of_words(used, roles) if reading.channels is None else {},
    )


def _check_named(columns: Mapping[str, Array], reading: Reading) -> None:
    """Refuse columns that were named and are not there, or that are to be used and ignored."""
    # "" for time means that there is none; of the others it is a name.
    named = [name for name in (reading.time or None, reading.group, *(reading.channels or ())) if name is not None]
    require_columns(columns, named)
    for name in (*named, reading.label):
        if name is not None and name in (reading.ignore or ()):
            raise InputError(f"Column {name!r} cannot be used and ignored. Leave it out of --ignore.")


def _roles(columns: Mapping[str, Array], reading: Reading) -> Roles:
    """Find the roles of columns: those that were named, and by their names and values the others."""
    groups = None if reading.group is None else columns[reading.group]
    time = reading.time or None  # "" means that no column is one
    if reading.time is None:
        named = {reading.label, reading.group, *(reading.channels or ())}
        time = _time_column({name: column for name, column in columns.items() if name not in named}, groups)
    no_channels = {name for name in (time, reading.label, reading.group) if name is not None}
    for name in reading.channels or ():
        if name in no_channels:
            raise InputError(f"Column {name!r} cannot be a channel and time stamps, label or group. Name it once.")
    channels = reading.channels
    if channels is None:
        numeric = [name for name in columns if name not in no_channels and is_channel(columns[name])]
        _refuse_channels_called_like_labels(numeric)
        channels = tuple(without_clocks(columns, numeric, groups, time))
    return Roles(time, reading.label, reading.group, channels)


def _time_column(columns: Mapping[str, Array], groups: Array | None) -> str | None:
    """Return the column that nobody named and that holds the time stamps, by its name or its values."""
    clocks = [name for name in columns if name.lower() in _TIMES] or _clocks(columns, groups)
    if len(clocks) > 1:
        example = how_to_set("time", clocks[0])
        raise InputError(f"{', '.join(clocks)} could each hold the time stamps. Say which, such as {example}.")
    return clocks[0] if clocks else None


def _refuse_channels_called_like_labels(channels: Sequence[str]) -> None:
    """Ask about columns called label or group: as channels they would give the answer away."""
    for option, words in _ROLES.items():
        called = [name for name in channels if name.lower() in words]
        if called:
            raise InputError(
                f"Column {called[0]!r} is called like a {option}. If it is one, say "
                f"{how_to_set(option, called[0])}. Otherwise leave it out: {as_option('ignore', called[:1])}, or "
                f"name the channels: {as_option('channels', COLUMNS)}."
            )


def _columns_of_words(columns: Mapping[str, Array], roles: Roles) -> dict[str, FewValues]:
    """Return columns of words that may be labels, where nobody named one."""
    if roles.label is not None:
        return {}
    used = {roles.time, roles.group, *roles.channels}
    free = {name: column for name, column in columns.items() if name not in used}
    return text_classes(
        {
            name: column
            for name, column in free.items()
            if name.lower() not in _ROLES["group"] and not is_channel(column)
        }
    )


def _no_channel(columns: Mapping[str, Array]) -> InputError:
    """Return the error for a table without a column of numbers, some of which may have a decimal comma."""
    first_cells = [str(cell) for column in columns.values() for cell in column[:1]]
    remedies = [remedy for cell in first_cells if (remedy := decimal_comma(cell))]
    remedy = remedies[0] if remedies else f"Name the channels: {how_to_set('channels', COLUMNS)}."
    return InputError(f"There is no column of numbers among {', '.join(columns)}. {remedy}")


def _unit_by_name(time: str | None, stamps: Array | None) -> str | None:
    """Return the unit of time stamps that are numbers, where a word of their column's name says it."""
    if time is None or stamps is None or stamps.dtype.kind not in "iuf":
        return None
    units = {_UNIT_WORDS[word] for word in _words(time) if word in _UNIT_WORDS}
    return units.pop() if len(units) == 1 else None


def recordings_of_table(
    table: Any, reading: Reading, recording: str | None, group: str | None, ignore: Sequence[str]
) -> list[Recording]:
    """Make the recordings of a table with one row per time step, as `Windows.from_table` describes it."""
    columns = {name: values for name, values in table_columns(table).items() if name not in ignore}
    if reading.time is None and isinstance(index := getattr(table, "index", None), pd.DatetimeIndex):
        reading = reading.replace(time=str(index.name or "index"))
        columns[str(reading.time)] = _column(index.to_series())
    require_columns(columns, [name for name in (recording, group) if name is not None])
    groups, how = columns.get(group or ""), reading.replace(group=recording)
    if group not in (recording, reading.label):
        columns.pop(group or "", None)
    found = recordings_of("", parts_of_table(columns, how), how)
    check_lacking(found[:1], reading.label)
    found = [replace(one, name="table" if recording is None else as_text(one.group)) for one in found]
    if groups is None:
        return found
    ids = np.full(len(groups), "table") if recording is None else as_text(plain_values(columns[recording]))
    whose = pd.Series(groups).groupby(ids)
    if len(several := [name for name, n in whose.nunique(dropna=False).items() if n > 1]):
        raise InputError(
            f"Recording {several[0]!r} has several values of group={group!r}. Name another column, or correct it."
        )
    first = whose.first()
    return [replace(one, group=first[one.name]) for one in found]


def _words(name: str) -> list[str]:
    """Return the words of a column's name in small letters: SensorTimestamp and "Time (s)" have two."""
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def says_time(name: str) -> bool:
    """Tell whether a word of a column's name says time."""
    return any(word in _TIME_WORDS for word in _words(name))


def _says_only_time(name: str) -> bool:
    """Tell whether a name says time and nothing else but its unit, as ts_ms does and reaction_time does not."""
    return says_time(name) and set(_words(name)) <= _TIME_WORDS | _UNIT_WORDS.keys()


def _clocks(columns: Mapping[str, Array], groups: Array | None) -> list[str]:
    """Return the columns that nobody named and that hold dates, or else whose name says time and that rise."""
    clocks = [name for name, column in columns.items() if _are_dates(column)]
    if not clocks:
        clocks = [name for name, column in columns.items() if says_time(name) and _is_clock(name, column, groups)]
    if clocks and (other := {"min", "minutes", "h", "hours", "days"} & set(_words(clocks[0]))):
        raise InputError(
            f"Column {clocks[0]!r} may count time in {other.pop()}. Write seconds, or name the channels: "
            f"{how_to_set('channels', COLUMNS)}."
        )
    return clocks


def _is_clock(name: str, column: Array, groups: Array | None) -> bool:
    """Tell whether a column whose name says time rises; in bursts of one stamp where its name says nothing else."""
    only_time = _says_only_time(name)
    if _steps(column, groups, in_order=not only_time) is not None:
        return True
    return only_time and groups is None and _rises_in_bursts(column)


def _rises_in_bursts(column: Array) -> bool:
    """Tell whether numbers never fall from row to row, and rise more than once."""
    if column.dtype.kind not in "iuf":
        return False
    steps = np.diff(column.astype(np.float64))
    return bool((steps >= 0).all()) and int((steps > 0).sum()) > 1


def _are_dates(column: Array) -> bool:
    """Tell whether a column holds dates that change; the text of one that never does is no time."""
    if column.dtype.kind not in "OUSM" or len(column) < 2 or column[0] == column[-1]:
        return False
    ends = (c.decode("utf-8", "replace") if isinstance(c, bytes) else str(c) for c in column[[0, -1]])
    return column.dtype.kind == "M" or all(_DATE.match(text) for text in ends)


def _steps(column: Array, groups: Array | None, in_order: bool = True) -> Array | None:
    """Return the steps of numbers that rise from row to row of each group, or once sorted; None where they do not."""
    if column.dtype.kind not in "iuf" or len(column) < 3:
        return None
    if groups is None:
        steps: Array = np.diff((column if in_order else np.sort(column)).astype(np.float64))
    else:
        whose = np.unique(groups.astype(str), return_inverse=True)[1]
        order = np.argsort(whose, kind="stable") if in_order else np.lexsort((column, whose))
        steps = np.diff(column[order].astype(np.float64))[np.diff(whose[order]) == 0]
    return steps if len(steps) and bool((steps > 0).all()) else None  # NaN is not


def _even(steps: Array) -> bool:
    usual = np.median(steps)
    return bool(np.mean(np.abs(steps - usual) <= _EVEN * usual) >= _MOST)


def without_clocks(
    columns: Mapping[str, Array], channels: Sequence[str], groups: Array | None, time: str | None
) -> list[str]:
    """Leave out columns of time and counters of rows, which are no sensors; ask about others that may be."""
    out = []
    for name in channels:
        column = columns[name]
        counter = not name or " ".join(_words(name)) in _COUNTERS or name.lower().startswith("unnamed")
        steps = _steps(column, groups, in_order=not counter)
        asked = f"Column {name!r} rises evenly, like a clock or a counter of rows."
        if steps is not None and (says_time(name) or (counter and (time is not None or (steps == 1).all()))):
            what = "counts the rows" if counter else "holds times"
            keeping_it = as_option("channels", (name or "NAME", "NAME"))
            message = f"Column {name!r} {what} and is left out. To keep it, name the channels: {keeping_it}."
            warnings.warn(message, UnusedKeysWarning, stacklevel=2)
            continue
        if steps is None and time is None and _says_only_time(name):
            asked = f"Column {name!r} is called like time stamps, of which some are missing or came twice."
        elif steps is None or not (counter or len(column) >= _ENOUGH) or not _even(steps):
            out.append(name)
            continue
        raise InputError(
            f"{asked} If it holds the time stamps, say {how_to_set('time', name)}, its unit such as "
            f"{as_option('unit', 'ms')}, and {as_option('group', COLUMN)} where several recordings share the file. "
            f"Otherwise name the channels, with it or without: {how_to_set('channels', COLUMNS)}."
        )
    return out
