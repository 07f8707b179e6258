"""Embeddings written to a file, .npz, .npy, .csv or .parquet, row by row: they need not fit into memory.

A .parquet is a plain table, one row per case, that any other program reads: pandas.read_parquet shows it. It and an
.npz keep what their vectors were made of, as JSON under SOURCE.
"""

import csv
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np

from dicot.core.errors import InputError
from dicot.core.storage import arrow, atomic_file, check_writable, writing
from dicot.data.collection import labelled
from dicot.data.pieces import pieces, release
from dicot.data.policies import Array
from dicot.store.vectors.layout import COLUMNS, SECONDS, SOURCE

# "train" and "test", or "" for the only part -> its arrays: X (N, F) and, where known, those of ABOUT (N,)
Parts = Mapping[str, Mapping[str, Array]]
ABOUT = ("recording", "start", "end", "y", "group")  # what may be known of a case, in the order of a .csv
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
