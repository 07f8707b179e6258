"""Labels on windows: which window a key or a range labels, and what is said of labels that are on none."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd

from dicot.core.errors import InputError, did_you_mean, listed
from dicot.data.cases import Array
from dicot.data.clocks import UNITS
from dicot.data.labels import as_text, check_labels
from dicot.data.ranges import UNIT_NAMES, Misplaced, Span, check_places, labels_of_windows
from dicot.data.tags import nearest_name
from dicot.use.labels.store import Key, Label, recording_of_key, rounded, seconds_of_key
from dicot.use.labels.tables import lines_by_recording

MOST_REASONS = 3  # unknown recordings of which an error says what is probably meant


def put_on_windows(labels: Mapping[Key, Label], recording: Any, start: Any, end: Any) -> tuple[Array, list[Key]]:
    """Return the label of each window (N,), unknown for most as in Windows, and the keys that label none.

    A window takes the label of the key that names it, start and end. Every other key is a range: a window takes the
    label that covers more than half of it. Where two ranges overlap, the later one in `labels` counts there.
    """
    windows = WindowKeys.of_places(recording, start, end)
    if len({isinstance(label, str) for label in labels.values()}) > 1:
        labels = {key: as_text(label) for key, label in labels.items()}  # a program wrote 1, and somebody typed 1
    by_row, lost = windows.rows_of(labels)
    return check_labels([by_row.get(row) for row in range(len(windows))], len(windows), "label", "windows"), lost


@final
class WindowKeys:
    """The key of each window in a label store, and the windows of a key; times are equal up to a microsecond."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys
        self._rows_of_key: dict[Key, list[int]] = {}
        places: dict[str, list[tuple[int, float, float]]] = {}
        for row, key in enumerate(keys):
            self._rows_of_key.setdefault(rounded(key), []).append(row)
            place = seconds_of_key(key)
            if place is not None:
                places.setdefault(key[0], []).append((row, *place))
        self._windows = {name: _WindowsInTime.of(windows) for name, windows in places.items()}

    @classmethod
    def of_places(cls, recording: Any, start: Any, end: Any) -> "WindowKeys":
        """Name windows by their places."""
        places = zip(recording, start, end, strict=True)
        return cls([(str(name), float(first), float(last)) for name, first, last in places])

    def __len__(self) -> int:
        return len(self._keys)

    def rows_of(self, labels: Mapping[Key, Label]) -> tuple[dict[int, Label], list[Key]]:
        """Return the labels by row as `put_on_windows` has them, and the keys that label no window."""
        label_by_row: dict[int, Label] = {}
        others: dict[Key, Label] = {}
        for name, (key, label) in _by_rounded_key(labels).items():
            rows = self._rows_of_key.get(name)
            if rows is None:
                others[key] = label
            else:
                label_by_row |= dict.fromkeys(rows, label)

        ranges: dict[str, list[Span]] = {}
        for key, label in others.items():
            place = seconds_of_key(key)
            if place is not None and key[0] in self._windows:
                ranges.setdefault(key[0], []).append((*place, label))
        on_a_window: set[Key] = set()
        for name, spans in ranges.items():
            windows = self._windows[name]
            for row, label in windows.labels(spans):
                label_by_row.setdefault(row, label)
            on_a_window |= {(name, start, end) for start, end, _ in windows.covering(spans, label_by_row)}
        return label_by_row, [key for key in others if key not in on_a_window]

    def keys_of(self, rows: Iterable[int], labels: Mapping[Key, Label]) -> list[Key]:
        """Return the keys of these rows, each once, as they are written where a label has one already."""
        written = {rounded(key): key for key in labels}
        wanted = dict.fromkeys(self._keys[row] for row in rows)
        return list(dict.fromkeys(written.get(rounded(key), key) for key in wanted))


class _WindowsInTime(NamedTuple):
    """The windows of a recording in the order of time."""

    rows: list[int]
    start: Array
    end: Array

    @classmethod
    def of(cls, windows: Sequence[tuple[int, float, float]]) -> "_WindowsInTime":
        rows, start, end = zip(*sorted(windows, key=itemgetter(1)), strict=True)
        return cls(list(rows), np.array(start), np.array(end))

    def labels(self, spans: Sequence[Span]) -> list[tuple[int, Label]]:
        """Return the rows that these ranges label."""
        pairs = zip(self.rows, labels_of_windows(spans, self.start, self.end), strict=True)
        return [(row, label) for row, label in pairs if label is not None]

    def covering(self, spans: Sequence[Span], label_by_row: Mapping[int, Label]) -> list[Span]:
        """Return the ranges that lie on a window with a label."""
        # The latest end of the labelled windows that start up to here: a range that begins before it is on one.
        ends = [end if row in label_by_row else -np.inf for row, end in zip(self.rows, self.end, strict=True)]
        latest_end = np.maximum.accumulate(ends)
        n_begun = np.searchsorted(self.start, [span[1] for span in spans])
        pairs = zip(spans, n_begun.tolist(), strict=True)
        return [span for span, count in pairs if count > 0 and latest_end[count - 1] > span[0]]


