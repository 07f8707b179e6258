"""How stretches and events of recordings are scored: by their boundaries, by time, and event by event."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score

TICK = 0.1  # seconds between two points of time at which labels are compared


class Range(NamedTuple):
    """A stretch of a recording with a label."""

    recording: str
    start: float  # seconds
    end: float
    label: str

    def overlaps(self, other: "Range") -> bool:
        return self.start < other.end and other.start < self.end


def boundaries_f1(truth: Sequence[Range], found: Sequence[Range], tolerance: float) -> float:
    """Match boundaries one to one, in the order of time, where they lie at most `tolerance` seconds apart.

    A true boundary is where the label changes. Where time without a label lies between, anywhere in there is right, and
    what else is found there is neither right nor wrong.
    """
    n_true = n_right = n_wrong = 0
    answers = by_recording(found)
    for name, ranges in by_recording(truth).items():
        starts = [one.start for one in answers.get(name, [])][1:]
        wanted = [(a.end, b.start) for a, b in pairwise(ranges) if a.label != b.label]
        silent = [(a.end, b.start) for a, b in pairwise(ranges) if b.start > a.end]
        silent += [(-np.inf, ranges[0].start), (ranges[-1].end, np.inf)]
        n_true += len(wanted)
        at = 0
        for place in starts:
            while at < len(wanted) and wanted[at][1] + tolerance < place:
                at += 1
            if at < len(wanted) and wanted[at][0] - tolerance <= place:
                n_right += 1
                at += 1
            elif not any(low < place < high for low, high in silent):
                n_wrong += 1
    return 2 * n_right / (n_true + n_right + n_wrong) if n_true + n_wrong else 1.0


def time_scores(truth: Sequence[Range], found: Sequence[Range]) -> tuple[float, float]:
    """Compare labels along time, where the truth has one: the share that is right, and the adjusted Rand index."""
    true_labels: list[Any] = []
    found_labels: list[Any] = []
    answers = by_recording(found)
    for name, ranges in by_recording(truth).items():
        starts = [one.start for one in answers[name]]
        labels = np.array([str(one.label) for one in answers[name]])
        for one in ranges:
            ticks = np.arange(one.start + TICK / 2, one.end, TICK)
            place = np.searchsorted(starts, ticks, side="right") - 1
            is_inside = (place >= 0) & (ticks < answers[name][-1].end)
            found_labels.append(labels[place[is_inside]])
            true_labels.append(np.full(is_inside.sum(), one.label))
    a, b = np.concatenate(true_labels), np.concatenate(found_labels)
    return float(np.mean(a == b)), float(adjusted_rand_score(a, b))


class Hits(NamedTuple):
    """Events that were hit, and hits that are right, which overlap an event."""

    events: int
    right: int


def event_hits(truth: Sequence[Range], found: Sequence[Range]) -> Hits:
    """Count the true events that anything overlaps, and what overlaps a true event."""
    events = right = 0
    true_ranges, answers = by_recording(truth), by_recording(found)
    for name, ranges in true_ranges.items():
        hits = answers.get(name, [])
        events += sum(any(event.overlaps(hit) for hit in hits) for event in ranges)
        right += sum(any(hit.overlaps(event) for event in ranges) for hit in hits)
    return Hits(events, right)


def by_recording(ranges: Sequence[Range]) -> dict[str, list[Range]]:
    """Ranges of each recording in the order of time."""
    groups = defaultdict(list)
    for one in sorted(ranges):
        groups[one.recording].append(one)
    return dict(groups)
