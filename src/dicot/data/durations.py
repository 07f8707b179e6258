"""Lengths of windows as people write them: 128 time steps, 2.56s, 500ms, or a stride of 50%."""

import math
import re

import numpy as np

from dicot.core.errors import InputError, is_whole

_SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0}
_MOST = 2**40  # time steps, more than any recording has
_TEXT = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-z%]*)\s*")


def window_length(window: str | int, rate: float | None) -> int:
    """Return the length of a window in time steps, from time steps or a time such as "2.56s"."""
    return _time_steps(window, rate, "window")


def window_stride(stride: str | int, length: int, rate: float | None) -> int:
    """Return the stride in time steps, from time steps, a time or a share of the window such as "50%"."""
    if isinstance(stride, str) and stride.strip().endswith("%"):
        number, _ = _parsed(stride, "stride")
        if not number > 0:
            raise InputError(f"stride must be more than 0% of a window; got {stride!r}. 50% makes neighbours overlap.")
        return _bounded(max(1.0, length * number / 100), stride, "stride")
    return _time_steps(stride, rate, "stride")


def _time_steps(value: str | int, rate: float | None, what: str) -> int:
    if not isinstance(value, str):
        if not is_whole(value, 1):
            raise InputError(f'{what} must be a whole number of time steps or a time such as "2.56s"; got {value!r}.')
        return _bounded(int(value), value, what)
    number, unit = _parsed(value, what)
    if unit == "" and number >= 1 and (number == math.inf or number == int(number)):
        return _bounded(number, value, what)
    if unit not in _SECONDS:
        raise InputError(
            f'{what} must be a whole number of time steps or a time in ms, s, min or h such as "2.56s"; got {value!r}.'
        )
    if rate is None:
        raise InputError(
            f"{what}={value!r} needs time stamps or a rate. Name the column of time stamps as time= (--time), say "
            f"rate= (--rate), or give {what} in time steps."
        )
    steps = number * _SECONDS[unit] * rate
    if steps <= 0.5:  # which round to none; what is no number of time steps at all is refused below
        raise InputError(
            f"{what}={value!r} is {steps:g} time steps at {rate:g} per second, less than one. If the time stamps count "
            f"milliseconds, say unit='ms'; otherwise use a longer {what}."
        )
    return _bounded(steps, value, what)


def _bounded(steps: float, value: str | int, what: str) -> int:
    if not steps <= _MOST:
        raise InputError(f"{what}={str(value)[:40]} are {steps:.3g} time steps, more than any recording has.")
    return round(steps)


def _parsed(text: str, what: str) -> tuple[float, str]:
    match = _TEXT.fullmatch(text.lower())
    if match is None:
        raise InputError(f'{what} must be a number with a unit, such as "2.56s", "500ms" or "128"; got {text!r}.')
    return float(match["number"]), match["unit"]


def seconds_text(seconds: float) -> str:
    """Write a time with three digits, as `window_length` reads it."""
    digits = max(0, 2 - math.floor(math.log10(seconds))) if seconds > 0 else 0
    return f"{np.format_float_positional(round(seconds, digits), trim='-')}s"
