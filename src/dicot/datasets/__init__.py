"""Data sets by name or path: `load` one, see what is `available`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dicot.data.files import Content, read_parts, read_split
from dicot.datasets.archive import archive_card, archive_cards, is_archive_set, load_archive, missing_archive
from dicot.datasets.base import Card, Held, Split, fingerprint, pick_channels
from dicot.datasets.prepared import check_prepared, find_prepared, load_prepared, prepared_cards, read_card
from dicot.datasets.preparers import PREPARERS
from dicot.datasets.standins import STANDINS
from dicot.datasets.synthetic import CARD as SYNTHETIC
from dicot.datasets.synthetic import load_synthetic
from dicot.errors import InputError

__all__ = [
    "PREPARERS",
    "STANDINS",
    "Card",
    "Held",
    "Split",
    "available",
    "card",
    "check",
    "fingerprint",
    "is_path",
    "load",
    "load_archive",
    "load_parts",
    "load_synthetic",
    "on_hand",
]


def load(name_or_path: str | Path, **options: Any) -> Split:
    """A data set by its name, or a file by its path.

    `options` are the policies unequal, missing, scale and length, and for a name `channels`, the numbers of those to
    keep; a file also takes the options of read_split.
    """
    if is_path(name_or_path):
        return read_split(name_or_path, **options)
    name = str(name_or_path)
    channels = options.pop("channels", None)
    folder = find_prepared(name)
    if folder is not None:
        return load_prepared(folder, channels, **options)
    if name.lower() in PREPARERS:
        raise PREPARERS[name.lower()].missing()
    if name.lower() in STANDINS:
        return pick_channels(STANDINS[name.lower()].load(**options), channels)
    split = load_synthetic(**options) if name.lower() == SYNTHETIC.name else load_archive(name, **options)
    return pick_channels(split, channels)


def card(name: str) -> Card:
    """The facts about one data set at hand, without reading its values."""
    folder = find_prepared(name)
    if folder is not None:
        return read_card(folder)
    if name.lower() in PREPARERS:
        raise PREPARERS[name.lower()].missing()
    if name.lower() in STANDINS:
        standin = STANDINS[name.lower()]
        standin.path()  # an error where it is not here
        return standin.card
    found = SYNTHETIC if name.lower() == SYNTHETIC.name else archive_card(name)
    if found is None:
        raise missing_archive(name)
    return found


def check(name: str) -> Card:
    """The card with its fingerprint, after reading everything and finding the right sizes and values."""
    folder = find_prepared(name)
    if folder is not None:
        return check_prepared(folder)
    split = load(name, missing="zero")  # missing values are no damage
    return replace(card(name), fingerprint=fingerprint(split))


def is_path(name_or_path: str | Path) -> bool:
    """Whether this means a file: a Path, text with a suffix or a folder, or what is there and no data set's name."""
    path = Path(name_or_path)
    if isinstance(name_or_path, Path) or path.suffix or path.parent != Path("."):
        return True
    return path.exists() and not _is_name(name_or_path)


def _is_name(text: str) -> bool:
    known = (*PREPARERS, *STANDINS, SYNTHETIC.name)
    return text.lower() in known or find_prepared(text) is not None or is_archive_set(text)


def load_parts(name_or_path: str | Path, **columns: Any) -> dict[str, Content]:
    """The cases of a data set as they are, by part; for a model that brings its own policies."""
    if is_path(name_or_path):
        return read_parts(name_or_path, **columns)
    if columns:
        raise InputError(f"{name_or_path!r} is a data set by name; {', '.join(columns)} are options of files.")
    split = load(name_or_path)
    parts = {"train": split.train, "test": split.test}
    return {part: Content(w.x, w.y, w.group) for part, w in parts.items() if w is not None}


def on_hand() -> Held:
    """What is on this machine; a set that cannot be read is among the damaged ones and stops nothing."""
    archives, prepared = archive_cards(), prepared_cards()
    standins = [standin.card for standin in STANDINS.values() if standin.is_here()]
    cards = [*archives.cards, *prepared.cards, *standins, SYNTHETIC]
    return Held(cards, archives.damaged | prepared.damaged)


def available() -> list[Card]:
    """What `load` can give right now without a download; damaged sets are left out."""
    return on_hand().cards
