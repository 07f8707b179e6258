"""Whatever a user may pass as X as numbers: one array (N, C, T) or a list of (C, T_i), values and type as they came."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dicot.core.errors import InputError
from dicot.data.policies import Array, RawCases, name_cases

LAYOUTS = ("nct", "ntc")
_SHAPE = {"nct": "(cases, channels, time)", "ntc": "(cases, time, channels)"}


def to_cases(X: Any, layout: str = "nct") -> RawCases:
    """Return X in the order cases, channels, time; NaN and inf stay, and a memory map stays one."""
    if layout not in LAYOUTS:
        raise InputError(f'layout must be "nct" or "ntc"; got {layout!r}.')
    _refuse_sparse(X)
    if isinstance(X, str | bytes | dict | set) or X is None:
        raise InputError(
            f"X must be an array of shape {_SHAPE[layout]} or a list of cases; got {type(X).__name__}. "
            "Use dicot.load for a file and Windows.from_table for a table."
        )
    if isinstance(X, list | tuple):
        return _from_list(X, layout)
    array = to_array(X)
    if array.dtype == object and array.ndim == 1 and any(isinstance(v, list | tuple | np.ndarray) for v in array):
        return _from_list(list(array), layout)
    return _from_array(to_numbers(array), layout)


def to_array(value: Any) -> Array:
    """Return a numpy array of any dtype from an array, tensor, data frame or nested list."""
    _refuse_sparse(value)
    if isinstance(value, np.ma.MaskedArray):
        # What is masked is missing; whole numbers have no NaN of their own.
        plain = value.astype(np.float64) if value.dtype.kind in "biu" else value
        return np.asarray(np.ma.filled(plain, np.nan))
    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        # numpy knows no bfloat16; float32 holds each of its values.
        value = tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor
    elif hasattr(value, "iloc"):
        # A data frame or series: its missing values may be pandas.NA, which numpy cannot read.
        value = value.to_numpy(na_value=np.nan) if value.isna().to_numpy().any() else value.to_numpy()
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"The values cannot be read as one array ({error}). Pass numpy arrays.") from error


def _refuse_sparse(value: Any) -> None:
    # scipy's sparse matrices, and tensors of any sparse layout.
    if hasattr(value, "toarray") or "sparse" in str(getattr(value, "layout", "")):
        raise TypeError("Sparse input is not supported: pass a dense array, e.g. X.toarray() or X.to_dense().")


def to_numbers(array: Array) -> Array:
    """Return an array of a real type: its own, or float64 for objects that are numbers."""
    if array.dtype.kind == "c" or (array.dtype == object and any(np.iscomplexobj(v) for v in array.flat)):
        raise InputError("Complex data not supported: pass the real and the imaginary part as two channels.")
    if array.dtype.kind not in "biufO":
        raise InputError(f"X must hold numbers; got dtype {array.dtype}. Convert with X.astype(float).")
    try:
        return array.astype(np.float64) if array.dtype == object else array
    except TypeError as error:
        raise TypeError(f"X must hold numbers: argument must be a string or a number, but {error}.") from error
    except (ValueError, OverflowError) as error:
        raise InputError(f"X must hold numbers of one shape; {error}. Convert the values to float first.") from error


def _from_array(x: Array, layout: str) -> Array:
    if x.ndim not in (2, 3):
        raise InputError(
            f"X must have shape {_SHAPE[layout]}; got {x.shape}. Reshape your data: X.reshape(1, 1, -1) if it is one "
            "case of one channel, X.reshape(-1, 1, 1) if each value is a case."
        )
    if x.shape[0] == 0:
        raise InputError(f"X has 0 sample(s) (shape={x.shape}) while a minimum of 1 is required: pass at least 1 case.")
    if x.ndim == 2 and x.shape[1] == 0:
        raise InputError(f"X has 0 feature(s) (shape={x.shape}) while a minimum of 1 is required.")
    if 0 in x.shape:
        raise InputError(f"X has 0 channels or 0 time steps: {x.shape} with layout {layout!r}. Check the layout.")
    if x.ndim == 2:
        return x[:, None, :]
    return x.transpose(0, 2, 1) if layout == "ntc" else x


def _from_list(items: Sequence[Any], layout: str) -> RawCases:
    if not items:
        raise InputError("X has 0 sample(s) (an empty list) while a minimum of 1 is required: pass at least 1 case.")
    arrays = [to_array(item) for item in items]
    cases = [to_numbers(a) for a in arrays]
    if all(c.ndim == 0 for c in cases):
        return _from_array(np.stack(cases), layout)
    _refuse("must be (channels, time) or (time,)", [i for i, c in enumerate(cases) if c.ndim not in (1, 2)], arrays)
    cases = [c[None, :] if c.ndim == 1 else c.T if layout == "ntc" else c for c in cases]
    if all(c.shape == (1, 0) for c in cases):
        raise InputError(f"X has 0 feature(s) (shape=({len(cases)}, 0)) while a minimum of 1 is required.")
    _refuse("must have at least one channel and one time step", [i for i, c in enumerate(cases) if c.size == 0], arrays)
    n_channels = cases[0].shape[0]
    other = [i for i, c in enumerate(cases) if c.shape[0] != n_channels]
    _refuse(f"must have the {n_channels} channel(s) of case 0 (layout {layout!r})", other, arrays)
    if len({c.shape[1] for c in cases}) == 1:
        return np.stack(cases)
    return cases


def _refuse(rule: str, broken_by: list[int], arrays: list[Array]) -> None:
    if broken_by:
        first = arrays[broken_by[0]].shape
        raise InputError(f"In a list, each case {rule}; {name_cases(broken_by)} does not: got shape {first}.")


def true_lengths(cases: RawCases) -> Array:
    """Count the time steps (N,) of each case without those at its end that are NaN in all channels."""
    if isinstance(cases, list):
        return np.array([true_length(case) for case in cases])
    lengths = np.full(len(cases), cases.shape[2])
    # Padding always reaches the last time step, so only cases with NaN there need a closer look.
    for i in np.flatnonzero(np.isnan(cases[:, :, -1]).all(axis=1)):
        lengths[i] = true_length(cases[i])
    return lengths


def true_length(case: Array) -> int:
    """Count the time steps of one case (C, T) in the same way."""
    seen = np.flatnonzero(~np.isnan(case).all(axis=0))
    return int(seen[-1]) + 1 if seen.size else 0
