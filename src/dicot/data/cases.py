"""Cases: what a collection of (channels, time) offers, made of whatever a user may pass, and the policies for it."""

import hashlib
import math
import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, is_whole, lookup
from dicot.core.settings import how_to_prepare

Array = NDArray[Any]
FloatArray = NDArray[np.floating[Any]]
RawCases = Array | list[Array]  # (N, C, T), or N arrays (C, T_i), of any real type
PIECE = 2**21  # numbers: 16 MiB in float64
LAYOUTS = {"nct": "(cases, channels, time)", "ntc": "(cases, time, channels)"}


class Collection(Protocol):
    """Rows (N, ...) that are read a few at a time: an array, a memory map, or `Cases`."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> Array: ...


class Cases(ABC):
    """N cases (C, T) with what is known of them, wherever they lie: `Windows` in memory, a `Corpus` on disk.

    `cases[rows]` reads some of them, by a slice or an array of positions. `fit`, `transform` and `pretrain` take any.
    """

    shape: tuple[int, int, int]
    ndim = 3
    dtype: np.dtype[Any] = np.dtype(np.float32)
    name: str = ""
    channels: tuple[str, ...] | None = None
    rate: float | None = None  # time steps per second
    segments: Array | None = None  # (N, C, L), L >= T: what training draws a window of each case from

    @property
    def array(self) -> Array | None:
        """Give all cases as one array, where they lie in one."""
        return None

    @abstractmethod
    def __getitem__(self, rows: slice | Array, /) -> Array:
        """Return the cases in these rows, in this order, (n, C, T)."""

    @abstractmethod
    def labels(self) -> Array | None:
        """Return the labels (N,), or None where there are none."""

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value."""
        return fingerprint(self)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_channels(self) -> int:
        return self.shape[1]

    @property
    def n_times(self) -> int:
        return self.shape[2]


