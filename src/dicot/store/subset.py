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
from dicot.data.labels import as_text
from dicot.data.readers import file_name_of
from dicot.store.vectors import COLUMNS, MadeOf, Vectors, write_vectors

CONDITION = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*")
COMPARE = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
DIGITS = 6  # of a second: times that differ by less are the same
PLACE = ["recording", "start", "end"]

Chosen = NDArray[np.bool_]  # (N,)


def rows_where(known: Vectors, condition: str) -> Chosen:
    """Tell which vectors fulfil a condition: "label=walk,run", "recording=D05_*", "group!=SA01" or "start>=12.5".

    A value with * is a pattern. No value at all means what is not known: "label!=" has all that have one.
    """
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
            return np.asarray(
                COMPARE[sign](values, values.dtype.type(text) if values.dtype.kind in "Mf" else float(text))
            )
        except (TypeError, ValueError, np.exceptions.DTypePromotionError) as error:
            kind = "text" if values.dtype.kind == "U" else "numbers"
            raise InputError(
                f"{condition!r} compares {text!r} with column {name!r}, which holds {kind}. {sign} is for numbers."
            ) from error
    names, which = np.unique(as_text(values), return_inverse=True)
    chosen = np.zeros(len(names), bool)
    for one in (part.strip() for part in text.split(",")):
        hit = names == one
        if "*" in one and not hit.any():
            hit = np.array([fnmatchcase(name, one) for name in names.tolist()])
        if not hit.any() and one:
            raise InputError(f"no window has the {name} {one!r}. {did_you_mean(one, filter(None, names.tolist()))}")
        chosen |= hit
    return chosen[which] if sign == "=" else ~chosen[which]


def rows_in_table(known: Vectors, path: Path) -> Chosen:
    """Tell which vectors a .csv names, such as an export of the explorer: by recording, start and end, or by row."""
    with naming(path):
        try:
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
        except (ValueError, OSError) as error:  # pandas' own errors are ValueErrors
            raise InputError(f"it cannot be read as a .csv ({brief(error)}).") from error
        by_place = known.placed and set(PLACE) <= set(table)
        if not by_place and "row" not in table:
            wanted = "recording, start and end, or row" if known.placed else "row"
            raise InputError(f"it must have the columns {wanted}; it has {listed(list(table))}.")
        numbers = {}
        for name in PLACE[1:] if by_place else ["row"]:
            numbers[name] = pd.to_numeric(table[name], errors="coerce")
            if (wrong := np.flatnonzero(numbers[name].isna())).size:
                raise InputError(f"line {wrong[0] + 2}, column {name!r}: {table[name][wrong[0]]!r} is no number.")
        keys: list[Any] = _places(table["recording"], *numbers.values()) if by_place else numbers["row"].tolist()
        there = {key: row for row, key in enumerate(_places(*known.places()) if by_place else range(len(known)))}
        if lost := [number for number, key in enumerate(keys) if key not in there]:
            said = ", ".join(f"{name} {table[name][lost[0]]}" for name in (PLACE if by_place else ["row"]))
            raise InputError(
                f"line {lost[0] + 2} names {said}, and no vector is of it ({len(lost)} of {len(keys)} lines)."
            )
    chosen = np.zeros(len(known), bool)
    chosen[[there[key] for key in keys]] = True
    return chosen


def _places(recording: Any, start: Any, end: Any) -> list[Any]:
    times = (np.round(np.asarray(one, float), DIGITS).tolist() for one in (start, end))
    return list(zip(np.asarray(recording, str).tolist(), *times, strict=True))


def write_subset(path: Path, known: Vectors, chosen: Chosen) -> None:
    """Write the chosen vectors to a .parquet or .npz; their series are found as before, and files may be appended."""
    parts: Sequence[str] = [""] if known.part is None else list(dict.fromkeys(known.part[chosen].tolist()))
    of_part = {name: chosen if known.part is None else chosen & (known.part == name) for name in parts}
    arrays = {"X": known.x, **{COLUMNS[name]: values for name, values in known.columns().items()}}
    held = {name: {key: values[rows] for key, values in arrays.items()} for name, rows in of_part.items()}
    only = {"": next(iter(held.values()))} if len(held) == 1 else held
    write_vectors(path, only, None if known.source is None else _made_of(known.source, known, chosen))


def _made_of(made: MadeOf, known: Vectors, chosen: Chosen) -> MadeOf:
    """Say what a subset was made of."""
    if made.kind != "recordings":
        rows = np.arange(len(known)) if made.rows is None else np.array(made.rows)
        return replace(made, rows=tuple(rows[chosen].tolist()))
    # Windows that are left out must not come back as new ones when their recording has grown: see `embed_recordings`.
    left = {file_name_of(name, made.recordings) for name in np.unique(known.places()[0][~chosen]).tolist()}
    return replace(
        made,
        recordings={
            name: {**was, **({"windows": None} if name in left else {})} for name, was in made.recordings.items()
        },
    )
