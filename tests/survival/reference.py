"""Plain readers that the library is held against: strict, slow, and written without it."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from tests.survival.kind import UnreadableError

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
LOST = {"", "?", "na", "nan", "null"}  # how text files write a missing value
Cases = list[np.ndarray]


def number(cell: str) -> float:
    """A decimal number as every program reads it; NaN for a missing one."""
    cell = cell.strip()
    if cell.lower() in LOST:
        return math.nan
    if not NUMBER.fullmatch(cell):
        raise UnreadableError(f"{cell[:30]!r} is no number")
    return float(cell)


def is_number(cell: str) -> bool:
    return bool(NUMBER.fullmatch(cell.strip()))


def whole(text: str) -> int:
    text = text.strip()  # of more than int() and float() drop
    if not re.fullmatch(r"[-+]?\d{1,400}", text, re.ASCII):
        raise UnreadableError(f"{text[:30]!r} is no whole number")
    return int(text)


def finite(text: str) -> float:
    if not math.isfinite(value := number(text)):
        raise UnreadableError(f"{text[:30]!r} is no finite number")
    return value


def csv_rows(path: Path, errors: str = "strict") -> list[list[str]]:
    """Its rows by the first of the usual marks that parts the first of them."""
    try:
        text = path.read_bytes().decode("utf-8-sig", errors)
        for mark in ",;\t":
            reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
            rows = [[cell.strip() for cell in row] for row in reader]
            rows = [row for row in rows if row not in ([], [""])]
            if rows and len(rows[0]) > 1:
                return rows
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableError(str(error)) from error
    raise UnreadableError("it has no cells")


def same_length(rows: Sequence[Sequence[Any]]) -> None:
    if len({len(row) for row in rows}) > 1:
        raise UnreadableError(f"its rows have {sorted({len(row) for row in rows})} cells")


def wide_csv(path: Path, label: str) -> tuple[Cases, list[Any]]:
    """One case per row: below names, with the label in a named column, or with none and the label last."""
    rows = csv_rows(path)
    same_length(rows)
    at = -1
    if label != "last":
        names = rows.pop(0)
        if names.count(label) != 1:
            raise UnreadableError(f"{names.count(label)} columns are called {label!r}")
        at = names.index(label)
    elif not any(is_number(cell) for cell in rows[0][:-1]):
        rows.pop(0)  # names, and nothing else
    cells = [[cell for i, cell in enumerate(row) if i != at % len(row)] for row in rows]
    return [np.array([[number(cell) for cell in row]]) for row in cells], [row[at] for row in rows]


def long_csv(path: Path) -> dict[str, list[str]]:
    names, *rows = csv_rows(path)
    if len(set(names)) != len(names):
        raise UnreadableError("a column's name comes twice")
    same_length([names, *rows])
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def long_cases(
    columns: Mapping[str, Sequence[Any]], case: str, time: str, label: str, group: str
) -> tuple[Cases, list[Any], list[Any]]:
    """The cases of a long table in order of their first row; text cells are a csv file's."""
    if lacking := [name for name in (case, time, label, group) if name not in columns]:
        raise UnreadableError(f"there is no column {lacking}")
    rest = {name: column for name, column in columns.items() if name not in (case, time, label, group)}
    channels = [values for column in rest.values() if (values := _channel(column)) is not None]
    if not channels or not columns[case]:
        raise UnreadableError("there is no channel or no row")
    rows: dict[Any, list[int]] = {}
    for i, name in enumerate(columns[case]):
        if is_lost(name):
            raise UnreadableError(f"row {i} belongs to no case")
        rows.setdefault((type(name), name), []).append(i)
    times = [_moment(moment) for moment in columns[time]]
    if len({type(moment) for moment in times}) > 1:
        raise UnreadableError("the times are of several kinds")
    cases, labels, groups = [], [], []
    for places in rows.values():
        if len({times[i] for i in places}) < len(places):
            raise UnreadableError("a case has two rows of one time")
        ordered = sorted(places, key=lambda i: times[i])
        cases.append(np.array([[channel[i] for i in ordered] for channel in channels], dtype=float))
        for column, out in ((columns[label], labels), (columns[group], groups)):
            held = {None if is_lost(column[i]) else column[i] for i in places}
            if len(held) > 1:
                raise UnreadableError("label or group changes within a case")
            out.append(held.pop())
    if any(who is None for who in groups):
        raise UnreadableError("a case has no group")
    return cases, labels, groups


def _channel(column: Sequence[Any]) -> list[float] | None:
    """The values of a column of numbers; None for a column of text, which is no channel."""
    if any(isinstance(cell, str) for cell in column):
        if not any(is_number(cell) for cell in column if isinstance(cell, str)):
            return None
        return [number(cell) for cell in column]
    if all(cell is None for cell in column) or not all(
        cell is None or isinstance(cell, int | float | Decimal) for cell in column
    ):
        return None
    return [math.nan if cell is None else float(cell) for cell in column]


