"""Labels, groups, names of channels and rates as users pass them: checked, and as numbers or text."""

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.data.cases import to_array
from dicot.data.policies import Array, name_cases
from dicot.data.texts import EXACT, as_text, text_array


def labelled(y: Array) -> NDArray[np.bool_]:
    """Tell which labels of Windows (N,) are known: NaN among numbers and the empty string among text are not."""
    if y.dtype.kind == "f":
        return ~np.isnan(y)
    known: NDArray[np.bool_] = y != "" if y.dtype.kind == "U" else np.ones(len(y), dtype=bool)
    return known


def check_labels(y: Any, n: int, what: str, noun: str = "cases") -> Array:
    """Return labels as an array (n,) of numbers or of strings, one for each of the n things called `noun`.

    NaN, None, pandas.NA and the empty string mean unlabelled; `labelled` tells which are not.
    """
    labels = _to_values(y)
    if labels.ndim != 1:
        raise InputError(f"{what} must have shape ({noun},); got {labels.shape}. Pass one value for each.")
    if len(labels) != n:
        raise InputError(f"{what} must have one value for each of the {n} {noun}; got {len(labels)}.")
    if labels.dtype == object:
        labels = _plain(labels, what)
    elif labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind not in "biufU":
        raise InputError(f"{what} must hold strings or numbers; got dtype {labels.dtype}. Convert it first.")
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        which = name_cases(np.flatnonzero(np.isinf(labels)), noun.removesuffix("s"), noun)
        raise InputError(f"{what} contains inf at {which}. Pass None or NaN for what has no label.")
    return labels if labelled(labels).all() or labels.dtype.kind == "U" else labels.astype(np.float64, copy=False)


def name_of_groups(group: Array | None, recording: Array | None, column: str | None = None) -> str:
    """Name what a group is: a recording where it is one, else as its column is called, else a group."""
    if recording is not None and (group is None or np.array_equal(group.astype(str), recording.astype(str))):
        return "recording"
    return column or "group"


def check_groups(group: Any, n: int, what: str, noun: str = "cases") -> Array:
    """Return group ids as check_labels returns labels; each must be known."""
    ids = check_labels(group, n, what, noun)
    lost = np.flatnonzero(~labelled(ids))
    if len(lost):
        which = name_cases(lost, noun.removesuffix("s"), noun)
        raise InputError(f"{what} has no value at {which}. Fill it in, drop these {noun}, or pass no {what}.")
    return ids


def _to_values(y: Any) -> Array:
    """Return an array of numbers or text, or of objects where some values may be missing."""
    if isinstance(y, np.ma.MaskedArray):
        y = y.tolist()  # None for what is masked
    if isinstance(y, list | tuple):
        # Not by way of one dtype for all: numpy would write NaN among strings as "nan", and round large numbers.
        try:
            return np.array(y, dtype=object)
        except ValueError as error:
            raise InputError(f"The values cannot be read as one array ({error}). Pass numpy arrays.") from error
    if hasattr(y, "iloc") and y.isna().to_numpy().any():
        return np.asarray(y.to_numpy(dtype=object, na_value=None))
    values = to_array(y)
    return values.astype(object) if values.dtype.kind == "T" else values


def _plain(values: Array, what: str) -> Array:
    """Turn objects into one array of strings or of numbers, with missing ones marked as `labelled` expects it."""
    items = [v.item() if getattr(v, "ndim", None) == 0 else v for v in values]  # numpy's scalars and tensors
    items = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in items]
    known = [v for v in items if not _is_lost(v)]
    if all(isinstance(v, str) for v in known):
        if not any(isinstance(v, str) for v in items):
            return np.full(len(items), np.nan)
        return text_array(["" if _is_lost(v) else v for v in items])
    if all(isinstance(v, int | float) for v in known):
        return _numbers(items, known)
    kinds = ", ".join(sorted({type(v).__name__ for v in known}))
    raise InputError(f"{what} must hold only strings or only numbers; got {kinds}. Convert them to one type.")


def _numbers(items: list[Any], known: list[Any]) -> Array:
    """Return whole numbers as they are, or as text where no dtype can represent all values exactly.

    True and False beside what is missing are text too, as they are without it in other files.
    """
    whole = all(isinstance(v, int) for v in known)
    if whole and len(known) == len(items):
        numbers = np.array(items)
        if numbers.dtype.kind in "biu":
            return numbers
    is_bool = all(isinstance(v, bool) for v in known)
    if not is_bool and all(isinstance(v, float) or abs(v) <= EXACT for v in known):
        return np.array([np.nan if _is_lost(v) else v for v in items], dtype=np.float64)
    return np.array(["" if _is_lost(v) else as_text(v) for v in items])


def _is_lost(value: Any) -> bool:
    # pandas.NA cannot be compared, so it is told by its name.
    nan = isinstance(value, float) and math.isnan(value)
    return (
        value is None or nan or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, str) and not value)
    )


def check_channel_names(channels: Any, n_channels: int) -> tuple[str, ...]:
    """Return one name per channel, all different, as a tuple."""
    if isinstance(channels, str) or not all(isinstance(name, str) and name for name in channels):
        raise InputError(f"channels must be a sequence of names; got {channels!r}. Pass one text for each channel.")
    names = tuple(str(name) for name in channels)
    if len(names) != n_channels:
        raise InputError(f"channels must name each of the {n_channels} channel(s); got {len(names)}: {names}.")
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Every channel needs a name of its own; {', '.join(twice)} came more than once.")
    return names


def check_rate(rate: Any) -> float:
    """Return time steps per second as a float."""
    number = isinstance(rate, int | float | np.integer | np.floating) and not isinstance(rate, bool)
    if not number or not 0 < rate <= sys.float_info.max:  # a whole number may be larger than any float
        raise InputError(f"rate must be a positive number of time steps per second; got {str(rate)[:40]}.")
    return float(rate)
