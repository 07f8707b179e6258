"""LabelStore: labels in a SQLite file that many processes may write to, and how they are put on windows.

Nothing is overwritten: the newest row wins.
"""

import csv
import io
import math
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from itertools import islice
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
import pandas as pd

from dicot.core.database import open_tables, transaction
from dicot.core.errors import InputError, did_you_mean, listed, naming, quoted
from dicot.core.storage import check_writable, write_atomic
from dicot.data.cases import Array
from dicot.data.clocks import UNITS
from dicot.data.labels import as_text, check_labels, is_number, plain_text
from dicot.data.ranges import UNIT_NAMES, Misplaced, Span, check_places, labels_of_windows
from dicot.data.reading import stem_of
from dicot.data.tags import nearest_name
from dicot.use.labels.labelstudio import from_label_studio, to_label_studio

Time: TypeAlias = int | float | str  # a time step, seconds, or a date and time in ISO 8601
Key: TypeAlias = str | tuple[str, Time, Time]  # an id, or (recording, start, end)
Label: TypeAlias = str | int | float

SCHEMA_VERSION = 2
WHAT = "label store"  # in what is said of the file
# One row for each key of each call; `action` counts the calls, and `undoes` names the one that this call took back.
# Columns without a type keep numbers and text as they came. A label that is NULL means: none.
SCHEMA = {
    "changes": (
        "CREATE TABLE changes (number INTEGER PRIMARY KEY, action INTEGER NOT NULL, recording TEXT NOT NULL, start, "
        '"end", old, new, by TEXT NOT NULL, at TEXT NOT NULL, undoes INTEGER)'
    ),
    "changes_of_a_key": 'CREATE INDEX changes_of_a_key ON changes (recording, start, "end", number)',
    "changes_of_an_action": "CREATE INDEX changes_of_an_action ON changes (action, undoes)",
    # Labels in the order in which they came: a label keeps its place though no key has it any more. `action` is the
    # call that brought it, NULL where it was told before anybody gave it.
    "names": "CREATE TABLE names (number INTEGER PRIMARY KEY, label NOT NULL UNIQUE, action INTEGER)",
}
LIVE = "undoes IS NULL AND action NOT IN (SELECT undoes FROM changes WHERE undoes IS NOT NULL)"
# What was taken back counts as never said: an undo also gives a range its old age back.
NEWEST = (
    "SELECT * FROM changes WHERE new IS NOT NULL AND number IN "
    f'(SELECT max(number) FROM changes WHERE {LIVE} GROUP BY recording, start, "end") ORDER BY '
)
LARGEST = 2**63  # SQLite's whole numbers lie below
COLUMNS = ("recording", "start", "end", "label")  # of a table of labels
MOST_REASONS = 3  # unknown recordings of which an error says what is probably meant
DIGITS = 6  # of seconds: a time that was written as text and read again is the same time
NOISE = 9  # digits: what comes after them may differ between versions, and must not decide how the sixth is rounded


class LabelChange(NamedTuple):
    """One row of a label store's history; None means no label."""

    key: Key
    old: Label | None
    new: Label | None
    by: str  # who changed it
    at: str  # when, in UTC, as ISO 8601 writes it
    action: int  # changes of one call share this number
    undoes: int | None  # the action that was taken back, where this is an undo


