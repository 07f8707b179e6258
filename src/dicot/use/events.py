"""EventDetector: more of an event from a few examples of it. Windows that overlap are one hit."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.data.cases import Array, pieces
from dicot.data.labels import check_groups

Floats = NDArray[np.float64]

# Chosen on training subjects of SisFall and HAPT: see docs/log.md.
EXAMPLES = 3  # the nearest ones, whose mean distance counts
ORDINARY = 5
DRAWN = 2_000  # ordinary windows that a window is compared with
TINY = 1e-6
# Normal time, in hours, below which no rate of false hits is told: one hit in less than 6 minutes would be more than
# ten per hour, and says nothing about an hour.
LEAST_HOURS = 0.1


@dataclass
class Hit:
    """Windows of one recording that overlap or touch: rows of the best, of the first and of the last in time."""

    row: int
    first: int
    last: int
    windows: int = 1


def merge_hits(
    ranked: Iterable[int], recording: Any, start: Any, end: Any, most: int | None = None, join: bool = True
) -> tuple[list[Hit], int | None]:
    """Walk through rows, the best first; windows of a recording that overlap or touch are one hit, with the best's row.

    With `most` the walk ends before the window that would begin another hit than so many; its row is returned too.
    Without `join` a hit is its best window, and only what overlaps or touches that one is left out.
    """
    hits: dict[int, Hit] = {}
    hits_of_recording: dict[Any, list[Hit]] = defaultdict(list)
    for row in ranked:
        neighbours = hits_of_recording[recording[row]]
        touched = [
            hit for hit in neighbours if start[row] <= end[hit.last] + TINY and end[row] >= start[hit.first] - TINY
        ]
        if not touched:
            if len(hits) == most:
                return list(hits.values()), row
            hits[row] = Hit(row, row, row)
            neighbours.append(hits[row])
        elif join:
            best, *others = touched  # the order of a list is that of the ranking
            for other in others:  # what lay apart is joined by this window
                neighbours.remove(hits.pop(other.row))
            _join(best, row, touched, start, end)
    return list(hits.values()), None


def _join(best: Hit, row: int, touched: list[Hit], start: Any, end: Any) -> None:
    """Let the best of the hits that a window touches last over all of them and the window."""
    rows = [row]
    for hit in touched:
        rows += [hit.first, hit.last]
    best.first = min(rows, key=lambda place: start[place])
    best.last = max(rows, key=lambda place: end[place])
    best.windows = 1 + sum(hit.windows for hit in touched)


def first_hits(ranked: list[int], places: tuple[Any, Any, Any] | None, most: int) -> list[int]:
    """Return the first rows of a ranking, without windows that overlap or touch a better one of their recording."""
    if places is None:
        return ranked[:most]
    return [hit.row for hit in merge_hits(ranked, *places, most, join=False)[0]]


@final
class EventDetector:
    """Score windows by how much nearer they lie to a few examples of an event than to ordinary windows.

    A score is the logarithm of the mean distance to the five nearest ordinary windows over that to the three nearest
    examples, both of other groups. Windows above `threshold_` are hits: it is such that ordinary windows, each judged
    without its own group, give at most `alarms` hits per hour of the `hours_` that they last. `elsewhere_` says how
    many hits each group gives by the threshold of all others: what to expect of new ones, which may differ a lot.
    """

    threshold_: float
    hours_: float
    elsewhere_: dict[Any, int]  # empty without groups
    group_hours_: dict[Any, float]  # of the ordinary windows of each group

    def __init__(self, alarms: float = 1.0) -> None:
        if not 0 <= alarms < math.inf:
            raise InputError(f"alarms must be a number of hits per hour, 0 or more; got {alarms!r}.")
        self.alarms = alarms

    def fit(
        self, x: Any, event: Any, ordinary: Any, recording: Any, start: Any, end: Any, groups: Any = None
    ) -> "EventDetector":
        """Learn from windows x (N, F), of which `event` (N,) are examples and `ordinary` (N,) are none, of booleans.

        They lie in `recording` (N,) from `start` to `end` (N,), in seconds. `groups` (N,) says whose they are; with
        None a window is judged without itself only.
        """
        x = np.asarray(x, np.float64)
        is_example = np.asarray(event, bool)
        is_ordinary = np.asarray(ordinary, bool) & ~is_example
        has_groups = groups is not None
        groups = check_groups(groups, len(x), "groups", "windows") if has_groups else np.arange(len(x))
        examples = np.flatnonzero(is_example)
        usual = np.flatnonzero(is_ordinary)
        _check_enough(groups[examples], groups[usual])

        drawn = usual[np.linspace(0, len(usual) - 1, min(len(usual), DRAWN)).astype(int)]
        self._examples = _Compared(x[examples], groups[examples], EXAMPLES)
        self._ordinary = _Compared(x[drawn], groups[drawn], ORDINARY)

        normal_time = _NormalTime(
            self.scores(x[usual], groups[usual]),
            np.asarray(recording)[usual],
            np.asarray(start)[usual],
            np.asarray(end)[usual],
        )
        everything = np.ones(len(usual), bool)
        self.hours_ = normal_time.hours(everything)
        self.threshold_ = normal_time.threshold(everything, self.alarms * self.hours_)
        self.elsewhere_ = {}
        self.group_hours_ = {}
        for group in np.unique(groups[usual]).tolist() if has_groups else ():
            is_own = groups[usual] == group
            self.group_hours_[group] = normal_time.hours(is_own)
            hours = self.hours_ - self.group_hours_[group]
            threshold = normal_time.threshold(~is_own, self.alarms * hours)
            self.elsewhere_[group] = normal_time.count_hits(is_own, threshold)
        return self

    def expectation(self, noun: str, remedy: str = "Label more windows of normal time.") -> str:
        """Say how many false hits a new group, called `noun`, may give; empty where no groups were told apart.

        `remedy` is what to do where there is too little normal time to say.
        """
        if not self.elsewhere_:
            return ""
        if self.hours_ < LEAST_HOURS:
            return (
                f"Too little normal time ({3600 * self.hours_:.0f} s in all) to say how many false hits to expect from "
                f"a new {noun}. {remedy}"
            )
        together = sum(self.elsewhere_.values()) / self.hours_
        rates = {
            group: count / self.group_hours_[group]
            for group, count in self.elsewhere_.items()
            if self.group_hours_[group] >= LEAST_HOURS
        }
        if not rates:
            return (
                f"All together gave {together:.2f} false hits per hour, each {noun} judged by the others' threshold. "
                f"What to expect of a new {noun} is not known: no {noun} has 6 minutes of normal time. {remedy}"
            )
        return f"{self._from_rates(noun, rates)}; all together gave {together:.2f} per hour.{self._short(noun)}"

    def _from_rates(self, noun: str, rates: dict[Any, float]) -> str:
        """Say what the groups with enough normal time gave, by their hits per hour."""
        worst = max(rates, key=rates.__getitem__)
        most = (
            f"Each {noun} was judged by the others' threshold. The most came from {worst}, {self.elsewhere_[worst]} in "
            f"{self.group_hours_[worst]:.2g} h"
        )
        above = sum(rate > self.alarms for rate in rates.values())
        if not above:
            return f"No {noun} of {len(rates)} gave more than {self.alarms:g} false hit(s) per hour. {most}"
        return (
            f"Expect up to {rates[worst]:.3g} false hits per hour from a new {noun}, not {self.alarms:g}. {most}; "
            f"{above} of {len(rates)} {noun}s gave more than {self.alarms:g} per hour"
        )

    def _short(self, noun: str) -> str:
        """Say how many groups have too little normal time for a rate of their own; empty where all have enough."""
        n_short = sum(hours < LEAST_HOURS for hours in self.group_hours_.values())
        if not n_short:
            return ""
        return f" {n_short} {noun}(s) with less than 6 minutes of normal time count only in all together."

    def scores(self, x: Any, groups: Any = None) -> Floats:
        """Return (N,) scores, the higher the more like the event; a window is not compared with its own group (N,)."""
        x = np.asarray(x, np.float64)
        groups = None if groups is None else np.asarray(groups)
        scores = np.empty(len(x))
        for rows in pieces((len(x), len(self._examples.x) + len(self._ordinary.x))):
            own_groups = None if groups is None else groups[rows]
            to_ordinary = self._ordinary.log_distances(x[rows], own_groups)
            scores[rows] = to_ordinary - self._examples.log_distances(x[rows], own_groups)
        return scores

    def hits(self, scores: Floats, recording: Any, start: Any, end: Any) -> list[Hit]:
        """Return the windows above the threshold, joined to hits, the best first."""
        ranked = np.argsort(-scores, kind="stable")
        return merge_hits(ranked[scores[ranked] > self.threshold_].tolist(), recording, start, end)[0]


class _Compared(NamedTuple):
    """Windows that others are compared with."""

    x: Floats  # (M, F)
    groups: Array  # (M,)
    n_nearest: int  # whose mean distance counts

    def log_distances(self, z: Floats, groups: Array | None) -> Floats:
        """Return (N,) logarithms of the mean distance of z (N, F) to the nearest of other groups than theirs (N,)."""
        squares = (z**2).sum(axis=1)[:, None] + (self.x**2).sum(axis=1) - 2 * z @ self.x.T
        if groups is not None:
            squares[groups[:, None] == self.groups] = np.inf
        count = min(self.n_nearest, len(self.x))
        nearest = np.partition(squares, count - 1, axis=1)[:, :count]
        distances = np.sqrt(np.maximum(nearest, 0))
        is_there = np.isfinite(distances)
        means = np.where(is_there, distances, 0).sum(axis=1) / is_there.sum(axis=1)
        logs: Floats = np.log(means + TINY)
        return logs


class _NormalTime(NamedTuple):
    """Ordinary windows with their scores and places (N,)."""

    scores: Floats
    recording: Array
    start: Array
    end: Array

    def hours(self, some: NDArray[np.bool_]) -> float:
        return covered(self.recording[some], self.start[some], self.end[some]) / 3600

    def threshold(self, some: NDArray[np.bool_], n_hits: float) -> float:
        """Return the score that some windows exceed in at most so many hits."""
        ranked = np.argsort(-self.scores, kind="stable")
        ranked = ranked[some[ranked]]
        places = self.recording, self.start, self.end
        beyond = merge_hits(ranked.tolist(), *places, math.floor(n_hits + TINY))[1]
        return -math.inf if beyond is None else float(self.scores[beyond])

    def count_hits(self, some: NDArray[np.bool_], threshold: float) -> int:
        rows = np.flatnonzero(some & (self.scores > threshold))
        return len(merge_hits(rows.tolist(), self.recording, self.start, self.end)[0])


def _check_enough(groups_of_examples: Array, groups_of_ordinary: Array) -> None:
    n_groups = len(np.unique(groups_of_examples)), len(np.unique(groups_of_ordinary))
    if min(n_groups) < 2 or len(groups_of_ordinary) <= 2 * ORDINARY:
        raise InputError(
            f"A detector needs 2 examples and {2 * ORDINARY + 1} ordinary windows, both of 2 recordings or groups; "
            f"got {len(groups_of_examples)} examples of {n_groups[0]} and {len(groups_of_ordinary)} ordinary windows "
            f"of {n_groups[1]}. Label more."
        )


def covered(recording: Array, start: Array, end: Array) -> float:
    """Return the seconds that lie in at least one window; all windows are of one length."""
    order = np.lexsort((start, recording))
    names, starts, ends = recording[order], start[order], end[order]
    next_starts = np.append(starts[1:], np.inf)
    is_last = np.append(names[1:] != names[:-1], True)
    next_starts[is_last] = np.inf
    return float(np.sum(np.minimum(ends, next_starts) - starts))


def beside(event: Array, recording: Array, start: Array, end: Array) -> NDArray[np.bool_]:
    """Return which windows (N,) share time with one of `event` (N,), booleans, itself among them."""
    shares_time = np.zeros(len(event), bool)
    for row in np.flatnonzero(event).tolist():
        shares_time |= (recording == recording[row]) & (start < end[row]) & (end > start[row])
    return shares_time
