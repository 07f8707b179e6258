"""Clocks of recordings: time stamps in seconds, also where a counter wraps, a clock is set back or rows came late.

One rule holds: rows that fit between others are put there, and all others keep the order of the file. The exception is
a file that stores whole parts out of order: where time goes back twice or more and no two parts overlap, all written
times are true, and the parts are put in their order.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import InputError, listed
from dicot.data.cases import Array
from dicot.data.labels import is_number, lost_values
from dicot.data.timestamps import Seconds

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # in one second
_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

# Seconds, reached in September 2001. No recording has lasted that long, so such numbers are dates.
SINCE_1970 = 1e9
# Numbers count since 1970 where that leads into these years. Seconds begin later: a smaller number is more often the
# milliseconds of a device that has been on for some days.
_FIRST_DATE = {"s": SINCE_1970, "ms": 631_152_000.0, "us": 631_152_000.0, "ns": 631_152_000.0}  # seconds; 1990
_LAST_DATE = 2_208_988_800.0  # seconds; 2040
# Time stamps farther apart than this come from a wrong unit, unless they keep to the calendar (10 minutes, a day):
# 50 Hz in nanoseconds, read as milliseconds, would be one in five hours.
_SLOWEST = 0.01  # time steps per second
_SLOWEST_SENSOR = 0.5  # time steps per second: of a unit that is chosen for its rate; lets 1 Hz jitter
_LONGEST_ON = 3.2e8  # seconds, ten years: no device has been on for longer
_NEAR = 0.1  # share by which two rates may differ and still tell the same unit: units differ by a thousand
_MINUTE = 60  # seconds


class AssumedUnit(NamedTuple):
    """A unit that nobody named, and a sentence about it where it may well be another."""

    unit: str
    remark: str = ""


def usual_step(column: Array) -> float | None:
    """Return the median of the steps forward, in the order of the rows; None where there is none."""
    steps = np.diff(column)
    forward = steps[steps > 0]
    return float(np.median(forward)) if len(forward) else None


def assumed_unit(column: Array) -> AssumedUnit:
    """Choose the unit of numbers (T,): that of dates where they can be some, or else one with a rate that sensors have.

    A unit that would make less than one time step in a hundred seconds is not chosen, unless the steps keep to the
    calendar.
    """
    least, most = float(column.min()), float(np.abs(column).max())
    step = usual_step(column)
    for unit, per_second in UNITS.items():
        is_date = least / per_second >= _FIRST_DATE[unit] and most / per_second < _LAST_DATE
        if is_date and _is_sane(step, per_second):
            return AssumedUnit(unit)

    if most < SINCE_1970 and _is_sane(step, UNITS["s"]):
        return AssumedUnit("s", _remark_on_seconds(column, step))

    for unit, per_second in UNITS.items():
        was_on = most / per_second <= _LONGEST_ON
        if was_on and (step is None or per_second / step >= _SLOWEST_SENSOR):
            return AssumedUnit(unit, _remark_on_counter(unit, per_second, step))
    raise InputError(
        f"The time stamps, up to {most:.15g}, are neither seconds nor smaller units since 1970 or since a device was "
        "switched on. Say which unit they count in: --set unit=ms (s, ms, us or ns)."
    )


def _is_sane(step: float | None, per_second: float) -> bool:
    """Tell whether sensors or the calendar have such steps."""
    if step is None or per_second / step >= _SLOWEST:
        return True
    seconds = step / per_second
    of_calendar = _DAY % seconds == 0 or seconds % _DAY == 0
    return seconds % _MINUTE == 0 and of_calendar


def _remark_on_seconds(column: Array, step: float | None) -> str:
    """Say that whole numbers two or more apart were taken for seconds: milliseconds look like that, too."""
    if step is None or step < 2 or (column != np.floor(column)).any():
        return ""
    return (
        f"The time stamps are whole numbers about {step:g} apart and were read as seconds, {1 / step:.3g} per second. "
        "If they count milliseconds, say --set unit=ms; if not, --set unit=s."
    )


def _remark_on_counter(unit: str, per_second: float, step: float | None) -> str:
    rate = "" if step is None else f", {per_second / step:.4g} per second"
    return (
        f"The time stamps are no dates and were read as {_WORDS[unit]} since the device was switched on{rate}. "
        f"--set unit={unit} confirms it; s, ms, us and ns are known."
    )


def unit_for_rate(assumed: str | None, rate: float | None, usual_rate: float) -> str | None:
    """Return another unit than assumed in which time stamps have the usual rate; None where there is none."""
    if assumed is None or rate is None:
        return None
    for unit, per_second in UNITS.items():
        rate_in_unit = rate * per_second / UNITS[assumed]
        if unit != assumed and abs(rate_in_unit - usual_rate) <= _NEAR * usual_rate:
            return unit
    return None


def unit_remedy(name: str, assumed: str, rate: float, unit: str, usual_rate: float) -> str:
    """Say that a recording would have the usual rate in another unit."""
    return (
        f"The time stamps of {name!r} were read as {_WORDS[assumed]}, {rate:.3g} per second. In {_WORDS[unit]} they "
        f"have about the {usual_rate:.4g} per second of the others. Say so: --set unit={unit}"
    )


def no_date(number: Any, unit: str) -> InputError:
    """Return the error for a number that leads beyond the dates there are."""
    year = 1970 + int(number / UNITS[unit] / 31_556_952)
    return InputError(
        f"The time stamp {number} would, in {unit} since 1970, lie in the year {year}. Check the column, or say "
        "another unit: --set unit=ms (s, ms, us or ns)."
    )


_ZONE = re.compile(r"[:T]\d+.*(Z|[+-]\d\d(:?\d\d)?)$")  # of a date in ISO 8601


Where = Callable[[int], str]  # a row by number -> "line 7", for errors


def row_name(row: int) -> str:
    """Name a row by its number, as an error does where the file has no lines."""
    return f"row {row}"


def to_seconds(
    column: Array, lost: NDArray[np.bool_], *, unit: str | None = None, where: Where = row_name
) -> tuple[Seconds, str | None]:
    """Return time stamps (T,) in seconds, and for dates the first of them as ISO text, from which the seconds count.

    Numbers are in `unit`, or without it in the one that `assumed_unit` chooses. From 1e9 seconds on they count since
    1970, and are dates as well.
    Text must be ISO 8601, all with a zone or all without. `lost` tells which are missing; those are refused.
    """
    if column.dtype.kind == "f":
        lost = lost | ~np.isfinite(column)
    if lost.any():
        raise InputError(f"{where(int(np.argmax(lost)))} has no time stamp. Fill it in or drop the row.")
    if column.dtype.kind == "O" and all(isinstance(v, Real) for v in column):
        column = np.array(column.tolist())
    if column.dtype.kind in "iuf":
        return _from_numbers(column, unit)
    if unit is not None:
        raise InputError(f"The unit {unit!r} is for time stamps that are numbers; these are not. Leave it out.")
    if column.dtype.kind == "m":
        return column / np.timedelta64(1, "s"), None
    if column.dtype.kind == "M":
        first = column.min()
        return (column - first) / np.timedelta64(1, "s"), str(np.datetime_as_string(first))
    return _from_text(column, where)


def _from_numbers(column: Array, unit: str | None) -> tuple[Seconds, str | None]:
    unit = unit or assumed_unit(column).unit
    first = column.min()
    if first / UNITS[unit] < SINCE_1970:
        return column.astype(np.float64) / UNITS[unit], None
    # Subtracted before they are divided: whole nanoseconds since 1970 have more digits than float64.
    try:
        origin = datetime.fromtimestamp(float(first / UNITS[unit]), UTC).isoformat()
    except (ValueError, OverflowError, OSError) as error:  # beyond the year 9999
        raise no_date(first, unit) from error
    return (column - first).astype(np.float64) / UNITS[unit], origin


def _from_text(column: Array, where: Where) -> tuple[Seconds, str]:
    """Read dates, as text or as Python's own."""
    cells = [cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in column.tolist()]
    # In UTC, so that an hour of summer time is neither lost nor doubled.
    dates = pd.to_datetime(pd.Series(cells, dtype=object), format="ISO8601", utc=True, errors="coerce")
    if dates.isna().any():
        row = int(np.argmax(dates.isna()))
        numbers = [isinstance(cell, Real) or is_number(str(cell)) for cell in cells]
        if 2 * sum(numbers) > len(cells) and not all(numbers):  # what is wrong is the text among numbers
            row = numbers.index(False)
        raise InputError(
            f"{where(row)}: {str(cells[row])!r} is no time stamp. Write seconds as numbers, or dates in ISO 8601 such "
            "as 2026-03-01T12:30:00.250."
        )
    zoned = np.array([has_zone(cell) if isinstance(cell, str) else cell.tzinfo is not None for cell in cells])
    if zoned.any() and not zoned.all():
        row = int(np.argmax(zoned != zoned[0]))
        raise InputError(
            f"{where(row)}: {str(cells[row])!r} and the time stamp of {where(0)} must both have a zone, or neither. "
            "Write all in one form."
        )
    since = (dates - dates.min()).to_numpy()
    return since / np.timedelta64(1, "s"), pd.Timestamp(cells[int(np.argmin(since))]).isoformat()


