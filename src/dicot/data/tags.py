"""Tags: label and group of whole recordings, and labels of ranges, by the names of files or by a table."""

import hashlib
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from dicot.core.errors import DicotWarning, InputError, listed, naming
from dicot.core.settings import as_option, how_to_set
from dicot.data.csvfile import open_sheet
from dicot.data.devices import name_fields
from dicot.data.labeltable import (
    FILE_COLUMNS,
    Files,
    LabelTable,
    RangeRow,
    check_names,
    on_clock,
    place_of,
    read_label_table,
    recordings_meant,
    why_not_meant,
)
from dicot.data.namepattern import NamePattern
from dicot.data.ranges import Label, Misplaced, TableRange
from dicot.data.reading import Reading, Source, before_pattern
from dicot.data.recording import Recording

TABLE = "labels.csv"  # found without being named


class Tag(NamedTuple):
    """What is said of the recordings of one file, beside what is in it."""

    label: Label | None = None
    group: Label | None = None
    ranges: tuple[RangeRow, ...] = ()
    told: Mapping[str, str] = {}  # "label" or "group" -> in words where it is told

    def put_on(self, recordings: Sequence[Recording], reading: Reading) -> list[Recording]:
        """Return the recordings of a file with what is told elsewhere than in it."""
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
