"""A saved classifier knows how recordings are cut for it."""

from dataclasses import replace
from typing import Any

from dicot.model.fewlabels import Head
from dicot.store.vectors import MadeOf, Vectors


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
