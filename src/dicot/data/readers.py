"""READERS: how files are read by their suffix, as recordings or as cases. A new kind of file is one line here.

What a library reads whole, .npz, .parquet, .mat and .wav, is read here too.
"""

import warnings
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import InputError, UnusedKeysWarning
from dicot.data.casefiles import (
    Content,
    archive_cases,
    csv_cases,
    npy_cases,
    npz_cases,
    parquet_cases,
)
from dicot.data.csvfile import read_csv
from dicot.data.edf import read_edf
from dicot.data.naming import listed, naming
from dicot.data.npyfile import load_npz
from dicot.data.reading import Reading
from dicot.data.recording import Parts, Recording, recordings_of, signals
from dicot.data.roles import parts_of_arrays, parts_of_table
from dicot.data.tables import read_table, table_columns
from dicot.data.wfdb import read_wfdb


class Reader(NamedTuple):
    """How files of one suffix are read; None where they hold no such thing."""

    recordings: Callable[[Path, Reading], Parts] | None = None
    cases: Callable[[Path, Reading], dict[str, Content]] | None = None  # {"train": ..., "test": ...}, or {"": ...}


def _read_npz(path: Path, reading: Reading) -> Parts:
    return parts_of_arrays(load_npz(path), reading)


def _read_parquet(path: Path, reading: Reading) -> Parts:
    return parts_of_table(table_columns(read_table(path)), reading)


def _read_mat(path: Path, reading: Reading) -> Parts:
    """Read a matrix X (channels, time), or one vector for each channel."""
    from scipy.io import loadmat

    try:
        found = loadmat(path, spmatrix=False)
    except NotImplementedError as error:
        raise InputError("It is a file of MATLAB 7.3, which is not read. Save it in MATLAB with -v7.") from error
    variables = {name: value for name, value in found.items() if not name.startswith("__")}
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
    ".csv": Reader(read_csv, csv_cases),
    ".csv.gz": Reader(read_csv),
    ".parquet": Reader(_read_parquet, parquet_cases),
    ".npz": Reader(_read_npz, npz_cases),
    ".npy": Reader(None, npy_cases),
    ".mat": Reader(_read_mat),
    ".edf": Reader(read_edf),
    ".hea": Reader(read_wfdb),
    ".wav": Reader(_read_wav),
    ".ts": Reader(None, archive_cases),
    ".tsv": Reader(None, archive_cases),
    ".arff": Reader(None, archive_cases),
}


def suffix_of(path: PurePath) -> str:
    """Return the end of a file's name that says its kind, in small letters."""
    return ".csv.gz" if path.name.lower().endswith(".csv.gz") else path.suffix.lower()


def stem_of(path: PurePath) -> str:
    """Return a file's name without the end that says its kind."""
    return path.name[: len(path.name) - len(suffix_of(path))]


def known_suffixes(kind: str) -> list[str]:
    """List the suffixes of files that can hold "recordings", or "cases"."""
    return [suffix for suffix, reader in READERS.items() if getattr(reader, kind) is not None]


def _reader(path: Path, kind: str) -> Callable[[Path, Reading], Any]:
    known = known_suffixes(kind)
    if suffix_of(path) not in known:
        raise InputError(f"{path} has an unknown suffix {path.suffix!r}; known are {', '.join(known)}. Convert it.")
    if not path.is_file():
        raise InputError(f"There is no file {path}. Check the path.")
    read: Callable[[Path, Reading], Any] = getattr(READERS[suffix_of(path)], kind)
    return read


def read_file(path: Path, reading: Reading) -> list[Recording]:
    """Read all recordings of a file, named after it: one, or one for each group."""
    read = _reader(path, "recordings")
    with naming(path):
        return recordings_of(stem_of(path), read(path, reading), reading)


def read_case_file(path: Path, reading: Reading) -> dict[str, Content]:
    """Read the cases of a file as they are: {"train": ..., "test": ...} if it holds a split, otherwise {"": ...}."""
    read = _reader(path, "cases")
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
    found = read_file(Path(path), (reading or Reading()).replace(**options))
    if len(found) > 1:
        values = ", ".join(str(one.group) for one in found[:5])
        raise InputError(f"{path} holds {len(found)} recordings, by group {values} ... Read it with read_recordings.")
    return found[0]
