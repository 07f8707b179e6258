"""What a data set is: an object with a name, a Card (facts that cost nothing to read) and a Split (its cases)."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Split, Windows
from dicot.data.policies import Policies
from dicot.data.splits import with_policies

__all__ = ["Card", "DataSet", "OnHand", "Sizes", "Split", "differences", "fingerprint", "pick_channels", "shaped"]


class Sizes(NamedTuple):
    """Published sizes to compare a data set with; None where they are unknown or lengths differ."""

    n_train: int | None = None
    n_test: int | None = None
    n_channels: int | None = None
    n_times: int | None = None
    n_classes: int | None = None


def differences(actual: Sizes, expected: Sizes) -> list[str]:
    """Name every size that is not as expected: `2 training cases instead of 28`."""
    words = ("training cases", "test cases", "channels", "time steps", "classes")
    pairs = zip(actual, expected, words, strict=True)
    return [f"{here} {word} instead of {there}" for here, there, word in pairs if there is not None and here != there]


@dataclass(frozen=True)
class Card:
    """The facts about one data set; None or empty where they cannot be told without reading all of it."""

    name: str
    family: str | None  # "ucr", "uea", "large", "synthetic"
    n_train: int
    n_test: int
    n_channels: int
    n_times: int | None
    n_classes: int
    source: str = ""
    licence: str = ""
    citation: str = ""
    fingerprint: str = ""  # of all values, labels and groups; see the function below
    labels: tuple[str, ...] = ()  # what class 0, 1, ... means
    stride: int | None = None  # of windows cut out of recordings; their length is n_times
    segment: int | None = None  # time steps of the segment that training draws a window of each case from
    transfer_channels: tuple[int, ...] = ()  # the three of the sensor that several data sets share
    paper_transfer_channels: tuple[int, ...] = ()  # those of the authors' code where they differ
    settings: Mapping[str, Any] = field(default_factory=dict)  # it was prepared with
    notes: tuple[str, ...] = ()  # what a reader of results should know about the raw files
    version: str = ""  # of dicot, when it was prepared


class OnHand(NamedTuple):
    """The data sets on this machine: the cards of those that can be read, and why the others cannot, by name."""

    cards: list[Card]
    damaged: dict[str, str]


class DataSet(ABC):
    """A data set by name. Subclasses are final; `DATASETS` holds one object per set."""

    name: str  # in its usual spelling
    family: str | None = None  # whose recipe it is trained by: "ucr", "uea", "large", or None
    sizes: Sizes | None = None  # wherever it is at hand; None where only its files can tell
    transfer_channels: tuple[int, ...] = ()  # the three of the sensor that several data sets share
    paper_sizes: Sizes | None = None  # what the Di-COT paper states about it
    benchmark_policies: Mapping[str, Any] = {}  # what a benchmark loads it with
    paper_subset_seed: int | None = None  # of the authors' draw of labelled cases, where theirs is another than usual
    stands_in_for: str = ""  # the set of the paper in whose place it can be used
    class_sizes: tuple[int, ...] = ()  # labelled training cases of each class, where that is known without its files

    @abstractmethod
    def is_here(self) -> bool:
        """Tell whether the set is on this machine."""

    @abstractmethod
    def card(self) -> Card:
        """Return its facts; a MissingDataError says how to get a set that is not here."""

    @abstractmethod
    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        """Return the cases; `channels` are the numbers of those to keep. `shaped` does both for a whole split."""

    def check(self) -> Card:
        """Read everything and return the card with its fingerprint; an InputError says what is wrong."""
        split = self.load(missing="zero")  # missing values are not damage
        return replace(self.card(), fingerprint=fingerprint(split))


def fingerprint(split: Split) -> str:
    """Return 16 hex digits that change with any value, label or group of either part."""
    digest = hashlib.sha256()
    for part in (split.train, split.test):
        if part is None:
            digest.update(b"no test part")
            continue
        digest.update(repr(part.x.shape).encode())
        digest.update(np.ascontiguousarray(part.x).data)
        if part.segments is not None:
            digest.update(f"segments {part.segments.shape}".encode())
            digest.update(np.ascontiguousarray(part.segments).data)
        for values in (part.y, part.group):  # as text: whole numbers of another size are the same labels
            digest.update(b"none" if values is None else "\n".join(map(str, values.tolist())).encode())
    return digest.hexdigest()[:16]


def pick_channels(split: Split, channels: Sequence[int] | None) -> Split:
    """Return the split with these channels only, counted from 0, in this order; None keeps all."""
    if channels is None:
        return split
    known = range(split.train.n_channels)
    if not channels or any(isinstance(c, bool) or c not in known for c in channels):
        raise InputError(f"channels must be numbers from 0 to {known.stop - 1} for {split.name}; got {list(channels)}.")

    def pick(part: Windows) -> Windows:
        segments = None if part.segments is None else np.ascontiguousarray(part.segments[:, list(channels)])
        return replace(part, x=np.ascontiguousarray(part.x[:, list(channels)]), segments=segments)

    return replace(split, train=pick(split.train), test=None if split.test is None else pick(split.test))


def shaped(split: Split, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
    """Apply what a user asked `load` for; values are read only where `channels` or a policy need them."""
    return with_policies(pick_channels(split, channels), **policies)
