"""Ranges: stretches of a recording, start to end, that have a label; and the label that a window takes from them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

Label = str | int | float
Span = tuple[float, float, Label]  # start and end in seconds
NOISE = 1e-6  # seconds by which two times may differ and still be the same


def labels_of_windows(ranges: Iterable[Span], start: Any, end: Any) -> list[Label | None]:
    """Return the label of each window (N,) of a recording, or None: the one that covers more than half of it.

    Where two ranges overlap, the later one in their order counts. Ranges of one label count together.
    """
    own, start, end = list(ranges), np.asarray(start, np.float64), np.asarray(end, np.float64)
    taken: list[Label | None] = [None] * len(start)
    edges = np.unique([(first, last) for first, last, _ in own])
    numbers = {label: n for n, label in enumerate(dict.fromkeys(label for *_, label in own))}
    painted = np.full(max(0, len(edges) - 1), -1)  # the label between two edges
    for first, last, label in own:
        low, high = np.searchsorted(edges, (first, last))
        painted[low:high] = numbers[label]
    for label, number in numbers.items():
        total = np.append(0.0, np.cumsum(np.diff(edges) * (painted == number)))
        covered = np.interp(end, edges, total) - np.interp(start, edges, total)
        for row in np.flatnonzero(covered > (end - start) / 2 + NOISE).tolist():
            taken[row] = label
    return taken
