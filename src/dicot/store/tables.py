"""Tables for other programs: columns of numbers and text, written whole or not at all as .csv or .parquet."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from dicot.core.errors import InputError
from dicot.core.storage import arrow, atomic_file, check_writable
from dicot.data.cases import Array
from dicot.data.labels import labelled

Columns = Mapping[str, Array]  # (N,) each, numbers or text; what a masked array hides is not known
SUFFIXES = (".csv", ".parquet")


def check_table_file(path: Path) -> None:
    """Refuse a name that cannot be written before any work is done."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path} has an unknown suffix {path.suffix!r}; a table goes to {' or '.join(SUFFIXES)}.")
    if path.suffix == ".parquet":
        arrow()
    check_writable(path)


def write_columns(path: Path, columns: Columns) -> None:
    """Write columns of one length. What is not known, masked, NaN or the empty text, is an empty cell."""
    check_table_file(path)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise InputError(f"All columns of a table must have one length; got {lengths}.")
    table = pd.DataFrame({name: _cells(name, values) for name, values in columns.items()})
    with atomic_file(path) as file:
        if path.suffix == ".csv":
            table.to_csv(file, index=False, lineterminator="\n")
        else:
            table.to_parquet(file, index=False, compression="zstd", write_page_checksum=True)


def _cells(name: str, values: Array) -> pd.Series:
    """Return a column that can be empty in places; text that no file can hold is refused."""
    plain = np.asarray(values)
    for text in np.unique(plain).tolist() if plain.dtype.kind == "U" else ():
        try:
            text.encode()
        except UnicodeEncodeError as error:  # as of a recording whose file name is not UTF-8
            raise InputError(f"{name} holds {text!r}, which cannot be written as UTF-8. Rename it.") from error
    known = labelled(plain) & ~np.broadcast_to(getattr(values, "mask", False), plain.shape)
    kind = {"b": "boolean", "i": "Int64", "u": "UInt64"}.get(plain.dtype.kind)  # these can be empty, unlike numpy's
    return pd.Series(plain, dtype=kind).where(known)
