"""Arrays in .npy and .npz files, checked against the size of the file before memory is taken, and their roles."""

import ast
import math
import os
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, final

import numpy as np

from dicot.core.errors import InputError, did_you_mean
from dicot.data.naming import naming
from dicot.data.policies import Array

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {1: 2, 2: 4, 3: 4}  # of the header's length, by version of the format
_LONGEST_HEADER = 4096  # numpy writes 118 bytes about an array of numbers
_MOST_AXES = 32
_PLAIN = re.compile(r"[<>=|]?(b1|[iufc]\d+|[SU]\d+|[mM]8(\[[\w/]+\])?)")
_LAST_CHARACTER = 0x10FFFF
# Arrays of zeros shrink to a thousandth, so a ratio alone proves nothing. What unpacks to less than this is harmless;
# above it a file must be worth a hundredth of what it asks for.
_SMALL = 1 << 28
_MOST_TIMES = 100
_CHUNK = 1 << 20
# Bytes from which an array is mapped, where it is not compressed; a smaller one has its checksum tested.
_MAPPED_FROM = 1 << 26
_LOCAL_HEADER = 30  # bytes before an archive member's name, whose length and that of the extra field come last


class ArrayHeader(NamedTuple):
    """What stands before the values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool  # Fortran's order
    start: int  # byte of the first value


def read_array_header(stream: IO[bytes], size: int, what: str = "the array") -> ArrayHeader:
    """Read the header of an array, which must take exactly `size` bytes and hold plain numbers or text.

    Errors call it `what`.
    """
    magic = stream.read(8)
    if magic[:6] != _MAGIC or len(magic) < 8:
        raise ValueError(f"{what} does not begin as numpy's arrays do")
    if magic[6] not in _LENGTH_BYTES or magic[7]:
        raise ValueError(f"{what} has an unknown version, {magic[6]}.{magic[7]}")
    n_digits = _LENGTH_BYTES[magic[6]]
    length = int.from_bytes(stream.read(n_digits), "little")
    start = 8 + n_digits + length
    if length > _LONGEST_HEADER or start > size:
        raise ValueError(f"the header of {what} is damaged: it announces {length} bytes")
    shape, by_columns, kind = _header(stream.read(length), what)
    dtype = _dtype(kind, what)
    values = math.prod(shape)
    if values * dtype.itemsize != size - start or (values and not dtype.itemsize):
        raise ValueError(
            f"the header of {what} announces {shape} of {dtype}, which does not take the {size - start} bytes after it"
        )
    if math.prod(n or 1 for n in shape) * dtype.itemsize > sys.maxsize:  # one axis is empty, the others are not
        raise ValueError(f"{what} cannot have the shape {shape}")
    return ArrayHeader(shape, dtype, by_columns, start)


def _header(text: bytes, what: str) -> tuple[tuple[int, ...], bool, Any]:
    """Return shape, order and kind of the values."""
    try:
        # Python 2 wrote whole numbers as 3L.
        fields = ast.literal_eval(re.sub(r"(?<=\d)L\b", "", text.decode("latin-1")).strip())
        shape, by_columns, kind = fields["shape"], fields["fortran_order"], fields["descr"]
    except (SyntaxError, ValueError, TypeError, KeyError, MemoryError, RecursionError) as error:
        raise ValueError(f"the header of {what} is damaged: {text[:80]!r}") from error
    # bool is an int to isinstance; an axis of more than maxsize must not be multiplied into numbers of many digits.
    sound = isinstance(shape, tuple) and all(type(n) is int and 0 <= n <= sys.maxsize for n in shape)
    if not sound or len(shape) > _MOST_AXES or type(by_columns) is not bool:
        raise ValueError(f"{what} cannot have the shape {str(shape)[:80]} and the order {str(by_columns)[:80]}")
    return shape, by_columns, kind


def _dtype(kind: Any, what: str) -> np.dtype[Any]:
    if isinstance(kind, str) and kind.lstrip("<>=|").startswith("O"):
        raise InputError(
            f"{what} holds Python objects, which are not loaded because unpickling can run code. "
            "Save plain arrays of numbers or strings; pad cases of unequal length with NaN at the end."
        )
    try:
        if not isinstance(kind, str) or not _PLAIN.fullmatch(kind):
            raise TypeError
        return np.dtype(kind)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{what} must hold plain numbers or text; got values of the kind {str(kind)[:80]!r}."
        ) from error


def map_npy(path: Path) -> Array:
    """Map the array of a .npy file into memory, read-only: values are read where they are used."""
    with naming(path):
        with path.open("rb") as file:
            header = read_array_header(file, os.fstat(file.fileno()).st_size)
        if 0 in header.shape:  # nothing to map
            return np.empty(header.shape, header.dtype)
        order: Any = "F" if header.by_columns else "C"
        return np.memmap(path, header.dtype, "r", header.start, header.shape, order)


def read_npy(path: Path) -> Array:
    """Read the array of a .npy file into memory."""
    with naming(path):
        return _checked(np.array(map_npy(path)))


@final
class Npz:
    """An open .npz file."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive = archive
        self._size = size
        members = archive.infolist()
        self._members = {info.filename.removesuffix(".npy"): info for info in members}
        if len(self._members) < len(members):
            raise ValueError("it holds two arrays of one name")

    @property
    def names(self) -> list[str]:
        return list(self._members)

    def array_header(self, name: str) -> ArrayHeader:
        """Return shape and type of an array without reading its values."""
        with self._open(name) as member:
            return read_array_header(member, self._members[name].file_size, repr(name))

    def read(self, names: Iterable[str]) -> dict[str, Array]:
        """Read those of the named arrays that are there."""
        here = [name for name in names if name in self._members]
        unpacked = sum(self._members[name].file_size for name in here)
        if unpacked > max(_SMALL, _MOST_TIMES * self._size):
            raise InputError(
                f"Its {self._size} bytes unpack to {unpacked}, more than {_MOST_TIMES} times as many, which is refused "
                "because such a file may be made to fill the memory. Save the array uncompressed, as .npy."
            )
        return {name: self._read(name) for name in here}

    def _read(self, name: str) -> Array:
        with self._open(name) as member:
            header = read_array_header(member, self._members[name].file_size, repr(name))
            if self._members[name].compress_type == zipfile.ZIP_STORED and self._members[name].file_size > _MAPPED_FROM:
                return self._mapped(name, header)
            flat = np.empty(math.prod(header.shape), header.dtype)
            raw, at = flat.view(np.uint8), 0
            while at < len(raw):
                got = member.read(min(_CHUNK, len(raw) - at))
                if not got:
                    raise ValueError(f"{name!r} ends after {at} of {len(raw)} bytes")
                raw[at : at + len(got)] = np.frombuffer(got, np.uint8)
                at += len(got)
        return _checked(flat.reshape(header.shape, order="F" if header.by_columns else "C"))

    def _mapped(self, name: str, header: ArrayHeader) -> Array:
        """Map an array that is stored uncompressed: it lies in the file as it would in an .npy."""
        info, raw = self._members[name], self._archive.fp
        assert raw is not None
        raw.seek(info.header_offset)
        local = raw.read(_LOCAL_HEADER)
        start = info.header_offset + len(local) + sum(int.from_bytes(local[at : at + 2], "little") for at in (26, 28))
        if start + info.file_size > self._size:
            raise ValueError(f"{name!r} ends beyond the file")
        order: Any = "F" if header.by_columns else "C"
        return np.memmap(raw, header.dtype, "r", start + header.start, header.shape, order)

    def _open(self, name: str) -> IO[bytes]:
        info = self._members[name]
        # The others, which numpy never writes, cannot be unpacked bit by bit.
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name!r} is compressed in another way than numpy compresses")
        return self._archive.open(info)


