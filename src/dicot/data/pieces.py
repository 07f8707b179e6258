"""Cases that are read a few rows at a time: the one form that training, embedding and preparation ask for."""

import hashlib
import math
import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

PIECE = 2**21  # numbers: 16 MiB in float64


class Collection(Protocol):
    """Rows (N, ...) that are read a few at a time: an array, a memory map, or `Cases`."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> NDArray[Any]: ...


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
    segments: NDArray[Any] | None = None  # (N, C, L), L >= T: what training draws a window of each case from

    @property
    def array(self) -> NDArray[Any] | None:
        """Give all cases as one array, where they lie in one."""
        return None

    @abstractmethod
    def __getitem__(self, rows: slice | NDArray[Any], /) -> NDArray[Any]:
        """Return the cases in these rows, in this order, (n, C, T)."""

    @abstractmethod
    def labels(self) -> NDArray[Any] | None:
        """Return the labels (N,), or None where there are none."""

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value."""
        return fingerprint(self)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_channels(self) -> int:
        """Give the number of channels C."""
        return self.shape[1]

    @property
    def n_times(self) -> int:
        """Give the number of time steps T."""
        return self.shape[2]


def pieces(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield slices of the rows of (N, ...) that take little memory each, one after the other."""
    at_once = max(1, PIECE // max(1, math.prod(shape[1:])))
    return (slice(start, min(start + at_once, shape[0])) for start in range(0, shape[0], at_once))


def blocks(x: Collection) -> Iterator[tuple[slice, NDArray[Any]]]:
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


def write_rows(target: Any, index: NDArray[Any], values: NDArray[Any]) -> None:
    """Write values to the rows at ascending positions of `target[a:b] = ...`, a run of neighbours at a time."""
    ends = np.flatnonzero(np.diff(index) != 1) + 1
    for run, part in zip(np.split(index, ends), np.split(values, ends), strict=True):
        target[run[0] : run[-1] + 1] = part


def release(block: NDArray[Any]) -> None:
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