def pieces(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield slices of the rows of (N, ...) that take little memory each, one after the other."""
    at_once = max(1, PIECE // max(1, math.prod(shape[1:])))
    return (slice(start, min(start + at_once, shape[0])) for start in range(0, shape[0], at_once))


def blocks(x: Collection) -> Iterator[tuple[slice, Array]]:
    """Yield all rows of x in pieces, each with its place; of a memory map nothing stays resident."""
    for rows in pieces(x.shape):
        block = x[rows]
        yield rows, block
        release(block)


def fingerprint(x: Collection) -> str:
    """Return 16 hex digits that change with any value of x (N, C, T)."""
    digest = hashlib.sha256(repr(tuple(x.shape)).encode())
    for _, block in blocks(x):
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()[:16]


def write_rows(target: Any, index: Array, values: Array) -> None:
    """Write values to the rows at ascending positions of `target[a:b] = ...`, a run of neighbours at a time."""
    ends = np.flatnonzero(np.diff(index) != 1) + 1
    for run, part in zip(np.split(index, ends), np.split(values, ends), strict=True):
        target[run[0] : run[-1] + 1] = part


def release(block: Array) -> None:
    """Tell the system that these values of a read-only memory map were used; else all that was read stays resident."""
    mapped = _map_of(block)
    if mapped is None or not block.size or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = np.frombuffer(mapped, np.uint8).ctypes.data
    low, high = np.lib.array_utils.byte_bounds(block)
    first = (low - start) // mmap.PAGESIZE * mmap.PAGESIZE
    mapped.madvise(mmap.MADV_DONTNEED, first, high - start - first)


def is_mapped(block: Any) -> bool:
    """Tell whether the values lie in a read-only memory map."""
    return _map_of(block) is not None


def _map_of(array: Any) -> mmap.mmap | None:
    while isinstance(array, np.ndarray):
        # Only a read-only one: what was written to a private map lives in those very pages.
        if isinstance(array, np.memmap) and array.mode == "r":
            mapped: mmap.mmap | None = array._mmap  # type: ignore[attr-defined]
            return mapped
        array = array.base
    return None


def name_cases(index: Iterable[int], noun: str = "case", plural: str = "cases") -> str:
    """Name at most five cases: `case 3`, or `cases 3, 5, 9, 11, 40 and 12 more`."""
    named = [int(i) for i in index]
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    return f"{noun if len(named) == 1 else plural} {', '.join(map(str, named[:5]))}{more}"


def pad(case: Array, length: int) -> Array:
    """Add zeros at the end of a shorter case, drop the end of a longer one: (..., T) -> (..., length)."""
    if case.shape[-1] >= length:
        return case[..., :length]
    out = np.zeros((*case.shape[:-1], length), dtype=case.dtype)
    out[..., : case.shape[-1]] = case
    return out


def resample(case: Array, length: int) -> Array:
    """Interpolate linearly onto `length` points, both ends included: (..., T) -> (..., length)."""
    n_times = case.shape[-1]
    if n_times == length:
        return case
    at = np.linspace(0.0, n_times - 1, length)
    channels = case.reshape(-1, n_times)
    out = np.stack([np.interp(at, np.arange(n_times), channel) for channel in channels])
    return out.reshape(*case.shape[:-1], length)


def target_length(lengths: Array, policy: str, length: int | None = None) -> int:
    """Return the length all cases get, or raise an error that names the cases that cannot get it."""
    lookup(UNEQUAL, policy, "policy for unequal length")
    if length is not None and not is_whole(length, 1):
        raise InputError(f"length must be a whole number of at least 1 time step; got {length!r}.")
    least, most = int(lengths.min()), int(lengths.max())
    wanted = int(length) if length is not None else least if policy == "crop" else most
    if policy == "error" and not least == most == wanted:
        asked = "" if length is None else f"; length={length} was asked for"
        raise InputError(
            f"The cases have {least if least == most else f'{least} to {most}'} time steps, and must have one length"
            f"{asked}; NaN in all channels at the end of a case counts as padding. "
            f"Pad, crop or resample them: {how_to_prepare('unequal', 'pad')}."
        )
    if (policy == "pad" and most > wanted) or (policy == "crop" and least < wanted):
        wrong = lengths > wanted if policy == "pad" else lengths < wanted
        raise InputError(
            f"unequal={policy!r} to length={wanted} cannot {'shorten' if policy == 'pad' else 'lengthen'} "
            f"{name_cases(np.flatnonzero(wrong))}: the cases have {least} to {most} time steps."
        )
    return wanted


# `target_length` says which cases may come; "error" only ever sees cases of the right length.
UNEQUAL: dict[str, Callable[[Array, int], Array]] = {"error": pad, "pad": pad, "crop": pad, "resample": resample}


def interpolate(case: Array) -> Array:
    """Fill NaN linearly in time and extend the edges, (C, T); a channel without any value stays as it is."""
    out = case.copy()
    time = np.arange(case.shape[1])
    for channel in out:
        gap = np.isnan(channel)
        if gap.any() and not gap.all():
            channel[gap] = np.interp(time[gap], time[~gap], channel[~gap])
    return out


def zero(case: Array) -> Array:
    return np.where(np.isnan(case), case.dtype.type(0.0), case)


# "error" is raised by whoever can name the cases.
MISSING: dict[str, Callable[[Array], Array]] = {"error": lambda case: case, "interpolate": interpolate, "zero": zero}


def no_value(what: str, where: str) -> InputError:
    """Return the error for a channel that cannot be interpolated."""
    return InputError(
        f"{what} has no value at all in {where}, and there is nothing to fill it in from. Leave out the file, or the "
        f"channel: --ignore NAME, or take zeros: {how_to_prepare('missing', 'zero')}."
    )


@dataclass(frozen=True, eq=False)
class Scale:
    """A z-score per channel with statistics fixed by `fit`; a constant channel is only centred."""

    mean: NDArray[np.float64]  # (C,)
    std: NDArray[np.float64]  # (C,)

    @classmethod
    def fit(cls, x: Collection) -> "Scale":
        """Compute the statistics of each channel of x (N, C, T) in float64, in two passes that need little memory."""
        n_channels = x.shape[1]
        mean, variance = np.zeros(n_channels), np.zeros(n_channels)
        low, high = np.full(n_channels, np.inf), np.full(n_channels, -np.inf)
        for rows, block in blocks(x):
            share = len(block) / rows.stop  # of the cases so far
            mean += (np.array([channel.mean(dtype=np.float64) for channel in np.moveaxis(block, 1, 0)]) - mean) * share
            low, high = np.minimum(low, block.min(axis=(0, 2))), np.maximum(high, block.max(axis=(0, 2)))
        if not np.isfinite(mean).all():
            raise InputError("Scale.fit needs values without NaN and inf. Pass the x of checked Windows.")
        for rows, block in blocks(x):
            share = len(block) / rows.stop
            centred = zip(np.moveaxis(block, 1, 0), mean, strict=True)
            squares = [np.square(channel - centre).mean() for channel, centre in centred]
            variance += (np.array(squares) - variance) * share
        std = np.sqrt(variance)
        return cls(mean, np.where((low == high) | (std == 0), 1.0, std))

    def __call__(self, x: Array) -> FloatArray:
        """Return x (N, C, T) or (C, T) in units of the fitted standard deviation."""
        with np.errstate(over="ignore"):  # what is too large is refused by whoever knows the case
            scaled: FloatArray = self.exact(x).astype(np.float32)
        return scaled

    def exact(self, x: Array) -> NDArray[np.float64]:
        """Return the same before it is rounded to float32."""
        if x.shape[-2] != len(self.mean):
            raise InputError(f"This Scale was fitted on {len(self.mean)} channel(s); X has {x.shape[-2]}. Fit it anew.")
        with np.errstate(over="ignore"):
            scaled: NDArray[np.float64] = (x - self.mean[:, None]) / self.std[:, None]
        return scaled


def scale_each_case(x: Array) -> FloatArray:
    """Scale channels case by case to mean 0 and standard deviation 1, constant ones to 0: (N, C, T) -> (N, C, T)."""
    mean = x.mean(axis=2, keepdims=True, dtype=np.float64)
    std = x.std(axis=2, keepdims=True, dtype=np.float64)
    constant = x.max(axis=2, keepdims=True) == x.min(axis=2, keepdims=True)
    centred = np.where(constant, 0.0, x - mean)
    scaled: FloatArray = (centred / np.where(constant | (std == 0), 1.0, std)).astype(np.float32)
    return scaled


class Policies(TypedDict, total=False):
    """The keywords that every reader hands through to check_collection."""

    unequal: str
    missing: str
    scale: str | Scale | None
    length: int | None


def to_cases(X: Any, layout: str = "nct") -> RawCases:
    """Return X in the order cases, channels, time; NaN and inf stay, and a memory map stays one."""
    shape = lookup(LAYOUTS, layout, "layout")
    if X is None or (isinstance(X, str | bytes | dict | set) and not hasattr(X, "toarray")):
        raise InputError(
            f"X must be an array of shape {shape} or a list of cases; got {type(X).__name__}. "
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
    # scipy's sparse matrices, and tensors of any sparse layout
    if hasattr(value, "toarray") or "sparse" in str(getattr(value, "layout", "")):
        raise TypeError("Sparse input is not supported: pass a dense array, e.g. X.toarray() or X.to_dense().")
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


def to_numbers(array: Array) -> Array:
    """Return an array of a real type: its own, or float64 for objects that are numbers."""
    if array.dtype.kind == "c" or (array.dtype == object and any(np.iscomplexobj(v) for v in array.flat)):
        raise InputError("Complex data not supported: pass the real and the imaginary part as two channels.")
    if array.dtype.kind not in "biufO":
        raise InputError(f"X must hold numbers; got dtype {array.dtype}. Convert with X.astype(float).")
    try:
        return array.astype(np.float64) if array.dtype == object else array
    except TypeError as error:  # the words that scikit-learn's checks look for
        raise TypeError(f"X must hold numbers: argument must be a string or a number, but {error}.") from error
    except (ValueError, OverflowError) as error:
        raise InputError(f"X must hold numbers of one shape; {error}. Convert the values to float first.") from error


def _from_array(x: Array, layout: str) -> Array:
    if x.ndim not in (2, 3):
        raise InputError(
            f"X must have shape {LAYOUTS[layout]}; got {x.shape}. Reshape your data: X.reshape(1, 1, -1) if it is one "
            "case of one channel, X.reshape(-1, 1, 1) if each value is a case."
        )
    if 0 in x.shape:
        what = "sample(s)" if not len(x) else "feature(s)" if x.ndim == 2 else "channels or 0 time steps"
        raise InputError(f"X has 0 {what} (shape={x.shape}) while a minimum of 1 is required.")
    if x.ndim == 2:
        return x[:, None, :]
    return x.transpose(0, 2, 1) if layout == "ntc" else x


def _from_list(items: Sequence[Any], layout: str) -> RawCases:
    arrays = [to_numbers(to_array(item)) for item in items]
    if all(a.ndim == 0 for a in arrays) or {a.shape for a in arrays} == {(0,)}:
        return _from_array(np.stack(arrays) if arrays else np.empty((0, 1)), layout)
    cases = [a[None] if a.ndim < 2 else a.T if layout == "ntc" else a for a in arrays]
    n_channels = len(cases[0])
    for rule, kept in {
        "be (channels, time) or (time,)": [c.ndim == 2 for c in cases],
        "have at least one channel and one time step": [c.size > 0 for c in cases],
        f"have the {n_channels} channel(s) of case 0 (layout {layout!r})": [
            c.shape[:1] == (n_channels,) for c in cases
        ],
    }.items():
        if broken := [i for i, is_kept in enumerate(kept) if not is_kept]:
            shape = arrays[broken[0]].shape
            raise InputError(f"In a list, each case must {rule}; {name_cases(broken)} does not: got shape {shape}.")
    return np.stack(cases) if len({c.shape for c in cases}) == 1 else cases


def true_length(case: Array) -> int:
    """Count the time steps of a case (C, T) without those at its end that are NaN in all channels."""
    seen = np.flatnonzero(~np.isnan(case).all(axis=0))
    return int(seen[-1]) + 1 if seen.size else 0


def true_lengths(cases: RawCases) -> Array:
    """Count the same for every case, (N,)."""
    if isinstance(cases, list):
        return np.array([true_length(case) for case in cases])
    lengths = np.full(len(cases), cases.shape[2])
    # Padding always reaches the last time step, so only cases with NaN there need a closer look.
    for i in np.flatnonzero(np.isnan(cases[:, :, -1]).all(axis=1)):
        lengths[i] = true_length(cases[i])
    return lengths
