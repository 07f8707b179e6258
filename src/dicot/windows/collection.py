"""Windows, the checked form of every collection of cases, and check_collection, the only way user data gets there."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.errors import InputError
from dicot.windows.cases import to_array, to_cases, trim, true_lengths
from dicot.windows.policies import (
    Array,
    Cases,
    FloatArray,
    Scale,
    cases_where,
    equalise,
    fill_missing,
    name_cases,
    scale_each_case,
)


@dataclass(frozen=True, eq=False)
class Windows:
    """N cases of the same shape. Build it with check_collection unless the arrays are known to be sound."""

    x: FloatArray  # (N, C, T), C-contiguous, finite
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
        digest = hashlib.sha256(repr(self.x.shape).encode())
        digest.update(np.ascontiguousarray(self.x).data)
        return digest.hexdigest()[:16]

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
    cases = to_cases(X, layout)
    y = None if y is None else check_labels(y, len(cases), "y")
    group = None if group is None else check_labels(group, len(cases), "group")
    _refuse_inf(cases)
    x = _equal(cases, unequal, missing, length)
    return Windows(np.ascontiguousarray(_scaled(x, scale)), y, group, name)


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


def labelled(y: Array) -> NDArray[np.bool_]:
    """Which cases have a label: not NaN among numbers, not empty among text."""
    known: NDArray[np.bool_] = ~np.isnan(y) if y.dtype.kind == "f" else y != "" if y.dtype.kind == "U" else y == y
    return known


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


def _refuse_inf(cases: Cases) -> None:
    bad = cases_where(np.isinf, cases)
    if len(bad):
        raise InputError(
            f"X contains inf (or values too large for float32) in {name_cases(bad)}. Remove or clip these values."
        )


def _equal(cases: Cases, unequal: str, missing: str, length: int | None) -> FloatArray:
    """One array (N, C, T) without NaN."""
    whole = np.array([case.shape[1] for case in cases])
    short = np.flatnonzero(true_lengths(cases) < whole)
    trimmed = trim(cases)
    if unequal == "error" and len(short):
        raise InputError(
            f"X contains NaN in all channels at the end of {name_cases(short)}, which marks a shorter case. "
            'Set unequal="pad", "crop" or "resample", or replace these values.'
        )
    return equalise(fill_missing(trimmed, missing), unequal, length)


def _scaled(x: FloatArray, scale: str | Scale | None) -> FloatArray:
    if scale is None:
        return x
    if isinstance(scale, Scale):
        return scale(x)
    if scale == "dataset":
        return Scale.fit(x)(x)
    if scale == "case":
        return scale_each_case(x)
    raise InputError(f'scale must be None, "dataset", "case" or a Scale; got {scale!r}.')


def split_by_length(X: Any, layout: str = "nct") -> list[tuple[Array, FloatArray]]:
    """Cases grouped by their true length, shortest first: (positions, array (n, C, length)) per group.

    Lets a transform treat each length alone, so that no result depends on the other cases of the call. Padding
    at the end of a case is dropped. X that is already float32 (N, C, T) of one length comes back itself, uncopied.
    """
    cases = trim(to_cases(X.x if isinstance(X, Windows) else X, "nct" if isinstance(X, Windows) else layout))
    if not isinstance(cases, list):
        return [(np.arange(len(cases)), cases)]
    lengths = np.array([case.shape[1] for case in cases])
    groups = [np.flatnonzero(lengths == n) for n in np.unique(lengths)]
    return [(index, np.stack([cases[i] for i in index])) for index in groups]