@final
class LabelStore:
    """An open store of labels; close it, or use it in a `with`. Every process and every thread opens its own.

    A key says what is labelled: (recording, start, end) with numbers or text for the times, or the text of an id.
    Labels are text or numbers. A file that is not there is made. What a call wrote is on disk when it returns. With
    `read_only` a copy in memory is opened, as the file is now.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._db = open_tables(self.path, WHAT, SCHEMA, SCHEMA_VERSION, read_only=read_only)

    def __enter__(self) -> "LabelStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def editing(self) -> Iterator[None]:
        """Let nobody else write until the block ends, so that what it reads still holds when it changes labels.

        Everything that the block changes is kept, or nothing where it ends by an error.
        """
        with transaction(self._db, self.path, WHAT):
            yield

    def set(self, keys: Sequence[Key], labels: Label | Sequence[Label], by: str = "") -> None:
        """Give each key, none of them twice, its label or all the same one: all of this call or nothing.

        `by` says who did it, for the history.
        """
        checked = _checked_keys(keys)
        if isinstance(labels, str) or not isinstance(labels, Collection):
            labels = [labels] * len(checked)
        if len(labels) != len(checked):
            raise InputError(f"labels must be one label or one for each of the {len(checked)} keys; got {len(labels)}.")
        self.change({key: _label(label, key) for key, label in zip(checked, labels, strict=True)}, by)

    def change(self, labels: Mapping[Key, Label | None], by: str = "") -> None:
        """Give some keys a label and take it from others, whose label is None: one call, one undo. So edges move."""
        given = [None if label is None else _label(label, key) for key, label in labels.items()]
        with self._transaction():
            self._append(dict(zip(_checked_keys(labels), given, strict=True)), by)

    def remove(self, keys: Sequence[Key], by: str = "") -> None:
        """Take the labels of these keys away; the history keeps them. A key without a label is an error."""
        checked = _checked_keys(keys)
        with self._transaction():
            if bare := [key for key in checked if self._label_of(key) is None]:
                raise InputError(f"{self.path} has no label for {bare[0]!r}. Remove only what has a label.")
            self._append(dict.fromkeys(checked), by)

    def undo(self, n: int = 1, by: str = "") -> dict[Key, Label | None]:
        """Take back the last n calls of `set` and `remove`, whoever made them, and return what changed.

        An undo is a change like any other: it is added to the history, and the next undo goes one call further back.
        Where fewer calls are left, all of them are taken back.
        """
        changed: dict[Key, Label | None] = {}
        with self._transaction():
            for action in self._last_actions(max(0, n)):
                # Everything later has been taken back already, so what these keys had before is what they get.
                before = {key: row["old"] for key, row in self._rows("SELECT * FROM changes WHERE action = ?", action)}
                self._append(before, by, undoes=action)
                self._db.execute("DELETE FROM names WHERE action = ?", (action,))
                changed |= before
        return changed

    def can_undo(self) -> bool:
        """Tell whether there is anything to take back."""
        with self._transaction("DEFERRED"):
            return bool(self._last_actions(1))

    def current(self) -> dict[Key, Label]:
        """Return the label of every key that has one, the oldest first: where ranges overlap, the later one counts."""
        with self._transaction("DEFERRED"):
            return {key: _one_class(row["new"]) for key, row in self._rows(f"{NEWEST} number")}

    def names(self) -> list[Label]:
        """Return every label in the order of coming, also one that no key has now, but none that was undone."""
        with self._transaction("DEFERRED"):
            labels = [label for (label,) in self._db.execute("SELECT label FROM names ORDER BY number").fetchall()]
        if not all(_is_value(label) for label in labels):
            raise InputError(f"{self.path} is damaged: a name is no label. Go back to a copy or an export of it.")
        return list(dict.fromkeys(map(_one_class, labels)))

    def add_names(self, labels: Sequence[Label]) -> None:
        """Give labels their places in `names` before any key has them; those that have one keep it."""
        checked = [_label(label, "a name") for label in labels]
        with self._transaction():
            self._add_names(checked, None)

    def history(self) -> list[LabelChange]:
        """Return every change that was ever made, the first one first."""
        with self._transaction("DEFERRED"):
            rows = self._rows("SELECT * FROM changes ORDER BY number")
        return [LabelChange(key, *(row[name] for name in LabelChange._fields[1:])) for key, row in rows]

    def export(self, path: str | Path, begun: Mapping[str, float] | None = None) -> int:
        """Write the current labels to a .csv, or a .json for Label Studio, and return how many there are.

        `begun` says when recordings began, in seconds since 1970, where it is known.
        """
        path = Path(path)
        if path.suffix not in (".csv", ".json"):
            raise InputError(f"{path} has an unknown suffix {path.suffix!r}; labels go to .csv, or .json.")
        check_writable(path)
        with naming(path):
            text = (self.to_csv if path.suffix == ".csv" else self.to_json)(begun or {})
        write_atomic(path, text.encode())
        return len(self.current())

    def to_csv(self, begun: Mapping[str, float]) -> str:
        """Return the current labels as a table: recording, start, end, label, by and at, sorted by the first three.

        An id is in the first, with start and end empty. Where the beginning of a recording is known, start_time and
        end_time are in UTC.
        """
        with self._transaction("DEFERRED"):
            rows = self._rows(f'{NEWEST} recording, start, "end"')
        text, clock = io.StringIO(newline=""), ["start_time", "end_time"] if begun else []
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*COLUMNS, *clock, "by", "at"])
        for key, row in rows:
            place, origin = _seconds(key), begun.get(row["recording"])
            known = [""] * len(clock) if place is None or origin is None else [_utc(origin + time) for time in place]
            writer.writerow([*(row[name] for name in (*COLUMNS[:3], "new")), *known, row["by"], row["at"]])
        return text.getvalue()

    def to_json(self, begun: Mapping[str, float]) -> str:
        """Return the current labels as tasks of Label Studio, the oldest of a recording first."""
        return to_label_studio([(*_columns(key), label) for key, label in self.current().items()], begun)

    def _transaction(self, kind: str = "IMMEDIATE") -> AbstractContextManager[None]:
        if self._db.in_transaction:
            return nullcontext()  # a step of `editing`, which ends the transaction itself
        return transaction(self._db, self.path, WHAT, kind)

    def _last_actions(self, n: int) -> list[int]:
        """Return the last n calls that were not taken back, the last one first."""
        rows = self._db.execute(f"SELECT DISTINCT action FROM changes WHERE {LIVE} ORDER BY action DESC LIMIT ?", (n,))
        return [action for (action,) in rows.fetchall()]

    def _append(self, labels: Mapping[Key, Label | None], by: str, undoes: int | None = None) -> None:
        at = datetime.now(UTC).isoformat()
        (action,) = self._db.execute("SELECT coalesce(max(action), 0) + 1 FROM changes").fetchone()
        rows = [(action, *_columns(key), self._label_of(key), new, by, at, undoes) for key, new in labels.items()]
        self._db.executemany("INSERT INTO changes VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        if undoes is None:
            self._add_names(dict.fromkeys(new for new in labels.values() if new is not None), action)

    def _add_names(self, labels: Iterable[Label], action: int | None) -> None:
        self._db.executemany("INSERT OR IGNORE INTO names VALUES (NULL, ?, ?)", [(label, action) for label in labels])

    def _rows(self, query: str, *values: Any) -> list[tuple[Key, sqlite3.Row]]:
        """Return rows with their keys, checked: another program may have written to the file."""
        rows = self._db.execute(query, values).fetchall()
        try:
            for row in rows:
                if not all(row[name] is None or _is_value(row[name]) for name in ("old", "new")):
                    raise InputError(f"row {row['number']} holds values that are no label.")
            return [(_checked_key(row[2] if row[3] is row[4] is None else tuple(row)[2:5]), row) for row in rows]
        except InputError as error:
            raise InputError(f"{self.path} is damaged: {error} Go back to a copy or an export of it.") from error

    def _label_of(self, key: Key) -> Label | None:
        row = self._db.execute(
            'SELECT new FROM changes WHERE recording = ? AND start IS ? AND "end" IS ? ORDER BY number DESC LIMIT 1',
            _columns(key),
        ).fetchone()
        return None if row is None else row["new"]


def _checked_keys(keys: Any) -> list[Key]:
    """Return keys in the one form that equal ones have; an InputError names the first that is none."""
    out = [_checked_key(key) for key in keys]
    if isinstance(keys, str) or len(set(out)) < len(out):
        raise InputError(f"keys must be a list with each key once; got {quoted(keys)}.")
    return out


def _checked_key(key: Any) -> Key:
    if isinstance(key, str) and _is_value(key):
        return str(key)
    if isinstance(key, list | tuple) and len(key) == 3 and isinstance(key[0], str):
        recording, start, end = (_plain(part) for part in key)
        alike = isinstance(start, str) == isinstance(end, str)
        if alike and all(map(_is_value, (recording, start, end))) and start <= end:
            return str(recording), start, end
    raise InputError(f"A key is an id or (recording, start, end), times in order and of one kind; got {key!r}.")


def _label(label: Any, key: Key) -> Label:
    value: Label = _one_class(_plain(label))
    if not _is_value(value) or value == -1:
        raise InputError(
            f"A label is text or a finite number, but not -1, which means unknown; got {label!r} for {key!r}."
        )
    return value


def _plain(value: Any) -> Any:
    """Turn numpy's scalars into Python's, whose equal values are one key."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


