"""Vectors read from a .parquet or .npz, with what the file says about them and what they were made of."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from dicot.core.errors import InputError, brief, did_you_mean
from dicot.core.storage import arrow
from dicot.data.collection import check_groups, name_of_groups
from dicot.data.naming import naming
from dicot.data.npyfile import PARTS, load_npz
from dicot.data.parquetfile import open_parquet, refuse_bomb
from dicot.data.pieces import pieces, release
from dicot.data.policies import Array
from dicot.data.texts import as_text, join_values, text_array
from dicot.store.vectors.layout import COLUMNS, SECONDS, SOURCE
from dicot.store.vectors.writing import RowFile

LONGEST_NUMBER = 24  # characters of a number that is written as text


@dataclass(frozen=True, eq=False)
class Vectors:
    """Hold N vectors that were read from a file, and what the file says about them; None where it says nothing.

    Text that is not known is empty, and a number that is not known is NaN, as in the labels of Windows.
    """

    x: Array  # (N, F) float32; a read-only memory map where a large .npz has one
    recording: Array | None = None  # (N,) text
    start: Array | None = None  # (N,) float64, in seconds
    end: Array | None = None  # (N,) float64, in seconds
    group: Array | None = None  # (N,) numbers or text
    label: Array | None = None  # (N,) numbers or text
    part: Array | None = None  # (N,) "train" or "test", where the file holds both
    source: dict[str, Any] | None = None  # what `dicot embed` made them of; files of older versions do not say

    def __len__(self) -> int:
        return len(self.x)

    def columns(self) -> dict[str, Any]:
        """Return what the file says about the vectors by name, in the order of the file: recording, start and so on."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        return {name: values for name, values in columns.items() if values is not None}

    def places(self) -> tuple[Array, Array, Array]:
        """Return recording, start and end, or an error where the file does not say them."""
        if self.recording is None or self.start is None or self.end is None:
            lacking = [name for name in ("recording", *SECONDS) if getattr(self, name) is None]
            raise InputError(
                f"it does not say {' and '.join(lacking)} of its vectors, and labels are kept by these. Embed "
                "recordings: dicot embed MODEL FOLDER --window ... --out vectors.parquet."
            )
        return self.recording, self.start, self.end

    @property
    def model(self) -> str | None:
        """Return the hash of the model that made them, where the file says it."""
        said = (self.source or {}).get("model")
        return said if isinstance(said, str) else None

    def held_together(self, least: int) -> tuple[str, Array] | None:
        """Return what says which vectors belong together, groups or else recordings, with its values (N,).

        A group is called by the column it came from, and "recording" where each recording is one. One that has fewer
        than `least` different values does not count; None where neither has as many.
        """
        for name, values in (("group", self.group), ("recording", self.recording)):
            if values is not None and len(np.unique(check_groups(values, len(self), name, "vectors"))) >= least:
                column = dict((self.source or {}).get("options") or {}).get("group") if name == "group" else name
                return name_of_groups(values, self.recording, column if isinstance(column, str) else None), values
        return None


def read_vectors(path: str | Path, *, finite: bool = False, make: Callable[[int, int], Any] | None = None) -> Vectors:
    """Read a .parquet or .npz as `dicot embed` writes it; of a training and a test part, one after the other.

    A .parquet is read one row group after the other. Its column "vector" may also hold lists of equal length, as pandas
    writes them; columns of other names are left alone. With `finite`, a vector that holds NaN or inf is an error.
    With `make`, as `row_files` gives it, the vectors of a .parquet go to a file and need not fit into memory.
    """
    path = Path(path)
    readers: dict[str, Callable[[Path], Vectors]] = {".parquet": partial(_read_parquet, make=make), ".npz": _read_npz}
    if path.suffix not in readers:
        raise InputError(f"{path} has the suffix {path.suffix!r}; vectors are read from {' and '.join(readers)}.")
    if not path.is_file():
        raise InputError(f"There is no file {path}. `dicot embed MODEL DATA --out {path}` writes one.")
    vectors = readers[path.suffix](path)
    if finite:
        _check_finite(path, vectors.x)
    return vectors


def _check_finite(path: Path, x: Array) -> None:
    for rows in pieces((len(x), 1, x.shape[1])):
        lost = np.flatnonzero(~np.isfinite(x[rows]).all(axis=1))
        if len(lost):
            raise InputError(f"{path}: the vector of row {rows.start + lost[0]} holds NaN or inf. Leave this row out.")
        release(x[rows])


def _read_npz(path: Path) -> Vectors:
    with naming(path):
        arrays = load_npz(path)
        there = [part for part in PARTS if f"X_{part}" in arrays]
        if "X" not in arrays and not there:
            raise InputError(f"it has no array 'X' of vectors. {did_you_mean('X', arrays)} {_AGAIN}")
        ends = [""] if "X" in arrays else [f"_{part}" for part in there]
        xs = [_vectors_of(arrays[f"X{end}"], f"X{end}") for end in ends]
        if len({x.shape[1] for x in xs}) > 1:
            raise InputError(f"its parts have vectors of other lengths, {[x.shape[1] for x in xs]}. {_AGAIN}")
        lengths = [len(x) for x in xs]
        about = {
            column: _joined([arrays.get(f"{key}{end}") for end in ends], lengths, column)
            for column, key in COLUMNS.items()
        }
        part = np.repeat(np.array(there), lengths) if len(ends) > 1 else None
        said = arrays.get(SOURCE)
        source = None if said is None else _source(path, str(said))
        return Vectors(xs[0] if len(xs) == 1 else np.concatenate(xs), **about, part=part, source=source)


