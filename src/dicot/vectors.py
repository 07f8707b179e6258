"""Embeddings in a file, .npz, .npy, .csv or .parquet, written row by row: they need not fit into memory.

What a .parquet or .npz holds is read again by `read_vectors`. A .parquet is a plain table, one row per case, that any
other program reads: pandas.read_parquet shows it. Both keep what their vectors were made of, as JSON under SOURCE.
"""

import csv
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast, final

import numpy as np

from dicot.data.collection import check_groups, labelled
from dicot.data.naming import naming
from dicot.data.npyfile import PARTS, load_npz
from dicot.data.parquetfile import open_parquet, refuse_bomb, written_out
from dicot.data.pieces import pieces, release
from dicot.data.policies import Array
from dicot.data.texts import text_array
from dicot.errors import InputError, brief, did_you_mean
from dicot.storage import arrow, atomic_file, check_writable, writing

# "train" and "test", or "" for the only part -> its arrays: X (N, F) and, where known, those of ABOUT (N,)
Parts = Mapping[str, Mapping[str, Array]]
ABOUT = ("recording", "start", "end", "y", "group")  # what may be known of a case, in the order of a .csv
# Column of a .parquet, in this order -> its array in a part. The vector comes last, "part" first where there are two.
COLUMNS = {"recording": "recording", "start": "start", "end": "end", "group": "group", "label": "y"}
SECONDS = ("start", "end")
# Entry of an .npz, or key of a .parquet's metadata: where the cases came from and how they were embedded.
SOURCE = "dicot.source"
KEEP_SOURCE = (".parquet", ".npz")
LONGEST_NUMBER = 24  # characters of a number that is written as text
Made = Mapping[str, Any]  # a source as it is before it becomes JSON


def check_vector_file(path: Path, parts: int = 1) -> None:
    """Refuse a name that cannot be written before any work is done."""
    if path.suffix not in WRITERS:
        raise InputError(f"{path} has an unknown suffix {path.suffix!r}; embeddings go to {', '.join(WRITERS)}.")
    if path.suffix == ".npy" and parts > 1:
        raise InputError(f"{path} can hold one array, and the data has a training and a test part. Use .npz or .csv.")
    if path.suffix == ".parquet":
        arrow()
    check_writable(path)


@final
class RowFile:
    """Takes an array (N, F) of float32 row by row, `rows[a:b] = values`, and writes it to a file."""

    def __init__(self, file: BinaryIO, n_rows: int, n_columns: int) -> None:
        self.file, self.shape = file, (n_rows, n_columns)

    def __setitem__(self, rows: slice, values: Array) -> None:
        self.file.seek(rows.start * self.shape[1] * 4)
        self.file.write(np.ascontiguousarray(values, "<f4").tobytes())

    def read(self) -> Array:
        """Return what was written, mapped into memory."""
        self.file.flush()
        return np.memmap(self.file, "<f4", "r", shape=self.shape) if self.shape[0] else np.empty(self.shape, "<f4")


@contextmanager
def row_files(path: Path) -> Iterator[Callable[[int, int], RowFile]]:
    """Give a function that makes row files beside `path`; they are removed in the end, whatever happens."""
    with ExitStack() as made, writing(path):

        def make(n_rows: int, n_columns: int) -> RowFile:
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                return RowFile(made.enter_context(tempfile.TemporaryFile(dir=path.parent)), n_rows, n_columns)

        yield make


def write_vectors(path: Path, parts: Parts, source: Made | None = None) -> None:
    """Write all parts into one file; .parquet and .npz also keep `source`, what the vectors were made of.

    Vectors of float16 stay so in a .parquet; all others become float32 there.
    """
    check_vector_file(path, len(parts))
    objects = sorted({key for arrays in parts.values() for key, array in arrays.items() if array.dtype.hasobject})
    if objects:
        raise InputError(
            f"{', '.join(objects)} must be numbers or text; got Python objects, which could only be written by pickle. "
            "Convert them first."
        )
    with atomic_file(path) as file:
        WRITERS[path.suffix](file, parts, source)


def source_of_recordings(
    data: str | Path | Sequence[str | Path],
    options: Mapping[str, Any],
    facts: Mapping[str, Mapping[str, Any]],
    channels: Sequence[str],
    rate: float | None,
    n_times: int,
    stride: int,
    model: str,
) -> dict[str, Any]:
    """Say of vectors which recordings they were made of and how, in plain values, for `write_vectors`.

    `facts` are those of each recording's file, as `data.contents.facts_of` gives them; "file" and "bytes" at least.
    """
    given = [data] if isinstance(data, str | Path) else list(data)
    return {
        "kind": "recordings",
        "data": [str(Path(one).expanduser().absolute()) for one in given],
        "options": {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()},
        "n_times": n_times,
        "stride": stride,
        "channels": list(channels),
        "rate": rate,
        "model": model,
        "recordings": {name: dict(own) for name, own in facts.items()},
    }


def _npz(file: BinaryIO, parts: Parts, source: Made | None) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for part, arrays in parts.items():
            for key, array in arrays.items():
                name = f"{key}_{part}.npy" if part else f"{key}.npy"
                with archive.open(name, "w", force_zip64=True) as member:
                    _array(member, array)
        if source is not None:
            with archive.open(f"{SOURCE}.npy", "w") as member:
                np.lib.format.write_array(member, np.array(_json(source)), allow_pickle=False)  # type: ignore[no-untyped-call]


def _json(source: Made) -> str:
    return json.dumps(source, sort_keys=True, allow_nan=False)


def _npy(file: BinaryIO, parts: Parts, source: Made | None) -> None:
    _array(file, next(iter(parts.values()))["X"])


