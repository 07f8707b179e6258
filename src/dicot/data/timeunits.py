"""Units of time stamps that are plain numbers: which one they count in, where nobody says so."""

from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import InputError
from dicot.data.cases import Array

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
_MINUTE, _DAY = 60, 86_400  # seconds


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
