"""READERS: how files are read by their suffix, as recordings or as cases; folders of them.

A new kind of file is one line here. What a library reads whole, .npz, .parquet, .mat and .wav, is read here too.
"""

import glob
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dicot.core.errors import DicotWarning, InputError, UnusedKeysWarning, listed, naming
from dicot.data.cases import Array, RawCases, to_cases
from dicot.data.csvfile import SEPARATORS, columns_of, open_sheet, read_csv, read_rows
from dicot.data.devices import files_by_device, joined_files
from dicot.data.edf import read_edf
from dicot.data.filenames import stem_of as stem_of
from dicot.data.filenames import suffix_of as suffix_of
from dicot.data.joining import join_devices, reading_of_device
from dicot.data.labelcolumns import check_lacking, with_one_label
from dicot.data.labels import is_number
from dicot.data.npyfile import assign_keys, load_npz, map_npy, npz_names, plays
from dicot.data.reading import Reading, Source, before_pattern
from dicot.data.recording import Parts, Recording, recordings_of, signals
from dicot.data.tables import (
    needs_case_and_time,
    open_parquet,
    parts_of_arrays,
    parts_of_table,
    read_table,
    table_cases,
    table_columns,
)
from dicot.data.tags import NOTHING, Tag, tables_near, tags_of
from dicot.data.textforms import read_text
from dicot.data.wfdb import read_wfdb
from dicot.data.written import is_written_by_dicot

_TABLE = ("case", "time", "channels", "label", "group", "ignore")


class Content(NamedTuple):
    """Cases as a file holds them, in the order channels, time: lengths may differ and NaN is kept."""

    X: RawCases
    y: Array | None = None
    group: Array | None = None
    about: str = ""  # a table: its columns, what they were taken for and the first case, in words
    channels: tuple[str, ...] | None = None  # a long table: their names


def npz_cases(path: Path, reading: Reading) -> dict[str, Content]:
    """Read X with y and group, or X_train and X_test with theirs, by their usual names."""
    chosen = {role: name for role, name in (("y", reading.label), ("group", reading.group)) if name is not None}
    asked = {f"{name}{end}" for name in chosen.values() for end in ("", "_train", "_test")}
    names = npz_names(path)
    arrays = load_npz(path, [name for name in names if name in asked or plays(name)])
    parts = assign_keys(arrays, chosen)
    used = [name for roles in parts.values() for name in roles.values()]
    if not parts:
        raise InputError(
            "The file has no array of cases called X, data or values (in any case), or X_train and X_test. It holds "
            f"{listed(names) or 'nothing'}."
        )
    if unused := [name for name in names if name not in used]:
        said = f"{path}: read {', '.join(used)}; not used: {', '.join(unused)}."
        warnings.warn(said, UnusedKeysWarning, stacklevel=2)
    found = {part: {role: arrays[name] for role, name in roles.items()} for part, roles in parts.items()}
    return {p: Content(to_cases(a["X"], reading.layout), a.get("y"), a.get("group")) for p, a in found.items()}


def archive_cases(path: Path, reading: Reading) -> dict[str, Content]:
    """Read NAME_TRAIN with NAME_TEST beside it, or one file alone."""
    if not path.stem.endswith("_TRAIN"):
        return {"": Content(*read_text(path))}
    other = path.with_name(path.stem.removesuffix("_TRAIN") + "_TEST" + path.suffix)
    parts = {"train": path, "test": other} if other.is_file() else {"train": path}
    return {part: Content(*read_text(file)) for part, file in parts.items()}


def csv_cases(path: Path, reading: Reading) -> dict[str, Content]:
    """Read a long table, where case and time are named, or one case per row."""
    sheet = open_sheet(path)
    reading = with_one_label(reading, sheet.rows[0])
    if reading.case is not None or reading.time is not None:
        content = Content(*table_cases(columns_of(sheet, [reading.case, reading.label, reading.group]), reading))
    elif reading.channels is not None:
        raise InputError(f"Channels are chosen in a long table. {needs_case_and_time('It')}")
    else:
        content = Content(*read_rows(sheet, reading))
    return {"": content._replace(about=f"{SEPARATORS[sheet.separator]} separated; {content.about}")}


