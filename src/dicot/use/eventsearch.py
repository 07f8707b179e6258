"""Events in recordings that are like the windows with a label: found by an EventDetector, and told in words."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import DicotWarning, InputError, did_you_mean, naming
from dicot.data.cases import Array
from dicot.data.labels import as_text
from dicot.use.events import EventDetector, Hit, beside, merge_hits
from dicot.use.judging import JudgedVectors
from dicot.use.labels.given import labels_of

# Columns of a hit that joins several windows: of its first and its last one; others are of the best.
OF_FIRST = ("start", "start_time")
OF_LAST = ("end", "end_time")
MINUTES = 0.1  # of an hour: less normal time than that is told in seconds, which 0.00 h would hide

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FoundEvents:
    """Events that are like the examples of a label."""

    windows: JudgedVectors
    hits: list[Hit]  # the best first
    scores: Array  # (N,) of all windows
    has_example: list[bool]  # of each hit: whether an example lies in it
    sentence: str  # how many there are, how far the examples are found again, and what to expect of new recordings

    def columns(self) -> dict[str, Array]:
        """Return the table of the events."""
        columns = {}
        for name, values in self.windows.vectors.columns().items():
            if name != "label":
                columns[name] = values[self._rows_for(name)]
        best = [hit.row for hit in self.hits]
        numbers = {
            "windows": np.array([hit.windows for hit in self.hits], int),
            "score": self.scores[best],
            "example": np.array(self.has_example, bool),
        }
        return {**columns, **numbers}

    def _rows_for(self, name: str) -> list[int]:
        if name in OF_FIRST:
            return [hit.first for hit in self.hits]
        if name in OF_LAST:
            return [hit.last for hit in self.hits]
        return [hit.row for hit in self.hits]


class _EventFit(NamedTuple):
    detector: EventDetector
    scores: Array  # (N,)
    n_again: int  # windows of examples that are found by the others


class _Examples(NamedTuple):
    """The windows that have the label of the event."""

    label: str
    is_example: Mask  # (N,)
    n_events: int

    @property
    def n_windows(self) -> int:
        return int(self.is_example.sum())

    def __str__(self) -> str:
        return f"{self.n_windows} example windows ({self.n_events} events)"


def find_events(
    label: str,
    windows: JudgedVectors,
    labels: Path | None = None,
    *,
    alarms: float = 1.0,
    known_only: bool = False,
) -> FoundEvents:
    """Find events that are like the few windows with this label.

    alarms : false hits that are allowed per hour of normal time, of all groups together
    known_only : take only windows with another label as normal, none without a label
    """
    vectors = windows.vectors
    with naming(windows.path):
        places = vectors.places()
    texts = as_text(labels_of(windows.path, vectors, labels))
    source = labels or windows.path
    is_example = texts == label
    if not is_example.any():
        suggestion = did_you_mean(label, set(texts.tolist()) - {""})
        raise InputError(f"{source} has no label {label[:40]!r}. {suggestion}")
    n_events = len(merge_hits(np.flatnonzero(is_example).tolist(), *places)[0])
    examples = _Examples(label, is_example, n_events)
    groups = _groups_of_examples(windows, is_example)

    def fit(normal: Mask) -> _EventFit:
        # Where nothing is normal the detector says so; all windows then give the scale.
        x = windows.features(normal if normal.any() else np.ones_like(normal))[0]
        with naming(source):
            detector = EventDetector(alarms).fit(x, is_example, normal, *places, groups=groups)
        scores = detector.scores(x, np.arange(len(x)) if groups is None else groups)
        n_again = int((scores[is_example] > detector.threshold_).sum())
        return _EventFit(detector, scores, n_again)

    normal = ~is_example & ~beside(is_example, *places)
    labelled = normal & (texts != "")
    best = first = fit(labelled if known_only else normal)
    if not known_only and 2 * first.n_again < examples.n_windows:
        best, note = _without_unlabelled(first, fit, labelled, examples)
        warnings.warn(note, DicotWarning, stacklevel=2)

    hits = best.detector.hits(best.scores, *places)
    has_example = [_is_on_example(hit, is_example, places) for hit in hits]
    noun = "group" if groups is vectors.group else "recording"
    only_labelled = known_only or best is not first
    sentence = _sentence(best, examples, windows.kind, noun, only_labelled, len(hits), sum(has_example))
    return FoundEvents(windows, hits, best.scores, has_example, sentence)


def _is_on_example(hit: Hit, is_example: Mask, places: tuple[Array, Array, Array]) -> bool:
    """Tell whether the best window of a hit shares time with an example."""
    is_best = np.arange(len(is_example)) == hit.row
    return bool((is_example & beside(is_best, *places)).any())


def _groups_of_examples(windows: JudgedVectors, is_example: Mask) -> Array | None:
    """Return whose windows they are, where examples are of several: a window is then judged without its own."""
    vectors = windows.vectors
    for values in (vectors.group, vectors.recording):
        if values is not None and len(np.unique(values[is_example])) > 1:
            return values
    return None


def _without_unlabelled(
    first: _EventFit, fit: Callable[[Mask], _EventFit], labelled: Mask, examples: _Examples
) -> tuple[_EventFit, str]:
    """Try again with labelled windows alone as normal, where examples were missed; say what came of it, or what to do.

    An event that is frequent among windows without a label looks normal while these are taken as normal.
    """
    label = examples.label
    missed = f"Only {first.n_again} of {examples} were found again while windows without a label were normal"
    try:
        second = fit(labelled)
    except InputError:
        return first, (
            f"{missed}: many of them may hold {label!r} too. Label some windows of two recordings or more that hold "
            "none, with any other label, and run this again with --known-only."
        )
    if second.n_again <= first.n_again:
        return first, f"{missed}, and no more with --known-only. Label more examples of {label!r}."
    return second, (
        f"{missed}: many of them hold {label!r} too. So only labelled windows are normal now, as with --known-only, "
        f"and {second.n_again} of {examples.n_windows} are found again."
    )


def _sentence(
    fit: _EventFit,
    examples: _Examples,
    kind: str,
    noun: str,
    only_labelled: bool,
    n_hits: int,
    n_with_example: int,
) -> str:
    detector = fit.detector
    remedy = "Label more windows of normal time." if only_labelled else "Add recordings of normal time."
    expectation = detector.expectation(noun, remedy)
    if not expectation:
        expectation = "The examples are of one recording: what a new one gives is not known."
    return (
        f"{expectation} {n_hits} event(s), {n_with_example} of them with an example in it; judged by: {kind}. "
        f"{fit.n_again} of {examples} are found again by the others. The threshold is such that normal time, "
        f"{_time(detector.hours_)}, gives at most {detector.alarms:g} hit(s) per hour."
    )


def _time(hours: float) -> str:
    return f"{3600 * hours:.0f} s" if hours < MINUTES else f"{hours:.2f} h"