def _moment(value: Any) -> Any:
    if isinstance(value, str | bytes):
        text = (value if isinstance(value, str) else value.decode("utf-8", "replace")).strip()
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            return finite(text)
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    if isinstance(value, datetime | date | timedelta):
        return value
    raise UnreadableError(f"{value!r} is no time")


def is_lost(label: Any) -> bool:
    """Whether this marks a case without a label."""
    if isinstance(label, str):
        return label.strip().lower() in LOST
    return label is None or (isinstance(label, float | np.floating) and math.isnan(label))


def lines_of(path: Path, comments: str) -> list[str]:
    text = path.read_bytes().decode("utf-8", "replace")
    lines = [line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return [line for line in lines if line and line[0] not in comments]


def _divided(lines: list[str]) -> tuple[list[str], list[str]]:
    places = [i for i, line in enumerate(lines) if line.split()[0].lower() == "@data"]
    if not places or len(lines) == places[0] + 1:
        raise UnreadableError("there is no @data, or nothing after it")
    return lines[: places[0]], lines[places[0] + 1 :]


def ts_cases(path: Path) -> tuple[Cases, list[str] | None]:
    head, body = _divided(lines_of(path, "#%"))
    tags = {}
    for line in head:
        tag, *words = line.split()
        if not tag.startswith("@"):
            raise UnreadableError(f"{line[:40]!r} stands above @data")
        tags[tag[1:].lower()] = words
    truth = {"true": True, "false": False}
    flags = {}
    for tag in ("timestamps", "univariate", "equallength", "classlabel"):
        if tag in tags:
            word = tags[tag][0].lower() if tags[tag] else ""
            if word not in truth or (tag == "timestamps" and truth[word]):
                raise UnreadableError(f"@{tag} {word}")
            flags[tag] = truth[word]
    classes = tags["classlabel"][1:] if flags.get("classlabel") else []
    cases, labels = [], []
    for line in body:
        channels = line.split(":")
        if flags.get("classlabel"):
            labels.append(_class(channels.pop().strip(), classes))
        cases.append(_channels(channels))
    stated = {whole(" ".join(tags[tag])) for tag in ("dimension", "dimensions") if tag in tags}
    wanted = {1} if flags.get("univariate") else stated or {len(cases[0])}
    if len(wanted | {len(case) for case in cases}) > 1:
        raise UnreadableError(f"channels: {wanted} in the header, {[len(case) for case in cases]} below")
    if flags.get("equallength") and len({case.shape[1] for case in cases}) > 1:
        raise UnreadableError("@equalLength true, but the lengths differ")
    return cases, labels if flags.get("classlabel") else None


def _class(label: str, classes: Sequence[str]) -> str:
    """The label as the header spells it: 1.0, +1 and 1 are one class."""
    if label in classes:
        return label
    same = [name for name in classes if is_number(name) and is_number(label) and number(name) == number(label)]
    if len(same) != 1:
        raise UnreadableError(f"the label {label[:20]!r} is none of {classes}")
    return same[0]


def _channels(texts: Sequence[str]) -> np.ndarray:
    rows = [[number(cell) for cell in text.split(",")] for text in texts]
    same_length(rows)
    if not rows:
        raise UnreadableError("a case has no channel")
    return np.array(rows)


def arff_cases(path: Path) -> tuple[Cases, list[str]]:
    head, body = _divided(lines_of(path, "%"))
    attributes = [line for line in head if line.split()[0].lower() == "@attribute"]
    found = re.search(r"\{(.*)\}$", attributes[-1]) if attributes else None
    target = bool(attributes) and attributes[-1].split()[-1].lower() in ("numeric", "real", "integer")
    if found is None and (not target or head[-1] != attributes[-1]):
        raise UnreadableError("the last attribute is neither a class nor a number")
    classes = [] if found is None else [name.strip().strip("'\"") for name in found[1].split(",")]
    cases, labels = [], []
    nested = any(line.split()[-1].lower() == "relational" for line in attributes)
    for line in body:
        if nested:
            quoted = re.fullmatch(r"""(['"])(.*?)\1\s*,(.*)""", line)
            if quoted is None:
                raise UnreadableError(f"{line[:30]!r} has no field between quotation marks")
            channels, label = quoted[2].split("\\n"), quoted[3]
        else:
            values, _, label = line.rpartition(",")
            channels = [values]
        label = label.strip().strip("'\"")
        labels.append(_class(label, classes) if classes else str(number(label)) and label)
        if not nested and not classes and line.count(",") + 1 != len(attributes):
            raise UnreadableError("a number to predict that no attribute announces")
        cases.append(_channels(channels))
    return cases, labels


def tsv_cases(path: Path) -> tuple[Cases, list[str]]:
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(str(error)) from error
    lines = [line.rstrip("\r") for line in re.split(r"\r\n|\n|\r", text)]
    rows = [line.split("\t") for line in lines if line.strip()]
    same_length(rows)
    return [np.array([[number(cell) for cell in row[1:]]]) for row in rows], [row[0].strip() for row in rows]
