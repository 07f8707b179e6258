"""Files of cases, read by their suffix: .npz, .npy, .csv, .parquet, .ts."""

import csv
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from dicot.csvfile import read_columns, read_rows
from dicot.errors import InputError, did_you_mean, need_extra
from dicot.policies import Array, Policies
from dicot.splits import Split, check_split
from dicot.tables import from_table
from dicot.tsfile import read_ts
from dicot.windows import Windows, check_collection


class ReadOptions(Policies, total=False):
    """How to read a file: the policies of check_collection and, for tables, the names of columns."""

    layout: str  # .npz and .npy: "nct" or "ntc"
    case: str | None  # .csv and .parquet: the columns of a long table
    time: str | None
    channels: Sequence[str] | None
    label: str | None  # .csv with one case per row: also "first" or "last"
    group: str | None
    header: bool | None  # .csv with one case per row: whether the first row holds names; None: look


def read_windows(path: str | Path, **options: Unpack[ReadOptions]) -> Windows:
    """All cases of one file."""
    path = _existing(path)
    with naming(path):
        return _READERS[path.suffix.lower()](path, dict(options))


def read_split(path: str | Path, **options: Unpack[ReadOptions]) -> Split:
    """A file as training data, with test data where the file has X_test or NAME_TEST.ts lies beside NAME_TRAIN.ts."""
    path = _existing(path)
    with naming(path):
        parts = _parts(path)
        if parts is not None:
            _only(dict(options), path, "layout")
            name = path.stem.removesuffix("_TRAIN")
            plain = {k: v for k, v in options.items() if v is not None}
            return check_split(parts[0], parts[1], name=name, **plain)  # type: ignore[arg-type]
    return Split(read_windows(path, **options), name=path.stem)


def _existing(path: str | Path) -> Path:
    path = Path(path).expanduser()
    known = ", ".join(_READERS)
    if path.suffix.lower() not in _READERS:
        raise InputError(
            f"{path} has an unknown suffix {path.suffix!r}; known are {known}. Convert or rename the file."
        )
    if not path.is_file():
        raise InputError(f"There is no file {path}. Check the path.")
    return path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Every error of a reader names the file."""
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error, csv.Error, NotImplementedError) as error:
        raise InputError(
            f"{path} cannot be read as {path.suffix} ({error}). "
            "The file may be truncated or hold another format; write or fetch it again."
        ) from error


def _parts(path: Path) -> tuple[tuple[Any, Any], tuple[Any, Any] | None] | None:
    """(train, test) where the file is one part of a split, otherwise None."""
    if path.suffix.lower() == ".ts" and path.stem.endswith("_TRAIN"):
        other = path.with_name(path.stem.removesuffix("_TRAIN") + "_TEST" + path.suffix)
        return read_ts(path), read_ts(other) if other.is_file() else None
    if path.suffix.lower() == ".npz":
        held = load_npz(path, ("X_train", "y_train", "X_test", "y_test"))
        if "X_train" in held:
            test = (held["X_test"], held.get("y_test")) if "X_test" in held else None
            return (held["X_train"], held.get("y_train")), test
    return None


def load_npz(path: Path, keys: Sequence[str]) -> dict[str, Array]:
    """Those of the named arrays that the file holds."""
    with _open_npz(path) as file:
        held = {}
        for key in set(keys) & set(file.files):
            try:
                held[key] = file[key]
            except ValueError as error:
                if "pickle" not in str(error):
                    raise
                raise InputError(
                    f"{key!r} holds Python objects, which are not loaded because unpickling can run code. "
                    "Save plain arrays of numbers or strings; pad cases of unequal length with NaN at the end."
                ) from error
        return held


@contextmanager
def _open_npz(path: Path) -> Iterator[Any]:
    # np.load leaves a file that it opened itself open when it fails.
    with path.open("rb") as raw:
        file = np.load(raw, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it holds one bare array, as .npy files do")
        with file:
            yield file


def _only(options: dict[str, Any], path: Path, *allowed: str) -> None:
    """Refuses column names and the like for a format that has none."""
    extra = set(ReadOptions.__annotations__) - set(Policies.__annotations__) - set(allowed)
    refused = sorted(k for k in extra if options.get(k) is not None)
    if refused:
        raise InputError(f"{', '.join(refused)} cannot be used with {path.suffix} files. Leave it out.")


def _read_npz(path: Path, options: dict[str, Any]) -> Windows:
    _only(options, path, "layout")
    held = load_npz(path, ("X", "x", "y", "group"))
    X = held.get("X", held.get("x"))
    if X is None:
        with _open_npz(path) as file:
            keys = file.files
        if "X_train" in keys:
            raise InputError("The file holds a split (X_train ...). Read it with read_split.")
        raise InputError(f"The file has no array 'X'; it holds {keys}. {did_you_mean('X', keys or ['X'])}")
    return check_collection(X, held.get("y"), group=held.get("group"), name=path.stem, **_given(options))


def _read_npy(path: Path, options: dict[str, Any]) -> Windows:
    _only(options, path, "layout")
    with path.open("rb") as raw:
        array = np.load(raw, allow_pickle=False)
    return check_collection(array, name=path.stem, **_given(options))


def _read_ts(path: Path, options: dict[str, Any]) -> Windows:
    _only(options, path)
    cases, labels = read_ts(path)
    return check_collection(cases, labels, name=path.stem, **_given(options))


def _read_csv(path: Path, options: dict[str, Any]) -> Windows:
    _only(options, path, "case", "time", "channels", "label", "group", "header")
    if options.get("case") is not None or options.get("time") is not None:
        return _read_long(read_columns(path), path, options)
    if options.get("channels") is not None:
        raise InputError("channels= needs a long table. Name its case= and time= columns too.")
    taken = {key: options.pop(key, None) for key in ("label", "group", "header")}
    cases, labels, groups = read_rows(path, **taken)
    return check_collection(cases, labels, group=groups, name=path.stem, **_given(options))


def _read_parquet(path: Path, options: dict[str, Any]) -> Windows:
    _only(options, path, "case", "time", "channels", "label", "group")
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise need_extra("pyarrow", "tables", "Reading .parquet files") from error
    return _read_long(parquet.read_table(path), path, options)


def _read_long(table: Any, path: Path, options: dict[str, Any]) -> Windows:
    if options.get("case") is None or options.get("time") is None:
        raise InputError("A long table needs both case= and time=, the names of the columns that say which is which.")
    return from_table(table, name=path.stem, **_given(options))


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in options.items() if v is not None}


_READERS: dict[str, Callable[[Path, dict[str, Any]], Windows]] = {
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".ts": _read_ts,
}
