"""Arrays in .npy and .npz files by numpy, never by pickle, and the roles of arrays by their names."""

import math
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, final

import numpy as np

from dicot.core.errors import InputError, did_you_mean, naming
from dicot.data.cases import Array

# Zeros shrink to a thousandth. What unpacks to less is harmless; above it a file must be worth a hundredth of it.
_SMALL, _MOST_TIMES = 1 << 28, 100
_MAPPED_FROM = 1 << 26  # bytes from which an array is mapped, where it is not compressed
_LOCAL_HEADER = 30  # bytes before an archive member's name, whose length and that of the extra field come last


class ArrayHeader(NamedTuple):
    """What stands before the values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool  # Fortran's order
    start: int  # byte of the first value


def read_array_header(stream: IO[bytes], size: int) -> ArrayHeader:
    """Read the header of an array, which must take exactly `size` bytes with it and hold no Python objects."""
    version = np.lib.format.read_magic(stream)  # type: ignore[no-untyped-call]
    read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}.get(version[0])
    if read is None:
        raise ValueError(f"an array has the unknown version {version}")
    shape, by_columns, dtype = read(stream)  # type: ignore[no-untyped-call]
    header = ArrayHeader(shape, dtype, by_columns, stream.tell())
    if dtype.hasobject:
        raise InputError("An array holds Python objects, which are not loaded: that can run code. Save plain arrays.")
    if header.start + math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"an array of {dtype} {shape} does not take {size} bytes")
    return header


def map_npy(path: Path) -> Array:
    """Map the array of a .npy file into memory, read-only: values are read where they are used."""
    with naming(path):
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))


@final
class Npz:
    """An open .npz file."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive, self._size = archive, size
        self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    @property
    def names(self) -> list[str]:
        """List the arrays."""
        return list(self._members)

    def array_header(self, name: str) -> ArrayHeader:
        """Return shape and type of an array without reading its values."""
        with self._archive.open(self._members[name]) as member:
            return read_array_header(member, self._members[name].file_size)

    def read(self, names: Iterable[str]) -> dict[str, Array]:
        """Read those of the named arrays that are there; large ones that are not compressed are mapped."""
        here = [name for name in names if name in self._members]
        unpacked = sum(self._members[name].file_size for name in here)
        if unpacked > max(_SMALL, _MOST_TIMES * self._size):
            raise InputError(
                f"Its {self._size} bytes unpack to {unpacked}, more than {_MOST_TIMES} times as many, which may be "
                "made to fill the memory. Save the array uncompressed, as .npy."
            )
        return {name: self._read(name) for name in here}

    def _read(self, name: str) -> Array:
        info = self._members[name]
        header = self.array_header(name)
        if info.compress_type == zipfile.ZIP_STORED and info.file_size > _MAPPED_FROM:
            raw = self._archive.fp
            assert raw is not None
            raw.seek(info.header_offset)
            local = raw.read(_LOCAL_HEADER)
            start = info.header_offset + len(local)
            start += int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
            order: Any = "F" if header.by_columns else "C"
            return np.memmap(raw, header.dtype, "r", start + header.start, header.shape, order)
        with self._archive.open(info) as member:
            return np.asarray(np.lib.format.read_array(member, allow_pickle=False))  # type: ignore[no-untyped-call]


@contextmanager
def open_npz(path: Path) -> Iterator[Npz]:
    """Open a .npz file to look at before its arrays are read; errors inside name the file."""
    with naming(path), path.open("rb") as raw, zipfile.ZipFile(raw) as archive:
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
