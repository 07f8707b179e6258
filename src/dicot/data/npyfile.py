"""Arrays in .npy and .npz files by numpy, never by pickle, and the roles of arrays by their names."""

import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from dicot.core.errors import InputError, did_you_mean, naming
from dicot.core.settings import how_to_set
from dicot.data.cases import Array

_MAPPED_FROM = 1 << 26  # bytes from which an array is mapped, where it is not compressed
_LOCAL_HEADER = 30  # bytes before an archive member's name, whose length and that of the extra field come last

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
_REMEDIES = {
    "X": "the cases. Save the file with one of them.",
    "y": "the labels. Say which, such as {label}.",
    "group": "the groups. Say which, such as {group}.",
}


def map_npy(path: Path) -> Array:
    """Map the array of a .npy file into memory, read-only: values are read where they are used."""
    with naming(path):
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))


def npz_names(path: Path) -> list[str]:
    with naming(path), path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        return list(file.files)


def load_npz(path: Path, names: Iterable[str] | None = None) -> dict[str, Array]:
    """Read those of the named arrays that the file has, or all; large ones that are not compressed are mapped."""
    with naming(path), path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        here = [name for name in (file.files if names is None else names) if name in file.files]
        return {name: _read(raw, file, name) for name in here}


def _read(raw: IO[bytes], file: Any, name: str) -> Array:
    info = file.zip.NameToInfo.get(f"{name}.npy")
    if info is not None and info.compress_type == zipfile.ZIP_STORED and info.file_size > _MAPPED_FROM:
        raw.seek(info.header_offset)
        local = raw.read(_LOCAL_HEADER)
        raw.seek(int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little"), 1)
        begin, (version, _) = raw.tell(), np.lib.format.read_magic(raw)  # type: ignore[no-untyped-call]
        read = np.lib.format.read_array_header_1_0 if version == 1 else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(raw)  # type: ignore[no-untyped-call]
        size = raw.tell() - begin + math.prod(shape) * dtype.itemsize
        if size == info.file_size and not dtype.hasobject:  # otherwise numpy says below what is wrong
            return np.memmap(raw, dtype, "r", raw.tell(), shape, "F" if by_columns else "C")
    return np.asarray(file[name])


def assign_keys(arrays: Mapping[str, Array], chosen: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Name the array for each role, by part: "train" and "test", or "" where the file holds no split."""
    lists = [name for name, array in arrays.items() if array.ndim]
    split = any(_is(name, "X", "train") for name in lists)
    parts = {}
    for part in PARTS if split else ("",):
        if any(_is(name, "X", part) for name in lists):
            by_role = {role: _find(lists, role, part, chosen.get(role)) for role in ROLES}
            parts[part] = {role: name for role, name in by_role.items() if name is not None}
    return parts


def _find(names: Sequence[str], role: str, part: str, chosen: str | None) -> str | None:
    if chosen is not None:
        wanted = f"{chosen}_{part}" if part else chosen
        if wanted not in names:
            raise InputError(f"There is no array {wanted!r}. {did_you_mean(wanted, names)}")
        return wanted
    candidates = [name for name in names if _is(name, role, part)]
    if len(candidates) > 1:
        ready = {option: how_to_set(option, candidates[0]) for option in ("label", "group")}
        remedy = _REMEDIES[role].format(**ready)
        raise InputError(f"{', '.join(map(repr, candidates))} could each be {remedy}")
    return candidates[0] if candidates else None


def _is(name: str, role: str, part: str) -> bool:
    return name.lower() in {f"{word}_{part}" if part else word for word in ROLES[role]}


def plays(name: str) -> bool:
    """Tell whether an array of this name has a role."""
    return any(_is(name, role, part) for role in ROLES for part in ("", *PARTS))
