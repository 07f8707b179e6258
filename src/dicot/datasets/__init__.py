"""Data sets by name or path: `load` one, see what is `available`."""

from pathlib import Path
from typing import Any

from dicot.datasets.archive import archive_cards, load_archive
from dicot.datasets.base import Card, Split
from dicot.datasets.synthetic import CARD as SYNTHETIC
from dicot.datasets.synthetic import load_synthetic
from dicot.files import read_split

__all__ = ["Card", "Split", "available", "load", "load_archive", "load_synthetic"]


def load(name_or_path: str | Path, **options: Any) -> Split:
    """A data set by its name, or a file by its path.

    `options` are the policies unequal, missing, scale and length; a file also takes those of dicot.files.read_split.
    """
    text = str(name_or_path)
    if isinstance(name_or_path, Path) or Path(text).suffix or Path(text).parent != Path("."):
        return read_split(name_or_path, **options)
    if text.lower() == SYNTHETIC.name:
        return load_synthetic(**options)
    return load_archive(text, **options)


def available() -> list[Card]:
    """What `load` can give right now without a download."""
    return [*archive_cards(), SYNTHETIC]
