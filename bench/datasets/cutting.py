"""Windows cut out of labelled recordings, as the large sets and their stand-ins need them."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dicot.data import Windows
from dicot.data.cases import Array


def runs(*columns: Array) -> list[slice]:
    """Return the longest stretches of time steps in which none of the columns (T,) changes."""
    changed = np.zeros(len(columns[0]) - 1, dtype=bool)
    for column in columns:
        changed |= column[1:] != column[:-1]
    edges = [0, *(np.flatnonzero(changed) + 1).tolist(), len(columns[0])]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def cut(
    x: Array, y: Array, group: Array, length: int, stride: int, *, inside: Sequence[slice] | None = None, name: str
) -> Windows:
    """Cut x (C, T) into windows inside of stretches; label and group are the most frequent, of several the smallest."""
    stretches = [slice(0, len(y))] if inside is None else inside
    long = [part for part in stretches if part.stop - part.start >= length]
    labels, groups = ([column[part] for part in long] for column in (y, group))
    windows = Windows.from_array([x[:, part] for part in long], labels, group=groups, window=length, stride=stride)
    return Windows(windows.x, windows.y, windows.group, name)


def majority(labels: Array, starts: Array, length: int) -> Array:
    """Return the most frequent label, -1 or above, of each window; of several the smallest."""
    counts = [np.bincount(labels[at : at + length] + 1) for at in starts]
    return np.array([count.argmax() - 1 for count in counts], dtype=np.int64)