def _one_class(label: Any) -> Any:
    """Write a label as its class is written everywhere: 1 for the text 1.0, as in files; numbers are equal anyway."""
    return plain_text(label) if isinstance(label, str) else label


def _is_value(value: Any) -> bool:
    """Tell whether SQLite keeps a value as it is: some text without half of a pair or a zero, or a finite number."""
    if isinstance(value, str):
        whole = value.encode("utf-8", "ignore").decode()
        return bool(value) and whole == value and "\0" not in value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else -LARGEST <= value < LARGEST


def _columns(key: Key) -> tuple[str, Time | None, Time | None]:
    return (key, None, None) if isinstance(key, str) else key


def read_labels(path: str | Path, begun: Mapping[str, float] | None = None) -> dict[Key, Label]:
    """Read the labels of a label store, of a .csv with recording, start, end and label, or of a Label Studio .json.

    In a .csv a row without a label, or with -1, says nothing. Instead of the recording it may name the file. Later rows
    count as newer, or those with a later time in the column "at". `LabelStore.export` writes such files.
    """
    path = Path(path)
    if path.suffix.lower() not in (".csv", ".json"):
        with LabelStore(path, read_only=True) as store:
            return store.current()
    if not path.is_file():
        raise InputError(f"There is no table of labels at {path}. Name another file.")
    with naming(path):
        if path.suffix.lower() == ".csv":
            return _read_table(path)
        return dict(from_label_studio(path.read_text("utf-8-sig"), begun or {}))


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
        self._rows: dict[Key, list[int]] = {}
        placed: dict[str, list[tuple[int, float, float]]] = {}
        for row, key in enumerate(keys):
            self._rows.setdefault(_rounded(key), []).append(row)
            if (place := _seconds(key)) is not None:
                placed.setdefault(key[0], []).append((row, *place))
        # Recording -> its windows in the order of time: row, start and end (3, n)
        self._placed = {name: np.array(sorted(own, key=itemgetter(1))).T for name, own in placed.items()}

    @classmethod
    def of_places(cls, recording: Any, start: Any, end: Any) -> "WindowKeys":
        """Name windows by their places."""
        return cls([(str(r), float(s), float(e)) for r, s, e in zip(recording, start, end, strict=True)])

    def __len__(self) -> int:
        return len(self._keys)

    def rows_of(self, labels: Mapping[Key, Label]) -> tuple[dict[int, Label], list[Key]]:
        """Return the labels by row as `put_on_windows` has them, and the keys that label no window."""
        wanted: dict[Key, tuple[Key, Label]] = {}
        for key, label in labels.items():
            before, other = wanted.setdefault(_rounded(key), (key, label))
            if other != label:
                both = f"{other!r} for {before!r} and {label!r} for {key!r}"
                raise InputError(f"One window has two labels: {both}. Take one of them away.")
        by_row = {row: label for rounded, (_, label) in wanted.items() for row in self._rows.get(rounded, ())}
        others = dict(one for rounded, one in wanted.items() if rounded not in self._rows)
        ranges: dict[str, list[Span]] = {}
        for key, label in others.items():
            if (place := _seconds(key)) is not None and key[0] in self._placed:
                ranges.setdefault(key[0], []).append((*place, label))
        on: set[Key] = set()
        for name, own in ranges.items():
            rows, start, end = self._placed[name]
            found = dict(zip(rows.tolist(), labels_of_windows(own, start, end), strict=True))
            by_row |= {int(row): taken for row, taken in found.items() if taken is not None and row not in by_row}
            # The latest end of the labelled windows that start up to here: a range that begins before it is on one.
            ends = [time if row in by_row else -np.inf for row, time in zip(rows, end, strict=True)]
            reach = np.maximum.accumulate(ends)
            begun = np.searchsorted(start, [last for _, last, _ in own])
            covers = (count > 0 and reach[count - 1] > one[0] for one, count in zip(own, begun, strict=True))
            on |= {(name, *one[:2]) for one, is_on in zip(own, covers, strict=True) if is_on}
        return by_row, [key for key in others if key not in on]

    def keys_of(self, rows: Iterable[int], labels: Mapping[Key, Label]) -> list[Key]:
        """Return the keys of these rows, each once, as they are written where a label has one already."""
        written = {_rounded(key): key for key in labels}
        wanted = dict.fromkeys(self._keys[row] for row in rows)
        return list(dict.fromkeys(written.get(_rounded(key), key) for key in wanted))


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
        span = _seconds(key)
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
    unknown = Counter(name for name in map(_recording_named, labels) if name not in known)
    if not unknown:
        return

    lines = _lines_by_recording(path)
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
    name, place = _recording_named(key), _seconds(key)
    own = recording.astype(str) == name
    if not own.any():
        return _why_unknown(name, list(dict.fromkeys(recording.astype(str).tolist())))
    if place is None or place[0] >= end[own].max() or place[1] <= start[own].min():
        return f"The windows of {name!r} lie from {start[own].min():.10g} to {end[own].max():.10g} s."
    return "It covers more than half of no window."


