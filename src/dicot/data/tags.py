"""Tags: label and group of whole recordings, and labels of ranges, by the names of files or by a table."""

import hashlib
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import DicotWarning, InputError, did_you_mean, listed, naming
from dicot.data.csvfile import columns_of, open_sheet
from dicot.data.labels import as_text, is_number
from dicot.data.namepattern import NamePattern
from dicot.data.ranges import Label
from dicot.data.reading import Reading, Source, before_pattern
from dicot.data.recording import Recording
from dicot.data.timestamps import EPOCH, seconds_since

TABLE = "labels.csv"  # found without being named
_FILE = ("file", "recording")  # columns of a table that say whose row it is
Files = Mapping[str, Path | str]  # name of a recording -> its file


class Tag(NamedTuple):
    """What is said of the recordings of one file, beside what is in it."""

    label: Label | None = None
    group: Label | None = None
    ranges: tuple[tuple[float | str, float | str, Label], ...] = ()  # start and end, in seconds or as ISO text
    told: Mapping[str, str] = {}  # "label" or "group" -> in words where it is told

    def put_on(self, one: Recording) -> dict[str, Any]:
        """Return the fields of a recording that are told elsewhere than in its file."""
        spans = ((*(seconds_since(one.origin, time) for time in times), label) for *times, label in self.ranges)
        return {"ranges": tuple(spans), **{role: getattr(self, role) for role in self.told}}


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
        raise InputError(f"{found[0]} and {found[1]} both hold labels. Say which by table= (--table).")
    return found[0] if found else None


def _is_table(path: Path) -> bool:
    try:
        return path.is_file() and any(name in open_sheet(path).rows[0] for name in _FILE)
    except (InputError, OSError, ValueError):
        return False


def tags_of(source: Source, files: Files, reading: Reading) -> dict[str, Tag]:
    """Return what names and a table say of recordings: name of each file of them -> its tag; {} where neither is.

    `label` and `group` of the reading name fields of its `names`, or columns of its `table`.
    """
    called = {role: getattr(reading, role) or role for role in ("label", "group")}
    tags: dict[str, Tag] = {}
    if reading.names is not None:
        tags = _by_name(files, called, NamePattern(reading.names))
    if (path := find_table(source, reading.table)) is None:
        return tags
    with naming(path):
        found = _by_table(path, files, called, tags or dict.fromkeys(files, NOTHING))
        if not isinstance(found, str):
            return found
        if reading.table:
            raise InputError(found)
    warnings.warn(f"{path} is not used. {found}", DicotWarning, stacklevel=2)
    return tags


def _by_name(files: Files, called: Mapping[str, str], pattern: NamePattern) -> dict[str, Tag]:
    found = {name: pattern.fields_of(name) for name in files}
    if lost := [str(files[name]) for name, fields in found.items() if fields is None]:
        said = f"{len(lost)} of {len(files)} files are not called like {pattern.text!r}: {listed(lost)}."
        raise InputError(f"{said} Correct the pattern (--names), or rename these files.")
    told = {role: f"a field of {pattern.text!r}" for role, name in called.items() if name in pattern.fields}
    if not told:
        said = f"Say which field of {pattern.text!r} is the label or the group, such as label={pattern.fields[0]!r}"
        warnings.warn(f"{said} (--label). None is used.", DicotWarning, stacklevel=3)
    own = {name: (fields or {}).get for name, fields in found.items()}
    return {name: Tag(get(called["label"]), get(called["group"]), told=told) for name, get in own.items()}


def _by_table(path: Path, files: Files, called: Mapping[str, str], tags: Mapping[str, Tag]) -> dict[str, Tag] | str:
    """Add what the rows of a table say, of a recording or a range of one; or say why it does not fit to these files."""
    sheet = open_sheet(path)
    names = sheet.rows[0]
    key = next((name for name in _FILE if name in names), "")
    roles = [role for role, name in called.items() if name in names]
    if not key or ("start" in names) != ("end" in names):
        wanted = "a column file (or recording), a column label, and start and end where it holds ranges"
        raise InputError(f"A table of labels has {wanted}; this has {listed(names)}.")
    if not roles:
        return f"It has no column {called['label']!r}. {did_you_mean(called['label'], names)} Name it by --label."
    columns = columns_of(sheet, [key, *called.values()])
    texts, meant = as_text(columns[key]).tolist(), _meant(files)
    owners = [meant.get(text.replace("\\", "/").removeprefix("./"), []) for text in texts]
    if not any(owners):
        return (
            f"It names {listed([*dict.fromkeys(texts)])}, and none of the recordings {listed([*files])}. Correct them."
        )
    told = dict(next(iter(tags.values())).told)
    if both := [role for role in roles if role in told]:
        raise InputError(f"{both[0]}={called[both[0]]!r} is {told[both[0]]} and a column. Rename one of them.")
    told |= dict.fromkeys(roles, f"a column of {path}")
    out = {name: tag._replace(told=told) for name, tag in tags.items()}
    cells = {name: [None if c == "" or c != c else c for c in column.tolist()] for name, column in columns.items()}
    for row, own in enumerate(owners):
        try:
            for owner in own:
                if len(own) > 1:
                    raise ValueError(f"{texts[row]!r} may be {listed(own)}. Name it with its folder.")
                given: dict[str, Any] = {r: cells[at][row] for r in roles if cells[at := called[r]][row] is not None}
                span = [cells[name][row] for name in ("start", "end") if name in cells]
                if "label" in given and any(time is not None for time in span):
                    given["ranges"] = (*out[owner].ranges, (*_checked(span), given.pop("label")))
                for role in set(roles) & given.keys():
                    if (before := getattr(out[owner], role)) not in (None, given[role]):
                        raise ValueError(f"{texts[row]!r} has two of {role}: {before!r} above, {given[role]!r} here.")
                out[owner] = out[owner]._replace(**given)
        except ValueError as error:
            raise InputError(f"{sheet.line(row + 1)}: {error}") from error
    named = {owner for own in owners for owner in own}
    if silent := [name for name in files if name not in named]:
        said = f"{path} says nothing of {len(silent)} of {len(files)} recordings: {listed(silent)}."
        warnings.warn(said, DicotWarning, stacklevel=3)
    return out


def _checked(span: list[Any]) -> list[float | str]:
    """Return start and end of a range, in seconds or as dates."""
    times: list[float | str] = [
        t if isinstance(t, str) and not is_number(t) else float("nan" if t is None else t) for t in span
    ]
    with suppress(ValueError):
        first, last = (seconds_since(EPOCH, time) for time in times)
        if len({type(time) for time in times}) == 1 and -np.inf < first < last < np.inf:
            return times
    raise InputError(f"A range from {span[0]} to {span[1]}. Give seconds or ISO 8601 dates, the end behind the start.")


def _meant(files: Files) -> dict[str, list[str]]:
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


def told_of(tags: Mapping[str, Tag]) -> dict[str, str]:
    """Name what is said of each file, to see later whether it has changed."""
    return {name: hashlib.sha256(repr(tag[:3]).encode()).hexdigest()[:16] for name, tag in tags.items()}
