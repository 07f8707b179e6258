"""Folders of recordings: which files there are, how their recordings are called, and what they hold."""

import glob
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, TypeVar

from dicot.core.errors import InputError
from dicot.data.naming import listed
from dicot.data.readers import known_suffixes, read_file, stem_of, suffix_of
from dicot.data.reading import Reading, Source, before_pattern
from dicot.data.recording import Recording


def find_recordings(source: Source) -> list[Path]:
    """List the files of recordings of a folder and those below it, a pattern such as "data/*.csv", a file, or a list.

    In folders and by patterns only files with a known suffix count, and none that is hidden. Sorted, each once.
    """
    return [file for file, _ in below_named(source)]


def named_recordings(source: Source) -> dict[str, Path]:
    """Find the same files, each with the name of its recording, which does not depend on what other files there are.

    It is the path below the folder that was named, or below that where a pattern begins, without suffix and with "/" on
    every system. A file that was named itself has its own name alone. Two files of one name are refused.
    """
    return by_name(below_named(source))


def below_named(source: Source) -> list[tuple[Path, PurePath]]:
    """Return files, each with its path below what was named."""
    sources = [source] if isinstance(source, str | Path) else list(source)
    found = [file for one in sources for file in _files_of(one)]
    unique = {path.resolve(): (path, below) for path, below in reversed(found)}
    if not unique:
        raise InputError(f"{source!r} names no recording. Pass a folder, a pattern, or files ({_known()}).")
    return sorted(unique.values(), key=lambda one: one[0].as_posix())


AnyPath = TypeVar("AnyPath", Path, str)


def by_name(files: Iterable[tuple[AnyPath, PurePath]]) -> dict[str, AnyPath]:
    """Name files by their paths below what was named."""
    named: dict[str, AnyPath] = {}
    for file, below in files:
        name = below.with_name(stem_of(below)).as_posix()
        if name in named:
            beside = PurePath(named[name]).parent == PurePath(file).parent
            wider = "" if beside else "the folder that holds both, or "
            raise InputError(
                f"{named[name]} and {file} would be two recordings called {name!r}. Name {wider}those of one kind by a "
                "pattern in quotation marks, such as 'recordings/**/*.csv', or rename one."
            )
        named[name] = file
    return named


def file_name_of(recording: str, names: Collection[str]) -> str | None:
    """Return the name of the file that a recording is of: where it has several groups, ":" and the group follow it."""
    while recording not in names and ":" in recording:
        recording = recording.rpartition(":")[0]
    return recording if recording in names else None


def refuse_mistaken(recordings: Iterable[str], name: str, names: Mapping[str, Path | str]) -> None:
    """Refuse recordings of the file called `name` that would be taken for those of another file."""
    for one in recordings:
        if (other := file_name_of(one, names)) != name:
            raise InputError(
                f"{names[name]} has a recording {one!r}, named after the file and its group, and the file "
                f"{names[str(other)]} has such a name itself. Rename this file."
            )


def _files_of(source: str | Path) -> list[tuple[Path, PurePath]]:
    path = Path(source).expanduser()
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        visible = [file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts)]
        return [(file, file.relative_to(path)) for file in _of_known_suffix(visible, f"Folder {path}")]
    if path.is_file():
        return [(path, PurePath(path.name))]  # asked for by name: an unknown suffix is an error of its reader
    if glob.has_magic(str(path)):
        found = _of_known_suffix(map(Path, sorted(glob.glob(str(path), recursive=True))), f"Pattern {source}")
        return [(file, file.relative_to(before_pattern(path))) for file in found]
    raise InputError(f"There is no file or folder {path}. Check the path.")


def _of_known_suffix(files: Iterable[Path], what: str) -> list[Path]:
    files = list(files)
    known = [file for file in files if suffix_of(file) in known_suffixes("recordings") and file.is_file()]
    if not known:
        others = sorted({file.suffix or file.name for file in files})
        came = f"of its files the suffixes are {listed(others)}" if others else "it holds no file"
        raise InputError(f"{what} holds no recording ({_known()}); {came}. Check the path, or convert the files.")
    return known


def _known() -> str:
    return ", ".join(known_suffixes("recordings"))


def read_named(file: Path, name: str, reading: Reading) -> list[Recording]:
    """Read the recordings of a file, named after `name`; a group that follows the file's own name stays."""
    return [replace(one, name=name + one.name.removeprefix(stem_of(file))) for one in read_file(file, reading)]


def read_recordings(source: Source, reading: Reading | None = None, **options: Any) -> list[Recording]:
    """Read all recordings of a folder, pattern, file or list; missing values stay NaN.

    A file whose column of groups has several values holds a recording for each.

    Parameters
    ----------
    source : a folder, a pattern such as "data/*.csv", a file, or a list of these
    reading : how they are read; `options` are fields of it, which win
    """
    how = (reading or Reading()).replace(**options)
    files = named_recordings(source)
    recordings: list[Recording] = []
    for name, file in files.items():
        own = read_named(file, name, how)
        refuse_mistaken([one.name for one in own], name, files)
        recordings += own
    return recordings