def has_zone(date: str) -> bool:
    """Tell whether a date in ISO 8601 says its zone."""
    return bool(_ZONE.search(date))


def utc_times(origin: str | None, seconds: Seconds) -> NDArray[np.datetime64]:
    """Return times that count from a date as UTC, in microseconds; a date without a zone is taken for UTC."""
    if origin is None:
        return np.full(len(seconds), np.datetime64("NaT", "us"))
    first = _utc(origin).tz_convert(None).to_datetime64().astype("M8[us]")
    times: NDArray[np.datetime64] = first + np.round(seconds * 1e6).astype("m8[us]")
    return times


EPOCH = "1970-01-01"


def seconds_since(origin: str | None, time: float | str) -> float:
    """Return a time in seconds as a recording counts them, whose first date is `origin`; dates are ISO 8601."""
    if not isinstance(time, str):
        return time
    if origin is None:
        raise InputError(f"{time!r} is a date, and the recording has no dates. Give the range in seconds.")
    return float((_utc(time) - _utc(origin)).total_seconds())


def _utc(text: str) -> pd.Timestamp:
    return pd.to_datetime(text, format="ISO8601", utc=True)


# A row that came late by at most so many usual steps is put where it belongs, without another look: packets hold about
# as many samples, and their stamps often overlap by a few.
_LATE = 16
_SHORT = 16  # rows between two steps back: where they are fewer, the rows of a file are in no order of time at all
_FEW_SEAMS = 4  # places where rows of two parts meet: one packet that is put between others makes three
# Where rows of one part fill holes of another, sorted rows are a usual step apart. Two parts of one time alternate, and
# their rows are half a step apart on average. This lies in the middle.
_APART = 0.75  # usual steps
# One step back may be a clock that was set back. So many, and no time told twice, are parts stored out of order.
_LEAST_OUT_OF_ORDER = 2

