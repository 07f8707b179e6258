"""Ranges: stretches of a recording, start to end, that have a label; and the label that a window takes from them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

Label = str | int | float
NOISE = 1e-6  # seconds by which two times may differ and still be the same


class Range(NamedTuple):
    """A stretch of a recording with a label."""

    recording: str
    start: float  # seconds
    end: float
    label: Label


def labels_of_windows(ranges: Iterable[Range], recording: Any, start: Any, end: Any) -> list[Label | None]:
    """Return the label of each window, or None: the one that covers more than half of it.

    Where two ranges overlap, the later one in their order counts. Ranges of one label count together.

    Parameters
    ----------
    recording, start, end : (N,) of the windows; times in seconds, as those of the ranges
    """
    names, start, end = np.asarray(recording, np.str_), np.asarray(start, np.float64), np.asarray(end, np.float64)
    of_recording: dict[str, list[Range]] = {}
    for one in ranges:
        of_recording.setdefault(one.recording, []).append(one)
    labels: list[Label | None] = [None] * len(names)
    order = np.argsort(names, kind="stable")
    held, first = np.unique(names[order], return_index=True)
    for name, rows in zip(held.tolist(), np.split(order, first[1:]), strict=True):
        if not (own := of_recording.get(name)):
            continue
        edges = np.unique([(one.start, one.end) for one in own])
        numbers = {label: n for n, label in enumerate(dict.fromkeys(one.label for one in own))}
        painted = np.full(len(edges) - 1, -1)  # the label between two edges
        for one in own:
            low, high = np.searchsorted(edges, (one.start, one.end))
            painted[low:high] = numbers[one.label]
        for label, number in numbers.items():
            total = np.append(0.0, np.cumsum(np.diff(edges) * (painted == number)))
            covered = np.interp(end[rows], edges, total) - np.interp(start[rows], edges, total)
            for row in rows[covered > (end[rows] - start[rows]) / 2 + NOISE].tolist():
                labels[row] = label
    return labels
