"""A saved classifier knows how recordings are cut for it, and its predictions become ranges."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dicot.data.cases import Array
from dicot.model.fewlabels import Head
from dicot.store.vectors import MadeOf, Vectors

PREDICTED = "predicted"


def head_for(head: Head, known: Vectors) -> Head:
    """Return a classifier that knows the model of these vectors and how recordings were cut for them."""
    source = None if known.source is None else replace(known.source, recordings={}).to_dict()
    return replace(head, model=known.model, source=source)


def reading_of(made: MadeOf | None) -> dict[str, Any]:
    """Return how new recordings are read for a classifier: as those of its vectors, but for labels and who they are of.

    A group stays where a column has it: it may tell the recordings of a file apart.
    """
    if made is None or made.kind != "recordings":
        return {}
    told = {"label", "names", "table", *(["group"] if {"names", "table"} & made.options.keys() else [])}
    channels = {} if made.channels is None else {"channels": list(made.channels)}
    return {name: value for name, value in made.options.items() if name not in told} | channels


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
