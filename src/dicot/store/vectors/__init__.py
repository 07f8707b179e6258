"""Embeddings in files: written, read again, made of recordings (recordings), and the series behind them (series)."""

from dicot.store.vectors.layout import COLUMNS, KEEP_SOURCE, SECONDS, SOURCE
from dicot.store.vectors.reading import (
    Vectors,
    column_kinds,
    column_of,
    read_vectors,
    source_of_file,
    vector_blocks,
    vector_shape,
)
from dicot.store.vectors.writing import RowFile, check_vector_file, row_files, source_of_recordings, write_vectors

__all__ = [
    "COLUMNS",
    "KEEP_SOURCE",
    "SECONDS",
    "SOURCE",
    "RowFile",
    "Vectors",
    "check_vector_file",
    "column_kinds",
    "column_of",
    "read_vectors",
    "row_files",
    "source_of_file",
    "source_of_recordings",
    "vector_blocks",
    "vector_shape",
    "write_vectors",
]
