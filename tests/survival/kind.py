"""A kind of file: how a sound one is made, damaged and read, and what counts as read right."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.survival.mutations import Mutation


class UnreadableError(Exception):
    """Raised by a judge: the file has no right reading, the library should have refused it."""


def nothing(folder: Path) -> str:
    """No complaint, whatever is there."""
    return ""


@dataclass(frozen=True)
class Kind:
    """One sound file or folder, and everything the run needs to know about it."""

    name: str
    make: Callable[[Path], None]  # writes the sound files into an empty folder
    ways: Mapping[str, tuple[Mutation, ...]]  # the files that may be damaged, by name, and how
    read: Callable[[Path], Any]  # as a user would; its error or its result is judged
    judge: Callable[[Path, Any, Any], str]  # (folder, result, result of the sound files) -> what is wrong, or ""
    seal: Callable[[Path], None] | None = None  # after the damage: puts checksums right, as a forger would
    refused: Callable[[Path], str] = nothing  # after an error of the library: what is wrong all the same, or ""
    only_reads: bool = True  # the damaged file must be left as it was
    heavy: bool = False  # takes so long to read that a run over all kinds gives it fewer files
