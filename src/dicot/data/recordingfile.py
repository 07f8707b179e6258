"""Recording: one long series with its time stamps, and how it is read from each kind of file."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from numbers import Real
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import InputError, UnusedKeysWarning, did_you_mean
from dicot.data.csvfile import columns_of, decimal_comma, is_number, read_sheet
from dicot.data.edf import read_edf_header, read_edf_signal
from dicot.data.labels import check_channel_names, check_labels
from dicot.data.matfile import read_matrices
from dicot.data.naming import listed, naming
from dicot.data.npyfile import ROLES, load_npz
from dicot.data.parquetfile import read_table
from dicot.data.policies import Array, FloatArray
from dicot.data.reading import Reading
from dicot.data.tables import lost_values, require_columns, table_columns
from dicot.data.texts import as_text, plain_values
from dicot.data.timestamps import Seconds, Where, row_name, stretches, time_order, to_seconds, usual_rate
from dicot.data.wavfile import read_wav
from dicot.data.wfdb import read_wfdb_header, read_wfdb_signals

_UNITS_SAID = {
    "s": "s sec secs second seconds",
    "ms": "ms msec millis millisecond milliseconds",
    "us": "us usec µs μs micros microsecond microseconds",
    "ns": "ns nsec nanos nanosecond nanoseconds",
}
# Columns that are taken for time stamps if none is named, in any capitalisation.
TIMES = ("time", "times", "timestamp", "timestamps", "datetime", "date_time", "date", "t")
# Words of a name that say time, the units that may stand beside them, and names of counters of rows.
_TIME_WORDS = {*TIMES, "ts", "stamp", "epoch", "elapsed", "utc", "unix", "clock", "sec", "secs", "second", "seconds"}
_TIME_WORDS |= {"millis", "milliseconds", "micros", "microseconds", "nanos", "nanoseconds"}
_UNIT_WORDS = {word: unit for unit, words in _UNITS_SAID.items() for word in words.split()}
_COUNTERS = {
    "",
    *["index", "idx", "row", "rows", "sample", "samples", "frame", "frames", "counter", "seq", "sequence", "n"],
}
_EVEN, _MOST, _ENOUGH = 0.5, 0.9, 64  # a column is a clock if so many steps are so near the median, of so many rows
# Columns that must not be taken for channels unasked; "y" may, because it is as often an axis.
_ROLES = {"label": {*ROLES["y"], "activity"} - {"y"}, "group": set(ROLES["group"])}
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LARGEST = float(np.finfo(np.float32).max)
_MICROVOLTS = {"nv": 1e-3, "uv": 1.0, "mv": 1e3, "v": 1e6}  # in each unit of voltage, as EDF and WFDB write it
_SWALLOWED = 1e-4  # share of a channel's range that rounding to float32 may take


@dataclass(frozen=True, eq=False)
class Recording:
    """A long series of one or more channels."""

    name: str
    values: FloatArray  # (C, T), NaN where missing; float32, or float64 where that would swallow all differences
    channels: tuple[str, ...]
    times: Seconds | None = None  # (T,) increasing, in seconds; None where the file has no time stamps
    rate: float | None = None  # time steps per second; of time stamps that of most of them, gaps left out
    label: Any = None  # (T,) one per time step, or one for the recording
    group: Any = None  # whose it is
    origin: str | None = None  # the date from which the times count, as ISO 8601
    units: tuple[str, ...] = ()  # of the channels, "" where the file does not say; () where no file of its kind does

    @property
    def n_times(self) -> int:
        """Give the number of time steps T."""
        return int(self.values.shape[1])


class FileParts(NamedTuple):
    """The parts of a file before they are checked."""

    columns: dict[str, Array]  # the channels, as they came, (T,) each
    stamps: Array | None = None
    rate: float | None = None
    label: Any = None  # (T,), or one value
    group: Array | None = None  # (T,)
    origin: str | None = None
    where: Where = row_name
    units: Mapping[str, str] = {}  # of the channels, as the file has them
    unit: str | None = None  # of the time stamps, as their name says


def read_recording(path: str | Path, reading: Reading | None = None, **options: Any) -> Recording:
    """Read the only recording of a file; `read_recordings` reads all where a column of groups tells several apart.

    Every voltage of an .edf or a WFDB record is given in microvolts, whatever unit the file keeps it in.

    Parameters
    ----------
    path : a .csv, .csv.gz or .parquet with one row per time step, an .npz or .mat, an .edf, the .hea of a WFDB record,
        or a .wav. A name that two channels share is refused; leads of a WFDB record are then called lead 0, lead 1 ...
    reading : how it is read; `options` are fields of it, which win: time, unit, channels, label and group
    """
    found = read_file(Path(path), (reading or Reading()).replace(**options))
    if len(found) > 1:
        values = ", ".join(str(one.group) for one in found[:5])
        raise InputError(f"{path} holds {len(found)} recordings, by group {values} ... Read it with read_recordings.")
    return found[0]


def read_file(path: Path, choice: Reading) -> list[Recording]:
    """Read all recordings of a file, named after it: one, or one for each group."""
    read = READERS.get(suffix_of(path))
    if read is None:
        raise InputError(f"{path} has an unknown suffix {path.suffix!r}; known are {', '.join(READERS)}. Convert it.")
    if not path.is_file():
        raise InputError(f"There is no file {path}. Check the path.")
    with naming(path):
        content = read(path, choice)
        return _divided(stem_of(path), content, choice.unit or content.unit, choice.gap)


def suffix_of(path: PurePath) -> str:
    """Return the end of a file's name that says its kind, in small letters."""
    return ".csv.gz" if path.name.lower().endswith(".csv.gz") else path.suffix.lower()


