"""An index of vectors in many files, such as those of a corpus: joined on disk, one file after the other.

Neither the vectors nor what is known of them are ever whole in memory: each column is written by a pass of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import InputError
from dicot.core.processes.budget import refuse_beyond
from dicot.core.storage import arrow
from dicot.data.policies import Array
from dicot.data.texts import as_text
from dicot.store.search.folder import IndexWriter
from dicot.store.vectors import COLUMNS, SECONDS, column_kinds, column_of, vector_blocks, vector_shape

TEXT = "U"
NORM = 8  # bytes for the length of a vector
PROGRAM = 400 * 10**6  # bytes of the program itself and of a search, whatever the index holds


@dataclass(frozen=True)
class _Column:
    """How a column is kept for all files together."""

    name: str
    dtype: np.dtype[Any]
    widest: int = 0


def join_index(
    files: Sequence[Path],
    folder: str | Path,
    *,
    metric: str = "cosine",
    source: str = "",
    memory: int | None = None,
) -> Path:
    """Write an index of the vectors of .parquet files, in this order, into a folder; `EmbeddingIndex.load` reads it.

    `source` is kept in index.json, to tell later whether the index is still that of these files. `memory` are the bytes
    that the index may take, also when it is searched: the vectors stay on disk, what is known of each does not.
    """
    arrow()
    shapes = [vector_shape(file) for file in files]
    widths = {width for _, width in shapes}
    if len(widths) != 1:
        raise InputError(f"All files must hold vectors of one length; got {sorted(widths)}. Embed them by one model.")
    n_rows, width = sum(n for n, _ in shapes), widths.pop()
    columns = _columns(files)
    if memory is not None:
        per_row = NORM + sum(column.dtype.itemsize for column in columns)
        largest = max(n for n, _ in shapes) * width * 4
        need = PROGRAM + 2 * n_rows * per_row + 3 * largest
        refuse_beyond(memory, need, f"An index of {n_rows:,} vectors", "Allow more, or embed fewer windows.")
    writer = IndexWriter(Path(folder), metric, (n_rows, width), source)
    writer.vectors(block for file in files for block in vector_blocks(file))
    if columns:
        writer.columns({column.name: (column.dtype, _values(files, shapes, column)) for column in columns})
    return writer.finish()


def _columns(files: Sequence[Path]) -> list[_Column]:
    """Find which columns any file has, and a type that holds the values of all."""
    kinds: dict[str, list[tuple[str, int]]] = {}
    for file in files:
        for name, kind in column_kinds(file).items():
            kinds.setdefault(name, []).append(kind)
    columns = []
    for name in COLUMNS:
        found = kinds.get(name, [])
        if not found:
            continue
        if any(kind == TEXT for kind, _ in found):
            width = max(1, max(width for _, width in found))
            columns.append(_Column(name, np.dtype(f"<U{width}"), width))
        else:
            whole = all(kind == "i" for kind, _ in found) and len(found) == len(files) and name not in SECONDS
            columns.append(_Column(name, np.dtype("<i8" if whole else "<f8")))
    return columns


def _values(files: Sequence[Path], shapes: Sequence[tuple[int, int]], column: _Column) -> Iterator[Array]:
    for file, (n_rows, _) in zip(files, shapes, strict=True):
        values = column_of(file, column.name)
        if values is None:
            values = np.full(n_rows, "" if column.dtype.kind == TEXT else np.nan)
        if column.dtype.kind == TEXT and values.dtype.kind != TEXT:
            values = as_text(values)
        yield values.astype(column.dtype)
