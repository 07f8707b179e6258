"""Ranges: stretches of a recording, start to end, that have a label; and the label that a window takes from them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from dicot.data.cases import Array

Label = str | int | float
NOISE = 1e-6  # seconds by which two times may differ and still be the same


class Range(NamedTuple):
    """A stretch of a recording with a label."""

    recording: str
    start: float  # seconds
    end: float
    label: Label


def labels_of_windows(ranges: Iterable[Range], recording: Any, start: Any, end: Any) -> list[Label | None]:
    """Return the label of each window, or None: the one whose ranges cover more than half of it.

    Ranges of one label count together, and time that two of them cover counts once. Where ranges of two labels overlap
    and both cover more than half, the one that covers more is taken, and none where they cover as much.

    Parameters
    ----------
    recording, start, end : (N,) of the windows; times in seconds, as those of the ranges
    """
    names, start, end = np.asarray(recording, np.str_), np.asarray(start, np.float64), np.asarray(end, np.float64)
    by_label: dict[str, dict[Label, list[tuple[float, float]]]] = {}
    for one in ranges:
        by_label.setdefault(one.recording, {}).setdefault(one.label, []).append((one.start, one.end))
    labels: list[Label | None] = [None] * len(names)
    order = np.argsort(names, kind="stable")
    held, first = np.unique(names[order], return_index=True)
    for name, rows in zip(held.tolist(), np.split(order, first[1:]), strict=True):
        most, least = np.zeros(len(rows)), (end[rows] - start[rows]) / 2 + NOISE
        winner: list[Label | None] = [None] * len(rows)
        for label, stretches in by_label.get(name, {}).items():
            covered = _covered(np.array(stretches), start[rows], end[rows])
            for row in np.flatnonzero(covered > np.maximum(most - NOISE, least)):
                winner[row] = label if covered[row] > most[row] + NOISE else None
            most = np.maximum(most, covered)
        for row, label_of_row in zip(rows.tolist(), winner, strict=True):
            labels[row] = label_of_row
    return labels


def _covered(stretches: Array, start: Array, end: Array) -> Array:
    """Return how many seconds of each window these stretches (n, 2) cover."""
    lows, highs = stretches[np.argsort(stretches[:, 0])].T
    before = np.maximum.accumulate(np.append(-np.inf, highs[:-1]))  # what is covered up to here already
    lows, highs = np.maximum(lows, before), np.maximum(highs, before)
    edges = np.column_stack([lows, highs]).ravel()
    total = np.cumsum(np.column_stack([np.zeros(len(lows)), highs - lows]).ravel())  # covered from the first edge on
    covered: Array = np.interp(end, edges, total) - np.interp(start, edges, total)
    return covered
