"""Labels from files: of a label store, a table, or an export of Label Studio."""

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import NamedTuple

from dicot.core.errors import InputError, did_you_mean, naming
from dicot.data.labels import is_number, plain_text
from dicot.data.reading import stem_of
from dicot.use.labels.labelstudio import from_label_studio
from dicot.use.labels.store import COLUMNS, Key, Label, LabelStore, recording_of_key


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


def lines_by_recording(path: Path) -> dict[str, list[int]]:
    """Return the lines of a table that name each recording; nothing of a file that is no table."""
    lines: dict[str, list[int]] = {}
    if path.suffix.lower() == ".csv":
        for row in _rows_of_table(path):
            lines.setdefault(recording_of_key(row.key), []).append(row.line)
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
