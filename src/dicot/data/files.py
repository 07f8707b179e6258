"""Files of cases, read by their suffix: .npz, .npy, .csv, .parquet, and the archives' .ts, .tsv, .arff."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from dicot.core.errors import InputError, UnusedKeysWarning
from dicot.data.cases import to_cases, true_lengths
from dicot.data.collection import Windows, check_collection, check_groups, check_labels
from dicot.data.csvfile import SEPARATORS, columns_of, read_rows, read_sheet
from dicot.data.naming import listed, naming
from dicot.data.npyfile import Npz, assign_keys, looked_for, map_npy, open_npz
from dicot.data.parquetfile import read_table
from dicot.data.policies import Array, Cases, Policies, target_length
from dicot.data.splits import Split, brought_to, check_split, held_out
from dicot.data.tables import table_cases
from dicot.data.textforms import read_arff, read_ts, read_tsv


class Columns(TypedDict, total=False):
    """How to find the cases in a file."""

    layout: str  # .npz and .npy: "nct" or "ntc"
    case: str | None  # .csv and .parquet: the columns of a long table
    time: str | None
    channels: Sequence[str] | None
    label: str | None  # of a table, or an array of an .npz; .csv with one case per row: also "first" or "last"
    group: str | None
    ignore: Sequence[str] | None  # columns that hold none of this, such as a record's number
    header: bool | None  # .csv with one case per row: whether the first row holds names; None: look


class ReadOptions(Columns, Policies, total=False):
    """How to read a file: where its cases are, and the policies of check_collection."""


class Content(NamedTuple):
    """Cases as a file holds them, in the order channels, time: lengths may differ and NaN is kept."""

    X: Cases
    y: Array | None = None
    group: Array | None = None
    about: str = ""  # a table: its columns, what they were taken for and the first case, in words
    channels: tuple[str, ...] | None = None  # a long table: their names


def read_parts(path: str | Path, **columns: Unpack[Columns]) -> dict[str, Content]:
    """Read the cases of a file as they are: {"train": ..., "test": ...} if it holds a split, otherwise {"": ...}.

    A split is an .npz with X_train, or NAME_TRAIN.ts, .tsv or .arff (with NAME_TEST beside it).
    """
    path = _existing(path)
    with naming(path):
        return _READERS[path.suffix.lower()](path, {k: v for k, v in columns.items() if v is not None})


def read_windows(path: str | Path, **options: Unpack[ReadOptions]) -> Windows:
    """Read all cases of one file that holds no split."""
    columns, policies = _divide(dict(options))
    parts = read_parts(path, **columns)
    if len(parts) > 1:
        raise InputError(f"{path} holds a split into training and test cases. Read it with read_split.")
    (only,) = parts.values()
    return _checked(Path(path), only, policies)


def read_split(path: str | Path, *, holdout: tuple[float, int] | None = None, **options: Unpack[ReadOptions]) -> Split:
    """Read a file as training data, with test data if it holds a split.

    Of a file without test data `holdout` says the share and the seed by which `hold_out` will make some: the length of
    all cases is then that of the others by `unequal`.
    """
    columns, policies = _divide(dict(options))
    parts = read_parts(path, **columns)
    name = Path(path).stem.removesuffix("_TRAIN")
    if "test" not in parts:
        (only,) = parts.values()
        if holdout is not None and "length" not in policies and policies.get("unequal", "error") != "error":
            with naming(Path(path)):
                only = _of_training_length(only, holdout, policies)
        return Split(_checked(Path(path), only, policies), name=name, about=only.about)
    with naming(Path(path)):
        return check_split(parts["train"], parts["test"], name=name, how="given by the file", **policies)


def _of_training_length(content: Content, holdout: tuple[float, int], policies: dict[str, Any]) -> Content:
    """Bring all cases to the length that those get which are not held out."""
    n = len(content.X)
    y = None if content.y is None else check_labels(content.y, n, "y")
    group = None if content.group is None else check_groups(content.group, n, "group")
    test, _ = held_out(n, y, group, *holdout)
    length = target_length(true_lengths(content.X)[~test], policies["unequal"])
    return content._replace(X=brought_to(content.X, length, policies["unequal"], policies.get("missing", "error")))


def _checked(path: Path, content: Content, policies: dict[str, Any]) -> Windows:
    with naming(path):
        windows = check_collection(content.X, content.y, group=content.group, name=path.stem, **policies)
    return windows if content.channels is None else replace(windows, channels=content.channels)


def _divide(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate the options that say where the cases are from the policies; None leaves a policy at its default."""
    policies = {k: options.pop(k) for k in Policies.__annotations__ if k in options}
    if unknown := sorted(options.keys() - Columns.__annotations__.keys()):
        raise TypeError(f"Unknown options for reading a file: {', '.join(unknown)}")
    return options, {k: v for k, v in policies.items() if v is not None}


