"""Recording: one long series with its time stamps, made of the parts that a reader finds in a file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, SettingNeededError, did_you_mean
from dicot.core.settings import COLUMN, how_to_set
from dicot.data.cases import Array, FloatArray
from dicot.data.clocks import Remark, Where, read_clock, row_name
from dicot.data.conversion import LARGEST_VALUE, is_swallowed
from dicot.data.labelcolumns import FewValues
from dicot.data.labels import as_text, check_labels, decimal_comma, is_number, lost_values, plain_values
from dicot.data.offsets import loses_stretches
from dicot.data.ranges import Misplaced, TableRange
from dicot.data.reading import Reading
from dicot.data.timestamps import Seconds, stretches, time_order, usual_rate

_MICROVOLTS = {"nv": 1e-3, "uv": 1.0, "mv": 1e3, "v": 1e6}  # in each unit of voltage, as EDF and WFDB write it


@final
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
    ranges: tuple[TableRange, ...] = ()  # stretches of it with a label, as a table gives them
    n_merged: int = 0  # rows of its file that became one with the row before, because both have one time stamp
    remarks: tuple[Remark, ...] = ()  # what was done to its clock, or assumed of it
    assumed_unit: str | None = None  # of its time stamps, where these are numbers and nobody named one
    # Of the first recording of a file: how many ranges the table has for the file, and those that do not lie in it.
    n_ranges: int = 0
    misplaced: tuple[Misplaced, ...] = ()
    lacking: tuple[str, ...] = ()  # columns of labels, or to leave out, that were named and that its file has not
    columns: tuple[str, ...] = ()  # that its file has, where it lacks one
    texts: Mapping[str, FewValues] = field(
        default_factory=dict
    )  # columns of words that may be labels; nobody named one

    @property
    def n_times(self) -> int:
        return int(self.values.shape[1])


class Parts(NamedTuple):
    """What a reader finds in a file; `recordings_of` checks it."""

    columns: Mapping[str, Array]  # the channels, as they came, (T,) each
    stamps: Array | None = None
    rate: float | None = None
    label: Any = None  # (T,), or one value
    group: Array | None = None  # (T,)
    origin: str | None = None
    where: Where = row_name
    units: Mapping[str, str] = {}  # of the channels, as the file has them; voltages become microvolts
    unit: str | None = None  # of the time stamps, as their name says
    held: tuple[str, ...] = ()  # all columns of a table
    lacking: tuple[str, ...] = ()  # columns of labels, or to leave out, that were named and are not there
    texts: Mapping[str, FewValues] = {}  # columns of words that may be labels, where nobody named a label


def recordings_of(name: str, parts: Parts, reading: Reading) -> list[Recording]:
    """Make the recordings of a file: one, or where there is a column of groups one for each."""
    values = _values_of(parts)
    if parts.group is None:
        return [_recording(name, values, parts, None, reading)]
    lost = lost_values(parts.group)
    if lost.any():
        raise InputError(f"{parts.where(int(np.argmax(lost)))} has no group. Fill it in or drop the row.")

    ids = plain_values(check_labels(parts.group, len(parts.group), "group", "rows"))
    groups, first, codes = np.unique(ids, return_index=True, return_inverse=True)
    recordings = []
    for number in np.argsort(first):
        group = groups[number]
        called = name if len(groups) == 1 else f"{name}:{as_text(group)}"
        recordings.append(_recording(called, values, parts, np.flatnonzero(codes == number), reading, group.item()))
    return recordings


def _values_of(parts: Parts) -> FloatArray:
    """Return the channels (C, T) as float32, or as float64 where that would swallow differences."""
    n_times = {len(column) for column in parts.columns.values()}
    if n_times == {0}:
        raise InputError("The file has no row of values. Write it again, or leave it out.")
    values = np.empty((len(parts.columns), n_times.pop()))
    for row, (channel, column) in enumerate(parts.columns.items()):
        values[row] = numbers(column, channel, parts.where) * (_microvolts(parts.units.get(channel, "")) or 1)
        if not np.nanmax(np.abs(values[row]), initial=0) <= LARGEST_VALUE:
            at = int(np.argmax(np.abs(values[row]) > LARGEST_VALUE))
            held = "inf" if np.isinf(values[row, at]) else f"{values[row, at]:g}, too large for a network"
            raise InputError(f"{parts.where(at)}, column {channel!r} holds {held}. Remove or clip the value.")
    low, high = np.nanmin(values, axis=1, initial=np.inf), np.nanmax(values, axis=1, initial=-np.inf)
    needs_float64 = is_swallowed(low, high) or loses_stretches(values)
    return values if needs_float64 else values.astype(np.float32)


class RowTimes(NamedTuple):
    """When the rows of a recording were taken."""

    rows: Array | None = None  # of the file, in the order of time; None: all of them as they are
    times: Seconds | None = None  # one for each burst, where rows of one time stamp become one
    burst_starts: Array | None = None  # among the rows; None where every row has a time stamp of its own
    rate: float | None = None
    origin: str | None = None
    assumed_unit: str | None = None
    remarks: tuple[Remark, ...] = ()


def _row_times(parts: Parts, rows: Array | None, n_rows: int, reading: Reading) -> RowTimes:
    """Read the time stamps of these rows, or of all."""
    unit = reading.unit or parts.unit
    if parts.stamps is None:
        if unit is not None:
            remedy = how_to_set("time", COLUMN)
            raise InputError(f"The unit {unit!r} is for time stamps, and there are none. Name their column: {remedy}.")
        return RowTimes(rows, rate=parts.rate, origin=parts.origin)

    places = np.arange(n_rows) if rows is None else rows

    def where(row: int) -> str:
        return parts.where(int(places[row]))

    clock = read_clock(parts.stamps[places], unit, reading.gap, where)
    times = clock.times
    order = time_order(times)
    if order is not None:
        rows, times = places[order], times[order]
    starts: Array | None = burst_starts(times)
    if starts is not None and len(starts) == len(times):
        starts = None
    elif starts is not None:
        if reading.duplicates == "error":
            refuse_bursts(starts, np.arange(len(times)) if order is None else order, where)
        times = times[starts]
    rate = usual_rate(times, stretches(times, reading.gap)) if parts.rate is None else parts.rate
    return RowTimes(rows, times, starts, rate, clock.origin, clock.assumed_unit, clock.remarks)


def _recording(
    name: str, values: Array, parts: Parts, rows: Array | None, reading: Reading, group: Any = None
) -> Recording:
    """Make a recording of these rows, or of all, in the order of their time stamps."""
    row_times = _row_times(parts, rows, values.shape[1], reading)
    label = parts.label
    if isinstance(label, np.ndarray):
        label = label if row_times.rows is None else label[row_times.rows]
        label = plain_values(check_labels(label, len(label), "label", "rows"))
    if row_times.rows is not None:
        values = np.ascontiguousarray(values[:, row_times.rows])
    n_rows = values.shape[1]
    if row_times.burst_starts is not None:
        values = merge_values(values, row_times.burst_starts, reading.duplicates)
        label = merge_labels(label, row_times.burst_starts)
    return Recording(
        name,
        values,
        tuple(parts.columns),
        row_times.times,
        row_times.rate,
        label,
        group,
        row_times.origin,
        units=tuple("uV" if _microvolts(unit) else unit for unit in parts.units.values()),
        n_merged=n_rows - values.shape[1],
        remarks=row_times.remarks,
        assumed_unit=row_times.assumed_unit,
        lacking=parts.lacking,
        columns=parts.held if parts.lacking else (),
        texts=parts.texts,
    )


def _microvolts(unit: str) -> float | None:
    """Return how many microvolts one of this unit is; None where it is no unit of voltage."""
    return _MICROVOLTS.get(re.sub("â?[µμ]", "u", unit.lower()))  # of text in UTF-8 that was read as Latin-1, too


def numbers(column: Array, channel: str, where: Where = row_name) -> Array:
    """Return a channel in float64, NaN where a value is missing; text that is no number is refused with its row."""
    if column.dtype.kind in "OUS":
        lost = lost_values(column)
        for row in np.flatnonzero(~lost):
            if not isinstance(column[row], Real) and not is_number(str(column[row])):
                cell = str(column[row])
                without_it = how_to_set("ignore", [channel])
                remedy = decimal_comma(cell) or f"Repair it, or leave the column out: {without_it}."
                raise InputError(f"{where(int(row))}, column {channel!r}: {cell!r} is not a number. {remedy}")
        column = np.where(lost, np.nan, column)
    elif column.dtype.kind not in "biuf":
        raise InputError(
            f"Column {channel!r} must hold numbers; got dtype {column.dtype}. Leave it out of --channels, or say "
            f"{how_to_set('ignore', [channel])}."
        )
    return column.astype(np.float64)


def signals(columns: Mapping[str, Array], reading: Reading, **known: Any) -> Parts:
    """Return the parts of a file of signals without columns, with the channels that were asked for."""
    if given := [what for what in ("time", "unit", "label", "group") if getattr(reading, what) is not None]:
        value = getattr(reading, given[0])
        raise InputError(f"{given[0]}={value!r} is for tables, and this file has no columns. Leave it out.")
    ignore = reading.ignore or ()
    wanted = reading.channels or tuple(channel for channel in columns if channel not in ignore)
    if lost := [channel for channel in wanted if channel not in columns]:
        raise InputError(f"There is no channel {lost[0]!r}. {did_you_mean(lost[0], columns)}")
    units = {channel: known["units"][channel] for channel in wanted} if "units" in known else {}
    lacking = tuple(channel for channel in ignore if channel not in columns)
    known |= {"where": lambda row: f"time step {row}", "units": units, "lacking": lacking}
    known |= {"held": tuple(columns)} if lacking else {}
    return Parts({c: columns[c] for c in wanted}, **known)


def burst_starts(times: Seconds) -> NDArray[np.intp]:
    """Return the places in sorted time stamps (T,) at which another one begins than before."""
    return np.flatnonzero(np.diff(times, prepend=-np.inf) != 0)


def refuse_bursts(starts: NDArray[np.intp], rows: Array, where: Where = row_name) -> None:
    """Raise the error for time stamps that are not all different: `rows` (T,) are the rows in the order of time."""
    longest = int(np.diff(starts, append=len(rows)).max())
    n_shared = len(rows) - len(starts)
    place = _first_repeated(starts, len(rows))
    raise SettingNeededError(
        f"{n_shared:,} of {len(rows):,} rows share their time stamp with the row before, in bursts of up to "
        f"{longest:,}; the first is {where(int(rows[place]))}. Average each burst by --duplicates mean, or keep its "
        "first row by --duplicates first. If several recordings share the file, name the column that tells them "
        f'apart: {how_to_set("group", COLUMN)}, of a DataFrame recording="{COLUMN}".',
        duplicates="mean",
    )


def _first_repeated(starts: NDArray[np.intp], n_rows: int) -> int:
    """Return the first place whose time stamp is that of the place before."""
    is_start = np.zeros(n_rows, dtype=bool)
    is_start[starts] = True
    return int(np.argmin(is_start))


def merge_values(values: Array, starts: NDArray[np.intp], how: str) -> Array:
    """Return one row of values (C, T) for each burst: its first, or the mean of what is not missing in it."""
    if how == "first":
        return np.ascontiguousarray(values[:, starts])
    is_missing = np.isnan(values)
    exact = np.where(is_missing, 0.0, values).astype(np.float64)
    sums = np.add.reduceat(exact, starts, axis=1)
    counts = np.add.reduceat((~is_missing).astype(np.int64), starts, axis=1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means.astype(values.dtype)


def merge_labels(label: Any, starts: NDArray[np.intp]) -> Any:
    """Return the label of the first row of each burst; one label of a whole recording stays."""
    return label[starts] if isinstance(label, np.ndarray) else label
