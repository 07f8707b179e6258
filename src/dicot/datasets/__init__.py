"""Data sets by name or path: `load` one, see what is `available`."""

from pathlib import Path
from typing import Any

from dicot.datasets.archive import archive_cards, load_archive
from dicot.datasets.base import Card, Split
from dicot.datasets.synthetic import CARD as SYNTHETIC
from dicot.datasets.synthetic import load_synthetic
from dicot.errors import InputError
from dicot.windows.files import Content, read_parts, read_split

__all__ = ["Card", "Split", "available", "is_path", "load", "load_archive", "load_parts", "load_synthetic"]


def load(name_or_path: str | Path, **options: Any) -> Split:
    """A data set by its name, or a file by its path.

    `options` are the policies unequal, missing, scale and length; a file also takes those of read_split.
    """
    text = str(name_or_path)
    if is_path(name_or_path):
        return read_split(name_or_path, **options)
    if text.lower() == SYNTHETIC.name:
        return load_synthetic(**options)
    return load_archive(text, **options)


def is_path(name_or_path: str | Path) -> bool:
    """Whether this means a file: a Path, or text with a suffix or a folder."""
    text = str(name_or_path)
    return isinstance(name_or_path, Path) or Path(text).suffix != "" or Path(text).parent != Path(".")


def load_parts(name_or_path: str | Path, **columns: Any) -> dict[str, Content]:
    """The cases of a data set as they are, by part; for a model that brings its own policies."""
    if is_path(name_or_path):
        return read_parts(name_or_path, **columns)
    if columns:
        raise InputError(f"{name_or_path!r} is a data set by name; {', '.join(columns)} are options of files.")
    split = load(name_or_path)
    parts = {"train": split.train, "test": split.test}
    return {part: Content(w.x, w.y, w.group) for part, w in parts.items() if w is not None}


def available() -> list[Card]:
    """What `load` can give right now without a download."""
    return [*archive_cards(), SYNTHETIC]
