"""What the end of a file's name says, and the name without it."""

from pathlib import PurePath


def suffix_of(path: PurePath) -> str:
    """Return the end of a file's name that says its kind, in small letters."""
    return ".csv.gz" if path.name.lower().endswith(".csv.gz") else path.suffix.lower()


def stem_of(path: PurePath) -> str:
    """Return a file's name without the end that says its kind."""
    return path.name[: len(path.name) - len(suffix_of(path))]
