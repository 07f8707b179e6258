"""Which columns of a table are time stamps, channels, label and group, where nobody said."""

import re
import warnings
from collections.abc import Mapping, Sequence
from numbers import Real

import numpy as np

from dicot.core.errors import InputError, UnusedKeysWarning
from dicot.data.labels import check_channel_names, check_rate
from dicot.data.npyfile import ROLES
from dicot.data.policies import Array
from dicot.data.reading import Reading
from dicot.data.recording import Parts
from dicot.data.tables import lost_values, require_columns, table_columns
from dicot.data.texts import decimal_comma, is_number
from dicot.data.timestamps import Where, row_name

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
    time = reading.time or None  # "" means none, of the others it is a name
    named = [c for c in (time, reading.label, reading.group, *(reading.channels or ())) if c is not None]
    require_columns(columns, named)
    groups = None if reading.group is None else columns[reading.group]
    if reading.time is None:
        usual = [c for c in columns if c.lower() in _TIMES and c not in named]
        clocks = usual or _clocks({c: column for c, column in columns.items() if c not in named}, groups)
        if len(clocks) > 1:
            raise InputError(f"{', '.join(clocks)} could each hold the time stamps. Say which by time= (--time).")
        time = clocks[0] if clocks else None
    roles = {c for c in (time, reading.label, reading.group) if c is not None}
    if taken := [c for c in reading.channels or () if c in roles]:
        raise InputError(f"Column {taken[0]!r} cannot be a channel and time stamps, label or group. Name it once.")
    channels = list(reading.channels or ())
    if not channels:
        found = [c for c in columns if c not in roles and _is_channel(columns[c])]
        _refuse_roles(found)
        channels = without_clocks(columns, found, groups, time)
    if not channels:
        remedy = next((said for c in columns.values() for cell in c[:1] if (said := decimal_comma(str(cell)))), None)
        raise InputError(
            f"There is no column of numbers among {', '.join(columns)}. {remedy or 'Name channels= (--channels).'}"
        )
    stamps = None if time is None else columns[time]
    unit = _unit_said(time or "") if stamps is not None and stamps.dtype.kind in "iuf" else None
    label = None if reading.label is None else columns[reading.label]
    return Parts({c: columns[c] for c in channels}, stamps, None, label, groups, None, where, unit=unit)


def parts_of_arrays(arrays: dict[str, Array], reading: Reading) -> Parts:
    """Take an array X (channels, time) with arrays beside it, or arrays (time,) that are a table of columns."""
    rate = None
    if "rate" in arrays:
        said = arrays.pop("rate")
        rate = check_rate(said.reshape(()).item() if said.size == 1 else said)
    values = [name for name in arrays if name.lower() in ROLES["X"] and arrays[name].ndim > 1]
    if not values:
        scalars = {name: arrays.pop(name) for name in list(arrays) if arrays[name].ndim == 0}
        if not arrays:
            raise InputError(
                "The file holds no array of values. Save X (channels, time), or one array for each channel."
            )
        label = scalars.get(reading.label or "")
        parts = parts_of_table(table_columns(arrays), reading if label is None else reading.replace(label=None))
        return parts._replace(rate=rate, label=parts.label if label is None else label.item())
    x = arrays.pop(values[0])
    if x.ndim != 2 or x.shape[0] > x.shape[1]:
        raise InputError(
            f"{values[0]!r} must have shape (channels, time) with more time steps than channels; got {x.shape}. "
            + ("Save it transposed." if x.ndim == 2 else "Cases that are cut already are read without a window.")
        )
    names = arrays.pop("channels", np.array([f"channel {i}" for i in range(len(x))]))
    columns = dict(zip(check_channel_names([str(name) for name in names.ravel()], len(x)), x, strict=True))
    used = {reading.time, reading.label, reading.group, *(name for name in arrays if _says_time(name))}
    beside = {name: np.full(x.shape[1], a) if a.ndim == 0 else a for name, a in arrays.items() if name in used}
    if both := sorted(columns.keys() & beside.keys()):
        raise InputError(f"{both[0]!r} is the name of a channel and of an array beside them. Rename one of them.")
    if unused := [name for name in arrays if name not in used]:
        warnings.warn(f"Not used: {', '.join(unused)}.", UnusedKeysWarning, stacklevel=2)
    kept = reading.channels or tuple(without_clocks(columns, list(columns), None, None))
    return parts_of_table(table_columns(columns | beside), reading.replace(channels=kept))._replace(rate=rate)


def _words(name: str) -> list[str]:
    """Return the words of a column's name in small letters: SensorTimestamp and "Time (s)" have two."""
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def _says_time(name: str) -> bool:
    return any(word in _TIME_WORDS for word in _words(name))


def _says_only_time(name: str) -> bool:
    """Tell whether a name says time and nothing else but its unit, as ts_ms does and reaction_time does not."""
    return _says_time(name) and set(_words(name)) <= _TIME_WORDS | _UNIT_WORDS.keys()


def _unit_said(name: str) -> str | None:
    """Return the unit that the name of a column says; None where it says none, or two."""
    units = {_UNIT_WORDS[word] for word in _words(name) if word in _UNIT_WORDS}
    return units.pop() if len(units) == 1 else None


def _clocks(columns: Mapping[str, Array], groups: Array | None) -> list[str]:
    """Return the columns that nobody named and that hold dates, or else whose name says time and that rise."""
    clocks = [name for name, column in columns.items() if _are_dates(column)] or [
        name
        for name, column in columns.items()
        if _says_time(name) and _steps(column, groups, in_order=not _says_only_time(name)) is not None
    ]
    if clocks and (other := {"min", "minutes", "h", "hours", "days"} & set(_words(clocks[0]))):
        raise InputError(
            f"Column {clocks[0]!r} may count time in {other.pop()}, which is no unit here. Write seconds, or name "
            "the channels= (--channels)."
        )
    return clocks


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
        if steps is not None and (_says_time(name) or (counter and (time is not None or (steps == 1).all()))):
            what = "counts the rows" if counter else "holds times"
            warnings.warn(
                f"Column {name!r} {what} and is left out. Name the channels= (--channels) to keep it as one.",
                UnusedKeysWarning,
                stacklevel=2,
            )
            continue
        if steps is None and time is None and _says_only_time(name):
            asked = f"Column {name!r} is called like time stamps, of which some are missing or came twice."
        elif not _are_even(steps) or not (counter or len(column) >= _ENOUGH):
            out.append(name)
            continue
        raise InputError(
            f"{asked} Say time={name!r} (--time), with its unit=, if it holds the time stamps, and "
            "group= (--group) if several recordings share the file; otherwise name the channels= (--channels), with "
            "it or without."
        )
    return out


def _are_even(steps: Array | None) -> bool:
    if steps is None:
        return False
    usual = np.median(steps)
    return bool(np.mean(np.abs(steps - usual) <= _EVEN * usual) >= _MOST)


def _is_channel(column: Array) -> bool:
    """Tell whether a column that nobody named holds any number; text among numbers is refused later, with its row."""
    if column.dtype.kind not in "OUS":
        return column.dtype.kind in "biuf"
    return any(isinstance(v, Real) or is_number(str(v)) for v in column[~lost_values(column)])


def _refuse_roles(channels: Sequence[str]) -> None:
    """Refuse columns that nobody named and that are called like labels or groups: they would give the answer away."""
    for option, words in _ROLES.items():
        called = [c for c in channels if c.lower() in words]
        if called:
            raise InputError(
                f"Column {called[0]!r} is called like a {option}. Say {option}={called[0]!r} (--{option}), or name the "
                "channels with channels= (--channels)."
            )
