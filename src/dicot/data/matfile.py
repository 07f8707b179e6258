"""Matrices of a MATLAB file, checked against what the file holds before memory is taken; scipy trusts every header."""

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError
from dicot.data.policies import Array

_HEADER = 128  # bytes of text, version and order of bytes before the elements
_ORDERS = {b"IM": "<", b"MI": ">"}
_VERSION, _HDF5 = 1, 2  # as saved with -v6 and -v7, and with -v7.3
# Kinds of elements, by the numbers that the format gives them.
_WORDS, _MATRIX, _COMPRESSED = 6, 14, 15
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_NUMERIC, _COMPLEX = range(6, 16), 0x0800  # classes of matrices that hold numbers, and a flag
# As for .npz: what unpacks to less is harmless; above it a file must be worth a hundredth of what it asks for.
_SMALL = 1 << 28
_MOST_TIMES = 100
_CHUNK = 1 << 16  # bytes that are unpacked at once, to a thousand times as many at most


def read_matrix(path: Path, name: str) -> Array:
    """Read the variable `name`, a matrix of real numbers, in the type that they are stored as."""
    found = read_matrices(path, name)
    if (matrix := found.get(name)) is None:
        raise InputError(f"There is no variable {name}; the file holds {[own[:80] for own in list(found)[:5]]}.")
    return matrix


def read_matrices(path: Path, name: str | None = None) -> dict[str, Array | None]:
    """Read all variables; None for what is no matrix of real numbers, or where `name` is given for every other one."""
    try:
        data = path.read_bytes()
        if 0 in data[:4]:  # how files of MATLAB 4 begin, which have another header
            raise ValueError("it is of MATLAB 4, or damaged")
        order = _ORDERS[data[_HEADER - 2 : _HEADER]]
        version = data[_HEADER - 3 if order == "<" else _HEADER - 4]
        if version not in (_VERSION, _HDF5):
            raise ValueError(f"its version is {version}")
        found: dict[str, Array | None] = {}
        for content in _matrices(memoryview(data)[_HEADER:], order) if version == _VERSION else ():
            own, matrix = _matrix(content, order, name)
            if own in found and name in (None, own):
                raise ValueError(f"it holds two variables {own[:80]}")
            found[own] = matrix
    except InputError:
        raise
    # A KeyError is about the order of bytes, which a page in place of the file does not have.
    except (KeyError, OSError, ValueError, struct.error, zlib.error) as error:
        raise InputError(f"It cannot be read as a MATLAB file ({error}). Fetch it again.") from error
    if version == _HDF5:
        raise InputError("It is a file of MATLAB 7.3, which is not read. Save it in MATLAB with -v7.")
    return found


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield kind and content of each element; one that states more than there is is refused."""
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from(f"{order}II", data, at)
        start, room = at + 8, len(data) - at - 8
        if kind >> 16:  # a short one has its size in the upper half, and its content in place of the size
            kind, size, start, room = kind & 0xFFFF, kind >> 16, at + 4, 4
        if size > room:
            raise ValueError(f"an element states {size} bytes, more than are there")
        yield kind, data[start : start + size]
        at = start + size + (0 if kind == _COMPRESSED else -(start + size - at) % 8)


def _matrices(data: memoryview, order: str) -> Iterator[memoryview]:
    """Yield the content of each matrix, unpacked where it is compressed."""
    left = max(_SMALL, _MOST_TIMES * len(data))
    for kind, content in _elements(data, order):
        if kind == _COMPRESSED:
            unpacked = _unpacked(content, left)
            left -= len(unpacked)
            ((kind, content),) = _elements(memoryview(unpacked), order)
        if kind != _MATRIX:
            raise ValueError(f"an element is of kind {kind}, not a matrix")
        yield content


def _unpacked(content: memoryview, most: int) -> bytearray:
    packer, unpacked = zlib.decompressobj(), bytearray()
    for at in range(0, len(content), _CHUNK):
        unpacked += packer.decompress(content[at : at + _CHUNK], most - len(unpacked) + 1)
        if len(unpacked) > most:
            raise InputError(
                f"It unpacks to more than {_MOST_TIMES} times its size, which is refused because such a file may be "
                "made to fill the memory. Save it in MATLAB with -v6."
            )
    if not packer.eof or packer.unused_data:
        raise ValueError("a compressed element does not end where it should")
    return unpacked


def _matrix(content: memoryview, order: str, name: str | None) -> tuple[str, Array | None]:
    """Return a matrix with its name; one by another name is not looked at."""
    parts = list(islice(_elements(content, order), 4))
    if len(parts) < 3 or parts[0][0] != _WORDS:
        raise ValueError("a matrix lacks its header")
    own = bytes(parts[2][1]).decode("latin-1")
    if name not in (None, own):
        return own, None
    flags, shape = (np.frombuffer(part, f"{order}{code}") for (_, part), code in zip(parts, ("u4", "i4"), strict=False))
    if len(parts) < 4 or not len(flags) or flags[0] & 0xFF not in _NUMERIC or flags[0] & _COMPLEX:
        if name is None and len(flags):
            return own, None
        raise ValueError(f"{own[:80]} is not a matrix of real numbers")
    kind, values = parts[3]
    if kind not in _NUMBERS or len(shape) != 2:
        raise ValueError(f"{own[:80]} has {len(shape)} axes of kind {kind}")
    n_rows, n_columns = map(int, shape)
    numbers = np.frombuffer(values, f"{order}{_NUMBERS[kind]}")
    if min(n_rows, n_columns) < 0 or n_rows * n_columns != len(numbers):
        raise ValueError(f"{own[:80]} states {n_rows} x {n_columns} numbers and holds {len(numbers)}")
    return own, numbers.reshape((n_rows, n_columns), order="F")
