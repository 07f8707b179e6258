"""Ranges: stretches of a recording, start to end, that have a label; and the label that a window takes from them."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import DicotWarning, InputError

Label = str | int | float
Span = tuple[float, float, Label]  # start and end in seconds
NOISE = 1e-6  # seconds by which two times may differ and still be the same
_SHOWN = 5  # ranges that a sentence names
WITHOUT_TABLE = "leave the table out: --table ''"
UNIT_NAMES = {"steps": "time steps", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


class TableRange(NamedTuple):
    """A range of a recording, in seconds on its clock, and the row of the table that gives it."""

    start: float
    end: float
    label: Label
    row: str  # such as "labels.csv, line 7"


class Misplaced(NamedTuple):
    """A range that does not lie within its recording, in plain values. All times are in seconds."""

    row: str
    recording: str
    start: float
    end: float
    first: float  # where the recording begins
    last: float  # where it ends
    units: tuple[str, ...] = ()  # the range would lie within, if start and end were in one of these

    @property
    def is_outside(self) -> bool:
        """Tell whether less than half of the range lies within the recording."""
        return share_within(self.start, self.end, self.first, self.last) < 0.5

    @property
    def excess(self) -> float:
        """Return how far the range reaches over the nearer end of the recording."""
        return max(self.end - self.last, self.first - self.start)

    def __str__(self) -> str:
        return (
            f"{self.row}, {self.recording!r} from {self.start:.10g} to {self.end:.10g} s, where the recording lasts "
            f"from {self.first:.10g} to {self.last:.10g} s"
        )


def share_within(start: float, end: float, first: float, last: float) -> float:
    """Return which share of a range lies between first and last; of one without a length, 0 or 1."""
    if end <= start:
        return float(first <= start <= last)
    return max(0.0, min(end, last) - max(start, first)) / (end - start)


def check_places(n_ranges: int, misplaced: Sequence[Misplaced], tolerance: float, options: bool = True) -> None:
    """Refuse ranges most of which lie outside their recordings, and count those that do where they are few.

    A table in milliseconds that is read as seconds is of this kind: its first range covers the whole recording, the
    others none of it.

    Parameters
    ----------
    n_ranges : how many there are in all
    misplaced : those that do not lie within their recordings
    tolerance : seconds by which a range may reach over the end of its recording without a word
    options : whether options of the command say the unit, and that the table is left out
    """
    outside = [one for one in misplaced if one.is_outside]
    noticeable = [one for one in misplaced if one.is_outside or one.excess > tolerance]
    if not noticeable:
        return
    are_most_outside = 2 * len(outside) > n_ranges
    shown = outside if are_most_outside else noticeable
    what = "lie outside their recordings" if are_most_outside else "reach beyond their recordings"
    places = "; ".join(map(str, shown[:_SHOWN]))
    more = f"; and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    sentence = f"{len(shown)} of {n_ranges} ranges {what}: {places}{more}. {_unit_advice(outside, options)}"
    if are_most_outside:
        raise InputError(f"{sentence} {f'Or {WITHOUT_TABLE}.' if options else ''}".rstrip())
    warnings.warn(sentence, DicotWarning, stacklevel=3)


def _unit_advice(outside: Sequence[Misplaced], options: bool) -> str:
    """Say in which units most of these ranges would lie within their recordings."""
    fitting = [unit for unit in UNIT_NAMES if 2 * sum(unit in one.units for one in outside) > len(outside)]
    # What fits in milliseconds fits in all smaller units as well.
    of_time = [unit for unit in fitting if unit != "steps"][:1]
    units = [unit for unit in fitting if unit == "steps"] + of_time
    if not units:
        return "Correct these rows: start and end are seconds on the clock of the recording, or dates in ISO 8601."
    names = " or ".join(UNIT_NAMES[unit] for unit in units)
    ways = " or ".join(f"--set table_unit={unit}" for unit in units)
    return f"Start and end look like {names}: {f'say {ways}, or ' if options else ''}write seconds."


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


def rows_on_windows(
    ranges: Sequence[TableRange], taken: Sequence[Label | None], start: Any, end: Any
) -> tuple[set[str], set[str]]:
    """Return the rows of ranges that overlap with a window of a recording (N,), and those that gave one its label.

    Windows are in the order of time, and `taken` are their labels.
    """
    overlapping, used = set(), set()
    for one in ranges:
        first = int(np.searchsorted(end, one.start + NOISE))
        stop = int(np.searchsorted(start, one.end - NOISE))
        if first < stop:
            overlapping.add(one.row)
        if one.label in taken[first:stop]:
            used.add(one.row)
    return overlapping, used
