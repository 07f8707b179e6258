"""Data sets for jobs: loaded once for neighbouring units, with a fingerprint that says which data a name stood for."""

import hashlib
from dataclasses import dataclass

import numpy as np

from dicot.bench.jobs import DataSet
from dicot.datasets import available, is_path, load
from dicot.errors import InputError
from dicot.windows import Split, Windows

KEPT = 2  # data sets in memory at a time: a source and a target


@dataclass(frozen=True, eq=False)
class Loaded:
    """A labelled training and test part, and the fingerprint of both."""

    split: Split
    fingerprint: str


class Shelf:
    """The data sets loaded last; one per process."""

    def __init__(self) -> None:
        self._held: dict[str, Loaded] = {}

    def get(self, wanted: DataSet) -> Loaded:
        loaded = self._held.pop(wanted.name, None) or load_labelled(wanted.name)
        self._held[wanted.name] = loaded
        for name in list(self._held)[:-KEPT]:
            del self._held[name]
        return loaded if wanted.channels is None else Loaded(_channels(loaded.split, wanted), loaded.fingerprint)


def load_labelled(name: str) -> Loaded:
    """The data set, or an InputError where it cannot be scored on."""
    split = load(name)
    if split.test is None:
        raise InputError(f"{name} has no test part. A benchmark needs a fixed one.")
    for part in (split.train, split.test):
        if part.y is None:
            raise InputError(f"{name} has no labels, and scoring needs them.")
    return Loaded(split, fingerprint(split))


def fingerprint(split: Split) -> str:
    """16 hex digits that change with any value or label of either part."""
    assert split.test is not None
    parts = [(part.fingerprint(), part.label_fingerprint()) for part in (split.train, split.test)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def missing_sets(names: set[str]) -> list[str]:
    """Those that are not on this machine."""
    here = {card.name for card in available()}
    return sorted(name for name in names if name not in here and not is_path(name))


def _channels(split: Split, wanted: DataSet) -> Split:
    assert wanted.channels is not None and split.test is not None
    if max(wanted.channels) >= split.train.n_channels:
        raise InputError(
            f"{wanted.name} has {split.train.n_channels} channel(s); the job asks for {list(wanted.channels)}, from 0."
        )
    train, test = (_only(part, wanted.channels) for part in (split.train, split.test))
    return Split(train, test, split.family, split.name)


def _only(part: Windows, channels: tuple[int, ...]) -> Windows:
    return Windows(np.ascontiguousarray(part.x[:, list(channels)]), part.y, part.group, part.name)
