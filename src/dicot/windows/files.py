"""Files of cases, read by their suffix: .npz, .npy, .csv, .parquet, and the archives' .ts, .tsv, .arff."""

import csv
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from dicot.errors import InputError, did_you_mean, need_extra
from dicot.windows.arfffile import read_arff
from dicot.windows.cases import to_cases
from dicot.windows.collection import Windows, check_collection
from dicot.windows.csvfile import read_columns, read_rows
from dicot.windows.policies import Array, Cases, Policies
from dicot.windows.splits import Split, check_split
from dicot.windows.tables import table_cases
from dicot.windows.tsfile import read_ts
from dicot.windows.tsvfile import read_tsv


class Columns(TypedDict, total=False):
    """How to find the cases in a file."""

    layout: str  # .npz and .npy: "nct" or "ntc"
    case: str | None  # .csv and .parquet: the columns of a long table
    time: str | None
    channels: Sequence[str] | None
    label: str | None  # .csv with one case per row: also "first" or "last"
    group: str | None
    header: bool | None  # .csv with one case per row: whether the first row holds names; None: look


class ReadOptions(Columns, Policies, total=False):
    """How to read a file: where its cases are, and the policies of check_collection."""


class Content(NamedTuple):
    """Cases as a file holds them, in the order channels, time: lengths may differ and NaN is kept."""

    X: Cases
    y: Array | None = None
    group: Array | None = None


def read_parts(path: str | Path, **columns: Unpack[Columns]) -> dict[str, Content]:
    """The cases of a file as they are: {"train": ..., "test": ...} where it holds a split, otherwise {"": ...}.

    A split is an .npz with X_train, or NAME_TRAIN.ts, .tsv or .arff (with NAME_TEST beside it).
    """
    path = _existing(path)
    with naming(path):
        return _READERS[path.suffix.lower()](path, {k: v for k, v in columns.items() if v is not None})


def read_windows(path: str | Path, **options: Unpack[ReadOptions]) -> Windows:
    """All cases of one file that holds no split."""
    columns, policies = _divide(dict(options))
    parts = read_parts(path, **columns)
    if len(parts) > 1:
        raise InputError(f"{path} holds a split into training and test cases. Read it with read_split.")
    (only,) = parts.values()
    with naming(Path(path)):
        return check_collection(only.X, only.y, group=only.group, name=Path(path).stem, **policies)


def read_split(path: str | Path, **options: Unpack[ReadOptions]) -> Split:
    """A file as training data, with test data where it holds a split."""
    columns, policies = _divide(dict(options))
    parts = read_parts(path, **columns)
    name = Path(path).stem.removesuffix("_TRAIN")
    if "test" not in parts:
        return Split(read_windows(path, **options), name=name)
    with naming(Path(path)):
        return check_split(parts["train"], parts["test"], name=name, how="given by the file", **policies)


def _divide(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What says where the cases are, and the policies; a policy that is None is left to its default."""
    policies = {k: options.pop(k) for k in Policies.__annotations__ if k in options}
    if unknown := sorted(options.keys() - Columns.__annotations__.keys()):
        raise TypeError(f"Unknown options for reading a file: {', '.join(unknown)}")
    return options, {k: v for k, v in policies.items() if v is not None}


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
    # RuntimeError: zipfile raises it for encrypted members and for compressions it does not know.
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error, csv.Error) as error:
        raise InputError(
            f"{path} cannot be read as {path.suffix} ({error}). "
            "The file may be truncated or hold another format; write or fetch it again."
        ) from error


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


def _only(columns: dict[str, Any], path: Path, *allowed: str) -> None:
    """Refuses column names and the like for a format that has none."""
    if refused := sorted(columns.keys() - set(allowed)):
        raise InputError(f"{', '.join(refused)} cannot be used with {path.suffix} files. Leave it out.")


def _read_npz(path: Path, columns: dict[str, Any]) -> dict[str, Content]:
    _only(columns, path, "layout")
    layout = columns.get("layout", "nct")
    held = load_npz(path, ("X", "x", "y", "group", "X_train", "y_train", "X_test", "y_test"))
    if "X_train" in held:
        present = [part for part in ("train", "test") if f"X_{part}" in held]
        return {part: Content(to_cases(held[f"X_{part}"], layout), held.get(f"y_{part}")) for part in present}
    X = held.get("X", held.get("x"))
    if X is None:
        with _open_npz(path) as file:
            keys = file.files
        raise InputError(f"The file has no array 'X'; it holds {keys}. {did_you_mean('X', keys or ['X'])}")
    return {"": Content(to_cases(X, layout), held.get("y"), held.get("group"))}


def _read_npy(path: Path, columns: dict[str, Any]) -> dict[str, Content]:
    _only(columns, path, "layout")
    with path.open("rb") as raw:
        return {"": Content(to_cases(np.load(raw, allow_pickle=False), columns.get("layout", "nct")))}


def _read_archive(path: Path, columns: dict[str, Any]) -> dict[str, Content]:
    _only(columns, path)
    read = _ARCHIVE_READERS[path.suffix.lower()]
    if not path.stem.endswith("_TRAIN"):
        return {"": Content(*read(path))}
    other = path.with_name(path.stem.removesuffix("_TRAIN") + "_TEST" + path.suffix)
    parts = {"train": path, "test": other} if other.is_file() else {"train": path}
    return {part: Content(*read(file)) for part, file in parts.items()}


def _read_csv(path: Path, columns: dict[str, Any]) -> dict[str, Content]:
    _only(columns, path, "case", "time", "channels", "label", "group", "header")
    if "case" in columns or "time" in columns:
        return _read_long(read_columns(path), columns)
    if "channels" in columns:
        raise InputError("channels= needs a long table. Name its case= and time= columns too.")
    return {"": Content(*read_rows(path, **columns))}


def _read_parquet(path: Path, columns: dict[str, Any]) -> dict[str, Content]:
    _only(columns, path, "case", "time", "channels", "label", "group")
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise need_extra("pyarrow", "tables", "Reading .parquet files") from error
    return _read_long(parquet.read_table(path), columns)


def _read_long(table: Any, columns: dict[str, Any]) -> dict[str, Content]:
    if "case" not in columns or "time" not in columns:
        raise InputError("A long table needs both case= and time=, the names of the columns that say which is which.")
    return {"": Content(*table_cases(table, **columns))}


_ARCHIVE_READERS: dict[str, Callable[[Path], tuple[Cases, Array | None]]] = {
    ".ts": read_ts,
    ".tsv": read_tsv,
    ".arff": read_arff,
}
_READERS: dict[str, Callable[[Path, dict[str, Any]], dict[str, Content]]] = {
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    **dict.fromkeys(_ARCHIVE_READERS, _read_archive),
}