def _source(path: Path, text: str) -> dict[str, Any]:
    """Return what a file says its vectors were made of."""
    try:
        source = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: its entry {SOURCE!r} cannot be read ({brief(error)}). {_AGAIN}") from error
    if not isinstance(source, dict):
        raise InputError(f"{path}: its entry {SOURCE!r} must be a table; got {brief(ValueError(text))}. {_AGAIN}")
    return source


_AGAIN = "Write the file again by `dicot embed`."


def _vectors_of(x: Array, what: str) -> Array:
    if x.ndim != 2 or x.dtype.kind != "f" or not x.shape[1]:
        raise InputError(f"{what!r} must hold numbers of shape (cases, features); got {x.dtype} {x.shape}. {_AGAIN}")
    return x if x.dtype == np.float32 else x.astype(np.float32)


def _joined(arrays: list[Array | None], lengths: list[int], column: str) -> Array | None:
    """Join a column over the parts, with unknown values for a part that has none."""
    for array, n in zip(arrays, lengths, strict=True):
        if array is not None and array.shape != (n,):
            raise InputError(f"{column!r} has the shape {array.shape} beside {n} vectors. {_AGAIN}")
    known = [array for array in arrays if array is not None]
    if not known:
        return None
    texts = {array.dtype.kind == "U" for array in known}
    if any(array.dtype.kind not in "biufU" for array in known) or (
        column != "recording" and (len(texts) > 1 or (column in SECONDS and True in texts))
    ):
        wanted = "numbers" if column in SECONDS else "all numbers or all text"
        raise InputError(f"{column!r} must hold {wanted}; got {', '.join(str(a.dtype) for a in known)}. {_AGAIN}")
    unknown = "" if True in texts or column == "recording" else np.nan
    if column == "recording":
        known = [as_text(array) for array in known]
        arrays = [as_text(array) for array in arrays]
    joined = known[0]
    if len(arrays) > 1:
        filled = [np.full(n, unknown) if a is None else a for a, n in zip(arrays, lengths, strict=True)]
        joined = join_values(filled)
    return joined.astype(np.float64) if column in SECONDS else joined


def _read_parquet(path: Path, make: Callable[[int, int], Any] | None) -> Vectors:
    try:
        with open_parquet(path) as file:
            return _from_parquet(path, file, make)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # pyarrow has many for what a damaged file may hold
        raise InputError(
            f"{path} cannot be read as .parquet ({brief(error)}). It may be truncated or hold another format. {_AGAIN}"
        ) from error


def vector_shape(path: Path) -> tuple[int, int]:
    """Return how many vectors a .parquet holds, and their length."""
    with _opened_parquet(path) as (file, n_features):
        return int(file.metadata.num_rows), n_features


def vector_blocks(path: Path) -> Iterator[Array]:
    """Yield the vectors of a .parquet in blocks (n, F) of float32, one row group after the other."""
    with _opened_parquet(path) as (file, n_features):
        at = 0
        for number in range(file.num_row_groups):
            table = file.read_row_group(number, columns=["vector"], use_threads=False)
            for batch in table.to_batches():
                block = _lists(path, batch.column("vector"), at)
                if block.shape[1] != n_features:
                    raise InputError(f"{path}: row {at} of column 'vector' has {block.shape[1]} features. {_AGAIN}")
                at += len(block)
                yield block


def source_of_file(path: Path) -> dict[str, Any] | None:
    """Return what a .parquet says its vectors were made of; None where it does not say."""
    with _opened_parquet(path) as (file, _):
        said = (file.schema_arrow.metadata or {}).get(SOURCE.encode())
        return None if said is None else _source(path, said.decode("utf-8", "replace"))


def column_of(path: Path, name: str) -> Array | None:
    """Return what a .parquet says of its vectors in one of COLUMNS; None where it has no such column."""
    with _opened_parquet(path) as (file, _):
        if name not in file.schema_arrow.names:
            return None
        return _values(path, name, file.read(columns=[name], use_threads=False).column(name))


def column_kinds(path: Path) -> dict[str, tuple[str, int]]:
    """Return for each column that a .parquet has beside its vectors: "U", "i" or "f", and the longest text."""
    kinds = {}
    for name in COLUMNS:
        values = column_of(path, name)
        if values is not None:
            kind = "U" if values.dtype.kind == "U" else "f" if values.dtype.kind == "f" else "i"
            kinds[name] = kind, values.dtype.itemsize // 4 if kind == "U" else LONGEST_NUMBER
    return kinds


