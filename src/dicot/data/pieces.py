"""Collections larger than memory, looked at piece by piece."""

import math
import mmap
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

PIECE = 2**21  # numbers: 16 MiB in float64


class Collection(Protocol):
    """Cases (N, C, T) that are read a few rows at a time: an array, or what makes them when asked."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def ndim(self) -> int: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> NDArray[Any]: ...


def pieces(shape: tuple[int, ...]) -> Iterator[slice]:
    """Yield slices of the rows of (N, ...) that take little memory each, one after the other."""
    at_once = max(1, PIECE // max(1, math.prod(shape[1:])))
    return (slice(start, min(start + at_once, shape[0])) for start in range(0, shape[0], at_once))


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
