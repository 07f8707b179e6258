"""Recordings (C, T) with a label and a group for every time step: cut into windows, and windows joined."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.policies import Array


def runs(*columns: Array) -> list[slice]:
    """Return the longest stretches of time steps in which none of the columns (T,) changes."""
    changed = np.zeros(len(columns[0]) - 1, dtype=bool)
    for column in columns:
        changed |= column[1:] != column[:-1]
    edges = [0, *(np.flatnonzero(changed) + 1).tolist(), len(columns[0])]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def join(parts: Sequence[Windows], name: str) -> Windows:
    """Put the windows of several recordings one after the other, with their labels and groups."""
    x, y, group = (np.concatenate([getattr(part, what) for part in parts]) for what in ("x", "y", "group"))
    return Windows(x, y, group, name)


def cut_track(x: Array, y: Array, group: Array, length: int, stride: int, *, borders: str, name: str) -> Windows:
    """Cut x (C, T) into windows; label and group are the most frequent in the window (ties: the smallest).

    borders="cross": windows run on where label or group change (D-49). "cut": none does, and a run shorter than a
    window is dropped.
    """
    if borders == "cross":
        windows = Windows.from_array(x, y, group=group, window=length, stride=stride)
    else:
        long = [run for run in runs(y, group) if run.stop - run.start >= length]
        if not long:
            raise InputError(f"No run of one label is as long as a window of {length} time steps. Check the raw files.")
        labels, groups = ([column[run.start] for run in long] for column in (y, group))
        windows = Windows.from_array([x[:, run] for run in long], labels, group=groups, window=length, stride=stride)
    return Windows(windows.x, windows.y, windows.group, name)