_HOUR, _DAY, _WEEK = 3600, 86_400, 604_800  # seconds
_COUNTER_BITS = (16, 24, 31, 32)
# Counters of so many values begin again at their lowest one. Time of day and of week do so too, in any unit, and a
# counter of 32 bits may have been divided to seconds before it was written.
_ROUNDS = sorted(
    {
        *(2.0**bits / division for bits in _COUNTER_BITS for division in (1.0, 1e3, 1e6)),
        *(float(period * per_second) for period in (_DAY, _WEEK) for per_second in (1, 10**3, 10**6, 10**9)),
    }
)


class Remark(NamedTuple):
    """What was done to the clock of a recording, or assumed of it: remarks of one kind are told together."""

    kind: str
    sentence: str


def remark_sentences(remarks: Mapping[str, Sequence[Remark]]) -> list[str]:
    """Write one sentence for each kind of remark on recordings, which names the recordings that it is about."""
    by_kind: dict[str, dict[str, str]] = {}
    for name, own_remarks in remarks.items():
        for remark in own_remarks:
            by_kind.setdefault(remark.kind, {})[name] = remark.sentence
    sentences = []
    for of_names in by_kind.values():
        first, *others = of_names
        more = f" So it is, with other numbers, in {listed(others)}." if others else ""
        sentences.append(f"{first}: {of_names[first]}{more}")
    return sentences