def _recording_named(key: Key) -> str:
    return key if isinstance(key, str) else key[0]


def _why_unknown(name: str, recordings: Sequence[str]) -> str:
    """Say that there is no such recording, and which one is probably meant."""
    same = [known for known in recordings if PurePath(known).name == name]
    if len(same) > 1:
        return f"{name!r} may be {listed(same)}. Name it with its folder."
    nearest = nearest_name(name, recordings)
    remedy = did_you_mean(name, recordings) if nearest is None else f"Did you mean {nearest!r}?"
    return f"There is no recording {name!r}. {remedy}"


def _seconds(key: Key) -> tuple[float, float] | None:
    """Return start and end of a key that has them in seconds."""
    if isinstance(key, str) or isinstance(key[1], str) or isinstance(key[2], str):
        return None
    return float(key[1]), float(key[2])


def _rounded(key: Key) -> Key:
    if isinstance(key, str):
        return key
    start, end = (time if isinstance(time, str) else round(round(float(time), NOISE), DIGITS) for time in key[1:])
    return key[0], start, end


class LabelRow(NamedTuple):
    """A row of a table of labels."""

    line: int
    key: Key
    label: str
    at: str  # when it was given; "" where the table does not say


def _read_table(path: Path) -> dict[Key, Label]:
    rows: dict[Key, LabelRow] = {}
    for row in _rows_of_table(path):
        other = rows.setdefault(row.key, row).label
        if other != row.label:
            raise InputError(
                f"line {row.line} labels {row.key!r} {row.label!r}, and one above {other!r}. Remove one of them."
            )
    return {row.key: row.label for row in sorted(rows.values(), key=lambda row: row.at)}