def stem_of(path: PurePath) -> str:
    """Return a file's name without the end that says its kind."""
    return path.name[: len(path.name) - len(suffix_of(path))]


def _divided(name: str, content: FileParts, unit: str | None, gap: float) -> list[Recording]:
    """Make the recordings of a file's content: the rows of each group are one."""
    n_times = {len(column) for column in content.columns.values()}
    if n_times == {0}:
        raise InputError("The file has no row of values. Write it again, or leave it out.")
    factors = {channel: _microvolts(said) for channel, said in content.units.items()}
    columns = content.columns.items()
    values = np.stack([_numbers(column, channel, content.where, factors.get(channel)) for channel, column in columns])
    values = values if _swallows(values) else values.astype(np.float32)
    if content.group is None:
        return [_recording(name, values, content, np.arange(n_times.pop()), unit, gap)]
    lost = lost_values(content.group)
    if lost.any():
        raise InputError(f"{content.where(int(np.argmax(lost)))} has no group. Fill it in or drop the row.")
    ids = plain_values(check_labels(content.group, len(content.group), "group", "rows"))
    groups, first, codes = np.unique(ids, return_index=True, return_inverse=True)
    return [
        _recording(
            name if len(groups) == 1 else f"{name}:{as_text(groups[code])}",
            values,
            content,
            rows,
            unit,
            gap,
            groups[code],
        )
        for code in np.argsort(first)
        for rows in [np.flatnonzero(codes == code)]
    ]


def _microvolts(unit: str) -> float | None:
    """Return how many microvolts one of this unit is; None where it is no unit of voltage."""
    return _MICROVOLTS.get(re.sub("â?[µμ]", "u", unit.lower()))  # of text in UTF-8 that was read as Latin-1, too


