"""Data sets for jobs: loaded once for neighbouring units, with a fingerprint that says which data a name stood for."""

from dataclasses import dataclass, replace

import numpy as np

from dicot.bench.jobs import DataSet
from dicot.data import Split, Windows
from dicot.data.collection import labelled
from dicot.data.splits import hold_out
from dicot.datasets import benchmark_policies, card, fingerprint, is_path, load
from dicot.datasets.base import pick_channels
from dicot.errors import DicotError, InputError

KEPT = 2  # data sets in memory at a time: a source and a target
HELD_OUT = 0.3  # of the cases, where there is no test part: the share that `dicot evaluate` holds out


@dataclass(frozen=True, eq=False)
class Loaded:
    """A training and a test part with labels, the fingerprint of both, and what was done to get there."""

    split: Split
    fingerprint: str
    note: str = ""


class Shelf:
    """The data sets loaded last; one per process."""

    def __init__(self) -> None:
        self._held: dict[str, Loaded] = {}

    def get(self, wanted: DataSet) -> Loaded:
        loaded = self._held.pop(wanted.name, None) or load_labelled(wanted.name)
        self._held[wanted.name] = loaded
        for name in list(self._held)[:-KEPT]:
            del self._held[name]
        return replace(loaded, split=pick_channels(loaded.split, wanted.channels))


def load_labelled(name: str) -> Loaded:
    """The data set, or an InputError where it cannot be scored on; the archive's missing values are interpolated.

    Of a file without a test part some cases are held out, the same ones every time: whole groups where there are any.
    """
    split = load(name, **benchmark_policies(name))
    note = ""
    if split.test is None:
        _check_labels(name, "", split.train)
        split = replace(hold_out(split.train, HELD_OUT), family=split.family, name=split.name)
        assert split.test is not None
        note = (
            f"{name} has no test part: {len(split.test)} of {len(split.train) + len(split.test)} cases are held out, "
            f"{'whole groups' if split.test.group is not None else 'a share of each class'}, as by dicot evaluate"
        )
    assert split.test is not None
    for part, windows in (("training", split.train), ("test", split.test)):
        _check_labels(name, part, windows)
    known = scored(split.train).y
    if known is not None and len(np.unique(known)) < 2:
        raise InputError(f"The training cases of {name} have one class, and scoring needs two or more.")
    return Loaded(split, fingerprint(split), note)


def scored(part: Windows) -> Windows:
    """The cases that have a label."""
    assert part.y is not None
    known = labelled(part.y)
    return part if known.all() else part.subset(known)


def family(name: str) -> str | None:
    """The family that the card of a set at hand names, without loading the set."""
    try:
        return None if is_path(name) else card(name).family
    except DicotError:
        return None


def _check_labels(name: str, part: str, windows: Windows) -> None:
    if windows.y is None or not labelled(windows.y).any():
        where = f"{part} cases of {name}" if part else f"cases of {name}"
        raise InputError(
            f"The {where} have no labels, and scoring needs them. Add them to the file: y, or y_train and y_test."
        )
