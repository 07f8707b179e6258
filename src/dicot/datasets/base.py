"""What a data set is: its Card (facts that cost nothing to read) and its Split (the cases)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from dicot.data import Split, Windows
from dicot.errors import InputError

__all__ = ["Card", "Held", "Sizes", "Split", "differences", "fingerprint", "pick_channels"]


class Sizes(NamedTuple):
    """Published sizes to hold a data set against; None where they are not known, or lengths differ."""

    n_train: int | None = None
    n_test: int | None = None
    n_channels: int | None = None
    n_times: int | None = None
    n_classes: int | None = None


def differences(found: Sizes, wanted: Sizes) -> list[str]:
    """What is not as it should be, in words: `2 training cases instead of 28`."""
    words = ("training cases", "test cases", "channels", "time steps", "classes")
    pairs = zip(found, wanted, words, strict=True)
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
    transfer_channels: tuple[int, ...] = ()  # the three that one sensor is known by, in data sets that have it
    paper_transfer_channels: tuple[int, ...] = ()  # those of the authors' code where they are others
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the preparer
    notes: tuple[str, ...] = ()  # what was found in the raw files that a reader of results should know
    version: str = ""  # of dicot, when it was prepared


class Held(NamedTuple):
    """The data sets in some place: the cards of those that can be read, and why the others cannot, by name."""

    cards: list[Card]
    damaged: dict[str, str]


def fingerprint(split: Split) -> str:
    """16 hex digits that change with any value, label or group of either part."""
    digest = hashlib.sha256()
    for part in (split.train, split.test):
        if part is None:
            digest.update(b"no test part")
            continue
        digest.update(repr(part.x.shape).encode())
        digest.update(np.ascontiguousarray(part.x).data)
        for values in (part.y, part.group):  # as text: whole numbers of another size are the same labels
            digest.update(b"none" if values is None else "\n".join(map(str, values.tolist())).encode())
    return digest.hexdigest()[:16]


def pick_channels(split: Split, channels: Sequence[int] | None) -> Split:
    """The split with these channels only, counted from 0, in this order; None keeps all."""
    if channels is None:
        return split
    known = range(split.train.n_channels)
    if not channels or any(isinstance(c, bool) or c not in known for c in channels):
        raise InputError(f"channels must be numbers from 0 to {known.stop - 1} for {split.name}; got {list(channels)}.")

    def pick(part: Windows) -> Windows:
        return replace(part, x=np.ascontiguousarray(part.x[:, list(channels)]))

    return replace(split, train=pick(split.train), test=None if split.test is None else pick(split.test))
