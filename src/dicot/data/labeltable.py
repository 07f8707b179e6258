"""LabelTable: a .csv that says label and group of recordings, or of ranges of them, one row each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, NamedTuple, final

import numpy as np

from dicot.core.errors import InputError, did_you_mean, listed, quoted
from dicot.core.settings import how_to_set
from dicot.data.csvfile import columns_of, open_sheet
from dicot.data.labels import as_text, is_number
from dicot.data.ranges import NOISE, UNIT_NAMES, WITHOUT_TABLE, Label, Misplaced
from dicot.data.reading import Reading
from dicot.data.recording import Recording
from dicot.data.timestamps import EPOCH, seconds_since
from dicot.data.timeunits import SINCE_1970, UNITS

FILE_COLUMNS = ("file", "recording")  # columns of a table that say whose row it is
Files = Mapping[str, Path | str]  # name of a recording -> its file
_SHOWN = 5  # wrong names that an error compares with those of the recordings
_ALIKE = 0.8  # how similar two names must be, by difflib, for one to be taken for the other misspelled
_MOST_FILES = 100_000  # that are looked through for those that a table may mean


class RangeRow(NamedTuple):
    """A range as its row has it: numbers in the unit of the table, or dates in ISO 8601."""

    start: float | str
    end: float | str
    label: Label
    row: str  # such as "labels.csv, line 7"


@final
@dataclass(frozen=True)
class LabelTable:
    """The rows of a table of labels."""

    path: Path
    columns: tuple[str, ...]
    names: list[str]  # of each row: the recording or file it is about, as it is written
    lines: list[int]
    cells: Mapping[str, list[Any]]  # label, group, start and end, as far as the table has them; None where empty

    def line(self, row: int) -> str:
        return f"line {self.lines[row]}"

    def values(self, row: int) -> dict[str, Any]:
        """Return what a row says: a range or a label, and a group, as far as it is filled in."""
        said = {role: column[row] for role, column in self.cells.items()}
        span = [said.pop(side) for side in ("start", "end") if side in said]
        known = {role: value for role, value in said.items() if value is not None}
        if "label" in known and any(time is not None for time in span):
            start, end = _checked_span(span)
            known["range"] = RangeRow(start, end, known.pop("label"), f"{self.path}, {self.line(row)}")
        return known


def read_label_table(path: Path, columns: Mapping[str, str]) -> LabelTable:
    """Read a table of labels; `columns` say how those of label and group are called."""
    sheet = open_sheet(path)
    names = sheet.rows[0]
    key = next((name for name in FILE_COLUMNS if name in names), "")
    if not key or ("start" in names) != ("end" in names):
        wanted = "a column file (or recording), a column label, and start and end where it holds ranges"
        raise InputError(f"A table of labels has {wanted}; this has {listed(names)}.")
    read = columns_of(sheet, [key, *columns.values()])
    sources = {**columns, "start": "start", "end": "end"}
    cells = {role: _cells(read[name]) for role, name in sources.items() if name in read}
    texts = [str(text) for text in as_text(read[key]).tolist()]
    return LabelTable(path, tuple(names), texts, sheet.line_numbers()[1:], cells)


def _cells(column: Any) -> list[Any]:
    """Return the values of a column, None where a cell is empty."""
    return [None if cell == "" or cell != cell else cell for cell in column.tolist()]


def _checked_span(span: Sequence[Any]) -> tuple[float | str, float | str]:
    """Return start and end of a range: numbers, or dates in ISO 8601."""
    times = [_time(cell) for cell in span]
    try:
        first, last = (seconds_since(EPOCH, time) for time in times)
    except ValueError:
        first = last = np.nan
    is_sound = len({type(time) for time in times}) == 1 and -np.inf < first < last < np.inf
    if not is_sound:
        raise InputError(
            f"A range from {span[0]} to {span[1]}. Give seconds or ISO 8601 dates, the end behind the start."
        )
    start, end = times
    return start, end


def _time(cell: Any) -> float | str:
    if cell is None:
        return float("nan")
    is_date = isinstance(cell, str) and not is_number(cell)
    return str(cell) if is_date else float(cell)


def recordings_meant(table: LabelTable, files: Files) -> list[list[str]]:
    """Return for each row the recordings that its name may mean: several where two have that name, none if unknown.

    A row names a recording, or its file, or the last part of either, or the path of the file.
    """
    names = _names_of(files)
    by_path = {Path(file).resolve(): name for name, file in files.items()}
    meant: dict[str, list[str]] = {}
    for text in dict.fromkeys(table.names):
        plain = text.replace("\\", "/").removeprefix("./")
        meant[text] = names.get(plain) or _at_path(table.path, plain, by_path)
    return [meant[text] for text in table.names]


def _names_of(files: Files) -> dict[str, list[str]]:
    """Return whom a text may mean: a recording's name or its last part, with or without the file's suffix."""
    by_part: dict[str, list[str]] = {}
    by_name: dict[str, list[str]] = {}
    for name, file in files.items():
        last = PurePath(name).name
        suffix = PurePath(file).name.removeprefix(last)
        for text in {last, last + suffix}:
            by_part.setdefault(text, []).append(name)
        by_name[name] = by_name[name + suffix] = [name]
    return by_part | by_name


def _at_path(table: Path, text: str, by_path: Mapping[Path, str]) -> list[str]:
    """Return the recording whose file has this path, from where the table lies or where the command runs."""
    if "/" not in text:
        return []
    places = [(table.parent / text).resolve(), Path(text).resolve()]
    return [by_path[place] for place in places if place in by_path][:1]


def why_not_meant(table: LabelTable, owners: Sequence[Sequence[str]], files: Files, columns: Mapping[str, str]) -> str:
    """Say why a table seems to be none for these recordings; "" where it is one."""
    if not any(role in table.cells for role in columns):
        wanted = columns["label"]
        return f"It has no column {wanted!r}. {did_you_mean(wanted, table.columns)} Name it by --label."
    texts = list(dict.fromkeys(table.names))
    is_for_others = not any(owners) and not any(nearest_name(text, files) for text in texts[:_SHOWN])
    if is_for_others:
        return f"It names {listed(texts)}, and none of the recordings {listed([*files])}. Correct them."
    return ""


def check_names(table: LabelTable, owners: Sequence[Sequence[str]], files: Files) -> None:
    """Refuse rows that may mean several recordings, and those of recordings that do not exist."""
    for row, meant in enumerate(owners):
        if len(meant) > 1:
            raise InputError(
                f"{table.line(row)}: {table.names[row]!r} may be {listed(meant)}. Name it with its folder."
            )
    unknown = [row for row, meant in enumerate(owners) if not meant]
    if not unknown:
        return
    # A part of a folder may be read by the table of the whole folder.
    elsewhere = _names_beside(table.path)
    unknown = [row for row in unknown if not _exists(table, table.names[row], elsewhere)]
    if not unknown:
        return
    texts = dict.fromkeys(table.names[row] for row in unknown)
    first = unknown[0]
    near = nearest_name(table.names[first], files)
    remedy = f"Did you mean {near!r}?" if near else f"The recordings are {listed([*files])}."
    many = (
        f" {len(unknown)} of {len(owners)} rows name such recordings: {listed([*texts])}." if len(unknown) > 1 else ""
    )
    raise InputError(
        f"{table.line(first)}: There is no recording {quoted(table.names[first])}. {remedy}{many} Correct or remove "
        f"{'these rows' if len(unknown) > 1 else 'the row'}, or {WITHOUT_TABLE}."
    )


def _names_beside(table: Path) -> set[str]:
    """Return the names of the files in the folder of a table and below, with and without suffix."""
    files: Iterable[Path] = (path for path in table.parent.rglob("*") if path.is_file() and path != table)
    return {text for path in islice(files, _MOST_FILES) for text in (path.name, path.stem)}


def _exists(table: LabelTable, text: str, names: set[str]) -> bool:
    """Tell whether a row names a file that is there, though it is not among those that are read now."""
    plain = text.replace("\\", "/")
    if "/" in plain.removeprefix("./"):
        places = (table.path.parent / plain, Path(plain))
        return any(place.is_file() or any(place.parent.glob(f"{place.name}.*")) for place in places)
    return PurePath(plain).name in names


def nearest_name(text: str, names: Iterable[str]) -> str | None:
    """Return the recording that a misspelled name probably means: another case, suffix or folder, or a slip."""
    asked = _spelling(text)
    spellings = {_spelling(name): name for name in names}
    if asked in spellings:
        return spellings[asked]
    close = get_close_matches(asked, spellings, n=1, cutoff=_ALIKE)
    return spellings[close[0]] if close else None


def _spelling(text: str) -> str:
    """Return the last part of a name without what is often written differently."""
    last = PurePath(text.replace("\\", "/")).name.lower()
    stem = PurePath(last).stem
    return stem.replace("-", "").replace("_", "").replace(" ", "")


def on_clock(recording: Recording, time: float | str, unit: str, rate: float | None) -> float:
    """Return a time of a table in seconds on the clock of a recording, of which it may be a time step.

    Numbers that count from 1970, as the time stamps of many devices do, are dates where the recording has dates.
    """
    if isinstance(time, str):
        return seconds_since(recording.origin, time)
    if unit == "steps":
        return _time_of_step(recording, time, rate)
    seconds = time / UNITS[unit]
    counts_from_1970 = recording.origin is not None and seconds >= SINCE_1970
    return seconds + seconds_since(recording.origin, EPOCH) if counts_from_1970 else seconds


def _time_of_step(recording: Recording, step: float, rate: float | None) -> float:
    """Return when a time step begins, also of those behind the last."""
    if recording.times is None:
        if rate is None:
            raise InputError(
                f"Time steps have no time, because the rate of {recording.name!r} is not known. Say it: "
                f"{how_to_set('rate', 50)}."
            )
        return step / rate
    last = recording.n_times - 1
    if step >= last:
        return float(recording.times[last]) + (step - last) / (rate or 1.0)
    before = max(0, int(step))
    length = recording.times[before + 1] - recording.times[before]
    return float(recording.times[before] + (step - before) * length)


def place_of(one: RangeRow, recording: Recording, reading: Reading) -> Misplaced | None:
    """Return how a range lies outside a recording; None where it lies within, or where the rate is not known."""
    rate = recording.rate or reading.rate
    if rate is None:
        return None
    step = 1 / rate
    first, last = 0.0, recording.n_times * step
    if recording.times is not None:
        first, last = float(recording.times[0]), float(recording.times[-1]) + step

    def span(unit: str) -> tuple[float, float]:
        return on_clock(recording, one.start, unit, rate), on_clock(recording, one.end, unit, rate)

    def is_within(start: float, end: float) -> bool:
        return first - step - NOISE <= start and end <= last + step + NOISE

    def fits(start: float, end: float) -> bool:
        return is_within(start, end) and end - start >= step

    start, end = span(reading.table_unit or "s")
    if is_within(start, end):
        return None
    units = () if isinstance(one.start, str) else tuple(unit for unit in UNIT_NAMES if fits(*span(unit)))
    return Misplaced(one.row, recording.name, start, end, first, last, units)
