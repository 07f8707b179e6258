"""Tags: label and group of whole recordings, and labels of ranges, by the names of files or by a table of labels."""

import hashlib
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, NamedTuple, final

import numpy as np

from dicot.core.errors import DicotWarning, InputError, did_you_mean, listed, naming, quoted
from dicot.core.settings import as_option, how_to_set
from dicot.data.clocks import EPOCH, SINCE_1970, UNITS, seconds_since
from dicot.data.csvfile import columns_of, open_sheet
from dicot.data.devices import name_fields
from dicot.data.labels import as_text, is_number
from dicot.data.namepattern import NamePattern
from dicot.data.ranges import NOISE, UNIT_NAMES, WITHOUT_TABLE, Label, Misplaced, TableRange
from dicot.data.reading import Reading, Source, before_pattern
from dicot.data.recording import Recording

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


TABLE = "labels.csv"  # found without being named


class Tag(NamedTuple):
    """What is said of the recordings of one file, beside what is in it."""

    label: Label | None = None
    group: Label | None = None
    ranges: tuple[RangeRow, ...] = ()
    told: Mapping[str, str] = {}  # "label" or "group" -> in words where it is told

    def put_on(self, recordings: Sequence[Recording], reading: Reading) -> list[Recording]:
        """Return the recordings of a file with what is told elsewhere than in it."""
        if not self.told and not self.ranges:
            return list(recordings)
        fields = {role: getattr(self, role) for role in self.told}
        tagged = [replace(one, ranges=self._ranges_of(one, reading), **fields) for one in recordings]
        if tagged and self.ranges:
            tagged[0] = replace(tagged[0], n_ranges=len(self.ranges), misplaced=self._misplaced(recordings, reading))
        return tagged

    def _ranges_of(self, recording: Recording, reading: Reading) -> tuple[TableRange, ...]:
        """Return the ranges on the clock of a recording."""
        rate, unit = recording.rate or reading.rate, reading.table_unit or "s"
        found = []
        for one in self.ranges:
            try:
                start, end = (on_clock(recording, time, unit, rate) for time in (one.start, one.end))
            except ValueError as error:
                raise InputError(f"{one.row}: {error}") from error
            found.append(TableRange(start, end, one.label, one.row))
        return tuple(found)

    def _misplaced(self, recordings: Sequence[Recording], reading: Reading) -> tuple[Misplaced, ...]:
        """Return the ranges that lie within none of the recordings of a file."""
        found = []
        for one in self.ranges:
            places = [place_of(one, recording, reading) for recording in recordings]
            if all(place is not None for place in places):
                near = [place for place in places if place is not None]
                found.append(max(near, key=lambda place: -place.excess))
        return tuple(found)


NOTHING = Tag()


def tables_near(source: Source) -> list[Path]:
    """Return each labels.csv that holds labels, in the folder that was named or else beside it."""
    named = [Path(one).expanduser().absolute() for one in ([source] if isinstance(source, str | Path) else source)]
    folders = dict.fromkeys(one if one.is_dir() else before_pattern(one.parent) for one in named)
    near = ([file for file in (one / TABLE, one.parent / TABLE) if _is_table(file)][:1] for one in folders)
    return [*dict.fromkeys(file for files in near for file in files if named != [file])]  # alone, it is a recording


def find_table(source: Source, said: str | None = None) -> Path | None:
    """Return the table of labels: the one that is said, "" for none, or the only one near."""
    if said is not None:
        if said and not Path(said).is_file():
            raise InputError(f"There is no table of labels {said}. Check the path (--table).")
        return Path(said) if said else None
    found = tables_near(source)
    if len(found) > 1:
        raise InputError(f"{found[0]} and {found[1]} both hold labels. Say which: {as_option('table', str(found[0]))}.")
    return found[0] if found else None


def _is_table(path: Path) -> bool:
    try:
        return path.is_file() and any(name in open_sheet(path).rows[0] for name in FILE_COLUMNS)
    except (InputError, OSError, ValueError):
        return False