def _lines_by_recording(path: Path) -> dict[str, list[int]]:
    """Return the lines of a table that name each recording; nothing of a file that is no table."""
    lines: dict[str, list[int]] = {}
    if path.suffix.lower() == ".csv":
        for row in _rows_of_table(path):
            lines.setdefault(_recording_named(row.key), []).append(row.line)
    return lines


def _rows_of_table(path: Path) -> Iterator[LabelRow]:
    """Yield the rows that give a label."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, strict=True)
        names = list(rows.fieldnames or ())
        by_file = "file" in names and "recording" not in names
        if lacking := [name for name in COLUMNS if name not in names and not (by_file and name == "recording")]:
            raise InputError(f"line 1 has no column {lacking[0]!r}. {did_you_mean(lacking[0], names)}")
        for row in rows:
            line = f"line {rows.line_num}"
            if None in row or None in row.values():
                raise InputError(f"{line} has more or fewer cells than the {len(names)} columns. Correct the row.")
            label = plain_text(row["label"])
            if label in ("", "-1"):
                continue
            recording = _recording_of(row["file"]) if by_file else row["recording"]
            yield LabelRow(rows.line_num, _key(recording, row, line), label, row.get("at", ""))


def _recording_of(file: str) -> str:
    """Return the name of the recording of a file, whose path a table may write as Windows does."""
    path = PurePath(file.replace("\\", "/"))
    return path.with_name(stem_of(path)).as_posix() if path.name else ""


def _key(recording: str, row: Mapping[str, str], line: str) -> Key:
    """Return the key of a row; without start and end, the recording is an id."""
    cells = {name: row[name].strip(" \t") for name in COLUMNS[1:3]}
    if not recording:
        raise InputError(f"{line} names no recording. Correct it.")
    if not any(cells.values()):
        return recording
    for name, cell in cells.items():
        if not is_number(cell) or not math.isfinite(float(cell)):
            raise InputError(f"{line} has {cell!r} as {name!r}, which is no number of seconds. Correct it.")
    start, end = map(float, cells.values())
    if end < start:
        raise InputError(f"{line} has 'end' {end:g} before 'start' {start:g}. Correct it.")
    return recording, start, end


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
