"""Text as numpy holds it, where every text of an array takes the room of the longest; labels and groups as text."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, quoted

# What takes less is harmless; above it one long text must not make many short ones a hundred times as wide.
_SMALL = 1 << 26
_MOST_TIMES = 100
_CHARACTER = np.dtype("U1").itemsize
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
_LARGEST_WHOLE = 1e20  # beyond any dtype of whole numbers
LOST = ["", "?", "NA", "Na", "na", "NAN", "NaN", "Nan", "nan", "NULL", "Null", "null"]  # a value that is missing
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
EXACT = 2**53  # float64 holds every whole number up to here


def text_array(texts: Sequence[str]) -> NDArray[np.str_]:
    """Make an array of texts, unless one of them is so long that all the others would fill the memory."""
    lengths = [len(text) for text in texts]
    longest = max(lengths, default=0)
    if _CHARACTER * longest * len(texts) > max(_SMALL, _MOST_TIMES * _CHARACTER * sum(lengths)):
        row = lengths.index(longest)
        raise InputError(
            f"A text of {longest:,} characters ({quoted(texts[row])}, row {row}) among {len(texts):,} short ones would "
            f"take {_CHARACTER * longest * len(texts):,} bytes. Shorten it, or leave its column out."
        )
    return np.array(texts, dtype=np.str_)


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
    """Tell whether a cell is a number or empty."""
    return cell in LOST or is_number(cell)


def decimal_comma(cell: str) -> str:
    """Return what to do about a number with a decimal comma; nothing if the cell is none."""
    said = "Write numbers with a decimal point, not a comma (pandas: read_csv(..., decimal=',') and to_csv)."
    return said if _DECIMAL_COMMA.fullmatch(cell) else ""


def as_text(value: Any) -> Any:
    """Write labels or groups, one or an array, as text that tells them apart; "" where one is not known.

    A number is written by the digits that give it back, a whole one without a point, whatever its type: 1, not 1.0.
    """
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind == "f":
        texts = np.array([_number_text(v) for v in array.reshape(-1).tolist()], dtype=np.str_).reshape(array.shape)
    else:
        texts = array.astype(np.str_)
    return texts if array.ndim else texts.item()


def _number_text(number: float) -> str:
    if number != number:
        return ""
    return str(int(number)) if number.is_integer() and abs(number) < _LARGEST_WHOLE else repr(number)


def plain_text(text: str) -> str:
    """Write a label or a group of a file as `as_text` writes that number: 1 for 1.0; 007, 1e3 and 1.50 are text."""
    found = _WHOLE.fullmatch(text)
    return text if found is None else found[1] if found[1] != "-0" else "0"


def plain_values(values: NDArray[Any]) -> NDArray[Any]:
    """Return labels or groups of a file so that they can be compared with those of any other file.

    Text is plain, and whole numbers that float64 would round are text.
    """
    if values.dtype.kind == "U" and np.char.endswith(values, "0").any():
        return np.array([plain_text(v) for v in values.tolist()], dtype=np.str_)
    return as_text(values) if _is_long(values) else values


def join_values(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Join numbers or text; as text where numbers are of several types and float64 would round one of them."""
    if np.result_type(*parts).kind == "f" and any(map(_is_long, parts)):
        parts = [as_text(part) for part in parts]
    return np.concatenate(parts)


def _is_long(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iu" and bool(len(values)) and not -EXACT <= values.min() <= values.max() <= EXACT
