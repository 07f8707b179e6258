"""A prepared data set on disk: a folder of plain arrays and a card, written whole or not at all, read by memory map."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack, final

import numpy as np

from dicot.core.errors import InputError, OutputError
from dicot.core.storage import data_folders, write_atomic, writing
from dicot.data import Split, Windows
from dicot.data.datasets.base import Card, DataSet, fingerprint, shaped
from dicot.data.npyfile import map_npy, read_npy
from dicot.data.policies import Array, Policies, cases_where, name_cases

FAMILY = "large"
CARD = "card.json"
HOW = "as the data set was prepared"
_PARTS = ("train", "test")


@dataclass(frozen=True, eq=False)
class PreparedParts:
    """Both parts of a set, with y = 0 .. K-1 and a group for every window."""

    train: Windows
    test: Windows
    labels: tuple[str, ...]  # what class 0, 1, ... means: one map for both parts
    stride: int | None = None
    notes: tuple[str, ...] = ()  # what is odd in the raw files

    def __post_init__(self) -> None:
        for part, windows in zip(_PARTS, (self.train, self.test), strict=True):
            _check_part(part, windows, len(self.labels))
        shapes = [(w.n_channels, w.n_times) for w in (self.train, self.test)]
        if shapes[0] != shapes[1]:
            raise InputError(f"Both parts must have one shape (channels, time); got {shapes[0]} and {shapes[1]}.")

    @property
    def split(self) -> Split:
        """Return both parts as a Split."""
        return Split(self.train, self.test, FAMILY, self.train.name, HOW)


def _check_part(part: str, windows: Windows, n_classes: int) -> None:
    if windows.x.dtype != np.float32 or windows.x.ndim != 3 or not len(windows):
        raise InputError(f"The {part} part must be float32 (N, C, T) with N > 0; got {windows.x.shape}.")
    if windows.y is None or windows.group is None:
        raise InputError(f"Every window of the {part} part needs a label and a group.")
    if windows.y.dtype.kind != "i" or not (windows.y.min() >= 0 and windows.y.max() < n_classes):
        raise InputError(f"The labels of the {part} part must be whole numbers from 0 to {n_classes - 1}.")
    bad = cases_where(lambda x: ~np.isfinite(x), windows.x)
    if len(bad):
        raise InputError(f"The {part} part holds NaN or inf in {name_cases(bad, 'window', 'windows')}.")
    if windows.segments is not None:
        _check_segments(part, windows.segments)


def _check_segments(part: str, segments: Array) -> None:
    if part != "train" or segments.dtype != np.float32:
        raise InputError(f"Only training windows are drawn from segments, of float32; the {part} part has other ones.")
    bad = cases_where(lambda x: ~np.isfinite(x), segments)
    if len(bad):
        raise InputError(f"Segments hold NaN or inf in {name_cases(bad, 'segment', 'segments')}.")


def write_prepared(folder: Path, prepared: PreparedParts, card: Card) -> Card:
    """Write the folder in one step, in place of what was there, and return the card with its fingerprint."""
    card = replace(card, fingerprint=fingerprint(prepared.split))
    fresh, old = (folder.with_name(f".{folder.name}.{what}") for what in ("new", "old"))
    for left in (fresh, old):  # by a run that was killed
        shutil.rmtree(left, ignore_errors=True)
    try:
        with writing(folder):
            _write(fresh, prepared, card)
            if folder.exists():
                os.replace(folder, old)
            os.replace(fresh, folder)
    except OutputError:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)
    return card


def _write(folder: Path, prepared: PreparedParts, card: Card) -> None:
    folder.mkdir(parents=True)
    for part, windows in zip(_PARTS, (prepared.train, prepared.test), strict=True):
        assert windows.y is not None and windows.group is not None
        arrays: dict[str, Array] = {"X": windows.x, "y": windows.y.astype(np.int64), "group": windows.group}
        if windows.segments is not None:
            arrays["segments"] = windows.segments
        for letter, array in arrays.items():
            with (folder / f"{letter}_{part}.npy").open("wb") as file:
                np.save(file, array, allow_pickle=False)
                os.fsync(file.fileno())
    write_atomic(folder / CARD, (json.dumps(asdict(card), indent=2) + "\n").encode())


def read_card(folder: Path) -> Card:
    """Read the card of a prepared folder."""
    path = folder / CARD
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        facts: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
        card = Card(**facts)
        if card.name != folder.name:  # it becomes part of file names
            raise ValueError(f"it belongs to {str(card.name)[:80]!r}")
        sizes = [card.n_train, card.n_test, card.n_channels, card.n_times, card.n_classes]
        sizes += [] if card.segment is None else [card.segment]
        if any(type(size) is not int or size < 1 for size in sizes):
            raise ValueError(f"sizes must be whole numbers of at least 1; got {tuple(sizes)}")
        return card
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as a card ({error}). Prepare the data set again.") from error


def find_prepared(name: str) -> Path | None:
    """Return the folder of a prepared set on this machine."""
    return next((folder for folder in _folders() if folder.name == name.lower()), None)


def _folders() -> Iterator[Path]:
    for root in data_folders():
        for path in sorted((root / FAMILY).glob(f"*/{CARD}")):
            if path.parent.name[0] != ".":
                yield path.parent


@final
@dataclass(frozen=True)
class PreparedFolder(DataSet):
    """A prepared set that only its folder knows about: prepared elsewhere, or by code that is not registered here."""

    folder: Path
    name: str = field(init=False)
    family: str | None = FAMILY

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.folder.name)

    def is_here(self) -> bool:
        return (self.folder / CARD).is_file()

    def card(self) -> Card:
        return read_card(self.folder)

    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        return load_prepared(self.folder, channels, **policies)

    def check(self) -> Card:
        return check_prepared(self.folder)


def prepared_folders() -> Iterator[PreparedFolder]:
    """Yield every prepared set on this machine."""
    return (PreparedFolder(folder) for folder in _folders())


def load_prepared(folder: Path, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
    """Map both parts into memory, after comparing sizes and types with the card.

    Values are read only where `channels` or a policy ask for it: scale="dataset" is the training part's z-score (D-51).
    """
    card = read_card(folder)
    train, test = (_load_part(folder, part, card) for part in _PARTS)
    return shaped(Split(train, test, card.family, card.name, HOW), channels, **policies)


def _load_part(folder: Path, part: str, card: Card) -> Windows:
    n = card.n_train if part == "train" else card.n_test
    wanted = {"X": (n, card.n_channels, card.n_times), "y": (n,), "group": (n,)}
    kinds = {"X": "f", "y": "i", "group": "iU", "segments": "f"}
    if part == "train" and card.segment is not None:
        wanted["segments"] = (n, card.n_channels, card.segment)
    arrays = {}
    for letter, shape in wanted.items():
        path = folder / f"{letter}_{part}.npy"
        try:
            array = map_npy(path) if letter in ("X", "segments") else read_npy(path)
        except InputError as error:
            raise InputError(f"{error} Prepare {card.name} again.") from error
        if array.shape != shape or array.dtype.kind not in kinds[letter]:
            raise InputError(
                f"{path}: the card says {shape}; the file holds {array.shape} of {array.dtype}. "
                f"Prepare {card.name} again."
            )
        arrays[letter] = array
    if n and card.n_classes is not None and not (arrays["y"].min() >= 0 and arrays["y"].max() < card.n_classes):
        raise InputError(
            f"{folder / f'y_{part}.npy'}: labels must be 0 to {card.n_classes - 1}; got {arrays['y'].min()} to "
            f"{arrays['y'].max()}. Prepare {card.name} again."
        )
    return Windows(arrays["X"], arrays["y"], arrays["group"], card.name, arrays.get("segments"))


def check_prepared(folder: Path) -> Card:
    """Return the card if the values have the fingerprint on it; otherwise raise an InputError."""
    card = read_card(folder)
    actual = fingerprint(load_prepared(folder))
    if actual != card.fingerprint:
        raise InputError(
            f"{folder}: the card's fingerprint is {card.fingerprint}, that of the arrays {actual}. "
            f"The files were changed or damaged; prepare {card.name} again."
        )
    return card
