"""Files of cases: .npz, .npy, .csv, .parquet, and the archives' .ts, .tsv, .arff."""

import warnings
from pathlib import Path
from typing import Any, NamedTuple

from dicot.core.errors import InputError, UnusedKeysWarning
from dicot.data.cases import to_cases
from dicot.data.csvfile import SEPARATORS, columns_of, open_sheet
from dicot.data.naming import listed
from dicot.data.npyfile import Npz, assign_keys, looked_for, map_npy, open_npz
from dicot.data.policies import Array, RawCases
from dicot.data.reading import Reading
from dicot.data.tables import read_table, table_cases
from dicot.data.textforms import read_text
from dicot.data.widefile import read_rows

_TABLE = ("case", "time", "channels", "label", "group", "ignore")


class Content(NamedTuple):
    """Cases as a file holds them, in the order channels, time: lengths may differ and NaN is kept."""

    X: RawCases
    y: Array | None = None
    group: Array | None = None
    about: str = ""  # a table: its columns, what they were taken for and the first case, in words
    channels: tuple[str, ...] | None = None  # a long table: their names


def _only(reading: Reading, path: Path, *allowed: str) -> None:
    """Refuse columns and the like for a kind of file that has none."""
    usual = Reading()
    given = [key for key in (*_TABLE, "header", "layout") if getattr(reading, key) != getattr(usual, key)]
    if refused := [key for key in given if key not in allowed]:
        raise InputError(f"{', '.join(refused)} cannot be used with {path.suffix} files. Leave it out.")


def npz_cases(path: Path, reading: Reading) -> dict[str, Content]:
    """Read X with y and group, or X_train and X_test with theirs, by their usual names."""
    _only(reading, path, "layout", "label", "group")
    chosen = {role: name for role, name in (("y", reading.label), ("group", reading.group)) if name is not None}
    with open_npz(path) as file:
        keys = assign_keys(file.names, lambda name: _shape(file, name) == (), chosen)
        if not keys.parts:
            content = listed([f"{name} {_shape(file, name) or ''}".strip() for name in file.names]) or "nothing"
            raise InputError(f"The file has no array of cases called {looked_for()}. It holds {content}.")
        used = [name for roles in keys.parts.values() for name in roles.values()]
        arrays = file.read(used)
    if keys.unused:
        said = f"{path}: read {', '.join(used)}; not used: {', '.join(keys.unused)}."
        warnings.warn(said, UnusedKeysWarning, stacklevel=2)
    parts = {part: {role: arrays[name] for role, name in roles.items()} for part, roles in keys.parts.items()}
    return {
        part: Content(to_cases(roles["X"], reading.layout), roles.get("y"), roles.get("group"))
        for part, roles in parts.items()
    }


def _shape(file: Npz, name: str) -> tuple[int, ...] | None:
    """Return the shape of an array, or None for anything else: it may stay in the file while nobody asks for it."""
    try:
        return file.array_header(name).shape
    except ValueError:
        return None


def npy_cases(path: Path, reading: Reading) -> dict[str, Content]:
    """Map one array of cases."""
    _only(reading, path, "layout")
    return {"": Content(to_cases(map_npy(path), reading.layout))}


def archive_cases(path: Path, reading: Reading) -> dict[str, Content]:
    """Read NAME_TRAIN with NAME_TEST beside it, or one file alone."""
    _only(reading, path)
    if not path.stem.endswith("_TRAIN"):
        return {"": Content(*read_text(path))}
    other = path.with_name(path.stem.removesuffix("_TRAIN") + "_TEST" + path.suffix)
    parts = {"train": path, "test": other} if other.is_file() else {"train": path}
    return {part: Content(*read_text(file)) for part, file in parts.items()}


def csv_cases(path: Path, reading: Reading) -> dict[str, Content]:
    """Read a long table, where case and time are named, or one case per row."""
    _only(reading, path, *_TABLE, "header")
    sheet = open_sheet(path)
    if reading.case is not None or reading.time is not None:
        if reading.header is False:
            raise InputError("A long table needs the names of its columns in its first row. Leave header=False out.")
        content = _long(columns_of(sheet, [reading.case, reading.label, reading.group]), reading)
    elif reading.channels is not None:
        raise InputError("channels= needs a long table. Name its case= and time= columns too.")
    else:
        content = Content(*read_rows(sheet, reading.label, reading.group, reading.ignore, reading.header))
    return {"": content._replace(about=f"{SEPARATORS[sheet.separator]} separated; {content.about}")}


def parquet_cases(path: Path, reading: Reading) -> dict[str, Content]:
    """Read a long table."""
    _only(reading, path, *_TABLE)
    return {"": _long(read_table(path), reading)}


def _long(table: Any, reading: Reading) -> Content:
    roles = {key: getattr(reading, key) for key in ("case", "time", "channels", "label", "group")}
    return Content(*table_cases(table, **roles, ignore=reading.ignore or ()))
