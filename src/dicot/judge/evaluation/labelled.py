"""Data sets that can be scored on: a training and a test part, both with labels."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Split, Windows
from dicot.data.collection import labelled_cases
from dicot.data.datasets import benchmark_policies, fingerprint, load
from dicot.data.datasets.base import pick_channels
from dicot.data.labels import labelled
from dicot.data.splits import hold_out, with_policies
from dicot.judge.evaluation.jobs import JobData

IN_MEMORY = 2  # data sets at a time: a source and a target
HELD_OUT = 0.3  # of the cases, where there is no test part: the share that `dicot evaluate` holds out

Data = Split | str | Path | tuple[Windows, Windows]


@dataclass(frozen=True, eq=False)
class Loaded:
    """A training and a test part with labels, the fingerprint of both, and what was done to get there."""

    split: Split
    fingerprint: str
    note: str = ""


class Shelf:
    """The data sets of a process: those given, which stay, and those that were loaded last."""

    def __init__(self, data_sets: Mapping[str, Loaded] | None = None) -> None:
        self._data_sets = data_sets or {}
        self._load = lru_cache(IN_MEMORY)(load_labelled)

    def get(self, wanted: JobData) -> Loaded:
        loaded = self._data_sets.get(wanted.name) or self._load(wanted.name)
        split = pick_channels(loaded.split, wanted.channels)
        split = split if wanted.scale is None else with_policies(split, scale=wanted.scale)
        return replace(loaded, split=replace(split, family=wanted.family or split.family))


def load_labelled(name: str) -> Loaded:
    """Load a data set that can be scored on, or raise an InputError; the archive's missing values are interpolated.

    Of a file without a test part some cases are held out, the same ones every time: whole groups where there are any.
    """
    split = load(name, **benchmark_policies(name))
    note = ""
    if split.test is None:
        split = replace(hold_out(split.train, HELD_OUT), family=split.family, name=split.name)
        assert split.test is not None
        note = (
            f"{name} has no test part: {len(split.test)} of {len(split.train) + len(split.test)} cases are held out, "
            f"{'whole groups' if split.test.group is not None else 'a share of each class'}, as by dicot evaluate"
        )
    check_scorable(split)
    if len(np.unique(np.asarray(labelled_cases(split.train).y))) < 2:
        raise InputError(f"The training cases of {name} have one class, and scoring needs two or more.")
    return Loaded(split, fingerprint(split), note)


def check_scorable(split: Split) -> None:
    """Refuse a split unless both parts are there and have labels."""
    name = split.name or "the data"
    if split.test is None:
        raise InputError(f"There is no test part in {name}. Give one, or hold cases out of the training part.")
    for which, part in (("training", split.train), ("test", split.test)):
        if part.y is None or not labelled(part.y).any():
            raise InputError(
                f"The {which} cases of {name} have no labels, and scoring needs them. Name a label column or pass y."
            )


def loaded_data(data: Data) -> tuple[str, Loaded]:
    """The name of the data, and the data as a split that can be scored."""
    if isinstance(data, str | Path):
        return str(data), load_labelled(str(data))
    if isinstance(data, tuple):
        train, test = data
        data = Split(train, test, name=train.name)
    check_scorable(data)
    return data.name or "data", Loaded(data, fingerprint(data))
