"""How much memory it takes to read a file of recordings and to cut it, told from its size before it is read.

The factors were measured by `python -m benchmarks.corpus needs`, and are about twice what was found: short numbers in a
.csv and text in a column of labels take more.
"""

import math
import zipfile
from pathlib import Path

from dicot.core.storage import arrow
from dicot.data.naming import naming
from dicot.data.npyfile import open_npz
from dicot.data.readers import suffix_of

PROGRAM = 150 * 10**6  # of the program itself, whatever it reads
# Bytes at the peak for each byte of a file, or, where that is known, of the numbers in it.
TIMES = {".csv": 40, ".csv.gz": 40, ".parquet": 10, ".npz": 8, ".mat": 40, ".edf": 20, ".hea": 20, ".wav": 20}


def need_of(path: Path, shard_bytes: int) -> int:
    """Return how many bytes reading and cutting this file takes at most."""
    return PROGRAM + 2 * shard_bytes + TIMES.get(suffix_of(path), max(TIMES.values())) * _content(path)


def _content(path: Path) -> int:
    """Count the bytes of the numbers in a file; of one that does not say, those of the file."""
    suffix = suffix_of(path)
    try:
        with naming(path):
            if suffix == ".npz":
                with open_npz(path) as arrays:
                    headers = [arrays.array_header(name) for name in arrays.names]
                return sum(int(h.dtype.itemsize) * math.prod(h.shape) for h in headers)
            if suffix == ".parquet":
                _, parquet = arrow()
                with parquet.ParquetFile(path) as file:
                    return int(file.metadata.num_rows * file.metadata.num_columns * 8)
    except (ValueError, zipfile.BadZipFile):
        pass  # its reader says what is wrong
    except Exception:  # pyarrow has many errors of its own
        if suffix != ".parquet":
            raise
    if suffix == ".csv.gz":  # the last four bytes say how long it is unpacked, up to 4 GB
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(0, size - 4))
            return max(size, int.from_bytes(file.read(), "little"))
    if suffix == ".hea":
        return sum(file.stat().st_size for file in path.parent.glob(f"{path.stem}.*"))
    return path.stat().st_size