class Reader(NamedTuple):
    """How files of one suffix are read; None where they hold no such thing."""

    recordings: Callable[[Path, Reading], Parts] | None = None
    cases: Callable[[Path, Reading], dict[str, Content]] | None = None  # {"train": ..., "test": ...}, or {"": ...}
    options: tuple[str, ...] = ()  # fields of a Reading that cases are read by


def _read_mat(path: Path, reading: Reading) -> Parts:
    """Read a matrix X (channels, time), or one vector for each channel."""
    from scipy.io import loadmat

    with path.open("rb") as file:
        if file.read(10) == b"MATLAB 7.3":
            raise InputError("It is a file of MATLAB 7.3, which is not read. Save it in MATLAB with -v7.")
    variables = {n: value for n, value in loadmat(path, spmatrix=False).items() if not n.startswith("__")}
    held = {n: a for n, a in variables.items() if isinstance(a, np.ndarray) and a.dtype.kind in "biuf" and a.size}
    if left := [name for name in variables if name not in held]:
        warnings.warn(f"{path}: not used, no matrix of numbers: {listed(left)}.", UnusedKeysWarning, stacklevel=2)
    # MATLAB has neither scalars nor vectors: they are matrices with one row or column.
    return parts_of_arrays({name: a.reshape([n for n in a.shape if n > 1][:2]) for name, a in held.items()}, reading)


def _read_wav(path: Path, reading: Reading) -> Parts:
    """Read sound: whole numbers as shares of the largest, other numbers as they are."""
    from scipy.io import wavfile

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Chunk .* not understood", wavfile.WavFileWarning)
        warnings.filterwarnings("error", category=wavfile.WavFileWarning)  # such as a file that ends too early
        rate, stored = wavfile.read(path)
    values = stored.reshape(len(stored), -1).T
    if stored.dtype == np.uint8:  # the only width without a sign
        values = (values.astype(np.float32) - 128) / 128
    elif stored.dtype.kind == "i":  # 24 bits come as the high ones of 32
        values = (values / -float(np.iinfo(stored.dtype).min)).astype(np.float32)
    return signals({f"channel {i}": row for i, row in enumerate(values)}, reading, rate=float(rate))


READERS: dict[str, Reader] = {
    ".csv": Reader(read_csv, csv_cases, (*_TABLE, "header")),
    ".csv.gz": Reader(read_csv),
    ".parquet": Reader(
        lambda path, reading: parts_of_table(table_columns(read_table(path)), reading),
        lambda path, reading: {"": Content(*table_cases(read_table(path), reading))},
        _TABLE,
    ),
    ".npz": Reader(
        lambda path, reading: parts_of_arrays(load_npz(path), reading), npz_cases, ("layout", "label", "group")
    ),
    ".npy": Reader(None, lambda path, reading: {"": Content(to_cases(map_npy(path), reading.layout))}, ("layout",)),
    ".mat": Reader(_read_mat),
    ".edf": Reader(read_edf),
    ".hea": Reader(read_wfdb),
    ".wav": Reader(_read_wav),
    ".ts": Reader(None, archive_cases),
    ".tsv": Reader(None, archive_cases),
    ".arff": Reader(None, archive_cases),
}


def known_suffixes(kind: str) -> list[str]:
    """List the suffixes of files that can hold "recordings", or "cases"."""
    return [suffix for suffix, reader in READERS.items() if getattr(reader, kind) is not None]