def _recording(
    name: str, values: Array, content: FileParts, rows: Array, unit: str | None, gap: float, group: Any = None
) -> Recording:
    times, rate, origin = None, content.rate, content.origin
    if content.stamps is not None:
        stamps = content.stamps[rows]

        def where(row: int) -> str:
            return content.where(int(rows[row]))

        times, origin = to_seconds(stamps, lost_values(stamps), unit=unit, where=where)
        order = time_order(times, stamps, where)
        rows, times = rows[order], times[order]
        rate = usual_rate(times, stretches(times, gap)) if rate is None else rate
    elif unit is not None:
        raise InputError(f"unit={unit!r} is for time stamps, and there are none. Name them as time= (--time).")
    label = content.label
    if isinstance(label, np.ndarray):
        label = plain_values(check_labels(label[rows], len(rows), "label", "rows"))
    group = group.item() if isinstance(group, np.generic) else group
    values, channels = np.ascontiguousarray(values[:, rows]), tuple(content.columns)
    units = tuple("uV" if _microvolts(content.units[c]) else content.units[c] for c in channels if content.units)
    return Recording(name, values, channels, times, rate, label, group, origin, units)


def _numbers(column: Array, channel: str, where: Where, factor: float | None) -> Array:
    """Return a channel in float64, multiplied by the factor, NaN where a value is missing."""
    lost = lost_values(column)
    wrong = _first_text(column, lost)
    if wrong is not None:
        raise InputError(
            f"{where(wrong)}, column {channel!r}: {str(column[wrong])!r} is not a number. "
            f"{decimal_comma(str(column[wrong])) or 'Repair it, or choose the channels with channels= (--channels).'}"
        )
    if column.dtype.kind not in "biufOUS":
        raise InputError(f"Column {channel!r} must hold numbers; got dtype {column.dtype}. Leave it out of channels=.")
    numbers: Array = np.where(lost, np.nan, column).astype(np.float64)
    numbers *= factor or 1.0
    with np.errstate(invalid="ignore"):
        large = np.abs(numbers) > _LARGEST
    if large.any():
        first = int(np.argmax(large))
        held = "inf" if np.isinf(numbers[first]) else f"{numbers[first]:g}, too large for float32"
        raise InputError(f"{where(first)}, column {channel!r} holds {held}. Remove or clip the value.")
    return numbers


def _first_text(column: Array, lost: Array) -> int | None:
    """Return the first row whose value is neither missing nor a number; numbers as text among text are numbers."""
    if column.dtype.kind not in "OUS":
        return None
    rows = np.flatnonzero(~lost)
    others = (int(i) for i in rows if not isinstance(column[i], Real) and not is_number(str(column[i])))
    return next(others, None)


def _swallows(values: Array) -> bool:
    """Tell whether float32 would lose what tells the values of a channel apart, as of numbers around 1e9."""
    low, high = np.nanmin(values, axis=1, initial=np.inf), np.nanmax(values, axis=1, initial=-np.inf)
    rounding = np.maximum(np.abs(low), np.abs(high)) * np.finfo(np.float32).eps / 2
    return bool(((high > low) & (rounding > _SWALLOWED * (high - low))).any())


def _from_table(columns: dict[str, Array], choice: Reading, where: Where) -> FileParts:
    """Give the columns of a table their roles."""
    time = choice.time or None  # "" means none, of the others it is a name
    named = [c for c in (time, choice.label, choice.group, *(choice.channels or ())) if c is not None]
    require_columns(columns, named)
    if choice.time is None:
        usual = [c for c in columns if c.lower() in TIMES and c not in named]
        if len(usual) > 1:
            raise InputError(f"{', '.join(usual)} could each hold the time stamps. Say which by time= (--time).")
        time = usual[0] if usual else _clock(columns, named, choice.group)
    roles = {c for c in (time, choice.label, choice.group) if c is not None}
    if taken := [c for c in choice.channels or () if c in roles]:
        raise InputError(f"Column {taken[0]!r} cannot be a channel and time stamps, label or group. Name it once.")
    if choice.channels is None:
        rest = [c for c in columns if c not in roles]
        channels = [c for c in rest if _is_channel(columns[c])]
        _refuse_roles(channels)
        channels = _without_clocks(columns, channels, None if choice.group is None else columns[choice.group], time)
    else:
        channels = list(choice.channels)
    if not channels:
        remedy = next((said for c in columns.values() for cell in c[:1] if (said := decimal_comma(str(cell)))), None)
        raise InputError(
            f"There is no column of numbers among {', '.join(columns)}. {remedy or 'Name channels= (--channels).'}"
        )
    label, group = (None if c is None else columns[c] for c in (choice.label, choice.group))
    stamps = None if time is None else columns[time]
    unit = _unit_said(time) if stamps is not None and stamps.dtype.kind in "iuf" else None
    return FileParts({c: columns[c] for c in channels}, stamps, None, label, group, None, where, unit=unit)


