"""Data sets for jobs: loaded once for neighbouring units, with a fingerprint that says which data a name stood for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dicot.core.errors import DicotError, InputError
from dicot.data import Split, Windows
from dicot.data.collection import labelled_cases
from dicot.data.datasets import benchmark_policies, card, fingerprint, is_path, load
from dicot.data.datasets.base import pick_channels
from dicot.data.labels import labelled
from dicot.data.splits import hold_out, with_policies
from dicot.judge.evaluation.jobs import JobData

IN_MEMORY = 2  # data sets at a time: a source and a target
HELD_OUT = 0.3  # of the cases, where there is no test part: the share that `dicot evaluate` holds out


@dataclass(frozen=True, eq=False)
class Loaded:
    """A training and a test part with labels, the fingerprint of both, and what was done to get there."""

    split: Split
    fingerprint: str
    note: str = ""


class Shelf:
    """The data sets of a process: those given, which stay, and those that were loaded last."""

    def __init__(self, given: Mapping[str, Loaded] | None = None) -> None:
        self._given, self._load = given or {}, lru_cache(IN_MEMORY)(load_labelled)

    def get(self, wanted: JobData) -> Loaded:
        loaded = self._given.get(wanted.name) or self._load(wanted.name)
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
        _check_labels(split.train, f"cases of {name}")
        split = replace(hold_out(split.train, HELD_OUT), family=split.family, name=split.name)
        assert split.test is not None
        note = (
            f"{name} has no test part: {len(split.test)} of {len(split.train) + len(split.test)} cases are held out, "
            f"{'whole groups' if split.test.group is not None else 'a share of each class'}, as by dicot evaluate"
        )
    check_scorable(split)
    if len(np.unique(labelled_cases(split.train).y)) < 2:
        raise InputError(f"The training cases of {name} have one class, and scoring needs two or more.")
    return Loaded(split, fingerprint(split), note)


def family(wanted: JobData) -> str | None:
    """The family of a file where it was given one, else that on a data set's card; None for sets that are not here."""
    try:
        return wanted.family if is_path(wanted.name) else card(wanted.name).family
    except DicotError:
        return None


def check_scorable(split: Split) -> None:
    """Refuse a split unless both parts are there and have labels."""
    name = split.name or "the data"
    if split.test is None:
        raise InputError(f"There is no test part in {name}. Give one, or hold cases out of the training part.")
    _check_labels(split.train, f"training cases of {name}")
    _check_labels(split.test, f"test cases of {name}")


def _check_labels(windows: Windows, what: str) -> None:
    """Refuse cases without any label."""
    if windows.y is None or not labelled(windows.y).any():
        raise InputError(f"The {what} have no labels, and scoring needs them. Name a label column or pass y.")
