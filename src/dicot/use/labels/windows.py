"""Labels of a store or a table, put on the windows that they were given for."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from dicot.core.errors import InputError, did_you_mean, naming
from dicot.data.cases import Array
from dicot.data.labels import check_labels, is_number, plain_text
from dicot.use.labels.store import Key, Label, LabelStore

COLUMNS = ("recording", "start", "end", "label")
DIGITS = 6  # of seconds: a time that was written as text and read again is the same time
NOISE = 9  # digits: what comes after them may differ between versions, and must not decide how the sixth is rounded


def read_labels(path: str | Path) -> dict[Key, Label]:
    """Read the current labels of a label store, or those of a .csv with the columns recording, start, end and label.

    In a .csv a row without a label, or with -1, says nothing. `LabelStore.export` writes such files.
    """
    path = Path(path)
    if path.suffix.lower() != ".csv":
        with LabelStore(path, read_only=True) as store:
            return store.current()
    if not path.is_file():
        raise InputError(f"There is no table of labels at {path}. Name another file.")
    with naming(path):
        return _read_table(path)


def put_on_windows(labels: Mapping[Key, Label], recording: Any, start: Any, end: Any) -> tuple[Array, list[Key]]:
    """Return the label of each window (N,), unknown for most as in Windows, and the keys that belong to none."""
    windows = WindowKeys.of_places(recording, start, end)
    by_row, lost = windows.rows_of(labels)
    return check_labels([by_row.get(row) for row in range(len(windows))], len(windows), "label", "windows"), lost


@final
class WindowKeys:
    """The key of each window in a label store, and the windows of a key; times are equal up to a microsecond."""

    def __init__(self, keys: Sequence[Key]) -> None:
        self._keys = keys
        self._rows: dict[Key, list[int]] = {}
        for row, key in enumerate(keys):
            self._rows.setdefault(_rounded(key), []).append(row)

    @classmethod
    def of_places(cls, recording: Any, start: Any, end: Any) -> "WindowKeys":
        """Name windows by their places."""
        return cls([(str(r), float(s), float(e)) for r, s, e in zip(recording, start, end, strict=True)])

    def __len__(self) -> int:
        return len(self._keys)

    def rows_of(self, labels: Mapping[Key, Label]) -> tuple[dict[int, Label], list[Key]]:
        """Return the labels by row, and the keys that belong to no window."""
        wanted: dict[Key, tuple[Key, Label]] = {}
        for key, label in labels.items():
            before, other = wanted.setdefault(_rounded(key), (key, label))
            if other != label:
                raise InputError(
                    f"One window has two labels: {other!r} for {before!r} and {label!r} for {key!r}. Take one of them "
                    "away."
                )
        by_row = {row: label for rounded, (_, label) in wanted.items() for row in self._rows.get(rounded, ())}
        return by_row, [key for rounded, (key, _) in wanted.items() if rounded not in self._rows]

    def keys_of(self, rows: Iterable[int], labels: Mapping[Key, Label]) -> list[Key]:
        """Return the keys of these rows, each once, as they are written where a label has one already."""
        written = {_rounded(key): key for key in labels}
        wanted = dict.fromkeys(self._keys[row] for row in rows)
        return list(dict.fromkeys(written.get(_rounded(key), key) for key in wanted))


def _rounded(key: Key) -> Key:
    if isinstance(key, str):
        return key
    start, end = (time if isinstance(time, str) else round(round(float(time), NOISE), DIGITS) for time in key[1:])
    return key[0], start, end


def _read_table(path: Path) -> dict[Key, Label]:
    labels: dict[Key, Label] = {}
    lines: dict[Key, int] = {}
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, strict=True)
        names = list(rows.fieldnames or ())
        if lacking := [name for name in COLUMNS if name not in names]:
            raise InputError(
                f"line 1 has no column {lacking[0]!r}. {did_you_mean(lacking[0], names)} A table of labels has the "
                f"columns {', '.join(COLUMNS)}."
            )
        for row in rows:
            line = rows.line_num
            if None in row or None in row.values():
                raise InputError(f"line {line} has more or fewer cells than the {len(names)} columns. Correct the row.")
            row["label"] = plain_text(row["label"])
            if row["label"] in ("", "-1"):
                continue
            key = _key(row, line)
            if labels.setdefault(key, row["label"]) != row["label"]:
                raise InputError(
                    f"lines {lines[key]} and {line} give {key!r} two labels, {labels[key]!r} and {row['label']!r}. "
                    "Remove one of them."
                )
            lines.setdefault(key, line)
    return labels


def _key(row: Mapping[str, str], line: int) -> Key:
    """Return the key of a row; without start and end, the recording is an id."""
    if not row["recording"]:
        raise InputError(f"line {line} names no recording. Fill it in, or remove the row.")
    if not row["start"] and not row["end"]:
        return row["recording"]
    times = []
    for name in ("start", "end"):
        cell = row[name].strip(" \t")
        if not is_number(cell) or not math.isfinite(float(cell)):
            raise InputError(f"line {line} has the {name} {row[name]!r}; it must be a number of seconds. Correct it.")
        times.append(float(cell))
    return row["recording"], times[0], times[1]
