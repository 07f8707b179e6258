"""Tables of .parquet files, checked against the size of the file before memory is taken."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dicot.core.errors import InputError, need_extra

# As for .npz: what unpacks to less is harmless; above it a file must be worth a hundredth of what it asks for.
_SMALL = 1 << 28
_MOST_TIMES = 100
_LEAST_BYTES = 4  # of a value in memory, whatever its type


def read_table(path: Path) -> Any:
    """Read a file as a pyarrow Table; one that would unpack to a hundred times its size is refused."""
    with open_parquet(path) as file:
        return written_out(path, file.read())


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a file to read from. Text comes as dictionaries, which hold each text once; `written_out` is to follow."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise need_extra("pyarrow", "tables", "Reading .parquet files") from error
    with parquet.ParquetFile(path) as file:
        about, schema = file.metadata, file.schema_arrow
    # What it says about single columns is not asked for: where that is damaged, pyarrow ends the process.
    refuse_bomb(path, about.num_rows * about.num_columns)
    texts = [field.name for field in schema if _is_text(field.type)]
    # Not by memory map, which a truncated file would turn into a crash of the process.
    with parquet.ParquetFile(path, read_dictionary=texts, page_checksum_verification=True) as file:
        yield file


def written_out(path: Path, table: Any) -> Any:
    """Write text that came as dictionaries once for each row, unless that is far more than the file holds."""
    from pyarrow import types

    coded = [number for number, field in enumerate(table.schema) if types.is_dictionary(field.type)]
    chunks = [chunk for number in coded for chunk in table.column(number).chunks]
    try:
        n_bytes = sum(_text_bytes(chunk) for chunk in chunks if _is_text(chunk.type.value_type))
    except IndexError as error:
        raise ValueError(f"a text is not in its dictionary: {error}") from error
    refuse_bomb(path, n_bytes // _LEAST_BYTES)
    for number in coded:
        field = table.schema.field(number)
        plain = field.with_type(field.type.value_type)
        table = table.set_column(number, plain, table.column(number).cast(plain.type))
    return table


def _text_bytes(chunk: Any) -> int:
    """Return how much text a dictionary stands for, or pyarrow takes for it: a mean text for every row."""
    from pyarrow import compute

    lengths = compute.binary_length(chunk.dictionary)
    mean = (compute.sum(lengths).as_py() or 0) / max(1, len(lengths))
    return max(compute.sum(lengths.take(chunk.indices)).as_py() or 0, int(mean * len(chunk)))


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return any(
        is_one(kind) for is_one in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


def refuse_bomb(path: Path, n_values: int) -> None:
    """Refuse a file that unpacks to far more than it holds, by the number of its values."""
    size, unpacked = path.stat().st_size, _LEAST_BYTES * n_values
    if unpacked > max(_SMALL, _MOST_TIMES * size):
        raise InputError(
            f"{path} has {size:,} bytes and unpacks to {unpacked:,} or more, more than {_MOST_TIMES} times as many, "
            "which is refused because such a file may be made to fill the memory. Divide it into several files."
        )
