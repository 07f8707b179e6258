"""What a reader of recordings may leave out, and what it has left out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, final

from dicot.core.errors import InputError, listed

T = TypeVar("T")


@final
@dataclass(frozen=True)
class BadFile:
    """A file of recordings that cannot be used."""

    name: str  # of its recording
    file: str
    error: InputError

    @property
    def reason(self) -> str:
        """Say what is wrong without naming the file, so that equal reasons of several files read alike."""
        text = str(self.error).replace(f": '{self.file}'", "")
        return text.removeprefix(self.file).removeprefix(":").strip()


@final
class Allowance:
    """Say what a call may leave out, and keep what it has left out.

    By default nothing may be: the first file that cannot be used is an error, and so are recordings of which more than
    a fifth lies in no window. With `bad_files` a file that cannot be used is left out and kept in `files`. With
    `partial` any share may lie in no window; recordings without one are kept in `recordings`.
    """

    def __init__(self, *, bad_files: bool = False, partial: bool = False) -> None:
        self.bad_files = bad_files
        self.partial = partial
        self.files: dict[str, BadFile] = {}  # by the name of the recording
        self.recordings: list[str] = []  # without a window, where that was allowed
        self.rows = 0  # in no window, where more than a fifth was allowed to be

    def __bool__(self) -> bool:
        """Tell whether anything was left out."""
        return bool(self.files or self.recordings or self.rows)

    def attempt(self, name: str, file: str | Path, use: Callable[[], T]) -> T | None:
        """Return what becomes of a file; None where it cannot be used and may be left out."""
        try:
            return use()
        except InputError as error:
            if not self.bad_files:
                raise
            self.refuse(name, file, error)
            return None

    def refuse(self, name: str, file: str | Path, error: InputError) -> None:
        """Leave a file out."""
        self.files[name] = BadFile(name, str(file), error)

    def sentences(self) -> Iterator[str]:
        """Name the files that were left out; those with the same reason share a sentence."""
        files_by_reason: dict[str, list[str]] = {}
        for bad in self.files.values():
            files_by_reason.setdefault(bad.reason, []).append(bad.file)
        for reason, files in files_by_reason.items():
            which = files[0] if len(files) == 1 else f"{len(files)} files ({listed(files)})"
            yield f"Left out {which}: {reason}"

    def refuse_nothing_left(self, n_files: int) -> None:
        """Raise the error of the first file where none of them all can be used."""
        if not self.files or len(self.files) < n_files:
            return
        first = next(iter(self.files.values())).error
        if n_files == 1:
            raise first
        raise InputError(f"None of the {n_files} files can be used. The first: {first}") from first
