"""Labels, groups, names of channels and rates as users pass them: checked, and as numbers or text."""

import hashlib
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.data.cases import Array, name_cases, to_array

_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
_LARGEST_WHOLE = 1e20  # beyond any dtype of whole numbers
LOST = ["", "?", "NA", "Na", "na", "NAN", "NaN", "Nan", "nan", "NULL", "Null", "null"]  # a value that is missing
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_EXACT = 2**53  # float64 holds every whole number up to here


def is_number(cell: str) -> bool:
    """Tell whether a cell of a file is a number as programs write it; Python would also read 1_000 and other digits."""
    if cell in LOST or "_" in cell or not cell.isascii():
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_value(cell: str) -> bool:
    return cell in LOST or is_number(cell)


def decimal_comma(cell: str) -> str:
    """Return what to do about a number with a decimal comma; nothing if the cell is none."""
    said = "Write numbers with a decimal point, not a comma (pandas: read_csv(..., decimal=',') and to_csv)."
    return said if _DECIMAL_COMMA.fullmatch(cell) else ""


def as_text(value: Any) -> Any:
    """Write labels or groups, one or an array, as text that tells them apart; "" where one is not known.

    A number is written by the digits that give it back, a whole one without a point, whatever its type: 1, not 1.0.
    A UTC time is written as ISO 8601, to the millisecond or, where one of them is finer, the microsecond.
    """
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind == "f":
        numbers = array.reshape(-1).tolist()
        whole = [v.is_integer() and abs(v) < _LARGEST_WHOLE for v in numbers]
        written = ["" if v != v else str(int(v)) if w else repr(v) for v, w in zip(numbers, whole, strict=True)]
        texts = np.array(written, dtype=np.str_).reshape(array.shape)
    elif array.dtype.kind == "M":
        whole = (array.astype("M8[ms]") == array) | np.isnat(array)
        dates = array.astype("M8[ms]" if whole.all() else "M8[us]").astype(np.str_)
        texts = np.where(np.isnat(array), "", np.char.add(dates, "Z"))
    else:
        texts = array.astype(np.str_)
    return texts if array.ndim else texts.item()


def plain_text(text: str) -> str:
    """Write a label or a group of a file as `as_text` writes that number: 1 for 1.0; 007, 1e3 and 1.50 are text."""
    found = _WHOLE.fullmatch(text)
    return text if found is None else found[1] if found[1] != "-0" else "0"


def plain_values(values: Array) -> Array:
    """Make labels or groups of a file comparable with others': plain text, also of numbers that float64 would round."""
    if values.dtype.kind == "U" and np.char.endswith(values, "0").any():
        return np.array([plain_text(v) for v in values.tolist()], dtype=np.str_)
    return as_text(values) if _is_long(values) else values


def _is_long(values: Array) -> bool:
    return values.dtype.kind in "iu" and bool(len(values)) and not -_EXACT <= values.min() <= values.max() <= _EXACT


def join_column(parts: Sequence[Array | None], counts: Sequence[int]) -> Array | None:
    """Join a column: as text where some part has text, and unknown where a part knows none; None where all do."""
    if all(part is None for part in parts):
        return None
    if times := [part for part in parts if part is not None and part.dtype.kind == "M"]:
        lost = [np.full(n, np.array("NaT", times[0].dtype)) for n in counts]
        return np.concatenate([other if part is None else part for part, other in zip(parts, lost, strict=True)])
    # Where nothing is labelled it does not matter by which type.
    arrays = [
        np.full(n, np.nan) if part is None or (part.dtype.kind == "U" and not labelled(part).any()) else part
        for part, n in zip(parts, counts, strict=True)
    ]
    joined = np.result_type(*arrays).kind  # "f" of whole numbers and others: float64 may round one of them
    if joined == "U" or (joined == "f" and any(map(_is_long, arrays))):
        arrays = [as_text(a) for a in arrays]
    return np.concatenate(arrays)


def labelled(y: Array) -> NDArray[np.bool_]:
    """Tell which labels of Windows (N,) are known: NaN among numbers and the empty string among text are not."""
    if y.dtype.kind == "M":
        return ~np.isnat(y)
    if y.dtype.kind == "f":
        return ~np.isnan(y)
    known: NDArray[np.bool_] = y != "" if y.dtype.kind == "U" else np.ones(len(y), dtype=bool)
    return known


def lost_values(column: Array) -> NDArray[np.bool_]:
    """Tell where a column has no value: NaN, None, pandas.NA, NaT or an empty text."""
    lost: NDArray[np.bool_] = np.asarray(pd.isna(column))
    if column.dtype.kind in "US":
        lost |= column == column.dtype.type()
    if column.dtype == object:
        lost |= np.array([isinstance(value, str) and not value for value in column], dtype=bool)
    return lost


