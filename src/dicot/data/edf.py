"""EDF and EDF+ files by pyedflib: signals of a sleep or other recording, and the annotations beside them."""

import math
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dicot.core.errors import InputError, did_you_mean, need_extra
from dicot.data.policies import FloatArray
from dicot.data.reading import Reading
from dicot.data.recording import Parts, signals

if TYPE_CHECKING:
    from pyedflib import EdfReader

_ANNOTATIONS = "EDF Annotations"
_BLOCK = 256  # bytes of the header before the signals', and then for each signal
_TICKS = 10_000_000  # pyedflib counts onsets in units of 100 ns


@dataclass(frozen=True)
class EdfChannel:
    """One signal as the header describes it."""

    label: str
    unit: str
    physical_min: float
    physical_max: float
    digital_min: int
    digital_max: int
    n_per_record: int  # values in one data record


@dataclass(frozen=True)
class EdfHeader:
    """What stands before the values."""

    start: str  # date and time, as written: dd.mm.yy hh.mm.ss
    version: str  # "EDF+C", "EDF+D" (with gaps between data records) or "" for plain EDF
    n_records: int  # -1 while a recording goes on
    seconds_per_record: float  # 0 in files of annotations alone
    channels: tuple[EdfChannel, ...]

    @property
    def n_bytes(self) -> int:
        return _BLOCK * (1 + len(self.channels))

    @property
    def n_record_bytes(self) -> int:
        return 2 * sum(channel.n_per_record for channel in self.channels)


@dataclass(frozen=True, eq=False)
class EdfSignal:
    """The values of one signal in its physical unit."""

    values: FloatArray  # (T,)
    rate: float  # Hz
    unit: str


@dataclass(frozen=True)
class Annotation:
    """A remark with its place in time, in seconds from the start of the file."""

    onset: float
    duration: float  # 0 where the file names none
    text: str