def column_names(path: Path) -> list[str]:
    """Return what the columns of a table are called, also of one that cannot be read; [] where nothing tells."""
    try:
        if suffix_of(path) == ".parquet":
            with open_parquet(path) as file:
                return list(file.schema_arrow.names)
        if suffix_of(path) in (".csv", ".csv.gz"):
            names = open_sheet(path).rows[0]
            return [] if all(is_number(name) for name in names) else names
    except Exception:  # whatever a damaged file makes of a reader; it has a problem of its own, which is told
        return []
    return []


def _reader(path: Path, kind: str) -> Callable[[Path, Reading], Any]:
    known = known_suffixes(kind)
    if suffix_of(path) not in known:
        raise InputError(f"{path} has an unknown suffix {path.suffix!r}; known are {', '.join(known)}. Convert it.")
    if not path.is_file():
        raise InputError(f"There is no file {path}. Check the path.")
    read: Callable[[Path, Reading], Any] = getattr(READERS[suffix_of(path)], kind)
    return read


def read_file(path: Path, reading: Reading, tag: Tag = NOTHING) -> list[Recording]:
    """Read all recordings of a file, named after it: one, or one for each group. `tag` is what names and tables say."""
    if reading.join is not None:
        return _read_joined(path, reading, tag)
    read = _reader(path, "recordings")
    own = reading.replace(**dict.fromkeys(tag.told)) if tag.told else reading
    with naming(path):
        parts = read(path, own)
        for role, where in tag.told.items():
            if (name := getattr(reading, role)) in parts.held:
                raise InputError(f"{role}={name!r} is {where}, and a column of the file as well. Rename one of them.")
        return tag.put_on(recordings_of(stem_of(path), parts, own), reading)


def _read_joined(lead: Path, reading: Reading, tag: Tag) -> list[Recording]:
    """Read the recordings of several devices, of which one file is named, as one."""
    own = reading.replace(**dict.fromkeys(tag.told))
    recordings = {}
    for device, path in files_by_device(lead, reading).items():
        of_device = read_file(path, reading_of_device(device, own, column_names(path)))
        if len(of_device) > 1:
            raise InputError(f"{path} holds {len(of_device)} recordings, so it cannot be joined with another device's.")
        recordings[device] = of_device[0]
    with naming(lead):
        joined = join_devices(stem_of(lead), recordings, own)
    return tag.put_on([joined], reading)


def read_case_file(path: Path, reading: Reading) -> dict[str, Content]:
    """Read the cases of a file as they are: {"train": ..., "test": ...} if it holds a split, otherwise {"": ...}."""
    read, usual = _reader(path, "cases"), Reading()
    given = [key for key in (*_TABLE, "header", "layout") if getattr(reading, key) != getattr(usual, key)]
    if refused := [key for key in given if key not in READERS[suffix_of(path)].options]:
        raise InputError(f"{', '.join(refused)} cannot be used with {path.suffix} files. Leave it out.")
    with naming(path):
        found: dict[str, Content] = read(path, reading)
        return found


def read_recording(path: str | Path, reading: Reading | None = None, **options: Any) -> Recording:
    """Read the only recording of a file; `read_recordings` reads all where a column of groups tells several apart.

    Every voltage of an .edf or a WFDB record is given in microvolts, whatever unit the file keeps it in.

    Parameters
    ----------
    path : a .csv, .csv.gz or .parquet with one row per time step, an .npz or .mat, an .edf, the .hea of a WFDB record,
        or a .wav. A name that two channels share is refused; leads of a WFDB record are then called lead 0, lead 1 ...
    reading : how it is read; `options` are fields of it, which win: time, unit, channels, label and group
    """
    how = (reading or Reading()).replace(**options)
    found = read_file(Path(path), how)
    with naming(Path(path)):
        check_lacking(found, how.label)
    if len(found) > 1:
        values = ", ".join(str(one.group) for one in found[:5])
        raise InputError(f"{path} holds {len(found)} recordings, by group {values} ... Read it with read_recordings.")
    return found[0]


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
    return [replace(one, name=name + one.name.removeprefix(stem_of(file))) for one in read_file(file, reading, tag)]


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
