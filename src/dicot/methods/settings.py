"""Settings of a method are of the kind and in the range that its constructor states.

The word "fals" is no switch that is off. Settings are checked where they enter, by `build_method`.
"""

import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from numbers import Integral
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import numpy as np

from dicot.core.errors import InputError, did_you_mean


class Limit(NamedTuple):
    """What a setting must be, in words, and whether a value is that."""

    words: str
    holds: Callable[[Any], bool]


def one_of(*words: str) -> Limit:
    """One of these words."""
    return Limit(f"one of {', '.join(words)}", lambda value: value in words)


Positive = Annotated[float, Limit("a finite number above 0", lambda value: value > 0)]
NotNegative = Annotated[float, Limit("a finite number, 0 or more", lambda value: value >= 0)]
Share = Annotated[float, Limit("a finite number from 0 to 1", lambda value: 0 <= value <= 1)]
ShareBelowOne = Annotated[float, Limit("a finite number, 0 or more and below 1", lambda value: 0 <= value < 1)]
Count = Annotated[int, Limit("a whole number, 1 or more", lambda value: value >= 1)]
CountFromZero = Annotated[int, Limit("a whole number, 0 or more", lambda value: value >= 0)]

_WORDS = {bool: "true or false", int: "a whole number", float: "a finite number", str: "text", NoneType: "none"}
_LARGEST = 2**63  # what a drawn whole number may not reach


def check_settings(kind: type, settings: Mapping[str, Any], what: str) -> None:
    """Refuse names that the constructor of `kind` does not know, and values that it does not state."""
    parameters = signature(kind, eval_str=True).parameters.values()
    known = {given.name: given.annotation for given in parameters if given.kind is given.KEYWORD_ONLY}
    problems = [f"it has no {name[:40]!r} ({did_you_mean(name[:40], known)})" for name in settings if name not in known]
    problems += [
        f"{name} must be {_in_words(known[name])}; got {reprlib.repr(value)}"
        for name, value in settings.items()
        if name in known and not _fits(value, known[name])
    ]
    if problems:
        raise InputError(f"{what} does not take these settings: {'; '.join(problems)}.")


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fits(value, inner[0]) and inner[1].holds(value)
    if origin in (UnionType, Union):
        return any(_fits(value, one) for one in inner)
    if origin is Sequence:
        return isinstance(value, list | tuple) and all(_fits(item, inner[0]) for item in value)
    if hint in (int, float) and isinstance(value, bool):
        return False
    if hint is int:
        return isinstance(value, Integral) and abs(int(value)) < _LARGEST
    if hint is float:
        return _fits(value, int) or (isinstance(value, float | np.floating) and math.isfinite(value))
    return not isinstance(hint, type) or isinstance(value, hint)


def _in_words(hint: Any) -> str:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return str(inner[1].words)
    if origin in (UnionType, Union):
        return " or ".join(map(_in_words, inner))
    if origin is Sequence:
        return f"a list, each of it {_in_words(inner[0])}"
    return _WORDS.get(hint, str(hint))
