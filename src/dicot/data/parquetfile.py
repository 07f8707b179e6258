"""Tables of .parquet files, checked against the size of the file before memory is taken."""

from pathlib import Path
from typing import Any

from dicot.errors import InputError, need_extra

# As for .npz: what unpacks to less is harmless; above it a file must be worth a hundredth of what it asks for.
_SMALL = 1 << 28
_MOST_TIMES = 100
_LEAST_BYTES = 4  # of a value in memory, whatever its type


def read_table(path: Path) -> Any:
    """Read a file as a pyarrow Table; one that would unpack to a hundred times its size is refused."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise need_extra("pyarrow", "tables", "Reading .parquet files") from error
    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        about, size = file.metadata, path.stat().st_size
        unpacked = about.num_rows * about.num_columns * _LEAST_BYTES
        if unpacked > max(_SMALL, _MOST_TIMES * size):
            raise InputError(
                f"{path} announces {about.num_rows:,} rows of {about.num_columns} columns in {size:,} bytes, more than "
                f"{_MOST_TIMES} times what it holds, which is refused because such a file may be made to fill the "
                "memory. Divide it into several files."
            )
        return file.read()