def _by_rounded_key(labels: Mapping[Key, Label]) -> dict[Key, tuple[Key, Label]]:
    """Return each key and its label by what equal keys share; an error where one has two labels."""
    found: dict[Key, tuple[Key, Label]] = {}
    for key, label in labels.items():
        other_key, other = found.setdefault(rounded(key), (key, label))
        if other != label:
            both = f"{other!r} for {other_key!r} and {label!r} for {key!r}"
            raise InputError(f"One window has two labels: {both}. Take one of them away.")
    return found


def check_ranges(labels: Mapping[Key, Label], lost: Collection[Key], path: Path, places: tuple[Array, ...]) -> None:
    """Refuse the labels of a file most of whose ranges lie outside the windows, and count those that reach beyond.

    `lost` are on no window, and are named elsewhere. `places` are recording, start and end of all windows.
    """
    recording, start, end = places
    bounds = (
        pd.DataFrame({"start": start, "end": end}).groupby(recording.astype(str)).agg({"start": "min", "end": "max"})
    )
    first, last = bounds["start"].to_dict(), bounds["end"].to_dict()
    lengths = end - start
    shortest, longest = float(lengths.min(initial=np.inf)) / 2, float(lengths.max(initial=0.0))
    n_ranges, misplaced = 0, dict[Key, Misplaced]()
    for key in labels:
        span = seconds_of_key(key)
        if span is None or key[0] not in first:
            continue
        n_ranges += 1
        whole = (first[key[0]], last[key[0]])
        if span[0] < whole[0] or span[1] > whole[1]:
            misplaced[key] = Misplaced(str(path), key[0], *span, *whole, _units_within(span, whole, shortest))
    outside = [one for one in misplaced.values() if one.is_outside]
    is_of_other_vectors = len(lost) == len(labels) and not any(one.units for one in outside)
    if is_of_other_vectors or 2 * len(outside) <= n_ranges:
        misplaced = {key: place for key, place in misplaced.items() if key not in lost}
    # Behind the last window of a recording there is less than another window.
    check_places(n_ranges, [*misplaced.values()], 2 * longest, options=False)


def _units_within(span: tuple[float, float], whole: tuple[float, float], shortest: float) -> tuple[str, ...]:
    """Return the units in which a range would lie within a recording, and not be shorter than so many seconds."""
    units = []
    for unit, scale in UNITS.items():
        start, end = span[0] / scale, span[1] / scale
        is_within = whole[0] <= start and end <= whole[1]
        if unit in UNIT_NAMES and is_within and end - start >= shortest:
            units.append(unit)
    return tuple(units)


def check_recordings(labels: Mapping[Key, Label], path: Path, recordings: Iterable[str], vectors: Path) -> None:
    """Refuse labels of recordings that are not among those of the vectors: nobody would find them again."""
    known = dict.fromkeys(recordings)
    unknown = Counter(name for name in map(recording_of_key, labels) if name not in known)
    if not unknown:
        return

    lines = lines_by_recording(path)
    reasons = []
    for name in islice(unknown, MOST_REASONS):
        reasons.append(f"{_where(lines.get(name, []))}{_why_unknown(name, [*known])}")
    more = len(unknown) - len(reasons)
    if more > 0:
        reasons.append(f"There are {more} more such names.")
    raise InputError(
        f"{path}: {unknown.total()} of {len(labels)} label(s) name recordings that {vectors} does not have. "
        f"{' '.join(reasons)} Nothing was taken. Correct the names or remove the rows, or name the vectors that were "
        "labelled: --vectors."
    )


def _where(lines: Sequence[int]) -> str:
    """Begin a sentence about lines of a table; of a file without lines there is nothing to say."""
    if not lines:
        return ""
    return f"{'Line' if len(lines) == 1 else 'Lines'} {listed([str(line) for line in lines])}: "


def why_on_none(key: Key, recording: Array, start: Array, end: Array) -> str:
    """Say in a sentence why a label is on no window of these places (N,)."""
    name, place = recording_of_key(key), seconds_of_key(key)
    own = recording.astype(str) == name
    if not own.any():
        return _why_unknown(name, list(dict.fromkeys(recording.astype(str).tolist())))
    if place is None or place[0] >= end[own].max() or place[1] <= start[own].min():
        return f"The windows of {name!r} lie from {start[own].min():.10g} to {end[own].max():.10g} s."
    return "It covers more than half of no window."


def _why_unknown(name: str, recordings: Sequence[str]) -> str:
    """Say that there is no such recording, and which one is probably meant."""
    same = [known for known in recordings if PurePath(known).name == name]
    if len(same) > 1:
        return f"{name!r} may be {listed(same)}. Name it with its folder."
    nearest = nearest_name(name, recordings)
    remedy = did_you_mean(name, recordings) if nearest is None else f"Did you mean {nearest!r}?"
    return f"There is no recording {name!r}. {remedy}"