@dataclass(frozen=True)
class Clock:
    """The time stamps of a recording, row by row of its file."""

    times: Seconds  # (T,) in the order of the file, in which they may still go back by a little
    origin: str | None  # the date from which they count, as ISO 8601
    assumed_unit: str | None = None  # of numbers, where nobody named one
    remarks: tuple[Remark, ...] = ()


def read_clock(stamps: Array, unit: str | None, gap: float, where: Where) -> Clock:
    """Read time stamps (T,) as seconds that rise, but for rows that only came late; and say what was done to them.

    `gap` is that of a Reading: where a clock was set back for no known reason, a gap is put that is longer.
    """
    lost = lost_values(stamps)
    remarks = []
    assumed = None
    if stamps.dtype.kind in "iuf" and not lost.any() and np.isfinite(stamps).all():
        stamps, wrapped = _counted_on(stamps, where)
        remarks += wrapped
        if unit is None:
            assumed, remark = assumed_unit(stamps)
            remarks += [Remark(f"unit {assumed}", remark)] if remark else []

    times, origin = to_seconds(stamps, lost, unit=unit or assumed, where=where)
    is_local = origin is not None and not has_zone(origin)
    rows = resets(times)
    parts = _parts_out_of_order(times, rows, is_local)
    if parts:
        in_order = np.concatenate(parts)
        remarks += [_parts_put_in_order(len(parts), rows, where), *_late_rows(in_order)]
        return Clock(times, origin, assumed, tuple(remarks))
    times, set_back = _set_on(times, rows, is_local, gap, where)
    return Clock(times, origin, assumed, (*remarks, *set_back, *_late_rows(times)))


def resets(times: Array) -> list[int]:
    """Return the rows at which a clock was set back: those behind it fit nowhere between the rows before."""
    steps = np.diff(times)
    step = usual_step(times) if (steps < 0).any() else None
    if step is None:  # time only goes on; or only back, as where the newest row comes first
        return []
    large = np.flatnonzero(steps < -_LATE * step) + 1
    if len(large) * _SHORT > len(times):
        return []
    edges = [0, *large.tolist(), len(times)]
    parts = [times[start:stop] for start, stop in pairwise(edges)]
    pairs = zip(edges[1:-1], pairwise(parts), strict=True)
    return [row for row, (before, behind) in pairs if not _fit(before, behind, step)]


def _fit(before: Array, behind: Array, step: float) -> bool:
    """Tell whether rows of two parts, once they are sorted, are as far apart as others are."""
    together = np.concatenate([before, behind])
    order = np.argsort(together, kind="stable")
    changes_part = np.diff(order < len(before))
    apart = np.diff(together[order])[changes_part] / step
    if len(apart) <= _FEW_SEAMS:
        return bool(apart.min() <= _LATE)
    return bool(np.clip(apart, 0, 2).mean() >= _APART)


def _counted_on(stamps: Array, where: Where) -> tuple[Array, list[Remark]]:
    """Add its number of values to a counter of few bits wherever it began again."""
    if stamps.dtype.kind == "u":
        # Differences of numbers without a sign would never be negative. Those beyond int64 keep 53 bits.
        stamps = stamps.astype(np.int64 if stamps.max() <= np.iinfo(np.int64).max else np.float64)
    rows = resets(stamps)
    if not rows:
        return stamps, []
    step = usual_step(stamps) or 1.0
    span = float(stamps.max()) - float(stamps.min())
    for values in _ROUNDS:
        ahead = stamps[rows] - stamps[np.array(rows) - 1] + values
        if span < values and (ahead > 0).all() and (ahead <= _LATE * step).all():
            rounds = np.zeros(len(stamps), np.int64)
            rounds[rows] = 1
            is_whole = stamps.dtype.kind == "i" and values.is_integer()
            counted = stamps + np.cumsum(rounds) * (int(values) if is_whole else values)
            return counted, [_wrapped(rows, values, where)]
    return stamps, []


def _wrapped(rows: list[int], values: float, where: Where) -> Remark:
    sentence = (
        f"Its counter of time begins again after {values:.15g}, at {_places(rows, where)}. It was counted on "
        "there, and the rows keep their order."
    )
    return Remark("wrap", sentence)