def _words(name: str) -> list[str]:
    """Return the words of a column's name in small letters: SensorTimestamp and "Time (s)" have two."""
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def _says_time(name: str) -> bool:
    return any(word in _TIME_WORDS for word in _words(name))


def _says_only_time(name: str) -> bool:
    """Tell whether a name says time and nothing else but its unit, as ts_ms does and reaction_time does not."""
    return _says_time(name) and set(_words(name)) <= _TIME_WORDS | _UNIT_WORDS.keys()


def _unit_said(name: str | None) -> str | None:
    """Return the unit that the name of a column says; None where it says none, or two."""
    units = {_UNIT_WORDS[word] for word in _words(name or "") if word in _UNIT_WORDS}
    return units.pop() if len(units) == 1 else None


def _clock(columns: dict[str, Array], named: Sequence[str], group: str | None) -> str | None:
    """Return the column of time stamps among those that nobody named: the only one of dates, or that says time."""
    rest = {name: column for name, column in columns.items() if name not in named}
    dates = [name for name, column in rest.items() if _are_dates(column)]
    groups = None if group is None else columns[group]
    clocks = dates or [
        name
        for name, column in rest.items()
        if _says_time(name) and _steps(column, groups, in_order=not _says_only_time(name)) is not None
    ]
    if len(clocks) > 1:
        raise InputError(f"{', '.join(clocks)} could each hold the time stamps. Say which by time= (--time).")
    if clocks and (other := {"min", "minutes", "h", "hours", "days"} & set(_words(clocks[0]))):
        raise InputError(
            f"Column {clocks[0]!r} may count time in {other.pop()}, which is no unit here. Write seconds, or name "
            "the channels= (--channels)."
        )
    return clocks[0] if clocks else None


def _are_dates(column: Array) -> bool:
    """Tell whether a column holds dates that change; the text of one that never does is no time."""
    if column.dtype.kind == "M":
        return len(column) > 1 and column[0] != column[-1]
    if column.dtype.kind not in "OUS" or len(column) < 2:
        return False
    first, last = (c.decode("utf-8", "replace") if isinstance(c, bytes) else str(c) for c in column[[0, -1]])
    return first != last and all(_DATE.match(text) for text in (first, last))


def _steps(column: Array, groups: Array | None, in_order: bool = True) -> Array | None:
    """Return the steps of numbers that rise from row to row of each group, or once sorted; None where they do not."""
    if column.dtype.kind not in "iuf" or len(column) < 3 or lost_values(column).any():
        return None
    whose = np.zeros(len(column), int) if groups is None else np.unique(groups.astype(str), return_inverse=True)[1]
    order = np.argsort(whose, kind="stable") if in_order else np.lexsort((column, whose))
    steps: Array = np.diff(column[order].astype(np.float64))[np.diff(whose[order]) == 0]
    return steps if len(steps) and (steps > 0).all() else None


def _are_even(steps: Array | None) -> bool:
    if steps is None:
        return False
    usual = np.median(steps)
    return bool(np.mean(np.abs(steps - usual) <= _EVEN * usual) >= _MOST)


def _without_clocks(
    columns: dict[str, Array], channels: Sequence[str], groups: Array | None, time: str | None
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
            f"{asked} Say time={name!r} (--time), with its unit= (--unit), if it holds the time stamps, and "
            "group= (--group) if several recordings share the file; otherwise name the channels= (--channels), with "
            "it or without."
        )
    return out


def _is_channel(column: Array) -> bool:
    """Tell whether a column that nobody named holds any number; text among numbers is refused later, with its row."""
    if column.dtype.kind not in "OUS":
        return column.dtype.kind in "biuf"
    known = column[~lost_values(column)]
    return any(isinstance(v, Real) or is_number(str(v)) for v in known)


