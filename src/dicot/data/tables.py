"""Tables: which columns are time stamps, channels, label and group; of long tables the cases; .parquet files."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import InputError, UnusedKeysWarning, did_you_mean, listed
from dicot.core.settings import COLUMN, COLUMNS, as_option, how_to_set
from dicot.core.storage import arrow
from dicot.data.cases import Array, name_cases, to_array
from dicot.data.clocks import Where, row_name
from dicot.data.labelcolumns import FewValues, check_lacking, refuse_second_label, text_classes, with_one_label
from dicot.data.labels import (
    as_text,
    check_labels,
    decimal_comma,
    is_number,
    lost_values,
    plain_values,
)
from dicot.data.npyfile import ROLES
from dicot.data.reading import Reading
from dicot.data.recording import Parts, Recording, numbers, recordings_of


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


def table_cases(table: Any, reading: Reading) -> tuple[list[Array], Array | None, Array | None, str, tuple[str, ...]]:
    """Return the cases (C, T_i) of a long table before any policy, labels, groups, what was read in words, channels."""
    columns = table_columns(table)
    reading = with_one_label(reading, columns)
    case, time, channels = reading.case, reading.time, reading.channels
    ignore = reading.ignore or ()
    if case is None or time is None:
        raise InputError(f"{needs_case_and_time('A long table')} It has the columns {', '.join(columns)}.")
    roles = {role: c for role in ("case", "time", "label", "group") if (c := getattr(reading, role)) is not None}
    require_columns(columns, [*roles.values(), *(channels or ()), *ignore])
    rest = [c for c in columns if c not in roles.values() and c not in ignore]
    used = list(channels) if channels is not None else [c for c in rest if _is_channel(columns[c])]
    if not used or not len(columns[case]):
        raise InputError(
            f"The table has 0 rows, or no column of numbers beside {case!r} and {time!r}. Name the channels: "
            f"{how_to_set('channels', COLUMNS)}."
        )
    codes, times = _numbered(columns[case]), _times(columns[time], time)
    _refuse_lost(codes < 0, case)
    names = columns[case][np.unique(codes, return_index=True)[1]]
    order = np.lexsort((times, codes))
    codes, times = codes[order], times[order]
    within = np.diff(codes) == 0
    if len(twice := np.flatnonzero(within & (times[1:] == times[:-1]))):
        some = ", ".join(f"case {names[codes[i]]!s} at time {times[i]!s}" for i in twice[:5])
        raise InputError(f"A case may have one row per time; {len(twice) + 1} came for {some}. Drop or average them.")
    values = np.stack([numbers(columns[c], c) for c in used])[:, order]  # (C, rows)
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    cases = np.split(values, starts[1:], axis=1)
    constant: dict[str, Array] = {}
    for role in roles.keys() - {"case", "time"}:
        own = _numbered(columns[roles[role]])[order]
        if (changes := own != own[starts][codes]).any():
            bad = names[np.unique(codes[changes])]
            told = f"Column {roles[role]!r} must have one value per case; it changes within {listed([*map(str, bad)])}."
            raise InputError(
                f"{told} If these are recordings, leave out the column of cases and cut windows: "
                f"{how_to_set('window', '5s')} of Windows."
            )
        constant[role] = check_labels(columns[roles[role]][order[starts]], len(cases), role)
    if channels is None and within.any():
        # Nobody named them, they tell cases apart and never change within one: ids or labels.
        still = (values[:, 1:] == values[:, :-1])[:, within].all(axis=1) & (values != values[:, :1]).any(axis=1)
        if still.any():
            constants = ", ".join(c for c, is_still in zip(used, still, strict=True) if is_still)
            raise InputError(
                f"These never change within a case: {constants}. Say what they are: --label {COLUMN} or "
                f"--group {COLUMN}; or leave them out: --ignore {COLUMN}; or name the channels: "
                f"{how_to_set('channels', COLUMNS)}."
            )
    unused = [c for c in rest if c not in used] + list(ignore)
    said = [
        *(f"{role}: {c}" for role, c in roles.items()),
        f"channels: {', '.join(used)}",
        *([f"not used: {', '.join(unused)}"] if unused else []),
        f"{len(cases)} cases",
        f"first case: {names[0]}, {cases[0].shape[1]} time steps",
        *(f"{c} = {' '.join(f'{v:g}' for v in row[:3])} ..." for c, row in zip(used[:3], cases[0], strict=False)),
        *(f"{role} {constant[role][0]}" for role in roles if role in constant),
    ]
    return cases, constant.get("label"), constant.get("group"), "; ".join(said), tuple(used)


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


def needs_case_and_time(what: str) -> str:
    """Say that cases in a long table need two columns, and how they are named."""
    options = f"{as_option('case', COLUMN)} {as_option('time', COLUMN)}"
    return f'{what} needs the columns of cases and of time: {options} (in Python case="{COLUMN}", time="{COLUMN}").'


def require_columns(columns: Mapping[str, Array], wanted: Sequence[str]) -> None:
    if lost := [w for w in wanted if w not in columns]:
        hints = list(dict.fromkeys(did_you_mean(w, columns) for w in lost))
        raise InputError(f"The table has no column {' or '.join(map(repr, lost))}. {' '.join(hints)}")


def _is_channel(column: Array) -> bool:
    """Tell whether a column that nobody named holds any number; text among numbers is refused later, with its row."""
    if column.dtype.kind not in "OUS":
        return column.dtype.kind in "biuf"
    return any(isinstance(v, Real) or is_number(str(v)) for v in column[~lost_values(column)])


def _times(column: Array, name: str) -> Array:
    """Return what to sort the rows of a case by."""
    _refuse_lost(lost_values(column), name)
    if column.dtype.kind == "O" and all(isinstance(v, Real) for v in column):
        column = np.array(column.tolist())
    if column.dtype.kind not in "biufMm":
        try:
            column = column.astype("datetime64[us]")
        except (TypeError, ValueError) as error:
            raise InputError(f"Column {name!r} must hold numbers or ISO dates to sort by; {error}.") from error
    _refuse_lost(np.isnat(column) if column.dtype.kind in "Mm" else ~np.isfinite(column), name)
    return column


def _refuse_lost(lost: NDArray[np.bool_], name: str) -> None:
    if lost.any():
        which = name_cases(np.flatnonzero(lost), "row", "rows")
        raise InputError(f"Column {name!r} has no value in {which}. Drop them.")


def _numbered(column: Array) -> NDArray[np.intp]:
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


def parts_of_table(columns: Mapping[str, Array], reading: Reading, where: Where = row_name) -> Parts:
    """Give the columns of a table with one row per time step their roles."""
    held = tuple(columns)
    reading = with_one_label(reading, columns)
    ignore = reading.ignore or ()
    time = reading.time or None  # "" means none, of the others it is a name
    named = [c for c in (time, reading.group, *(reading.channels or ())) if c is not None]
    require_columns(columns, named)
    if torn := [c for c in (*named, reading.label) if c in ignore]:
        raise InputError(f"Column {torn[0]!r} cannot be used and ignored. Leave it out of --ignore.")
    # Other recordings of the same call may have these columns.
    lacking = tuple(c for c in (reading.label, *ignore) if c is not None and c not in columns)
    label = None if reading.label is None else columns.get(reading.label)
    columns = {name: column for name, column in columns.items() if name not in ignore}
    groups = None if reading.group is None else columns[reading.group]
    if reading.time is None:
        free = {c: column for c, column in columns.items() if c not in (*named, reading.label)}
        usual = [c for c in free if c.lower() in _TIMES]
        clocks = usual or _clocks(free, groups)
        if len(clocks) > 1:
            example = how_to_set("time", clocks[0])
            raise InputError(f"{', '.join(clocks)} could each hold the time stamps. Say which, such as {example}.")
        time = clocks[0] if clocks else None
    roles = {c for c in (time, reading.label, reading.group) if c is not None}
    if taken := [c for c in reading.channels or () if c in roles]:
        raise InputError(f"Column {taken[0]!r} cannot be a channel and time stamps, label or group. Name it once.")
    channels = list(reading.channels or ())
    texts: dict[str, FewValues] = {}
    if not channels:
        found = [c for c in columns if c not in roles and _is_channel(columns[c])]
        for option, words in _ROLES.items():  # they would give the answer away
            if called := [c for c in found if c.lower() in words]:
                raise InputError(
                    f"Column {called[0]!r} is called like a {option}. If it is one, say "
                    f"{how_to_set(option, called[0])}. Otherwise leave it out: {as_option('ignore', called[:1])}, or "
                    f"name the channels: {as_option('channels', COLUMNS)}."
                )
        channels = without_clocks(columns, found, groups, time)
        if reading.label is None:
            no_class = {*roles, *found, *(c for c in columns if c.lower() in _ROLES["group"])}
            texts = text_classes({c: column for c, column in columns.items() if c not in no_class})
        if reading.label is not None and not lacking:  # a misspelled label is refused as such
            refuse_second_label(columns, channels, reading.label)
    if not channels:
        remedy = next((said for c in columns.values() for cell in c[:1] if (said := decimal_comma(str(cell)))), None)
        remedy = remedy or f"Name the channels: {how_to_set('channels', COLUMNS)}."
        raise InputError(f"There is no column of numbers among {', '.join(columns)}. {remedy}")
    stamps = None if time is None else columns[time]
    units = {_UNIT_WORDS[word] for word in _words(time or "") if word in _UNIT_WORDS}  # by the name of the column
    unit = units.pop() if len(units) == 1 and stamps is not None and stamps.dtype.kind in "iuf" else None
    values = {c: columns[c] for c in channels}
    return Parts(values, stamps, None, label, groups, None, where, unit=unit, held=held, lacking=lacking, texts=texts)


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