def _parts_out_of_order(times: Seconds, rows: list[int], is_local: bool) -> list[Seconds]:
    """Return the parts of a file that stores them out of order, in the order of time; none where `rows` say otherwise.

    A clock that is set back tells some time twice, sooner or later. Where time goes back at two or more of `rows` and
    is nowhere told twice, no clock was set back: the parts were written in another order. After one step back alone
    nobody can know.
    """
    if len(rows) < _LEAST_OUT_OF_ORDER:
        return []
    step = usual_step(times) or 1.0
    late = _LATE * step
    backs = times[np.array(rows) - 1] - times[rows]
    if is_local:
        backs = backs[np.abs(_HOUR - backs) > late]
    if len(backs) < _LEAST_OUT_OF_ORDER:
        return []

    # A part that was written late may belong into a hole of another, so parts end at large steps ahead, too.
    edges = np.flatnonzero(np.abs(np.diff(times)) > late) + 1
    pieces = np.split(times, edges)
    order = np.argsort([piece.min() for piece in pieces], kind="stable")
    pieces = [pieces[place] for place in order]
    if any(behind.min() < before.max() - late for before, behind in pairwise(pieces)):
        return []

    # Pieces that follow each other in the file as in time are one part.
    is_next = np.diff(order) == 1
    starts = np.flatnonzero(~is_next) + 1
    bounds = [0, *starts.tolist(), len(pieces)]
    return [np.concatenate(pieces[start:stop]) for start, stop in pairwise(bounds)]


def _parts_put_in_order(n_parts: int, rows: list[int], where: Where) -> Remark:
    sentence = (
        f"Its time goes back at {_places(rows, where)}, and no time is told twice: its {n_parts:,} parts were put in "
        "the order of time, with their times as written. If several recordings share the file, name the column that "
        "tells them apart: --group NAME."
    )
    return Remark("parts", sentence)


def _set_on(times: Seconds, rows: list[int], is_local: bool, gap: float, where: Where) -> tuple[Seconds, list[Remark]]:
    """Let time go on at `rows`, where a clock was set back: by an hour at the end of summer time, or behind a gap."""
    if not rows:
        return times, []
    step = usual_step(times) or 1.0
    times = times.copy()
    hours: list[int] = []
    cuts: list[int] = []
    moved_by = []
    for row, stop in pairwise([*rows, len(times)]):
        last = times[:row].max()
        back = float(last - times[row])
        if is_local and 0 < _HOUR - back <= _LATE * step:
            shift = float(_HOUR)
            hours.append(row)
        else:
            steps_here = usual_step(times[row:stop]) or step
            shift = back + (gap + 2) * max(step, steps_here)
            cuts.append(row)
            moved_by.append(shift)
        times[row:] += shift
    remarks = []
    if hours:
        remarks.append(_summer_time(hours, where))
    if cuts:
        remarks.append(_cut(cuts, moved_by, where))
    return times, remarks


def _summer_time(rows: list[int], where: Where) -> Remark:
    sentence = (
        f"Its clock goes back by an hour at {_places(rows, where)}, as at the end of summer time. Its rows keep their "
        "order, and from there on its times are an hour later than written. To keep the written times, write dates "
        "with their zone: 2026-10-25T02:00:00+01:00."
    )
    return Remark("summer time", sentence)


def _cut(rows: list[int], moved_by: list[float], where: Where) -> Remark:
    total = f"{sum(moved_by):,.6g} s" if len(rows) == 1 else f"up to {sum(moved_by):,.6g} s"
    sentence = (
        f"Its time goes back at {_places(rows, where)}. The recording is cut there: its rows keep their order, and "
        f"the times behind are {total} later than written. If several recordings share the file, name the column that "
        "tells them apart: --group NAME. If the rows are only out of order, sort the file by time."
    )
    return Remark("set back", sentence)


def _late_rows(times: Seconds) -> list[Remark]:
    steps = np.diff(times)
    n_back = int(np.count_nonzero(steps < 0))
    if not n_back:
        return []
    sentence = (
        f"Time goes back at {n_back:,} of its {len(times):,} rows, by at most {-steps.min():.3g} s: its rows were put "
        "in the order of time."
    )
    return [Remark("late", sentence)]


def _places(rows: list[int], where: Where) -> str:
    others = f" and {len(rows) - 1} other rows" if len(rows) > 1 else ""
    return f"{where(rows[0])}{others}"