def _existing(path: str | Path) -> Path:
    path = Path(path).expanduser()
    known = ", ".join(_READERS)
    if path.is_dir():
        raise InputError(
            f"{path} is a folder; data is one file ({known}) or a data set by name. Name the file; a folder of "
            "recordings becomes windows by Windows.from_folder, and on the command line by --window or a dicot.toml "
            "(`dicot inspect FOLDER --write`)."
        )
    if path.suffix.lower() not in _READERS:
        raise InputError(
            f"{path} has an unknown suffix {path.suffix!r}; known are {known}. Convert or rename the file."
        )
    if not path.is_file():
        raise InputError(f"There is no file {path}. Check the path.")
    return path


def _only(columns: dict[str, Any], path: Path, *allowed: str) -> None:
    """Refuse column names and the like for a format that has none."""
    if refused := sorted(columns.keys() - set(allowed)):
        raise InputError(f"{', '.join(refused)} cannot be used with {path.suffix} files. Leave it out.")


def _read_npz(path: Path, columns: dict[str, Any]) -> dict[str, Content]:
    _only(columns, path, "layout", "label", "group")
    chosen = {role: columns[option] for role, option in (("y", "label"), ("group", "group")) if option in columns}
    with open_npz(path) as file:
        keys = assign_keys(file.names, lambda name: _shape(file, name) == (), chosen)
        if not keys.parts:
            shapes = ((name, _shape(file, name)) for name in file.names)
            content = listed([f"{name} {'(not readable)' if s is None else s}" for name, s in shapes]) or "nothing"
            raise InputError(f"The file has no array of cases called {looked_for()}. It holds {content}.")
        used = [name for roles in keys.parts.values() for name in roles.values()]
        arrays = file.read(used)
    if keys.unused:
        said = f"{path}: read {', '.join(used)}; not used: {', '.join(keys.unused)}."
        warnings.warn(said, UnusedKeysWarning, stacklevel=2)
    layout = columns.get("layout", "nct")
    parts = {part: {role: arrays[name] for role, name in roles.items()} for part, roles in keys.parts.items()}
    return {
        part: Content(to_cases(roles["X"], layout), roles.get("y"), roles.get("group")) for part, roles in parts.items()
    }


def _shape(file: Npz, name: str) -> tuple[int, ...] | None:
    """Return the shape of an array, or None for anything else: it may stay in the file while nobody asks for it."""
    try:
        return file.array_header(name).shape
    except ValueError:
        return None


def _read_npy(path: Path, columns: dict[str, Any]) -> dict[str, Content]:
    _only(columns, path, "layout")
    return {"": Content(to_cases(map_npy(path), columns.get("layout", "nct")))}


def _read_archive(path: Path, columns: dict[str, Any]) -> dict[str, Content]:
    _only(columns, path)
    read = _ARCHIVE_READERS[path.suffix.lower()]
    if not path.stem.endswith("_TRAIN"):
        return {"": Content(*read(path))}
    other = path.with_name(path.stem.removesuffix("_TRAIN") + "_TEST" + path.suffix)
    parts = {"train": path, "test": other} if other.is_file() else {"train": path}
    return {part: Content(*read(file)) for part, file in parts.items()}


def _read_csv(path: Path, columns: dict[str, Any]) -> dict[str, Content]:
    _only(columns, path, "case", "time", "channels", "label", "group", "ignore", "header")
    sheet = read_sheet(path)
    if "case" in columns or "time" in columns:
        if not columns.pop("header", True):
            raise InputError(
                "A long table needs the names of its columns in its first row. Leave header=False (--no-header) out."
            )
        named = [columns.get(role) for role in ("case", "label", "group")]
        content = _read_long(columns_of(sheet, named), columns)
    elif "channels" in columns:
        raise InputError("channels= needs a long table. Name its case= and time= columns too (--case, --time).")
    else:
        content = Content(*read_rows(sheet, **columns))
    return {"": content._replace(about=f"{SEPARATORS[sheet.separator]} separated; {content.about}")}


def _read_parquet(path: Path, columns: dict[str, Any]) -> dict[str, Content]:
    _only(columns, path, "case", "time", "channels", "label", "group", "ignore")
    return {"": _read_long(read_table(path), columns)}


def _read_long(table: Any, columns: dict[str, Any]) -> Content:
    return Content(*table_cases(table, **{"case": None, "time": None, **columns}))


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
