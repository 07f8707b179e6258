"""Tags: label and group of whole recordings, and labels of ranges, by the names of files or by a table."""

import hashlib
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple, final

import numpy as np

from dicot.core.errors import DicotWarning, InputError, did_you_mean, listed, naming
from dicot.data.cases import Array
from dicot.data.csvfile import columns_of, open_sheet
from dicot.data.labels import as_text, is_number
from dicot.data.namepattern import NamePattern
from dicot.data.ranges import Label
from dicot.data.reading import Reading, Source, before_pattern
from dicot.data.recording import Recording
from dicot.data.timestamps import seconds_since

TABLE = "labels.csv"  # found without being named
_FILE = ("file", "recording")  # the column of a table that says whose row it is
ROLES = ("label", "group")
_EPOCH = "1970-01-01"


class Tag(NamedTuple):
    """What is said of the recordings of one file, beside what is in it."""

    label: Label | None = None
    group: Label | None = None
    ranges: tuple[tuple[float | str, float | str, Label], ...] = ()  # start and end, in seconds or as ISO text
    elsewhere: tuple[tuple[str, str], ...] = ()  # "label" or "group", and in words where it is told

    def columns(self, reading: Reading) -> Reading:
        """Return what a reader looks for in the file itself."""
        return reading.replace(**{role: None for role, _ in self.elsewhere}) if self.elsewhere else reading

    def refuse_both(self, reading: Reading, columns: tuple[str, ...]) -> None:
        """Refuse a label or a group that is told elsewhere and is a column of the file as well."""
        for role, where in self.elsewhere:
            if (name := getattr(reading, role)) in columns:
                raise InputError(f"{role}={name!r} is {where}, and a column of the file as well. Rename one of them.")

    def put_on(self, one: Recording) -> dict[str, Any]:
        """Return the fields of a recording that are told elsewhere."""
        found: dict[str, Any] = {role: getattr(self, role) for role, _ in self.elsewhere}
        spans = ((*(seconds_since(one.origin, time) for time in times), label) for *times, label in self.ranges)
        return {**found, "ranges": tuple(spans)}

    def digest(self) -> str:
        """Name all that it says."""
        return hashlib.sha256(repr(self[:3]).encode()).hexdigest()[:16]


NOTHING = Tag()


def find_table(source: Source, said: str | None = None) -> Path | None:
    """Return the table of labels: the one that is said, "" for none, or a labels.csv in the folder or beside it."""
    if said is not None:
        if said and not Path(said).is_file():
            raise InputError(f"There is no table of labels {said}. Check the path (--table).")
        return Path(said) if said else None
    named = [Path(one).expanduser().absolute() for one in ([source] if isinstance(source, str | Path) else source)]
    folders = dict.fromkeys(one if one.is_dir() else before_pattern(one.parent) for one in named)
    beside = ([folder / TABLE, folder.parent / TABLE] for folder in folders)
    found = dict.fromkeys(one for pair in beside for one in [file for file in pair if _is_table(file)][:1])
    tables = [file for file in found if named != [file]]  # one that was named itself is a recording
    if len(tables) > 1:
        raise InputError(f"{tables[0]} and {tables[1]} both hold labels. Say which by table= (--table).")
    return tables[0] if tables else None


def _is_table(path: Path) -> bool:
    try:
        return path.is_file() and any(name in open_sheet(path).rows[0] for name in _FILE)
    except (InputError, OSError, ValueError):
        return False


def tags_of(source: Source, files: Mapping[str, Path | str], reading: Reading) -> dict[str, Tag]:
    """Return what names and a table say of recordings: name of each file of them -> its tag; {} where neither is.

    Parameters
    ----------
    source : what was named; a labels.csv in its folder or beside it counts where the reading says no table
    files : name -> file
    reading : its `names` and `table`; its `label` and `group` name fields of the one, or columns of the other
    """
    path, pattern = find_table(source, reading.table), reading.names and NamePattern(reading.names)
    if path is None and not pattern:
        return {}
    fields = pattern.fields if pattern else ()
    called = {role: getattr(reading, role) or role for role in ROLES}
    table = None if path is None else _Table(path, files, called)
    if table is not None and (problem := table.problem(called, fields, files)):
        if reading.table:
            raise InputError(f"{path}: {problem}")
        warnings.warn(f"{path} is not used. {problem}", DicotWarning, stacklevel=2)
        return tags_of(source, files, reading.replace(table=""))
    told = {role: f"a field of {reading.names!r}" for role, name in called.items() if name in fields}
    if pattern and not told:
        warnings.warn(
            f"Neither labels nor groups are taken from names={reading.names!r}. Say which of its fields they are, such "
            f"as label={fields[0]!r} (--label).",
            DicotWarning,
            stacklevel=2,
        )
    told |= dict.fromkeys(table.values if table else (), f"a column of {path}")
    tags = {name: Tag(elsewhere=tuple(told.items())) for name in files}
    if pattern:
        found = {name: pattern.fields_of(name) for name in files}
        if lost := [str(files[name]) for name, values in found.items() if values is None]:
            raise InputError(
                f"{len(lost)} of {len(files)} files are not called like {reading.names!r}: {listed(lost)}. Correct the "
                "pattern (--names), rename these files, or name the others alone."
            )
        for name, values in found.items():
            own: dict[str, Any] = {role: (values or {})[called[role]] for role in told if called[role] in fields}
            tags[name] = tags[name]._replace(**own)
    if table is not None:
        table.put_on(tags)
    return tags


