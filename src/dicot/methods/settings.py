"""Settings of a method are of the kind that its constructor states: the word "fals" is no switch that is off."""

import math
import reprlib
from collections.abc import Mapping, Sequence
from inspect import signature
from numbers import Integral
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import numpy as np

from dicot.core.errors import InputError, did_you_mean

_WORDS = {bool: "true or false", int: "a whole number", float: "a finite number", str: "text", NoneType: "none"}
_LARGEST = 2**63  # what a drawn whole number may not reach


def check_settings(kind: type, settings: Mapping[str, Any], what: str) -> None:
    """Refuses names that the constructor of `kind` does not know, and values of another kind than it states."""
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
    if get_origin(hint) is UnionType:
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) is Sequence:
        return isinstance(value, list | tuple) and all(_fits(item, get_args(hint)[0]) for item in value)
    if hint in (int, float) and isinstance(value, bool):
        return False
    if hint is int:
        return isinstance(value, Integral) and abs(int(value)) < _LARGEST
    if hint is float:
        return _fits(value, int) or (isinstance(value, float | np.floating) and math.isfinite(value))
    return not isinstance(hint, type) or isinstance(value, hint)


def _in_words(hint: Any) -> str:
    if get_origin(hint) is UnionType:
        return " or ".join(_in_words(one) for one in get_args(hint))
    if get_origin(hint) is Sequence:
        return f"a list, each of it {_in_words(get_args(hint)[0])}"
    return _WORDS.get(hint, str(hint))
