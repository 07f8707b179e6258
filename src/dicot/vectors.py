"""Embeddings in a file, .npz, .npy or .csv, written row by row: they need not fit into memory."""

import csv
import io
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np

from dicot.data.pieces import pieces, release
from dicot.data.policies import Array
from dicot.errors import InputError
from dicot.storage import atomic_file, check_writable, writing

# "train" and "test", or "" for the only part -> its arrays: X (N, F) and, where known, y and group (N,)
Parts = Mapping[str, Mapping[str, Array]]


def check_vector_file(path: Path, parts: int = 1) -> None:
    """Refuse a name that cannot be written before any work is done."""
    if path.suffix not in WRITERS:
        raise InputError(f"{path} has an unknown suffix {path.suffix!r}; embeddings go to {', '.join(WRITERS)}.")
    if path.suffix == ".npy" and parts > 1:
        raise InputError(f"{path} can hold one array, and the data has a training and a test part. Use .npz or .csv.")
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


def write_vectors(path: Path, parts: Parts) -> None:
    """Write all parts into one file."""
    check_vector_file(path, len(parts))
    objects = sorted({key for arrays in parts.values() for key, array in arrays.items() if array.dtype.hasobject})
    if objects:
        raise InputError(
            f"{', '.join(objects)} must be numbers or text; got Python objects, which could only be written by pickle. "
            "Convert them first."
        )
    with atomic_file(path) as file:
        WRITERS[path.suffix](file, parts)


def _npz(file: BinaryIO, parts: Parts) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for part, arrays in parts.items():
            for key, array in arrays.items():
                name = f"{key}_{part}.npy" if part else f"{key}.npy"
                with archive.open(name, "w", force_zip64=True) as member:
                    _array(member, array)


def _npy(file: BinaryIO, parts: Parts) -> None:
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


def _csv(file: BinaryIO, parts: Parts) -> None:
    """Write one row per case: its part, label and group where there are any, then the features."""
    extra = [key for key in ("y", "group") if any(key in arrays for arrays in parts.values())]
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    n_features = next(iter(parts.values()))["X"].shape[1]
    writer.writerow([*(["part"] if len(parts) > 1 else []), *extra, *(f"f{i}" for i in range(n_features))])
    for part, arrays in parts.items():
        for i, row in enumerate(row for block in _blocks(arrays["X"]) for row in block):
            about = [part] if len(parts) > 1 else []
            writer.writerow([*about, *(arrays[key][i] if key in arrays else "" for key in extra), *row.tolist()])
    text.detach()  # the file stays open


WRITERS: dict[str, Callable[[BinaryIO, Parts], None]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
}
