"""Files that dicot itself wrote: they may lie among recordings, and are none."""

import zipfile
from functools import lru_cache
from pathlib import Path

from dicot.core.errors import DicotError
from dicot.data.tables import open_parquet

# Entry of an .npz, or key of a .parquet's metadata: what vectors were made of.
SOURCE = "dicot.source"
MAP = ".explorer-"  # in the name of what the explorer keeps beside vectors: v.explorer-tsne.npz
_SHARDS, _MANIFEST = "shards", "manifest.json"  # of a corpus, and of vectors in a folder
# Columns that every table of windows or ranges has, and every table of scores.
_OF_TABLES = ({"recording", "start", "end"}, {"suite", "contender", "protocol", "seed"})
_LONGEST_HEADER = 2**16  # bytes of a .csv that are looked at


def is_written_by_dicot(path: Path) -> bool:
    """Tell vectors, maps, shards and tables of dicot from recordings."""
    facts = path.stat()
    return _is_written_by_dicot(path, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=100_000)
def _is_written_by_dicot(path: Path, changed: int, size: int) -> bool:
    """Look into a file once, as long as it does not change."""
    if path.parent.name == _SHARDS and (path.parent.parent / _MANIFEST).is_file():
        return True
    try:
        match path.suffix:
            case ".npz":
                return MAP in path.name or _has_source(path)
            case ".parquet":
                with open_parquet(path) as file:
                    schema = file.schema_arrow
                return SOURCE.encode() in (schema.metadata or {}) or _is_table(schema.names)
            case ".csv":
                return _is_table(_header_of(path))
    except (DicotError, OSError, ValueError, zipfile.BadZipFile):
        return False  # whatever it is, its reader says what is wrong with it
    return False


def _has_source(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return f"{SOURCE}.npy" in archive.namelist()


def _header_of(path: Path) -> list[str]:
    with path.open("rb") as file:
        line = file.readline(_LONGEST_HEADER).decode("utf-8", "replace")
    return [name.strip().strip('"') for name in line.split(",")]


def _is_table(names: list[str]) -> bool:
    return any(columns <= set(names) for columns in _OF_TABLES)
