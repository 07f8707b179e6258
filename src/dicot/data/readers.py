"""READERS: how files are read by their suffix, as recordings or as cases.

A new kind of file is one line here. What a library reads whole, .npz, .parquet, .mat and .wav, is read here too.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import InputError, UnusedKeysWarning, listed, naming
from dicot.data.arrays import parts_of_arrays
from dicot.data.cases import to_cases
from dicot.data.casetables import Content as Content
from dicot.data.casetables import needs_case_and_time, read_rows, table_cases
from dicot.data.csvfile import SEPARATORS, columns_of, open_sheet, read_csv
from dicot.data.devices import files_by_device, join_devices, reading_of_device
from dicot.data.edf import read_edf
from dicot.data.labelcolumns import check_lacking, with_one_label
from dicot.data.labels import is_number
from dicot.data.npyfile import assign_keys, load_npz, map_npy, npz_names, plays
from dicot.data.reading import Reading
from dicot.data.reading import stem_of as stem_of
from dicot.data.reading import suffix_of as suffix_of
from dicot.data.recording import Parts, Recording, recordings_of, signals
from dicot.data.tables import open_parquet, parts_of_table, read_table, table_columns
from dicot.data.tags import NOTHING, Tag
from dicot.data.textforms import read_text
from dicot.data.wfdb import read_wfdb

_TABLE = ("case", "time", "channels", "label", "group", "ignore")


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
        content = table_cases(columns_of(sheet, [reading.case, reading.label, reading.group]), reading)
    elif reading.channels is not None:
        raise InputError(f"Channels are chosen in a long table. {needs_case_and_time('It')}")
    else:
        content = read_rows(sheet, reading)
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
        lambda path, reading: {"": table_cases(read_table(path), reading)},
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
