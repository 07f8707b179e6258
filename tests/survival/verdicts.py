"""What several judges share: cases, labels and numbers that agree with a plain reader's."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dicot.data import Windows
from tests.survival.kind import UnreadableError
from tests.survival.reference import Cases, is_lost

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def windows_are(windows: Windows, cases: Cases, y: Sequence[Any] | None, group: Sequence[Any] | None) -> str:
    """What is wrong with windows that should hold these cases, labels and groups."""
    if complaint := unsound(windows):
        return complaint
    wanted = equal_cases(cases)
    if windows.x.shape != wanted.shape:
        return f"x has shape {windows.x.shape}, the file {wanted.shape}"
    # Centred or scaled it is not, so that a float32 is all that may lie between them.
    if not np.allclose(windows.x, wanted, rtol=1e-6, atol=1e-37):
        return f"x differs from the file: {_first_difference(windows.x, wanted)}"
    return labels_are(windows.y, y, "y") or labels_are(windows.group, group, "group")


def equal_cases(cases: Cases) -> np.ndarray:
    """Cases as the default policies want them: one length, nothing missing, nothing infinite."""
    if len({case.shape for case in cases}) != 1:
        raise UnreadableError(f"the cases have shapes {sorted({case.shape for case in cases})}")
    wanted = np.stack(cases)
    with np.errstate(invalid="ignore"):
        if not wanted.size or not (np.abs(wanted) <= LARGEST_FLOAT32).all():
            raise UnreadableError("a value is missing or infinite")
    return wanted


def unsound(windows: Windows) -> str:
    """Rules that hold for windows of any origin."""
    x = windows.x
    if x.dtype.kind != "f" or x.ndim != 3 or not x.size or not x.flags.c_contiguous:
        return f"x is {x.dtype} of shape {x.shape}, contiguous: {x.flags.c_contiguous}"
    if not np.isfinite(x).all():
        return "x holds NaN or inf"
    for name, values in (("y", windows.y), ("group", windows.group)):
        if values is not None and (values.shape != (len(x),) or values.dtype.kind not in "biufU"):
            return f"{name} is {values.dtype} of shape {values.shape} for {len(x)} cases"
    return ""


def labels_are(found: np.ndarray | None, wanted: Sequence[Any] | None, what: str) -> str:
    if (found is None) != (wanted is None):
        return (
            f"{what}: {'none' if found is None else 'some'} where the file has {'none' if wanted is None else 'some'}"
        )
    if found is None or wanted is None:
        return ""
    if len(found) != len(wanted):
        return f"{what}: {len(found)} values where the file has {len(wanted)}"
    for here, there in zip(found.tolist(), wanted, strict=True):
        if not label_is(here, there):
            return f"{what}: {here!r} where the file has {there!r}"
    return ""


def label_is(found: Any, wanted: Any) -> bool:
    """Text stays text unless it is a whole number as Python writes it."""
    if isinstance(wanted, bytes):
        wanted = wanted.decode("utf-8", "replace")
    if is_lost(wanted) and is_lost(found):
        return True
    if isinstance(wanted, str):
        if isinstance(found, float) and math.isfinite(found) and found.is_integer():
            found = int(found)  # whole numbers beside unlabelled cases are floats
        return str(found) == wanted.strip() and not isinstance(found, float)
    return str(found) == str(wanted) if isinstance(found, str) else bool(found == wanted)


def _first_difference(found: np.ndarray, wanted: np.ndarray) -> str:
    at = np.unravel_index(np.argmax(np.abs(found - wanted)), found.shape)
    return f"{found[at]!r} where it has {wanted[at]!r} at {tuple(map(int, at))}"