def tags_of(source: Source, files: Files, reading: Reading) -> dict[str, Tag]:
    """Return what names and a table say of recordings: name of each file of them -> its tag; {} where neither is.

    `label` and `group` of the reading name fields of its `names`, or columns of its `table`.
    """
    called = {role: getattr(reading, role) or role for role in ("label", "group")}
    tags: dict[str, Tag] = {}
    if reading.names is not None:
        tags = _by_name(files, called, reading)
    if (path := find_table(source, reading.table)) is None:
        return tags
    with naming(path):
        table = read_label_table(path, called)
        owners = recordings_meant(table, files)
        reason = why_not_meant(table, owners, files, called)
        if reason and reading.table:
            raise InputError(reason)
        if not reason:
            return _with_table(table, owners, files, called, tags or dict.fromkeys(files, NOTHING))
    warnings.warn(f"{path} is not used. {reason}", DicotWarning, stacklevel=2)
    return tags


def _by_name(files: Files, called: Mapping[str, str], reading: Reading) -> dict[str, Tag]:
    pattern = NamePattern(str(reading.names))
    if reading.join is None:
        found = {name: pattern.fields_of(name) for name in files}
    else:  # the name of a joined recording lacks the device
        found = {name: name_fields(Path(file), reading) for name, file in files.items()}
    if lost := [str(files[name]) for name, fields in found.items() if fields is None]:
        said = f"{len(lost)} of {len(files)} files are not called like {pattern.text!r}: {listed(lost)}."
        raise InputError(f"{said} Correct the pattern (--names), or rename these files.")
    told = {role: f"a field of {pattern.text!r}" for role, name in called.items() if name in pattern.fields}
    if not told and reading.join is None:
        example = how_to_set("label", pattern.fields[0])
        message = f"Say which field of {pattern.text!r} is the label or the group, such as {example}. None is used."
        warnings.warn(message, DicotWarning, stacklevel=3)
    own = {name: (fields or {}).get for name, fields in found.items()}
    return {name: Tag(get(called["label"]), get(called["group"]), told=told) for name, get in own.items()}


def _with_table(
    table: LabelTable,
    owners: Sequence[Sequence[str]],
    files: Files,
    columns: Mapping[str, str],
    tags: Mapping[str, Tag],
) -> dict[str, Tag]:
    """Add to the tags of files what the rows of a table say; `owners` are the recordings that each row may mean."""
    roles = [role for role in columns if role in table.cells]
    sources = dict(next(iter(tags.values())).told)
    if both := [role for role in roles if role in sources]:
        raise InputError(f"{both[0]}={columns[both[0]]!r} is {sources[both[0]]} and a column. Rename one of them.")
    check_names(table, owners, files)
    sources |= dict.fromkeys(roles, f"a column of {table.path}")
    out = {name: tag._replace(told=sources) for name, tag in tags.items()}
    ranges: dict[str, list[RangeRow]] = {name: [] for name in out}
    for row, meant in enumerate(owners):
        try:
            values = table.values(row)
            for name in meant:
                out[name] = _with_row(out[name], values, table.names[row])
                ranges[name] += [values["range"]] if "range" in values else []
        except ValueError as error:
            raise InputError(f"{table.line(row)}: {error}") from error
    _warn_of_silent(table.path, files, {name for meant in owners for name in meant})
    return {name: tag._replace(ranges=tuple(ranges[name])) for name, tag in out.items()}


def _with_row(tag: Tag, values: Mapping[str, Any], text: str) -> Tag:
    """Return a tag with label and group of one more row of the table, which calls the recording `text`."""
    for role in ("label", "group"):
        before, value = getattr(tag, role), values.get(role)
        if value is not None and before not in (None, value):
            raise InputError(f"{text!r} has two of {role}: {before!r} above, {value!r} here.")
    return tag._replace(label=values.get("label", tag.label), group=values.get("group", tag.group))


def _warn_of_silent(path: Path, files: Files, named: Collection[str]) -> None:
    """Count the recordings of which a table says nothing."""
    silent = [name for name in files if name not in named]
    if silent:
        sentence = f"{path} says nothing of {len(silent)} of {len(files)} recordings: {listed(silent)}."
        warnings.warn(sentence, DicotWarning, stacklevel=4)


def told_of(tags: Mapping[str, Tag]) -> dict[str, str]:
    """Name what is said of each file, to see later whether it has changed."""
    return {name: hashlib.sha256(repr(_content(tag)).encode()).hexdigest()[:16] for name, tag in tags.items()}


def _content(tag: Tag) -> tuple[Any, ...]:
    """Return what a tag says, without the rows that say it: the same as in vector files of earlier versions."""
    return tag.label, tag.group, tuple((one.start, one.end, one.label) for one in tag.ranges)
