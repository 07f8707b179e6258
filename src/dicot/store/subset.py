"""Subsets of vectors: the rows that conditions or a table name, with the record of what they were made of."""

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import InputError, brief, did_you_mean, listed, naming
from dicot.data.cases import Array
from dicot.data.folders import file_name_of
from dicot.data.labels import as_text, plain_text
from dicot.store.vectors import COLUMNS, Vectors, write_vectors

CONDITION = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*")
COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
DIGITS = 6  # of a second: times that differ by less are the same

Chosen = NDArray[np.bool_]  # (N,)


def select_rows(known: Vectors, conditions: Sequence[str], table: Path | None = None) -> Chosen:
    """Tell which vectors fulfil all conditions and, where a table is given, are named there; none is an error."""
    tests = {condition: rows_where(known, condition) for condition in conditions}
    if table is not None:
        tests[str(table)] = rows_in_table(known, table)
    chosen = np.ones(len(known), bool)
    for fulfilled in tests.values():
        chosen &= fulfilled
    if not chosen.any():
        counts = ", ".join(f"{int(fulfilled.sum())} by {test!r}" for test, fulfilled in tests.items())
        raise InputError(f"no window is left: of {len(known)} there are {counts}. Leave a condition out.")
    return chosen


def rows_where(known: Vectors, condition: str) -> Chosen:
    """Tell which vectors fulfil a condition: "label=walk,run", "recording=D05_*", "group!=SA01" or "start>=12.5"."""
    found = CONDITION.fullmatch(condition)
    if found is None:
        raise InputError(f"a condition is COLUMN=VALUE, COLUMN!=VALUE or COLUMN>=NUMBER; got {condition!r}.")
    name, sign, text = found.groups()
    columns = dict(known.columns())
    if known.part is not None:
        columns["part"] = known.part
    if name not in columns:
        raise InputError(f"it has no column {name!r}, which {condition!r} asks for. {did_you_mean(name, columns)}")
    values: Array = columns[name]
    if sign in COMPARE:
        try:
            limit = np.datetime64(text.removesuffix("Z")) if values.dtype.kind == "M" else float(text)
            return np.asarray(COMPARE[sign](values, limit))
        except (TypeError, ValueError) as error:  # numpy's error for text and a number is a TypeError
            kind = {"U": "text", "M": "UTC times"}.get(values.dtype.kind, "numbers")
            raise InputError(f"{condition!r} compares {text!r} with column {name!r}, which holds {kind}.") from error

    names, name_of_row = np.unique(as_text(values), return_inverse=True)
    is_meant = _names_in_list(names.tolist(), name, text)
    if sign == "!=":
        is_meant = ~is_meant
    return np.asarray(is_meant[name_of_row])


def _names_in_list(names: list[str], column: str, text: str) -> Chosen:
    """Tell which names a text "a,b*" means; a name may hold a comma itself."""
    is_meant = np.zeros(len(names), bool)
    parts = text.split(",")
    while parts:
        # The longest text that means a name comes first, such as "left,wrist" of "left,wrist,hip".
        for length in range(len(parts), 0, -1):
            hits = _names_meant(names, ",".join(parts[:length]).strip())
            if hits.any():
                break
        value = parts[0].strip()
        if value and not hits.any():
            hint = did_you_mean(value, filter(None, names))
            raise InputError(f"no window has the {column} {value!r}. {hint}")
        is_meant |= hits
        parts = parts[length:]
    return is_meant


def _names_meant(names: list[str], value: str) -> Chosen:
    """Tell which names a value means: the one that is called so, or else those that fit, where * is any text.

    Brackets are those of a name; where no name has them, they hold characters, as in D0[12]_*.
    """
    same = np.array([name in (value, plain_text(value)) for name in names], bool)
    if same.any() or "*" not in value:
        return same
    pattern = re.compile(".*".join(map(re.escape, value.split("*"))), re.DOTALL)
    literal = np.array([pattern.fullmatch(name) is not None for name in names], bool)
    return literal if literal.any() else np.array([fnmatchcase(name, value) for name in names], bool)


def rows_in_table(known: Vectors, path: Path) -> Chosen:
    """Tell which vectors a .csv names, such as an export of the explorer: by recording, start and end, or by row."""
    with naming(path):
        table = _read_table(path)
        names = _key_columns(known, table)
        columns = {**known.columns(), "row": np.arange(len(known))}
        row_of_key = {key: row for row, key in enumerate(_keys(columns, names))}
        keys = _keys(table, names)
        unknown = [number for number, key in enumerate(keys) if key not in row_of_key]
        if unknown:
            first = unknown[0]
            place = ", ".join(f"{name} {table[name][first]}" for name in names)
            raise InputError(
                f"line {first + 2} names {place}: no vector is of it ({len(unknown)} of {len(keys)} lines). Correct or "
                "remove it."
            )
    chosen = np.zeros(len(known), bool)
    chosen[[row_of_key[key] for key in keys]] = True
    return chosen


def _read_table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, OSError) as error:  # pandas' own errors are ValueErrors
        raise InputError(f"it cannot be read as a .csv ({brief(error)}).") from error


def _key_columns(known: Vectors, table: pd.DataFrame) -> list[str]:
    """Return the columns by which a table names vectors."""
    names = ["recording", "start", "end"]
    has_places = known.placed and ("row" not in table or set(names) <= set(table))
    if not has_places:
        names = ["row"]
    if not set(names) <= set(table):
        raise InputError(f"it must have the columns {', '.join(names)}; it has {listed(list(table))}.")
    return names


def _keys(columns: Any, names: list[str]) -> list[tuple[Any, ...]]:
    """Return for each row what tells it from others; what is no number is found nowhere."""
    values = []
    for name in names:
        if name == "recording":
            values.append(columns[name].tolist())
        else:
            numbers = pd.to_numeric(columns[name], errors="coerce")
            values.append(np.round(numbers, DIGITS).tolist())
    return list(zip(*values, strict=True))


def write_subset(path: Path, known: Vectors, chosen: Chosen) -> None:
    """Write the chosen vectors; series of recordings are found as before, and files may be appended."""
    source = None
    if known.source is not None and known.source.kind == "recordings":  # of cases nothing says which these are
        # Windows that are left out must not come back when their recording has grown: see `embed_recordings`.
        files = known.source.recordings
        recordings_left_out = np.unique(known.places()[0][~chosen]).tolist()
        cut_files = {file_name_of(name, files) for name in recordings_left_out}
        facts = {name: {**fact, "windows": None} if name in cut_files else fact for name, fact in files.items()}
        source = replace(known.source, recordings=facts)
    columns = {COLUMNS[name]: values[chosen] for name, values in known.columns().items()}
    write_vectors(path, {"": {"X": known.x[chosen], **columns}}, source)
