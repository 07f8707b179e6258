"""Subsets of vectors: the rows that conditions or a table name, with the record of what they were made of."""

import re
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


def rows_where(known: Vectors, condition: str) -> Chosen:
    """Tell which vectors fulfil a condition: "label=walk,run", "recording=D05_*", "group!=SA01" or "start>=12.5"."""
    found = CONDITION.fullmatch(condition)
    if found is None:
        raise InputError(f"a condition is COLUMN=VALUE, COLUMN!=VALUE or COLUMN>=NUMBER; got {condition!r}.")
    name, sign, text = found.groups()
    columns = {**known.columns(), **({} if known.part is None else {"part": known.part})}
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
    names, which = np.unique(as_text(values), return_inverse=True)
    chosen = np.zeros(len(names), bool)
    for hits in _hits(names.tolist(), name, text):
        chosen |= hits
    return chosen[which] if sign == "=" else ~chosen[which]


def _hits(names: list[str], column: str, text: str) -> list[Chosen]:
    """Tell for each value in a text "a,b*" which names it means; a name may hold a comma itself."""
    parts, hits = text.split(","), []
    while parts:
        # The longest text that means a name, such as "left,wrist" in "left,wrist,hip".
        stops = range(len(parts), 0, -1)
        meant = {stop: _names_meant(names, ",".join(parts[:stop]).strip()) for stop in stops}
        stop = next((stop for stop, hit in meant.items() if hit.any()), None)
        value = parts[0].strip()
        if stop is None and value:
            hint = did_you_mean(value, filter(None, names))
            raise InputError(f"no window has the {column} {value!r}. {hint}")
        hits.append(meant[stop or 1])
        parts = parts[stop or 1 :]
    return hits


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
        try:
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
        except (ValueError, OSError) as error:  # pandas' own errors are ValueErrors
            raise InputError(f"it cannot be read as a .csv ({brief(error)}).") from error
        place = ["recording", "start", "end"]
        names = place if known.placed and ("row" not in table or set(place) <= set(table)) else ["row"]
        if not set(names) <= set(table):
            raise InputError(f"it must have the columns {', '.join(names)}; it has {listed(list(table))}.")
        rows = {key: row for row, key in enumerate(_keys({**known.columns(), "row": np.arange(len(known))}, names))}
        keys = _keys(table, names)
        if lost := [number for number, key in enumerate(keys) if key not in rows]:
            said = ", ".join(f"{name} {table[name][lost[0]]}" for name in names)
            many = f"{len(lost)} of {len(keys)} lines"
            raise InputError(f"line {lost[0] + 2} names {said}: no vector is of it ({many}). Correct or remove it.")
    chosen = np.zeros(len(known), bool)
    chosen[[rows[key] for key in keys]] = True
    return chosen


def _keys(columns: Any, names: list[str]) -> list[Any]:
    """Return for each row what tells it from others; what is no number is found nowhere."""
    numbers = (np.round(pd.to_numeric(columns[name], errors="coerce"), DIGITS).tolist() for name in names[-2:])
    return list(zip(*([columns["recording"].tolist()] if len(names) > 1 else []), *numbers, strict=True))


def write_subset(path: Path, known: Vectors, chosen: Chosen) -> None:
    """Write the chosen vectors; series of recordings are found as before, and files may be appended."""
    made, arrays = None, {COLUMNS[name]: values[chosen] for name, values in known.columns().items()}
    if known.source is not None and known.source.kind == "recordings":  # of cases nothing says which these are
        # Windows that are left out must not come back when their recording has grown: see `embed_recordings`.
        files = known.source.recordings
        left = {file_name_of(name, files) for name in np.unique(known.places()[0][~chosen]).tolist()}
        facts = {name: {**was, "windows": None} if name in left else was for name, was in files.items()}
        made = replace(known.source, recordings=facts)
    write_vectors(path, {"": {"X": known.x[chosen], **arrays}}, made)
