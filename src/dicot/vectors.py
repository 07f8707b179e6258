"""Embeddings in a file: .npz, .npy or .csv."""

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from dicot.errors import InputError
from dicot.storage import write_atomic
from dicot.windows.policies import Array

# "train" and "test", or "" for the only part -> its arrays: X (N, F) and, where known, y and group (N,)
Parts = Mapping[str, Mapping[str, Array]]


def check_vector_file(path: Path, parts: int = 1) -> None:
    """Refuse a name that cannot be written before any work is done."""
    if path.suffix not in WRITERS:
        raise InputError(f"{path} has an unknown suffix {path.suffix!r}; embeddings go to {', '.join(WRITERS)}.")
    if path.suffix == ".npy" and parts > 1:
        raise InputError(f"{path} can hold one array, and the data has a training and a test part. Use .npz or .csv.")


def write_vectors(path: Path, parts: Parts) -> None:
    """Write all parts into one file."""
    check_vector_file(path, len(parts))
    objects = sorted({key for held in parts.values() for key, array in held.items() if array.dtype.hasobject})
    if objects:
        raise InputError(
            f"{', '.join(objects)} must be numbers or text; got Python objects, which could only be written by pickle. "
            "Convert them first."
        )
    write_atomic(path, WRITERS[path.suffix](parts))


def _npz(parts: Parts) -> bytes:
    named = {f"{key}_{part}" if part else key: array for part, held in parts.items() for key, array in held.items()}
    buffer = io.BytesIO()
    np.savez(buffer, **named)  # type: ignore[arg-type]
    return buffer.getvalue()


def _npy(parts: Parts) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, next(iter(parts.values()))["X"])
    return buffer.getvalue()


def _csv(parts: Parts) -> bytes:
    """One row per case: its part, label and group where there are any, then the features."""
    extra = [key for key in ("y", "group") if any(key in held for held in parts.values())]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    n_features = next(iter(parts.values()))["X"].shape[1]
    writer.writerow([*(["part"] if len(parts) > 1 else []), *extra, *(f"f{i}" for i in range(n_features))])
    for part, held in parts.items():
        for i, row in enumerate(held["X"]):
            about = [part] if len(parts) > 1 else []
            writer.writerow([*about, *(held[key][i] if key in held else "" for key in extra), *row.tolist()])
    return text.getvalue().encode()


WRITERS: dict[str, Callable[[Parts], bytes]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
}
