"""Making a large data set from its publisher's raw files: read, checked, and written whole or not at all."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.datasets.large import CARD, FAMILY, LargeSet, card_of
from dicot.core import __version__
from dicot.core.errors import InputError, MissingDataError, lookup
from dicot.core.progress import Bar
from dicot.core.storage import data_folders, write_atomic, writing
from dicot.data import Split, Windows
from dicot.data.cases import blocks, name_cases
from dicot.data.datasets.base import Card, Sizes, differences, fingerprint


@dataclass(frozen=True, eq=False)
class PreparedParts:
    """Both parts of a set, with y = 0 .. K-1 and a group for every window."""

    train: Windows
    test: Windows
    labels: tuple[str, ...]  # what class 0, 1, ... means: one map for both parts
    stride: int | None = None
    notes: tuple[str, ...] = ()  # what is odd in the raw files

    def __post_init__(self) -> None:
        if (shape := self.train.x.shape[1:]) != (other := self.test.x.shape[1:]):
            raise InputError(f"Both parts must have one shape (channels, time); got {shape} and {other}.")
        for part, windows in (("training", self.train), ("test", self.test)):
            if not len(windows):
                raise InputError(f"The {part} part has no windows. Check the raw files.")
            for noun, x in (("window", windows.x), ("segment", windows.segments)):
                found = () if x is None else ((rows.start, ~np.isfinite(part).all((1, 2))) for rows, part in blocks(x))
                if bad := [start + int(row) for start, broken in found for row in np.flatnonzero(broken)]:
                    raise InputError(f"The {part} part holds NaN or inf in {name_cases(bad, noun, f'{noun}s')}.")

    @property
    def sizes(self) -> Sizes:
        """Return its sizes, to compare them with the expected ones."""
        train = self.train
        return Sizes(len(train), len(self.test), train.n_channels, train.n_times, len(self.labels))


class Raw(NamedTuple):
    """How the raw files of a set are read."""

    read: Callable[..., PreparedParts]  # of the folder with raw files, and the settings by name
    settings: Mapping[str, tuple[str, ...]] = {}  # name -> allowed values, the default first
    shared_groups: bool = False  # True: the split is not by group, and the card says so


def prepare(
    dataset: LargeSet, reader: Raw, raw: Path, *, out: Path | None = None, settings: Mapping[str, Any] | None = None
) -> Card:
    """Read the folder `raw` and write `out`/large/NAME, by default in the first of data_folders().

    The card notes where the raw files give other sizes than the publisher's do.
    """
    for name, value in (settings or {}).items():
        if value not in (allowed := lookup(reader.settings, name, f"setting of {dataset.name}")):
            raise InputError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")
    usual = {name: allowed[0] for name, allowed in reader.settings.items()}
    chosen = usual | dict(settings or {})
    folder = (out or data_folders()[0]) / FAMILY / dataset.name
    with writing(folder):  # before hours are spent
        folder.parent.mkdir(parents=True, exist_ok=True)
    parts = reader.read(raw, **chosen)
    notes = list(parts.notes)
    if chosen == usual and dataset.sizes is not None and (wrong := differences(parts.sizes, dataset.sizes)):
        notes.append(f"The raw files give {', '.join(wrong)}. Some may be missing or of another version.")
    assert parts.train.group is not None and parts.test.group is not None
    if len(both := np.intersect1d(parts.train.group, parts.test.group)):
        if not reader.shared_groups:
            raise InputError(f"{dataset.name}: groups {both[:5].tolist()} are in both parts. Check the raw files.")
        notes.append("Training and test windows come from the same groups.")
    segment = None if parts.train.segments is None else parts.train.segments.shape[2]
    made = {"labels": parts.labels, "stride": parts.stride, "segment": segment, "notes": tuple(notes)}
    card = card_of(dataset, parts.sizes, **made, settings=chosen, version=__version__)
    return write_prepared(folder, parts, card)


def write_prepared(folder: Path, parts: PreparedParts, card: Card) -> Card:
    """Write the folder in one step, in place of what was there, and return the card with its fingerprint."""
    card = replace(card, fingerprint=fingerprint(Split(parts.train, parts.test)))
    fresh, old = (folder.with_name(f".{folder.name}.{what}") for what in ("new", "old"))
    for left in (fresh, old):  # by a run that was killed
        shutil.rmtree(left, ignore_errors=True)
    try:
        with writing(folder):
            fresh.mkdir(parents=True)
            for part, windows in (("train", parts.train), ("test", parts.test)):
                arrays = {"X": windows.x, "y": windows.y, "group": windows.group, "segments": windows.segments}
                for letter, array in arrays.items():
                    if array is None:
                        continue
                    with (fresh / f"{letter}_{part}.npy").open("wb") as file:
                        np.save(file, array, allow_pickle=False)
                        os.fsync(file.fileno())
            write_atomic(fresh / CARD, (json.dumps(asdict(card), indent=2) + "\n").encode())
            if folder.exists():
                os.replace(folder, old)
            os.replace(fresh, folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return card


def raw_files(raw: Path, pattern: str, what: str) -> list[Path]:
    """List the files below the raw folder that match the pattern, sorted by path."""
    files = sorted(path for path in raw.rglob(pattern) if path.is_file())
    if not files:
        raise MissingDataError(f"{raw} has no {pattern}. Expected {what}")
    return files


def each(files: Sequence[Path]) -> Iterator[Path]:
    """Go through files, and show which one is being read."""
    with Bar("prepare", len(files)) as bar:
        for done, path in enumerate(files):
            bar.update(done, path.name)
            yield path


def codes_of(values: Any, known: Sequence[Any]) -> Any:
    """Return the position of each value in `known`, which is sorted; refuse a value that is not in it."""
    if len(unknown := np.setdiff1d(values, known)):
        raise InputError(f"Unknown labels {unknown[:5].tolist()}; known are {list(known)}.")
    return np.searchsorted(known, values)