def read_edf_header(path: str | Path) -> EdfHeader:
    """Read the header alone; a file that is shorter than it announces is refused."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            text = file.read(_BLOCK).decode("latin-1")
            n_signals = int(text[252:256])
            text += file.read(max(0, n_signals) * _BLOCK).decode("latin-1")
        header = _parsed(text, n_signals)
        size, expected = path.stat().st_size, header.n_bytes + max(0, header.n_records) * header.n_record_bytes
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}). Check the path.") from error
    except ValueError as error:
        raise InputError(f"{path} is not an EDF file or is truncated ({error}). Fetch it again.") from error
    if size < expected:
        raise InputError(f"{path} has {size} bytes; its header announces {expected}. It is truncated; fetch it again.")
    return header


def _parsed(text: str, n_signals: int) -> EdfHeader:
    """Split the header into its fields. pyedflib checks them too, but misreads numbers such as 1e9."""
    if n_signals < 1 or len(text) < _BLOCK * (1 + n_signals):
        raise ValueError(f"a header of {n_signals} signals does not have {len(text)} bytes")

    def column(start: int, width: int) -> list[str]:
        # The fields of all signals follow each other: all labels, then all transducers, and so on.
        begin = _BLOCK + start * n_signals
        return [text[begin + i * width : begin + (i + 1) * width].strip() for i in range(n_signals)]

    labels, units, *numbers = column(0, 16), column(96, 8), *(column(at, 8) for at in (104, 112, 120, 128, 216))
    channels = tuple(
        EdfChannel(label, unit, float(low), float(high), int(first), int(last), int(count))
        for label, unit, low, high, first, last, count in zip(labels, units, *numbers, strict=True)
    )
    for channel in channels:
        if channel.n_per_record < 1:
            raise ValueError(f"signal {channel.label!r} has {channel.n_per_record} values per record")
        if not (math.isfinite(channel.physical_min) and math.isfinite(channel.physical_max)):
            raise ValueError(f"signal {channel.label!r} goes from {channel.physical_min} to {channel.physical_max}")
    start = f"{text[168:176].strip()} {text[176:184].strip()}"
    header = EdfHeader(start, text[192:197].strip(), int(text[236:244]), float(text[244:252]), channels)
    if header.n_records < -1 or not (math.isfinite(header.seconds_per_record) and header.seconds_per_record >= 0):
        raise ValueError(f"it announces {header.n_records} records of {header.seconds_per_record:g} s")
    return header


@contextmanager
def _opened(path: Path, header: EdfHeader, annotations: bool) -> Iterator["EdfReader"]:
    """Open the file with pyedflib; its errors become InputErrors that name the file."""
    try:
        from pyedflib import DO_NOT_READ_ANNOTATIONS, READ_ALL_ANNOTATIONS, EdfReader
    except ImportError as error:
        raise need_extra("pyedflib", "prepare", "Reading EDF files") from error
    mode = READ_ALL_ANNOTATIONS if annotations else DO_NOT_READ_ANNOTATIONS
    with tempfile.TemporaryDirectory() as folder:
        complete = path if header.n_records >= 0 else _with_count(path, header, Path(folder))
        try:
            with EdfReader(str(complete), mode) as file:
                yield file
        except OSError as error:
            reason = str(error).removeprefix(f"{complete}: ")
            raise InputError(f"{path} is not a sound EDF file ({reason}). Fetch it again.") from error


def _with_count(path: Path, header: EdfHeader, folder: Path) -> Path:
    """Copy a file whose number of records was never filled in, which pyedflib refuses, and fill it in."""
    n_records = (path.stat().st_size - header.n_bytes) // header.n_record_bytes
    copy = Path(shutil.copy(path, folder / "complete.edf"))
    with copy.open("r+b") as file:
        file.seek(236)
        file.write(str(n_records).encode().ljust(8))
    return copy


def read_edf_signal(path: str | Path, label: str) -> EdfSignal:
    """Read the signal called `label`, scaled to its physical unit."""
    path, header = Path(path), read_edf_header(path)
    labels = [channel.label for channel in header.channels if channel.label != _ANNOTATIONS]
    if labels.count(label) != 1:
        if label in labels:
            raise InputError(
                f"{path} has {labels.count(label)} signals called {label!r}; it must be one. Choose others "
                "with channels= (--channels), or rename one of them in the file."
            )
        raise InputError(f"{path} has no signal called {label!r}. {did_you_mean(label, labels)}")
    if header.version == "EDF+D":
        raise InputError(f"{path} has gaps between its data records (EDF+D), which are not supported.")
    channel = next(channel for channel in header.channels if channel.label == label)
    span = channel.digital_max - channel.digital_min
    if span <= 0 or channel.physical_max == channel.physical_min or header.seconds_per_record == 0:
        raise InputError(
            f"{path}: signal {label!r} has no digital range, no physical range or no duration "
            f"(stored {channel.digital_min} to {channel.digital_max} for {channel.physical_min:g} to "
            f"{channel.physical_max:g} {channel.unit}, {header.seconds_per_record:g} s per record). Fetch it again."
        )
    with _opened(path, header, annotations=False) as file:
        digital = file.readSignal(labels.index(label), digital=True)
    slope = (channel.physical_max - channel.physical_min) / span
    values = (digital - np.float64(channel.digital_min)) * slope + channel.physical_min
    if len(values) and not np.abs(values).max() < np.finfo(np.float32).max:
        raise InputError(f"{path}: signal {label!r} has values too large for float32. Fetch the file again.")
    return EdfSignal(values.astype(np.float32), channel.n_per_record / header.seconds_per_record, channel.unit)


def read_edf_annotations(path: str | Path) -> list[Annotation]:
    """Read the annotations of an EDF+ file in the order of the file, without the marks that only keep time."""
    path, header = Path(path), read_edf_header(path)
    if _ANNOTATIONS not in [channel.label for channel in header.channels]:
        raise InputError(f"{path} has no signal called {_ANNOTATIONS!r}, so it has no annotations.")
    if not header.version.startswith("EDF+"):
        raise InputError(f"{path} is plain EDF, and only EDF+ files have annotations. Fetch it again.")
    with _opened(path, header, annotations=True) as file:
        entries: list[Any] = file.read_annotation()
    annotations = []
    for onset, duration, text in entries:
        try:
            lasting = float(duration or 0)
            if not (math.isfinite(lasting) and lasting >= 0):
                raise ValueError(f"it lasts {lasting} s")
            annotations.append(Annotation(onset / _TICKS, lasting, text.decode("utf-8")))
        except ValueError as error:
            raise InputError(f"{path}: cannot read the annotation {text[:40]!r} ({error}). Fetch it again.") from error
    return annotations


def read_edf(path: Path, reading: Reading) -> Parts:
    """Read the signals of a file, which must have one rate."""
    header = read_edf_header(path)
    labels = [channel.label for channel in header.channels if channel.label != _ANNOTATIONS]
    if not labels:
        raise InputError(
            "The file holds annotations and no signal. Leave it out, for example by a pattern such as *PSG.edf."
        )
    found = {label: read_edf_signal(path, label) for label in reading.channels or labels}
    rates = {label: signal.rate for label, signal in found.items()}
    if len(set(rates.values())) > 1:
        said = ", ".join(f"{label} {rate:g} Hz" for label, rate in rates.items())
        raise InputError(f"The signals have several rates: {said}. Choose those of one with channels= (--channels).")
    columns = {label: signal.values for label, signal in found.items()}
    units = {label: signal.unit for label, signal in found.items()}
    return signals(columns, reading, rate=next(iter(rates.values())), origin=_start(header.start), units=units)


def _start(text: str) -> str | None:
    """Return the start of a file as ISO text; None where the header holds no date."""
    try:
        start = datetime.strptime(text, "%d.%m.%y %H.%M.%S")
    except ValueError:
        return None
    # The format counts years from 1985 to 2084.
    return start.replace(year=start.year % 100 + (1900 if start.year % 100 >= 85 else 2000)).isoformat()
