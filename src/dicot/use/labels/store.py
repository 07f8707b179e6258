"""LabelStore: labels in a SQLite file that many processes may write to.

Nothing is overwritten: the newest row wins.
"""

import csv
import io
import math
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, final

from dicot.core.database import open_tables, transaction
from dicot.core.errors import InputError, naming, quoted
from dicot.core.storage import check_writable, write_atomic
from dicot.data.labels import plain_text
from dicot.use.labels.labelstudio import to_label_studio

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
            place, origin = seconds_of_key(key), begun.get(row["recording"])
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


def seconds_of_key(key: Key) -> tuple[float, float] | None:
    """Return start and end of a key that has them in seconds."""
    if isinstance(key, str) or isinstance(key[1], str) or isinstance(key[2], str):
        return None
    return float(key[1]), float(key[2])


def rounded(key: Key) -> Key:
    """Return what keys of the same window share: text may have lost digits of a time."""
    if isinstance(key, str):
        return key
    start, end = (time if isinstance(time, str) else round(round(float(time), NOISE), DIGITS) for time in key[1:])
    return key[0], start, end


def recording_of_key(key: Key) -> str:
    return key if isinstance(key, str) else key[0]


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
