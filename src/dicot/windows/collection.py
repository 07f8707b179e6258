"""Windows, the checked form of every collection of cases, and check_collection, the only way user data gets there."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dicot.errors import InputError
from dicot.windows.cases import to_array
from dicot.windows.conversion import convert, fingerprint
from dicot.windows.policies import Array, FloatArray, Scale, name_cases


@dataclass(frozen=True, eq=False)
class Windows:
    """N cases of the same shape. Build it with check_collection unless the arrays are known to be sound."""

    x: FloatArray  # (N, C, T), C-contiguous, finite; float32, or float64 where that would swallow all differences
    y: Array | None = None  # (N,) labels
    group: Array | None = None  # (N,) whose case it is: a person, a device, a recording
    name: str = ""

    def __len__(self) -> int:
        return len(self.x)

    @property
    def n_channels(self) -> int:
        return int(self.x.shape[1])

    @property
    def n_times(self) -> int:
        return int(self.x.shape[2])

    def subset(self, index: Array | Sequence[int] | slice) -> "Windows":
        """The cases at `index` (positions, a mask or a slice) with their labels and groups."""
        rows: Any = index
        if not isinstance(index, slice):
            rows = np.atleast_1d(np.asarray(index))
            rows = rows.astype(np.intp) if rows.size == 0 else rows
        y = None if self.y is None else self.y[rows]
        group = None if self.group is None else self.group[rows]
        return Windows(np.ascontiguousarray(self.x[rows]), y, group, self.name)

    def fingerprint(self) -> str:
        """16 hex digits that change with any value of x; labels do not count."""
        return fingerprint(self.x)

    def label_fingerprint(self) -> str:
        """16 hex digits that change with the class of any case, not with the classes' names; empty without labels."""
        if self.y is None:
            return ""
        numbers = np.unique(self.y, return_inverse=True)[1]
        return hashlib.sha256(numbers.astype(np.int64).tobytes()).hexdigest()[:16]


def check_collection(
    X: Any,
    y: Any = None,
    *,
    group: Any = None,
    layout: str = "nct",
    unequal: str = "error",
    missing: str = "error",
    scale: str | Scale | None = None,
    length: int | None = None,
    name: str = "",
) -> Windows:
    """User data as Windows, or an InputError that says what to change.

    X: an array (N, C, T) or (N, T), a list of (C, T_i) or (T_i,), tensors, a data frame, or Windows. With
    layout="ntc" time comes before channels. NaN in all channels at the end of a case means that the case is shorter.
    `unequal`: error, pad, crop, resample; `missing`: error, interpolate, zero; `scale`: None, "dataset", "case", a
    Scale. The result shares memory with X when nothing had to be changed.
    """
    if isinstance(X, Windows):
        y = X.y if y is None else y
        group = X.group if group is None else group
        name, layout, X = name or X.name, "nct", X.x
    cases = convert(X, layout=layout, unequal=unequal, missing=missing, scale=scale, length=length)
    y = None if y is None else check_labels(y, len(cases), "y")
    group = None if group is None else check_labels(group, len(cases), "group")
    return Windows(cases.whole(), y, group, name)


def check_labels(y: Any, n: int, what: str, noun: str = "cases") -> Array:
    """Labels or group ids as an array (n,) of numbers or of strings, one for each of the n things called `noun`."""
    labels = to_array(y)
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
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        which = name_cases(np.flatnonzero(~np.isfinite(labels)))
        raise InputError(f"{what} contains NaN or inf at {which}. Drop these cases or pass no {what}.")
    return labels


def _plain(labels: Array, what: str) -> Array:
    """An object array as one of strings or of numbers."""
    lost = [i for i, v in enumerate(labels) if _is_lost(v)]
    if lost:
        raise InputError(f"{what} contains NaN or None at {name_cases(lost)}. Drop these cases or pass no {what}.")
    if all(isinstance(v, str) for v in labels):
        return labels.astype(str)
    if all(isinstance(v, int | float | np.number | np.bool_) for v in labels):
        return np.array(labels.tolist())
    kinds = ", ".join(sorted({type(v).__name__ for v in labels}))
    raise InputError(f"{what} must hold only strings or only numbers; got {kinds}. Convert them to one type.")


def _is_lost(label: Any) -> bool:
    # pandas.NA cannot be compared, so it is told by its name.
    nan = isinstance(label, float | np.floating) and bool(np.isnan(label))
    return label is None or nan or type(label).__name__ in ("NAType", "NaTType")
