"""A prepared data set: one folder of plain arrays and a card, written whole or not at all, read by memory map."""

import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dicot.datasets.base import Card, fingerprint
from dicot.errors import InputError
from dicot.windows import Split, Windows
from dicot.windows.policies import Array, cases_where, name_cases

CARD = "card.json"
_PARTS = ("train", "test")


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a preparer hands over: both parts with y = 0 .. K-1 and a group for every window."""

    train: Windows
    test: Windows
    labels: tuple[str, ...]  # what class 0, 1, ... means: one map for both parts
    stride: int | None = None
    notes: tuple[str, ...] = ()  # what was odd in the raw files

    def __post_init__(self) -> None:
        for part, windows in zip(_PARTS, (self.train, self.test), strict=True):
            _check_part(part, windows, len(self.labels))
        shapes = [(w.n_channels, w.n_times) for w in (self.train, self.test)]
        if shapes[0] != shapes[1]:
            raise InputError(f"Both parts must have one shape (channels, time); got {shapes[0]} and {shapes[1]}.")

    @property
    def split(self) -> Split:
        return Split(self.train, self.test, "large", self.train.name)


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


def write_prepared(folder: Path, prepared: Prepared, card: Card) -> Card:
    """The folder with everything in it, in one step, in place of what was there; the card with its fingerprint."""
    card = replace(card, fingerprint=fingerprint(prepared.split))
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        for part, windows in zip(_PARTS, (prepared.train, prepared.test), strict=True):
            for letter, array in _arrays(windows).items():
                np.save(fresh / f"{letter}_{part}.npy", array, allow_pickle=False)
        (fresh / CARD).write_text(json.dumps(asdict(card), indent=2) + "\n", encoding="utf-8")
        fresh.chmod(0o755)  # mkdtemp makes it private
        if folder.exists():
            old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old."))
            os.replace(folder, old / folder.name)
            os.replace(fresh, folder)
            shutil.rmtree(old)
        else:
            os.replace(fresh, folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return card


def _arrays(windows: Windows) -> dict[str, Array]:
    assert windows.y is not None and windows.group is not None
    return {"X": windows.x, "y": windows.y.astype(np.int64), "group": windows.group}


def read_card(folder: Path) -> Card:
    """The card of a prepared folder."""
    path = folder / CARD
    try:
        held: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Card(**{name: tuple(value) if isinstance(value, list) else value for name, value in held.items()})
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path} cannot be read as a card ({error}). Prepare the data set again.") from error


def load_prepared(folder: Path) -> Split:
    """Both parts, memory-mapped; sizes and types are held against the card, values are not read."""
    card = read_card(folder)
    train, test = (_load_part(folder, part, card) for part in _PARTS)
    return Split(train, test, card.family, card.name)


def _load_part(folder: Path, part: str, card: Card) -> Windows:
    n = card.n_train if part == "train" else card.n_test
    wanted = {"X": (n, card.n_channels, card.n_times), "y": (n,), "group": (n,)}
    kinds = {"X": "f", "y": "i", "group": "iU"}
    held = {}
    for letter, shape in wanted.items():
        path = folder / f"{letter}_{part}.npy"
        try:
            array = np.load(path, mmap_mode="r" if letter == "X" else None, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{path} cannot be read ({error}). Prepare {card.name} again.") from error
        if array.shape != shape or array.dtype.kind not in kinds[letter]:
            raise InputError(
                f"{path}: the card says {shape}; the file holds {array.shape} of {array.dtype}. "
                f"Prepare {card.name} again."
            )
        held[letter] = array
    return Windows(held["X"], held["y"], held["group"], card.name)


def check_prepared(folder: Path) -> Card:
    """The card, after reading all values and finding the fingerprint on it; otherwise an InputError."""
    card = read_card(folder)
    found = fingerprint(load_prepared(folder))
    if found != card.fingerprint:
        raise InputError(
            f"{folder}: the card's fingerprint is {card.fingerprint}, that of the arrays {found}. "
            f"The files were changed or damaged; prepare {card.name} again."
        )
    return card
