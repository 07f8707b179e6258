"""Folders of recordings: their files by name, each read once, and which of them dicot itself wrote."""

import glob
import os
import warnings
import zipfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any, TypeVar, final

from dicot.core.errors import DicotError, DicotWarning, InputError, listed
from dicot.data.devices import joined_files
from dicot.data.readers import known_suffixes, read_file
from dicot.data.reading import Reading, Source, before_pattern
from dicot.data.reading import stem_of as stem_of
from dicot.data.reading import suffix_of as suffix_of
from dicot.data.recording import Recording
from dicot.data.tables import open_parquet
from dicot.data.tags import NOTHING, Tag, tables_near, tags_of


def named_recordings(source: Source, table: str | None = None) -> dict[str, Path]:
    """List the files of recordings of a folder and those below it, a pattern such as "data/*.csv", a file, or a list.

    In folders and by patterns only files with a known suffix count, and none that is hidden. Sorted, each once, by the
    name of its recording, which does not depend on what other files there are: the path below the folder that was
    named, or below that where a pattern begins, without suffix and with "/" on every system. A file that was named
    itself has its own name alone. Two files of one name are refused. The table of labels is left out, where one is said
    or found.
    """
    return by_name(below_named(source, table))


def files_to_read(source: Source, reading: Reading) -> dict[str, Path]:
    """List the files of recordings by name; of those that are joined from several devices the file of the first."""
    named = named_recordings(source, reading.table)
    return named if reading.join is None else joined_files(named, reading)


def below_named(source: Source, table: str | None = None) -> list[tuple[Path, PurePath]]:
    """Return files, each with its path below what was named, without the table of labels."""
    sources = [source] if isinstance(source, str | Path) else list(source)
    found = [file for one in sources for file in _files_of(Path(one).expanduser())]
    unique = {path.resolve(): (path, below) for path, below in reversed(found)}
    for labels in (*tables_near(source), *([Path(table)] if table else [])):
        unique.pop(labels.resolve(), None)
    if not unique:
        raise InputError(f"{source!r} names no recording. Pass a folder, a pattern, or files.")
    return sorted(unique.values(), key=lambda one: one[0].as_posix())


