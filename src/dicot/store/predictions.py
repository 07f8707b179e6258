"""Predictions of a saved classifier: a table with one row per window that knows what it was made of and can grow."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd

from dicot.core.errors import InputError, naming
from dicot.data.cases import Array
from dicot.data.tables import read_table
from dicot.model.fewlabels import Head
from dicot.store.embedding import FileForm
from dicot.store.vectors import COLUMNS, SECONDS, SOURCE, TABLES, MadeOf, Parts, Vectors, check_out, write_columns

PREDICTED, OUTLIER = "predicted", "outlier_p"
REFERENCE = 1000  # windows of the fit, at most, that a saved classifier keeps to tell what is unlike all of them
OF_LABELS = ("label", "names", "table")  # how recordings are read for their labels, which new ones do not have


def head_for(head: Head, known: Vectors) -> Head:
    """Return a classifier that knows the model of these vectors, how recordings were cut, and some of the vectors."""
    source = None if known.source is None else replace(known.source, recordings={}).to_dict()
    rows = np.sort(np.random.default_rng(0).permutation(len(known))[:REFERENCE])
    held = known.held_together(3)
    together = None if held is None else np.unique(held[1], return_inverse=True)[1][rows]
    reference = np.asarray(known.x[rows], np.float32)
    return replace(head, model=known.model, source=source, reference=reference, together=together)


def reading_of(made: MadeOf | None) -> dict[str, Any]:
    """Return how new recordings are read for a classifier: as those of its vectors, but for their labels."""
    if made is None or made.kind != "recordings":
        return {}
    channels = {} if made.channels is None else {"channels": list(made.channels)}
    return {name: value for name, value in made.options.items() if name not in OF_LABELS} | channels


@final
class PredictionTable:
    """A .csv or .parquet of predictions: a row is (K,) probabilities and, with `outlier`, a p-value.

    `columns` are those that were read or written last.
    """

    def __init__(self, classes: Sequence[Any], outlier: bool) -> None:
        self.classes, self.columns = np.array(classes), dict[str, Array]()
        self.numbers = [*(f"p_{name}" for name in classes), *[OUTLIER] * outlier]
        self.form = FileForm(lambda path: check_out(path, TABLES), self.read, self.write)

    def fill(self, x: Array, about: Mapping[str, Array]) -> dict[str, Array]:
        """Make the columns of rows x (N, K or K + 1) and of what is known of their windows."""
        predicted = self.classes[x[:, : len(self.classes)].argmax(axis=1)]
        self.columns = {**about, PREDICTED: predicted, **dict(zip(self.numbers, x.T, strict=True))}
        return self.columns

    def write(self, path: Path, parts: Parts, made: MadeOf) -> None:
        """Write what `embed_recordings` made."""
        arrays = parts[""]
        about = {name: arrays[key] for name, key in COLUMNS.items() if key in arrays}
        write_columns(path, self.fill(np.asarray(arrays["X"]), about), made)

    def read(self, path: Path, make: Callable[[int, int], Any] | None = None) -> Vectors:
        """Read what was written, to append to it."""
        with naming(path):
            cells = read_table(path)
            made = MadeOf.from_dict(json.loads((cells.schema.metadata or {}).get(SOURCE.encode(), b"null")))
        table = cells.to_pandas()
        if absent := [name for name in [*self.numbers, "recording", *SECONDS] if name not in table]:
            raise InputError(
                f"{path} has no column {absent[0]!r}: it was made by another classifier. Write another file."
            )
        x, about = table[self.numbers].to_numpy(np.float32), {n: _values(table[n]) for n in COLUMNS if n in table}
        self.fill(x, about)
        return Vectors(x, **about, source=made)


def _values(column: "pd.Series[Any]") -> Array:
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_localize(None)
    return np.asarray(column.fillna("").to_numpy(np.str_) if column.dtype == object else column.to_numpy())


def runs(table: Mapping[str, Array]) -> dict[str, Array]:
    """Merge neighbouring windows of one recording and one prediction into ranges, the columns of a table of labels.

    Where two windows of different predictions overlap, the border lies in the middle of what they share. A gap ends a
    range. The probability is the mean of the windows' largest.
    """
    order = np.lexsort((table["start"], table["recording"]))
    told = {name: np.asarray(table[name])[order] for name in ("recording", "start", "end", PREDICTED)}
    recording, start, end, predicted = told.values()
    sure = np.max([values[order] for name, values in table.items() if name.startswith("p_")], axis=0)
    apart = (recording[1:] != recording[:-1]) | (start[1:] > end[:-1])
    first = np.flatnonzero(np.concatenate([[True], apart | (predicted[1:] != predicted[:-1])]))
    last = np.append(first[1:], len(order)) - 1
    begins, ends = start[first].astype(np.float64), end[last].astype(np.float64)
    touching = np.flatnonzero(~apart[first[1:] - 1])  # ranges that go on into the next one
    ends[touching] = begins[touching + 1] = (ends[touching] + begins[touching + 1]) / 2
    out = {"recording": recording[first], "start": begins, "end": ends}
    for name, times, at, seconds in (("start_time", begins, first, start), ("end_time", ends, last, end)):
        if name in table:
            moved = np.round((times - seconds[at]) * 1e6).astype("timedelta64[us]")
            out[name] = np.asarray(table[name])[order][at] + moved
    chances = np.add.reduceat(sure.astype(np.float64), first) / (last - first + 1)
    return {**out, "label": predicted[first], "probability": chances}