def _refuse_roles(channels: Sequence[str]) -> None:
    """Refuse columns that nobody named and that are called like labels or groups: they would give the answer away."""
    for option, words in _ROLES.items():
        called = [c for c in channels if c.lower() in words]
        if called:
            raise InputError(
                f"Column {called[0]!r} is called like a {option}. Say {option}={called[0]!r} (--{option}), or name the "
                "channels with channels= (--channels)."
            )


def _read_csv(path: Path, choice: Reading) -> FileParts:
    sheet = read_sheet(path)
    header = sheet.rows[0]
    if all(is_number(cell) for cell in header):
        raise InputError(
            f"The first row must name the columns; it holds numbers: {', '.join(header[:5])}. Add a row of names."
        )
    if len(sheet.rows) == 1:
        raise InputError("The file has no row below its header. Write it again, or leave it out.")
    columns = columns_of(sheet, [choice.label, choice.group])
    return _from_table(columns, choice, lambda row: f"line {sheet.lines[row + 1]}")


def _read_parquet(path: Path, choice: Reading) -> FileParts:
    return _from_table(table_columns(read_table(path)), choice, row_name)


def _read_npz(path: Path, choice: Reading) -> FileParts:
    return _from_arrays(path, load_npz(path), choice)


def _read_mat(path: Path, choice: Reading) -> FileParts:
    matrices = read_matrices(path)
    held = {name: matrix for name, matrix in matrices.items() if matrix is not None and matrix.size}
    if left := [name for name in matrices if name not in held]:
        warnings.warn(f"{path}: not used, no matrix of numbers: {listed(left)}.", UnusedKeysWarning, stacklevel=2)
    # MATLAB has neither scalars nor vectors: they are matrices with one row or column.
    arrays = {name: matrix.reshape([n for n in matrix.shape if n > 1][:2]) for name, matrix in held.items()}
    return _from_arrays(path, arrays, choice)


def _from_arrays(path: Path, arrays: dict[str, Array], choice: Reading) -> FileParts:
    """Take an array X (channels, time) with arrays beside it, or arrays (time,) that are a table of columns."""
    rate = _scalar(arrays.pop("rate"), "rate") if "rate" in arrays else None
    values = [name for name in arrays if name.lower() in ROLES["X"] and arrays[name].ndim > 1]
    if not values:
        scalars = {name: arrays.pop(name) for name in list(arrays) if arrays[name].ndim == 0}
        if not arrays:
            raise InputError(
                "The file holds no array of values. Save X (channels, time), or one array for each channel."
            )
        label = None if choice.label is None else scalars.get(choice.label)
        table = choice if label is None else choice.replace(label=None)
        content = _from_table(table_columns(arrays), table, row_name)
        return content._replace(rate=rate, label=content.label if label is None else label.item())
    x = arrays.pop(values[0])
    if x.ndim != 2 or x.shape[0] > x.shape[1]:
        raise InputError(
            f"{values[0]!r} must have shape (channels, time) with more time steps than channels; got {x.shape}. "
            + ("Save it transposed." if x.ndim == 2 else "Cases that are cut already are read with read_windows.")
        )
    names = arrays.pop("channels", np.array([f"channel {i}" for i in range(len(x))]))
    columns = dict(zip(check_channel_names([str(name) for name in names.ravel()], len(x)), x, strict=True))
    used = {choice.time, choice.label, choice.group, *(name for name in arrays if _says_time(name))}
    beside = {name: np.full(x.shape[1], a) if a.ndim == 0 else a for name, a in arrays.items() if name in used}
    if both := sorted(columns.keys() & beside.keys()):
        raise InputError(f"{both[0]!r} is the name of a channel and of an array beside them. Rename one of them.")
    if unused := [name for name in arrays if name not in used]:
        warnings.warn(f"{path}: not used: {', '.join(unused)}.", UnusedKeysWarning, stacklevel=2)
    kept = _without_clocks(columns, list(columns), None, None) if choice.channels is None else list(choice.channels)
    wanted = choice.replace(channels=tuple(kept))
    return _from_table(table_columns(columns | beside), wanted, _time_step)._replace(rate=rate)


