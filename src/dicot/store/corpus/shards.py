"""One shard of a corpus: an array of windows, and beside it what is known of each of them.

Text is kept as its different values and the number of one for each window: names of recordings repeat.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, cast, final

import numpy as np

from dicot.core.errors import InputError, ModelFileError
from dicot.core.storage import atomic_file
from dicot.data import Windows
from dicot.data.npyfile import load_npz
from dicot.data.policies import Array
from dicot.store.corpus.manifest import AGAIN, Shard

COLUMNS = {"recording": "recording", "start": "start", "end": "end", "group": "group", "label": "y"}
LARGEST_HALF = float(np.finfo(np.float16).max)


@final
class _Hashed:
    """Hands what is written on to a file, and keeps count and hash of it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest, self.count = file, hashlib.sha256(), 0

    def write(self, data: Any) -> int:
        self.digest.update(data)
        size = memoryview(data).nbytes
        self.count += size
        self.file.write(data)
        return size


def write_shard(folder: Path, name: str, windows: Windows, dtype: str) -> Shard:
    """Write windows and what is known of them, each file whole or not at all."""
    values = as_stored(windows.x, dtype)

    def array(file: IO[bytes]) -> None:
        header = {"descr": values.dtype.newbyteorder("<").str, "fortran_order": False, "shape": values.shape}
        np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
        file.write(values.data)

    n_bytes, digest = _written(folder / f"{name}.npy", array)
    known = {column: getattr(windows, key) for column, key in COLUMNS.items()}
    packed = _packed({column: array for column, array in known.items() if array is not None})
    about_bytes, about_digest = _written(folder / f"{name}.npz", lambda file: np.savez(file, **packed))
    return Shard(name, len(windows), n_bytes, digest, about_bytes, about_digest)


def as_stored(x: Array, dtype: str) -> Array:
    """Return values in the type of the corpus; refuse what it cannot hold."""
    if dtype == "float16" and len(large := np.flatnonzero((np.abs(x) > LARGEST_HALF).any(axis=(1, 2)))):
        raise InputError(
            f"Window {large[0]} holds values up to {np.abs(x[large[0]]).max():.3g}, and float16 ends at "
            f"{LARGEST_HALF:g}. Build the corpus with --dtype float32, or rescale the recordings."
        )
    kind = np.dtype(dtype).newbyteorder("<")
    return np.ascontiguousarray(x, kind)


def _written(path: Path, write: Callable[[Any], None]) -> tuple[int, str]:
    """Write a file and return its size and hash."""
    if path.suffix == ".npz":  # zipfile seeks, so that the hash is taken afterwards
        with atomic_file(path) as file:
            write(file)
            file.seek(0)
            digest = hashlib.file_digest(cast(Any, file), "sha256").hexdigest()
            file.seek(0, 2)
            return file.tell(), digest
    with atomic_file(path) as file:
        hashed = _Hashed(file)
        write(hashed)
    return hashed.count, hashed.digest.hexdigest()


def _packed(columns: Mapping[str, Array]) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        if values.dtype.kind == "U":
            arrays[f"{name}.values"], codes = np.unique(values, return_inverse=True)
            arrays[name] = codes.astype(np.int32)
        else:
            arrays[name] = values
    return arrays


def read_about(path: Path, n_windows: int) -> dict[str, Array]:
    """Read what is known of the windows of a shard, by column; text is whole again."""
    try:
        arrays = load_npz(path)
    except InputError as error:
        raise ModelFileError(f"{error} {AGAIN}") from error
    columns = {}
    for name in COLUMNS:
        if name not in arrays:
            continue
        values, texts = arrays[name], arrays.get(f"{name}.values")
        sound = values.shape == (n_windows,) and values.dtype.kind in "biufU"
        if sound and texts is not None:
            within = values.dtype.kind == "i" and values.min(initial=0) >= 0 and values.max(initial=-1) < len(texts)
            sound = bool(within) and texts.ndim == 1 and texts.dtype.kind == "U"
        if not sound:
            raise ModelFileError(f"{path}: its column {name!r} does not fit to {n_windows} windows. {AGAIN}")
        columns[name] = values if texts is None else texts[values]
    lost = [name for name in ("recording", "start", "end") if name not in columns]
    if lost:
        raise ModelFileError(f"{path} does not say {' and '.join(lost)} of its windows. {AGAIN}")
    return columns