@final
class _Table:
    """A table of labels: a row for a recording, or for a range of one."""

    def __init__(self, path: Path, files: Mapping[str, Path | str], called: Mapping[str, str]) -> None:
        with naming(path):
            self.sheet = open_sheet(path)
            names = self.sheet.rows[0]
            key = next((name for name in _FILE if name in names), "")
            if not key or ("start" in names) != ("end" in names):
                raise InputError(
                    "A table of labels has a column file (or recording), a column label, and start and end where it "
                    f"holds ranges; this has {listed(names)}. Add what is missing."
                )
            columns = columns_of(self.sheet, [key, *called.values()])
        self.keys: list[str] = as_text(columns[key]).tolist()
        self.values = {role: _cells(columns[name]) for role, name in called.items() if name in columns}
        self.spans = [_cells(columns[name]) for name in ("start", "end") if name in columns]
        named = _named(files)
        self.owners = [named.get(text.replace("\\", "/").removeprefix("./"), []) for text in self.keys]

    def problem(self, called: Mapping[str, str], fields: Collection[str], files: Collection[str]) -> str:
        """Say why it cannot be used; nothing where it can."""
        if both := [role for role in self.values if called[role] in fields]:
            return f"{both[0]}={called[both[0]]!r} is a column of it and a field of the names. Rename one of them."
        if not self.values:
            return f"It has no column {called['label']!r}. {did_you_mean(called['label'], self.sheet.rows[0])}"
        if not any(self.owners):
            keys = listed([*dict.fromkeys(self.keys)])
            return f"It names none of the {len(files)} recordings, {listed([*files])}, but {keys}. Correct these names."
        return ""

    def put_on(self, tags: dict[str, Tag]) -> None:
        """Put what the rows say into the tags of their recordings."""
        for row, owners in enumerate(self.owners):
            if len(owners) > 1:
                raise self._error(row, f"{self.keys[row]!r} may be {listed(owners)}. Name it with its folder.")
            for owner in owners:
                tag = tags[owner]
                given = {role: cells[row] for role, cells in self.values.items() if cells[row] is not None}
                span = [cells[row] for cells in self.spans]
                if "label" in given and any(time is not None for time in span):
                    given["ranges"] = (*tag.ranges, (*self._checked(row, *span), given.pop("label")))
                for role in given.keys() & set(ROLES):
                    if (before := getattr(tag, role)) not in (None, given[role]):
                        said = f"{self.keys[row]!r} has the {role} {given[role]!r} here, and {before!r} further up."
                        raise self._error(row, f"{said} Correct one of the two rows.")
                tags[owner] = tag._replace(**given)
        named = {owner for owners in self.owners for owner in owners}
        if silent := [name for name in tags if name not in named]:
            warnings.warn(
                f"{self.sheet.path} says nothing of {len(silent)} of {len(tags)} recordings: {listed(silent)}.",
                DicotWarning,
                stacklevel=3,
            )

    def _checked(self, row: int, *span: Any) -> list[float | str]:
        """Return start and end of a range."""
        times: list[float | str] = []
        try:
            times += [float(time) if not isinstance(time, str) or is_number(time) else time for time in span]
            first, last = (seconds_since(_EPOCH, time) for time in times)
            if len({type(time) for time in times}) > 1 or not -np.inf < first < last < np.inf:
                raise ValueError
        except (TypeError, ValueError) as error:
            said = f"{self.keys[row]!r} has a range from {span[0]!r} to {span[1]!r}"
            raise self._error(
                row, f"{said}. Give both in seconds or as dates in ISO 8601, the end behind the start."
            ) from error
        return times

    def _error(self, row: int, said: str) -> InputError:
        return InputError(f"{self.sheet.path}, {self.sheet.line(row + 1)}: {said}")


def _named(files: Mapping[str, Path | str]) -> dict[str, list[str]]:
    """Return whom a text may mean: a recording's name or its last part, with or without the file's suffix."""
    parts: dict[str, list[str]] = {}
    whole: dict[str, list[str]] = {}
    for name, file in files.items():
        last = PurePath(name).name
        suffix = PurePath(file).name.removeprefix(last)
        for text in {last, last + suffix}:
            parts.setdefault(text, []).append(name)
        whole |= {name: [name], name + suffix: [name]}
    return parts | whole


def _cells(column: Array) -> list[Any]:
    """Return the cells of a column, None for an empty one."""
    return [None if cell == "" or cell != cell else cell for cell in column.tolist()]