def _checked(array: Array) -> Array:
    """Refuse text with invalid characters, which would end in errors much later."""
    if array.dtype.kind == "U" and array.size:
        flat = array.ravel(order="K")
        if flat.view(array.dtype.byteorder.replace("|", "=") + "u4").max() > _LAST_CHARACTER:
            raise ValueError("it holds text that is damaged")
    return array


@contextmanager
def open_npz(path: Path) -> Iterator[Npz]:
    """Open a .npz file to look at before its arrays are read; errors inside name the file."""
    with naming(path), path.open("rb") as raw:
        if raw.read(len(_MAGIC)) == _MAGIC:
            raise ValueError("it holds one bare array, as .npy files do")
        with zipfile.ZipFile(raw) as archive:
            yield Npz(archive, os.fstat(raw.fileno()).st_size)


def load_npz(path: Path, names: Iterable[str] | None = None) -> dict[str, Array]:
    """Read those of the named arrays that the file has; without names, all of them."""
    with open_npz(path) as file:
        return file.read(file.names if names is None else names)


# Cases, labels and groups of an .npz file by their usual names, in any capitalisation.
PARTS = ("train", "test")
_WHO = ("group", "user", "subject", "person", "patient", "participant", "volunteer", "individual", "device")
_WHERE = ("record", "recording", "session")
_ENDS = ("", "s", "id", "ids", "_id", "_ids")
ROLES: dict[str, tuple[str, ...]] = {
    "X": ("x", "data", "values"),
    "y": ("y", "label", "labels", "target", "targets", "class"),
    "group": ("people", *(word + end for word in (*_WHO, *_WHERE) for end in _ENDS)),
}
_WORDS = {"X": "the cases", "y": "the labels", "group": "the groups"}
_OPTIONS = {"y": "label", "group": "group"}  # of a reader, which say what to take


class Keys(NamedTuple):
    """The name of the array for each role, by part: "train" and "test", or "" where the file holds no split."""

    parts: dict[str, dict[str, str]]
    unused: tuple[str, ...]


def assign_keys(names: Sequence[str], is_scalar: Callable[[str], bool], chosen: Mapping[str, str]) -> Keys:
    """Give each array its role; `chosen` are names that were asked for, by role. A single value has none."""
    lists = [name for name in names if not is_scalar(name)]
    split = any(_plays(name, "X", "train") for name in lists)
    parts = {}
    for part in PARTS if split else ("",):
        if any(_plays(name, "X", part) for name in lists):
            by_role = {role: _find(lists, role, part, chosen.get(role)) for role in ROLES}
            parts[part] = {role: name for role, name in by_role.items() if name is not None}
    used = {name for roles in parts.values() for name in roles.values()}
    return Keys(parts, tuple(name for name in names if name not in used))


def _find(names: Sequence[str], role: str, part: str, chosen: str | None) -> str | None:
    if chosen is not None:
        wanted = f"{chosen}_{part}" if part else chosen
        if wanted not in names:
            raise InputError(f"There is no array {wanted!r}. {did_you_mean(wanted, names)}")
        return wanted
    candidates = [name for name in names if _plays(name, role, part)]
    if len(candidates) > 1:
        option = _OPTIONS.get(role)
        remedy = f"Say which by {option}= (--{option})" if option else "Save the file with one of them"
        raise InputError(f"{', '.join(map(repr, candidates))} could each be {_WORDS[role]}. {remedy}.")
    return candidates[0] if candidates else None


def _plays(name: str, role: str, part: str) -> bool:
    return name.lower() in {f"{word}_{part}" if part else word for word in ROLES[role]}


def looked_for() -> str:
    """List the names that cases may have, in words."""
    return "X, data or values (in any case), or X_train and X_test"
