"""What a data set is: its Card (facts that cost nothing to read) and its Split (the cases)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dicot.windows import Split

__all__ = ["Card", "Split", "fingerprint"]


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


def fingerprint(split: Split) -> str:
    """16 hex digits that change with any value, label or group of either part."""
    digest = hashlib.sha256()
    for part in (split.train, split.test):
        for array in (None, None, None) if part is None else (part.x, part.y, part.group):
            if array is None:
                digest.update(b"none")
                continue
            # Text of another width and whole numbers of another size mean the same labels.
            sound = np.ascontiguousarray(array)
            plain = sound if sound.dtype == np.float32 else np.char.encode(sound.astype(str), "utf-8")
            digest.update(f"{plain.dtype.str}{plain.shape}".encode())
            digest.update(plain.view(np.uint8).data)
    return digest.hexdigest()[:16]