@contextmanager
def _opened_parquet(path: Path) -> Iterator[tuple[Any, int]]:
    """Open a .parquet of vectors of one length, checked by the checksums of its pages; errors name the file."""
    pa, _ = arrow()
    try:
        with open_parquet(path) as file:
            if "vector" not in file.schema_arrow.names:
                raise InputError(f"{path} has no column 'vector'. {_AGAIN}")
            kind = file.schema_arrow.field("vector").type
            if not pa.types.is_fixed_size_list(kind) or not pa.types.is_floating(kind.value_type):
                raise InputError(
                    f"{path}: column 'vector' must hold lists of one length of float32; got {kind}. {_AGAIN}"
                )
            refuse_bomb(path, file.metadata.num_rows * kind.list_size)
            yield file, int(kind.list_size)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # pyarrow has many for what a damaged file may hold
        raise InputError(f"{path} cannot be read as .parquet ({brief(error)}). {_AGAIN}") from error


def _from_parquet(path: Path, file: Any, make: Callable[[int, int], Any] | None) -> Vectors:
    pa, _ = arrow()
    schema, n_rows = file.schema_arrow, file.metadata.num_rows
    if "vector" not in schema.names:
        raise InputError(f"{path} has no column 'vector'. {did_you_mean('vector', schema.names)} {_AGAIN}")
    twice = [name for name in ("vector", "part", *COLUMNS) if schema.names.count(name) > 1]
    if twice:
        raise InputError(f"{path} has two columns {twice[0]!r}. {_AGAIN}")
    kind = schema.field("vector").type
    is_list = pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not is_list or not pa.types.is_floating(kind.value_type):
        raise InputError(f"{path}: column 'vector' must hold lists of numbers, float32; got {kind}. {_AGAIN}")
    columns = [name for name in ("part", *COLUMNS) if name in schema.names]
    if pa.types.is_fixed_size_list(kind):
        refuse_bomb(path, n_rows * kind.list_size)
    x, at = cast(Any, np.empty((0, 0), np.float32)), 0
    about = file.read(columns=columns, use_threads=False)
    for number in range(file.num_row_groups):
        table = file.read_row_group(number, columns=["vector"], use_threads=False)
        for batch in table.to_batches():
            block = _lists(path, batch.column("vector"), at)
            if not at:
                shape = n_rows, block.shape[1]
                refuse_bomb(path, n_rows * block.shape[1])
                x = np.empty(shape, np.float32) if make is None else make(*shape)
            if block.shape[1] != x.shape[1]:
                raise InputError(
                    f"{path}: row {at} of column 'vector' has {block.shape[1]} features, the first has {x.shape[1]}. "
                    "Keep the vectors of one model in a file."
                )
            x[at : at + len(block)] = block
            at += len(block)
    if not at or at != n_rows or (columns and about.num_rows != n_rows):
        raise InputError(f"{path} holds {at} vectors of {n_rows} that it announces. {_AGAIN}")
    read = {name: _values(path, name, about.column(name)) for name in columns}
    said = (schema.metadata or {}).get(SOURCE.encode())
    source = None if said is None else _source(path, said.decode("utf-8", "replace"))
    return Vectors(x.read() if isinstance(x, RowFile) else x, **read, source=source)


def _lists(path: Path, cells: Any, at: int) -> Array:
    """Return lists of equal length as an array (rows, F)."""
    if cells.null_count:
        row = at + int(np.flatnonzero(np.asarray(cells.is_null()))[0])
        raise InputError(f"{path}: row {row} of column 'vector' is empty. Drop the row, or write the file again.")
    values, n = cells.flatten(), len(cells)
    lengths = np.unique(np.asarray(cells.value_lengths()))
    if len(lengths) > 1 or 0 in lengths:
        raise InputError(
            f"{path}: column 'vector' holds lists of other lengths, {', '.join(map(str, lengths[:5]))}, from row {at} "
            "on. Keep the vectors of one model in a file."
        )
    if values.null_count:
        raise InputError(f"{path}: column 'vector' has missing numbers from row {at} on. {_AGAIN}")
    return np.asarray(values.to_numpy(zero_copy_only=False), np.float32).reshape(n, -1)


def _values(path: Path, column: str, cells: Any) -> Array:
    """Return a column as numbers or text, with NaN or "" for what is empty."""
    pa, _ = arrow()
    kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    cells = cells.cast(kind)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if column in SECONDS and not is_number:
        raise InputError(f"{path}: column {column!r} must hold seconds as numbers; got {kind}. {_AGAIN}")
    if column == "recording" and is_number:
        cells, is_text = cells.cast(pa.string()), True
    if is_text:
        with naming(path):
            return text_array(cells.fill_null("").to_pylist())
    if not is_number:
        raise InputError(f"{path}: column {column!r} must hold numbers or text; got {kind}. {_AGAIN}")
    if column in SECONDS or cells.null_count:
        cells = cells.cast(pa.float64())  # refuses whole numbers that float64 does not hold
        return np.asarray(cells.to_numpy(), np.float64)
    return np.asarray(cells.to_numpy())