def _scalar(array: Array, what: str) -> float:
    if array.size != 1 or array.dtype.kind not in "iuf" or not (np.isfinite(array).all() and (array > 0).all()):
        raise InputError(f"{what!r} must be one positive number, time steps per second; got {array!r}.")
    return float(array.reshape(()))


def _read_edf(path: Path, choice: Reading) -> FileParts:
    _only_channels(path, choice)
    header = read_edf_header(path)
    labels = [channel.label for channel in header.channels if channel.label != "EDF Annotations"]
    if not labels:
        raise InputError(
            "The file holds annotations and no signal. Leave it out, for example by a pattern such as *PSG.edf."
        )
    chosen = list(choice.channels) if choice.channels is not None else labels
    signals = {label: read_edf_signal(path, label) for label in chosen}
    rates = {label: signal.rate for label, signal in signals.items()}
    if len(set(rates.values())) > 1:
        said = ", ".join(f"{label} {rate:g} Hz" for label, rate in rates.items())
        raise InputError(f"The signals have several rates: {said}. Choose those of one with channels= (--channels).")
    columns: dict[str, Array] = {label: signal.values for label, signal in signals.items()}
    units = {label: signal.unit for label, signal in signals.items()}
    rate, origin = next(iter(rates.values())), _edf_start(header.start)
    return FileParts(columns, rate=rate, origin=origin, where=_time_step, units=units)


def _edf_start(text: str) -> str | None:
    """Return the start of an EDF file as ISO text; None where the header holds no date."""
    numbers = re.findall(r"\d+", text)
    try:
        day, month, year, hour, minute, second = map(int, numbers)
        # The format counts years from 1985 to 2084.
        return datetime(year + (1900 if year >= 85 else 2000), month, day, hour, minute, second).isoformat()
    except ValueError:
        return None


def _read_wfdb(path: Path, choice: Reading) -> FileParts:
    _only_channels(path, choice)
    header = read_wfdb_header(path.with_suffix(""))
    values = read_wfdb_signals(path.with_suffix(""))
    names = [lead.name for lead in header.leads]
    # Many records of PhysioNet call every lead "ECG", and no file says which is which.
    if "" in names or len(set(names)) < len(names):
        names = [f"lead {i}" for i in range(len(names))]
    columns = dict(zip(names, values, strict=True))
    units = {name: lead.unit for name, lead in zip(names, header.leads, strict=True)}
    return FileParts(_chosen(columns, choice), rate=header.rate, where=_time_step, units=units)


def _read_wav(path: Path, choice: Reading) -> FileParts:
    _only_channels(path, choice)
    values, rate = read_wav(path)
    return FileParts(
        _chosen({f"channel {i}": row for i, row in enumerate(values)}, choice), rate=rate, where=_time_step
    )


def _time_step(row: int) -> str:
    return f"time step {row}"


def _only_channels(path: Path, choice: Reading) -> None:
    given = [
        (what, getattr(choice, what))
        for what in ("time", "unit", "label", "group")
        if getattr(choice, what) is not None
    ]
    if given:
        what, value = given[0]
        raise InputError(
            f"{what}={value!r} cannot be used with {suffix_of(path)} files, which have no columns. Leave it out."
        )


def _chosen(columns: dict[str, Array], choice: Reading) -> dict[str, Array]:
    wanted = list(columns) if choice.channels is None else list(choice.channels)
    lost = [c for c in wanted if c not in columns]
    if lost or not wanted:
        name = lost[0] if lost else ""
        raise InputError(f"There is no channel {name!r}. {did_you_mean(name, columns)}")
    return {c: columns[c] for c in wanted}


READERS: dict[str, Callable[[Path, Reading], FileParts]] = {
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".mat": _read_mat,
    ".edf": _read_edf,
    ".hea": _read_wfdb,
    ".wav": _read_wav,
}
