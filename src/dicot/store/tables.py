"""Tables for other programs: columns of numbers and text, written whole or not at all as .csv or .parquet."""

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dicot.core.errors import InputError
from dicot.core.storage import arrow, atomic_file, check_writable
from dicot.data.collection import labelled
from dicot.data.policies import Array

Columns = Mapping[str, Array]  # (N,) each, numbers or text; what a masked array hides is not known


def check_table_file(path: Path) -> None:
    """Refuse a name that cannot be written before any work is done."""
    if path.suffix not in WRITERS:
        raise InputError(f"{path} has an unknown suffix {path.suffix!r}; a table goes to {' or '.join(WRITERS)}.")
    if path.suffix == ".parquet":
        arrow()
    check_writable(path)


def write_columns(path: Path, columns: Columns) -> None:
    """Write columns of one length. What is not known, masked, NaN or the empty text, is an empty cell."""
    check_table_file(path)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(f"All columns of a table must have one length; got {lengths}.")
    for name, values in columns.items():
        _check_text(name, values)
    with atomic_file(path) as file:
        WRITERS[path.suffix](file, columns)


def _known(values: Array) -> Array:
    known: Array = labelled(np.asarray(values)) & ~np.broadcast_to(getattr(values, "mask", False), values.shape)
    return known


def _check_text(name: str, values: Array) -> None:
    """Refuse text that no file can hold, such as the name of a recording whose file name is not UTF-8."""
    if values.dtype.kind == "U":
        for row, text in enumerate(np.asarray(values).tolist()):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InputError(f"{name} of row {row}, {text!r}, cannot be written as UTF-8. Rename it.") from error


def _csv(file: BinaryIO, columns: Columns) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    cells = [
        [value if known else "" for value, known in zip(values.tolist(), _known(values).tolist(), strict=True)]
        for values in columns.values()
    ]
    writer.writerows(zip(*cells, strict=True))
    text.detach()  # the file stays open


def _parquet(file: BinaryIO, columns: Columns) -> None:
    pa, pq = arrow()
    arrays = {name: pa.array(np.asarray(values), mask=~_known(values)) for name, values in columns.items()}
    pq.write_table(pa.table(arrays), file, compression="zstd", write_page_checksum=True)


WRITERS: dict[str, Callable[[BinaryIO, Columns], None]] = {".csv": _csv, ".parquet": _parquet}