def _array(file: Any, array: Array) -> None:
    """Write an array as np.save does, but piece by piece."""
    descr = np.lib.format.dtype_to_descr(array.dtype)  # type: ignore[no-untyped-call]
    header = {"descr": descr, "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
    for block in _blocks(array):
        file.write(np.ascontiguousarray(block).tobytes())


def _blocks(array: Array) -> Iterator[Array]:
    for rows in pieces((len(array), 1, max(1, array[:1].nbytes // 8))):
        yield array[rows]
        release(array[rows])


def _csv(file: BinaryIO, parts: Parts, source: Made | None) -> None:
    """Write one row per case: its part and what is known of it, then the features."""
    extra = [key for key in ABOUT if any(key in arrays for arrays in parts.values())]
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    n_features = next(iter(parts.values()))["X"].shape[1]
    writer.writerow([*(["part"] if len(parts) > 1 else []), *extra, *(f"f{i}" for i in range(n_features))])
    for part, arrays in parts.items():
        for i, row in enumerate(row for block in _blocks(arrays["X"]) for row in block):
            about = [part] if len(parts) > 1 else []
            writer.writerow([*about, *(arrays[key][i] if key in arrays else "" for key in extra), *row.tolist()])
    text.detach()  # the file stays open


def _parquet(file: BinaryIO, parts: Parts, source: Made | None) -> None:
    """Write one row per case: what is known of it, and its vector as a list of fixed length."""
    pa, pq = arrow()
    widths = {arrays["X"].shape[1] for arrays in parts.values()}
    if len(widths) > 1 or 0 in widths:
        raise InputError(f"All vectors of a .parquet must have one length of at least 1; got {sorted(widths)}.")
    (n_features,) = widths
    kinds = {column: kind for column, key in COLUMNS.items() if (kind := _kind(pa, parts, column, key)) is not None}
    named = {"part": pa.string()} if len(parts) > 1 else {}
    half = all(arrays["X"].dtype == np.float16 for arrays in parts.values())
    number, plain = (pa.float16(), np.float16) if half else (pa.float32(), np.float32)
    schema = pa.schema({**named, **kinds, "vector": pa.list_(number, n_features)})
    if source is not None:
        schema = schema.with_metadata({SOURCE: _json(source)})
    names = [name for name, kind in {**named, **kinds}.items() if kind == pa.string()]
    # Numbers of vectors do not shrink. Checksums tell a damaged page from a sound one.
    compression = {**dict.fromkeys({**named, **kinds}, "zstd"), "vector.list.element": "none"}
    with pq.ParquetWriter(
        file, schema, compression=compression, use_dictionary=names, write_page_checksum=True
    ) as writer:
        for part, arrays in parts.items():
            start = 0
            for block in _blocks(arrays["X"]):
                rows = slice(start, start + len(block))
                known = [_cells(pa, arrays.get(COLUMNS[name]), rows, kind) for name, kind in kinds.items()]
                flat = pa.array(np.ascontiguousarray(block, plain).reshape(-1))
                vectors = pa.FixedSizeListArray.from_arrays(flat, n_features)
                about = [pa.array([part] * len(block), pa.string())] if named else []
                writer.write_table(pa.Table.from_arrays([*about, *known, vectors], schema=schema))
                start = rows.stop


def _kind(pa: Any, parts: Parts, column: str, key: str) -> Any:
    """Return the type of a column, or None where nothing is known: it is left out."""
    arrays = [arrays[key] for arrays in parts.values() if key in arrays]
    for array, n in ((arrays[key], len(arrays["X"])) for arrays in parts.values() if key in arrays):
        if array.shape != (n,):
            raise InputError(f"{key} must have one value for each of the {n} vectors; got the shape {array.shape}.")
    known = [array for array in arrays if labelled(array).any()]
    if not known:
        return None
    texts = {array.dtype.kind == "U" for array in known}
    wanted = "numbers, in seconds" if column in SECONDS else "all numbers or all text"
    plain = all(array.dtype.kind in "biufU" for array in known)
    if not plain or (column != "recording" and (len(texts) > 1 or (column in SECONDS and texts == {True}))):
        raise InputError(f"{key} must be {wanted}; got {', '.join(str(array.dtype) for array in known)}. Convert it.")
    if column == "recording" or texts == {True}:
        return pa.string()
    common = np.result_type(*known)
    return pa.float64() if column in SECONDS or common.kind == "f" else pa.from_numpy_dtype(common)


def _cells(pa: Any, array: Array | None, rows: slice, kind: Any) -> Any:
    """Return the cells of some rows, empty where the value is not known."""
    if array is None:
        return pa.nulls(rows.stop - rows.start, kind)
    values = array[rows]
    unknown = ~labelled(values)
    texts = values.astype(str) if kind == pa.string() else values
    return pa.array(texts, mask=unknown).cast(kind)


WRITERS: dict[str, Callable[[BinaryIO, Parts, Made | None], None]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
    ".parquet": _parquet,
}


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
        """Return what says which vectors belong together: "group" or else "recording", with its values (N,).

        One that has fewer than `least` different values does not count; None where neither has as many.
        """
        for name, values in (("group", self.group), ("recording", self.recording)):
            if values is not None and len(np.unique(check_groups(values, len(self), name, "vectors"))) >= least:
                return name, values
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
        known = [array.astype(str) for array in known]
        arrays = [None if array is None else array.astype(str) for array in arrays]
    joined = known[0]
    if len(arrays) > 1:
        filled = [np.full(n, unknown) if a is None else a for a, n in zip(arrays, lengths, strict=True)]
        joined = np.concatenate(filled)
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
        return _values(path, name, written_out(path, file.read(columns=[name], use_threads=False)).column(name))


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
    about = written_out(path, file.read(columns=columns, use_threads=False))
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
