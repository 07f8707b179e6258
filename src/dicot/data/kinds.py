"""Which files of a folder are its recordings: those of the kind that most of its bytes are of; the others are named."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from dicot.core.errors import listed
from dicot.data.inspection import Inspected

_NAMED = 3  # files that are named where many have one problem
_SEPARATORS = re.compile(r"([-_. ])")
_NUMBER = re.compile(r"\d[\d,.]*")


class Kinds(NamedTuple):
    """Files of a folder by what they are."""

    readable: list[Inspected]  # recordings
    unreadable: list[Inspected]  # recordings with a problem, and files that nobody can tell the kind of
    others: list[Inspected]  # no recordings: they share no column with these

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings by which recordings that cannot be read yet could be."""
        needed: dict[str, str] = {}
        for row in self.unreadable:
            needed |= row.settings
        return needed


def sort_by_kind(rows: Sequence[Inspected]) -> Kinds:
    """Sort recordings from what lies beside them, such as a table with one row per person."""
    usual = _usual_columns(rows)
    kinds = Kinds([], [], [])
    for row in rows:
        if row.columns and not set(row.columns) & usual:
            kinds.others.append(row)
        elif row.problem:
            kinds.unreadable.append(row)
        else:
            kinds.readable.append(row)
    return kinds


def _usual_columns(rows: Sequence[Inspected]) -> set[str]:
    """Return the columns of the kind that most bytes are of; a few long recordings outweigh many small tables."""
    files: dict[tuple[str, ...], dict[Path | None, int]] = defaultdict(dict)
    for row in rows:
        if row.columns:
            files[tuple(sorted(row.columns))][row.path] = row.bytes
    if not files:
        return set()
    sizes = [(sum(of_kind.values()), len(of_kind), columns) for columns, of_kind in files.items()]
    return set(max(sizes)[-1])


def problem_sentences(rows: Sequence[Inspected]) -> list[str]:
    """Say what is wrong, one sentence for all files that have a problem alike save for its numbers."""
    alike: dict[str, list[Inspected]] = defaultdict(list)
    for row in rows:
        alike[_NUMBER.sub("#", _problem_of(row))].append(row)
    sentences = []
    for group in alike.values():
        first, n_files = group[0], len(group)
        if n_files == 1:
            sentences.append(f"{first.path}: {_problem_of(first)}")
            continue
        names = [str(row.path) for row in group[:_NAMED]]
        more = f" and {n_files - _NAMED} more" if n_files > _NAMED else ""
        is_same = len({_problem_of(row) for row in group}) == 1
        introduction = "" if is_same else "The first: "
        sentences.append(f"{n_files} files, {', '.join(names)}{more}: {introduction}{_problem_of(first)}")
    return sentences


def _problem_of(row: Inspected) -> str:
    """Return what is wrong with a file, without its name."""
    return row.problem.partition(f"{row.path}: ")[2] or row.problem


def others_sentence(kinds: Kinds) -> str:
    """Name the files that are no recordings, with what they hold instead."""
    recordings = [*kinds.readable, *kinds.unreadable]
    usual = next((row.columns for row in recordings if row.columns), ())
    holds = [f"{row.path} ({_rows_of(row)}{listed(row.columns)})" for row in kinds.others]
    are = "is no recording" if len(holds) == 1 else "are no recordings"
    return f"{listed(holds)} {are}: the recordings have {listed(usual)}."


def _rows_of(row: Inspected) -> str:
    if not row.rows:
        return ""
    clock = "" if row.seconds is not None else " without time stamps"
    return f"{row.rows:,} rows{clock}: "


def joined_by_devices(kinds: Kinds) -> Kinds:
    """Return kinds in which files of all devices are recordings, whatever their channels."""
    problems = [row for row in kinds.others if row.problem]
    sound = [row for row in kinds.others if not row.problem]
    return Kinds([*kinds.readable, *sound], [*kinds.unreadable, *problems], [])


def pattern_of(folder: Path, kinds: Kinds) -> str | None:
    """Return a pattern that names all recordings of a folder and none of its other files; None where there is none."""
    recordings = _below(folder, [*kinds.readable, *kinds.unreadable])
    others = _below(folder, kinds.others)
    depths = {name.count("/") for name in recordings}
    suffixes = {Path(name).suffix for name in recordings}
    if len(depths) != 1 or len(suffixes) != 1:
        return None
    folders, suffix = "*/" * depths.pop(), suffixes.pop()
    for stem in _stem_patterns([Path(name).stem for name in recordings]):
        pattern = f"{folders}{stem}{suffix}"
        if not any(name.count("/") == pattern.count("/") and fnmatch(name, pattern) for name in others):
            return str(folder / pattern)
    return None


def _stem_patterns(stems: Sequence[str]) -> Iterator[str]:
    """Yield patterns that all these names fit, the shortest first: D01_SA01_R01 and its kin fit "*_R*"."""
    yield "*"
    yield f"{_common_start(stems)}*"

    split = [_SEPARATORS.split(stem) for stem in stems]  # part, separator, part ...
    if len({tuple(parts[1::2]) for parts in split}) > 1:
        return
    columns = list(zip(*split, strict=True))
    # Digits are left out of what the parts begin with: a file of next week is numbered otherwise.
    starts = [_common_start(column).rstrip("0123456789") for column in columns[::2]]
    separators = [column[0] for column in columns[1::2]]
    for separator, start in reversed(list(zip(separators, starts[1:], strict=True))):
        yield f"*{separator}{start}*"
    yield "".join(f"{start}*{separator}" for start, separator in zip(starts, [*separators, ""], strict=True))


def _common_start(names: Sequence[str]) -> str:
    """Return what all names begin with."""
    first, last = min(names), max(names)  # in the order of the alphabet: what these two share, all share
    alike = [one == other for one, other in zip(first, last, strict=False)]
    return first[: alike.index(False) if False in alike else len(alike)]


def _below(folder: Path, rows: Sequence[Inspected]) -> list[str]:
    """Return the paths of files below a folder."""
    absolute = folder.absolute()
    paths = dict.fromkeys(row.path.absolute() for row in rows if row.path is not None)
    return [path.relative_to(absolute).as_posix() for path in paths if path.is_relative_to(absolute)]
