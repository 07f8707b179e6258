"""Tables of .parquet files by pyarrow."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dicot.core.errors import InputError
from dicot.core.storage import arrow
from dicot.data.reading import Reading
from dicot.data.recording import Parts
from dicot.data.roles import parts_of_table
from dicot.data.tables import table_columns

# What unpacks to less is harmless; above it a file must be worth a hundredth of what it asks for.
_SMALL, _MOST_TIMES, _LEAST_BYTES = 1 << 28, 100, 4


def read_table(path: Path) -> Any:
    """Read a file as a pyarrow Table."""
    with open_parquet(path) as file:
        return file.read()


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a file to read from, checked by the checksums of its pages."""
    _, parquet = arrow()
    # Not by memory map, which a truncated file would turn into a crash of the process.
    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        refuse_bomb(path, file.metadata.num_rows * file.metadata.num_columns)
        yield file


def refuse_bomb(path: Path, n_values: int) -> None:
    """Refuse a file that unpacks to far more than it holds, by the number of its values."""
    size, unpacked = path.stat().st_size, _LEAST_BYTES * n_values
    if unpacked > max(_SMALL, _MOST_TIMES * size):
        raise InputError(
            f"{path} has {size:,} bytes and unpacks to {unpacked:,} or more, which may be made to fill the memory. "
            "Divide it into several files."
        )


def read_parquet(path: Path, reading: Reading) -> Parts:
    """Read a table with one row per time step."""
    return parts_of_table(table_columns(read_table(path)), reading)