def _files_of(path: Path) -> list[tuple[Path, PurePath]]:
    if path.is_file():
        return [(path, PurePath(path.name))]  # asked for by name: an unknown suffix is an error of its reader
    if path.is_dir():
        root, files = path, sorted(path.rglob("*"))
        files = [file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    elif glob.has_magic(str(path)):
        root, files = before_pattern(path), [Path(file) for file in sorted(glob.glob(str(path), recursive=True))]
    else:
        raise InputError(f"There is no file or folder {path}. Check the path.")
    suffixes, files = known_suffixes("recordings"), [file for file in files if file.is_file()]
    known: list[tuple[Path, PurePath]] = [(f, f.relative_to(root)) for f in files if suffix_of(f) in suffixes]
    if not known:
        others = listed(sorted({file.suffix or file.name for file in files}))
        raise InputError(
            f"{path} holds no recording ({', '.join(suffixes)}), "
            f"{f'but files of {others}' if others else 'nor any other file'}. Check the path, or convert the files."
        )
    return _without_written_files(path, known)


def _without_written_files(path: Path, files: list[tuple[Path, PurePath]]) -> list[tuple[Path, PurePath]]:
    """Leave out what dicot itself wrote among recordings, such as the vectors of an earlier call, and say so."""
    written = [str(below) for file, below in files if is_written_by_dicot(file)]
    if len(written) == len(files):
        raise InputError(
            f"{path} holds no recording, but what dicot wrote: {listed(written)}. Name the folder of the recordings."
        )
    if not written:
        return files
    warnings.warn(
        f"Left out of {path}, because dicot wrote it and it is no recording: {listed(written)}.",
        DicotWarning,
        stacklevel=2,
    )
    return [(file, below) for file, below in files if str(below) not in written]


AnyPath = TypeVar("AnyPath", Path, str)


def by_name(files: Iterable[tuple[AnyPath, PurePath]]) -> dict[str, AnyPath]:
    """Name files by their paths below what was named."""
    named: dict[str, AnyPath] = {}
    for file, below in files:
        name = below.with_name(stem_of(below)).as_posix()
        if name in named:
            raise InputError(
                f"{named[name]} and {file} would be two recordings called {name!r}. {_how_to_tell(named[name], file)}"
            )
        named[name] = file
    return named


def _how_to_tell(one: Path | str, other: Path | str) -> str:
    """Say how two files get different names: by their folders where these differ."""
    folders = [Path(file).absolute().parent for file in (one, other)]
    if folders[0] == folders[1] or isinstance(one, str):
        return (
            "Name those of one kind by a pattern in quotation marks, such as 'recordings/**/*.csv', or the folder "
            "that holds both; or rename one."
        )
    shared = Path(os.path.commonpath(folders))
    names = [file.absolute().relative_to(shared).with_name(stem_of(file)) for file in (Path(one), Path(other))]
    return (
        f"Name {shared}, the folder that holds both, or a pattern in quotation marks that begins there: they are then "
        f"called {names[0].as_posix()} and {names[1].as_posix()}."
    )


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


def read_named(file: Path, name: str, reading: Reading, tag: Tag = NOTHING) -> list[Recording]:
    """Read the recordings of a file, named after `name`; a group that follows the file's own name stays."""
    return _called(read_file(file, reading, tag), name, file)


def _called(recordings: list[Recording], name: str, file: Path) -> list[Recording]:
    stem = stem_of(file)
    if name == stem:
        return recordings
    return [replace(recording, name=name + recording.name.removeprefix(stem)) for recording in recordings]


KEPT_BYTES = 2**28
# What a file is read by, beside its channels. Everything else is done with the recordings later.
_READ_BY = ("time", "unit", "label", "group", "duplicates", "gap", "ignore", "join", "names", "table", "table_unit")


@final
class RecordingFiles:
    """The recordings of a source, whose files a command lists once and reads once.

    What looks at them, what suggests windows and what cuts them share one of these. Recordings are kept while there is
    room, by default 256 MiB for all of them; those of other files are read again when they are cut.
    """

    def __init__(self, source: Source, room: float = KEPT_BYTES) -> None:
        self.source = source
        self._room = room
        self._named: dict[tuple[str | None, ...], dict[str, Path]] = {}
        self._kept: dict[str, tuple[Reading, list[Recording]]] = {}

    @classmethod
    def of(cls, source: "Source | RecordingFiles", room: float = KEPT_BYTES) -> "RecordingFiles":
        """Return what was made before, or the files of a source."""
        return source if isinstance(source, RecordingFiles) else cls(source, room)

    def named(self, reading: Reading) -> dict[str, Path]:
        """Return the files by name; of those that are joined from several devices the file of the first."""
        listed_by = (reading.table, reading.names, reading.join)
        if listed_by not in self._named:
            self._named[listed_by] = files_to_read(self.source, reading)
        return self._named[listed_by]

    def tags(self, reading: Reading) -> dict[str, Tag]:
        """Return what names and a table say of each file."""
        return tags_of(self.source, self.named(reading), reading)

    def read(self, name: str, reading: Reading, tag: Tag = NOTHING) -> list[Recording]:
        """Return the recordings of a file."""
        if name in self._kept:
            read_by, recordings = self._kept[name]
            if _reads_the_same(reading, read_by, recordings):
                return recordings
        recordings = read_named(self.named(reading)[name], name, reading, tag)
        if name in self._kept:
            self._room += sum(map(_size, self._kept.pop(name)[1]))
        size = sum(map(_size, recordings))
        if size <= self._room:
            self._room -= size
            self._kept[name] = reading, recordings
        return recordings


def _reads_the_same(reading: Reading, before: Reading, recordings: list[Recording]) -> bool:
    """Tell whether a reading would give the recordings that another one gave."""
    if any(getattr(reading, option) != getattr(before, option) for option in _READ_BY):
        return False
    # A rate that is said is that of a grid for joined devices, and of the time steps that a table of labels counts.
    if reading.rate != before.rate and (reading.join is not None or reading.table_unit == "steps"):
        return False
    if reading.channels == before.channels:
        return True
    # All channels by name, in the order of the file, are read as all of them that nobody named.
    return before.channels is None and all(reading.channels == recording.channels for recording in recordings)


def _size(recording: Recording) -> int:
    """Return the bytes of values and time stamps."""
    return recording.values.nbytes + 8 * recording.n_times


def read_recordings(source: Source, reading: Reading | None = None, **options: Any) -> list[Recording]:
    """Read all recordings of a folder, pattern, file or list; missing values stay NaN.

    A file whose column of groups has several values holds a recording for each.

    Parameters
    ----------
    source : a folder, a pattern such as "data/*.csv", a file, or a list of these
    reading : how they are read; `options` are fields of it, which win
    """
    how = (reading or Reading()).replace(**options)
    files = files_to_read(source, how)
    tags = tags_of(source, files, how)
    recordings: list[Recording] = []
    for name, file in files.items():
        own = read_named(file, name, how, tags.get(name, NOTHING))
        refuse_mistaken([one.name for one in own], name, files)
        recordings += own
    return recordings


# Entry of an .npz, or key of a .parquet's metadata: what vectors were made of.
SOURCE = "dicot.source"
MAP = ".explorer-"  # in the name of what the explorer keeps beside vectors: v.explorer-tsne.npz
_SHARDS, _MANIFEST = "shards", "manifest.json"  # of a corpus, and of vectors in a folder
# Columns that every table of windows or ranges has, and every table of scores.
_OF_TABLES = ({"recording", "start", "end"}, {"suite", "contender", "protocol", "seed"})
_LONGEST_HEADER = 2**16  # bytes of a .csv that are looked at


def is_written_by_dicot(path: Path) -> bool:
    """Tell vectors, maps, shards and tables of dicot from recordings."""
    facts = path.stat()
    return _is_written_by_dicot(path, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=100_000)
def _is_written_by_dicot(path: Path, changed: int, size: int) -> bool:
    """Look into a file once, as long as it does not change."""
    if path.parent.name == _SHARDS and (path.parent.parent / _MANIFEST).is_file():
        return True
    try:
        match path.suffix:
            case ".npz":
                return MAP in path.name or _has_source(path)
            case ".parquet":
                with open_parquet(path) as file:
                    schema = file.schema_arrow
                return SOURCE.encode() in (schema.metadata or {}) or _is_table(schema.names)
            case ".csv":
                return _is_table(_header_of(path))
    except (DicotError, OSError, ValueError, zipfile.BadZipFile):
        return False  # whatever it is, its reader says what is wrong with it
    return False


def _has_source(path: Path) -> bool:
    with zipfile.ZipFile(path) as archive:
        return f"{SOURCE}.npy" in archive.namelist()


def _header_of(path: Path) -> list[str]:
    with path.open("rb") as file:
        line = file.readline(_LONGEST_HEADER).decode("utf-8", "replace")
    return [name.strip().strip('"') for name in line.split(",")]


def _is_table(names: list[str]) -> bool:
    return any(columns <= set(names) for columns in _OF_TABLES)
