"""How stretches and events of recordings are scored: by their boundaries, by time, and event by event."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score, f1_score, normalized_mutual_info_score

TICK = 0.1  # seconds between two points of time at which labels are compared


class Range(NamedTuple):
    """A stretch of a recording with a label."""

    recording: str
    start: float  # seconds
    end: float
    label: str


class Counts(NamedTuple):
    """How many of the true ones were found, and how many were found in vain."""

    true: int
    found: int
    right: int  # of those found
    hit: int  # of the true ones

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else float("nan")

    @property
    def recall(self) -> float:
        return self.hit / self.true if self.true else float("nan")

    @property
    def f1(self) -> float:
        return 2 * self.hit / (self.true + self.found - self.right + self.hit) if self.true + self.found else 1.0


def boundary_counts(truth: Sequence[Range], found: Sequence[Range], tolerance: float) -> Counts:
    """Match boundaries one to one, in the order of time, where they lie at most `tolerance` seconds apart.

    A true boundary is where the label changes. Where time without a label lies between, anywhere in there is right, and
    what else is found there is neither right nor wrong.
    """
    total = np.zeros(3, int)
    for name, own in _by_recording(truth).items():
        inner = [one.start for one in _by_recording(found).get(name, [])][1:] if found else []
        wanted = [(a.end, b.start) for a, b in pairwise(own) if a.label != b.label]
        silent = [(a.end, b.start) for a, b in pairwise(own) if b.start > a.end]
        silent += [(-np.inf, own[0].start), (own[-1].end, np.inf)]
        at, right = 0, 0
        free = []
        for place in inner:
            while at < len(wanted) and wanted[at][1] + tolerance < place:
                at += 1
            if at < len(wanted) and wanted[at][0] - tolerance <= place:
                right, at = right + 1, at + 1
            else:
                free.append(place)
        wrong = [place for place in free if not any(low < place < high for low, high in silent)]
        total += len(wanted), right + len(wrong), right
    return Counts(int(total[0]), int(total[1]), int(total[2]), int(total[2]))


def time_scores(truth: Sequence[Range], found: Sequence[Range]) -> dict[str, float]:
    """Compare labels along time, where the truth has one: the share that is right, macro-F1, ARI and NMI."""
    pairs: list[tuple[NDArray[Any], NDArray[Any]]] = []
    answers = _by_recording(found)
    for name, own in _by_recording(truth).items():
        ticks = np.concatenate([np.arange(one.start + TICK / 2, one.end, TICK) for one in own])
        labels = np.repeat([one.label for one in own], [len(np.arange(o.start + TICK / 2, o.end, TICK)) for o in own])
        there = answers[name]
        place = np.searchsorted([one.start for one in there], ticks, side="right") - 1
        inside = (place >= 0) & (ticks < there[-1].end)
        pairs.append((labels[inside], np.array([str(one.label) for one in there])[place[inside]]))
    a, b = (np.concatenate(column) for column in zip(*pairs, strict=True))
    return {
        "right": float(np.mean(a == b)),
        "macro_f1": float(f1_score(a, b, labels=np.unique(a), average="macro", zero_division=0)),
        "ari": float(adjusted_rand_score(a, b)),
        "nmi": float(normalized_mutual_info_score(a, b)),
    }


def event_counts(truth: Sequence[Range], found: Sequence[Range]) -> Counts:
    """Count events: one is hit where anything that was found overlaps it, and what overlaps none is a false alarm."""
    hit, right = 0, 0
    events, answers = _by_recording(truth), _by_recording(found)
    for name in events.keys() | answers.keys():
        own, there = events.get(name, []), answers.get(name, [])
        hit += sum(any(_overlap(one, other) for other in there) for one in own)
        right += sum(any(_overlap(one, other) for other in own) for one in there)
    return Counts(len(truth), len(found), right, hit)


def _overlap(one: Range, other: Range) -> bool:
    return one.start < other.end and other.start < one.end


def _by_recording(ranges: Sequence[Range]) -> dict[str, list[Range]]:
    found = defaultdict(list)
    for one in sorted(ranges):
        found[one.recording].append(one)
    return dict(found)
