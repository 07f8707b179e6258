"""How windows and labelled ranges are named, as `dicot label add` takes them."""

from dicot.data.labels import as_text
from dicot.store.vectors import Vectors
from dicot.use.labels.store import Key


def window_name(vectors: Vectors, row: int) -> str:
    """Name a window by its recording and middle, or else by its row."""
    if not vectors.placed:
        return str(row)
    recording, start, end = vectors.places()
    middle = (start[row] + end[row]) / 2
    return f"{recording[row]}@{middle:.15g}"


def key_name(key: Key) -> str:
    """Name a recording, or a range of one."""
    if isinstance(key, str):
        return key
    recording, start, end = key
    return f"{recording}, {as_text(start)} to {as_text(end)} s"