def check_labels(y: Any, n: int, what: str, noun: str = "cases") -> Array:
    """Return labels as an array (n,) of numbers or of strings, one for each of the n things called `noun`.

    NaN, None, pandas.NA and the empty string mean unlabelled; `labelled` tells which are not.
    """
    if isinstance(y, np.ma.MaskedArray):
        y = y.tolist()  # None for what is masked
    if isinstance(y, list | tuple):
        # Not by way of one dtype for all: numpy would write NaN among strings as "nan", and round large numbers.
        labels = np.array(y, dtype=object)
    elif hasattr(y, "iloc") and y.isna().to_numpy().any():
        labels = np.asarray(y.to_numpy(dtype=object, na_value=None))
    else:
        labels = to_array(y)
    if labels.shape != (n,):
        got = len(labels) if labels.ndim == 1 else labels.shape
        raise InputError(f"{what} must have one value for each of the {n} {noun}; got {got}.")
    if labels.dtype.kind in "OT":
        labels = _plain(labels.astype(object), what)
    elif labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind not in "biufU" or (labels.dtype.kind == "f" and np.isinf(labels).any()):
        raise InputError(f"{what} must hold strings or numbers, not inf or {labels.dtype}. Pass None for no label.")
    return labels if labelled(labels).all() or labels.dtype.kind == "U" else labels.astype(np.float64, copy=False)


def check_groups(group: Any, n: int, what: str, noun: str = "cases") -> Array:
    """Return group ids as check_labels returns labels; each must be known."""
    ids = check_labels(group, n, what, noun)
    if len(lost := np.flatnonzero(~labelled(ids))):
        which = name_cases(lost, noun.removesuffix("s"), noun)
        raise InputError(f"{what} has no value at {which}. Fill it in, drop these {noun}, or pass no {what}.")
    return ids


def _plain(values: Array, what: str) -> Array:
    """Turn objects into one array of strings or of numbers, with missing ones marked as `labelled` expects it.

    Whole numbers stay as they are, or become text where no dtype can represent all values exactly. True and False
    beside what is missing are text too, as they are without it in other files.
    """
    items = [_python_value(value) for value in values]
    known = [item for item in items if not _is_missing(item)]
    has_text = any(isinstance(item, str) for item in items)
    if not known and not has_text:
        return np.full(len(items), np.nan)
    if all(isinstance(item, str) for item in known):
        return np.array(["" if _is_missing(item) else item for item in items], dtype=np.str_)
    if not all(isinstance(item, int | float) for item in known):
        kinds = ", ".join(sorted({type(item).__name__ for item in known}))
        raise InputError(f"{what} must hold only strings or only numbers; got {kinds}. Convert them to one type.")

    is_complete = len(known) == len(items)
    if is_complete and all(isinstance(item, int) for item in known):
        whole = np.array(items)
        if whole.dtype.kind in "biu":
            return whole
    are_truth_values = all(isinstance(item, bool) for item in known)
    if not are_truth_values and all(_is_exact_in_float64(item) for item in known):
        return np.array([np.nan if _is_missing(item) else item for item in items], dtype=np.float64)
    return np.array(["" if _is_missing(item) else as_text(item) for item in items])


def _python_value(value: Any) -> Any:
    """Return a value of Python for a scalar of numpy or a tensor, and text for bytes."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _is_missing(value: Any) -> bool:
    """Tell whether a value means that nobody knows it: None, NA, NaT, an empty text or NaN, which is not itself."""
    return value is None or value is pd.NA or value is pd.NaT or value == "" or value != value


def _is_exact_in_float64(value: float) -> bool:
    return isinstance(value, float) or abs(value) <= _EXACT


def name_of_groups(group: Array | None, recording: Array | None, column: str | None = None) -> str:
    """Name what a group is: a recording where it is one, else as its column is called, else a group."""
    if recording is not None and (group is None or np.array_equal(group.astype(str), recording.astype(str))):
        return "recording"
    return column or "group"


def label_fingerprint(y: Array | None) -> str:
    """Return 16 hex digits that change with the class of any case, not with their names; "" without labels."""
    if y is None:
        return ""
    known = labelled(y)
    numbers = np.full(len(y), -1, dtype=np.int64)  # unlabelled cases are a class of their own
    numbers[known] = np.unique(y[known], return_inverse=True)[1]
    return hashlib.sha256(numbers.tobytes()).hexdigest()[:16]


def check_channel_names(channels: Any, n_channels: int) -> tuple[str, ...]:
    """Return one name per channel, all different, as a tuple."""
    names = tuple(channels)
    named = not isinstance(channels, str) and all(isinstance(name, str) and name for name in names)
    if not named or len(names) != n_channels or len(set(names)) < len(names):
        raise InputError(f"channels must name each of the {n_channels} channel(s) once; got {len(names)}: {names}.")
    return names


def check_rate(rate: Any) -> float:
    """Return time steps per second as a float."""
    number = isinstance(rate, int | float | np.integer | np.floating) and not isinstance(rate, bool)
    if not number or not 0 < rate <= sys.float_info.max:  # a whole number may be larger than any float
        raise InputError(f"rate must be a positive number of time steps per second; got {str(rate)[:40]}.")
    return float(rate)
