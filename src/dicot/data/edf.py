"""EDF and EDF+ files: signals of a sleep or other recording, and the annotations beside them."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dicot.data.policies import FloatArray
from dicot.errors import InputError, did_you_mean

ANNOTATIONS = "EDF Annotations"
_FIXED = 256  # bytes of the header before the signals', and then for each signal
# The fields of all signals follow each other: all labels, then all transducers, and so on.
_FIELDS = {
    "label": 16,
    "transducer": 80,
    "unit": 8,
    "physical_min": 8,
    "physical_max": 8,
    "digital_min": 8,
    "digital_max": 8,
    "filters": 80,
    "n_per_record": 8,
    "reserved": 32,
}


@dataclass(frozen=True)
class Channel:
    """One signal as the header describes it."""

    label: str
    unit: str
    physical_min: float
    physical_max: float
    digital_min: int
    digital_max: int
    n_per_record: int  # values in one data record


@dataclass(frozen=True)
class Header:
    """What stands before the values."""

    start: str  # date and time, as written: dd.mm.yy hh.mm.ss
    continuous: bool  # no gap between data records
    n_records: int
    seconds_per_record: float  # 0 in files of annotations alone
    n_bytes: int  # of this header
    channels: tuple[Channel, ...]


@dataclass(frozen=True, eq=False)
class Signal:
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


def read_edf_header(path: str | Path) -> Header:
    """The header alone; a file that is shorter than its header promises is refused."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(_FIXED)
            n_signals = int(raw[252:256])
            if n_signals < 1:
                raise ValueError(f"it announces {n_signals} signals")
            raw += file.read(n_signals * _FIXED)
            size = path.stat().st_size
        header = _header(raw.decode("latin-1"), n_signals, size)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}). Check the path.") from error
    except ValueError as error:
        raise InputError(f"{path} is no EDF file or is truncated ({error}). Fetch it again.") from error
    expected = header.n_bytes + header.n_records * _record_bytes(header)
    if size < expected:
        raise InputError(f"{path} has {size} bytes; its header promises {expected}. It is truncated; fetch it again.")
    return header


def read_edf_signal(path: str | Path, label: str) -> Signal:
    """The signal called `label`, scaled to its physical unit."""
    header = read_edf_header(path)
    channel = header.channels[_position(header, label, path)]
    if not header.continuous:
        raise InputError(f"{path} has gaps between its data records (EDF+D), which are not supported.")
    span = channel.digital_max - channel.digital_min
    if span <= 0 or channel.physical_max == channel.physical_min or header.seconds_per_record == 0:
        raise InputError(
            f"{path}: signal {label!r} has no digital range, no physical range or no duration "
            f"(stored {channel.digital_min} to {channel.digital_max} for {channel.physical_min:g} to "
            f"{channel.physical_max:g} {channel.unit}, {header.seconds_per_record:g} s per record). Fetch it again."
        )
    slope = (channel.physical_max - channel.physical_min) / span
    digital = _digital(path, header, label).reshape(-1)
    values = (digital - np.float64(channel.digital_min)) * slope + channel.physical_min
    if len(values) and not np.abs(values).max() < np.finfo(np.float32).max:
        raise InputError(f"{path}: signal {label!r} holds values too large for float32. Fetch the file again.")
    return Signal(values.astype(np.float32), channel.n_per_record / header.seconds_per_record, channel.unit)


def read_edf_annotations(path: str | Path) -> list[Annotation]:
    """The annotations of an EDF+ file in the order of the file, without the marks that only keep time."""
    header = read_edf_header(path)
    found: list[Annotation] = []
    for record in _digital(path, header, ANNOTATIONS):
        for entry in record.tobytes().split(b"\x00"):
            if entry:
                found.extend(_annotations(entry, path))
    return found


def _header(text: str, n_signals: int, size: int) -> Header:
    if len(text) < _FIXED * (1 + n_signals):
        raise ValueError(f"the header of {n_signals} signals ends after {len(text)} bytes")
    at, columns = _FIXED, {}
    for name, width in _FIELDS.items():
        columns[name] = [text[at + i * width : at + (i + 1) * width].strip() for i in range(n_signals)]
        at += width * n_signals
    channels = tuple(
        Channel(label, unit, float(low), float(high), int(first), int(last), int(count))
        for label, unit, low, high, first, last, count in zip(
            *(columns[name] for name in ("label", "unit", "physical_min", "physical_max")),
            *(columns[name] for name in ("digital_min", "digital_max", "n_per_record")),
            strict=True,
        )
    )
    start = f"{text[168:176].strip()} {text[176:184].strip()}"
    header = Header(start, text[192:197] != "EDF+D", int(text[236:244]), float(text[244:252]), at, channels)
    _refuse_nonsense(header, int(text[184:192]))
    if header.n_records >= 0:
        return header
    # -1 while a recording goes on: the file holds as many records as fit.
    n_records = (size - at) // max(1, _record_bytes(header))
    return Header(start, header.continuous, n_records, header.seconds_per_record, at, channels)


def _refuse_nonsense(header: Header, said_bytes: int) -> None:
    """A ValueError names what no recording can have; what only one signal lacks is found when it is read."""
    if said_bytes != header.n_bytes:
        raise ValueError(f"its header says that it has {said_bytes} bytes; it has {header.n_bytes}")
    seconds = header.seconds_per_record
    if header.n_records < -1 or not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"it announces {header.n_records} records of {seconds:g} s")
    for channel in header.channels:
        if channel.n_per_record < 1:
            raise ValueError(f"signal {channel.label!r} has {channel.n_per_record} values per record")
        if not (math.isfinite(channel.physical_min) and math.isfinite(channel.physical_max)):
            raise ValueError(f"signal {channel.label!r} goes from {channel.physical_min} to {channel.physical_max}")
        stored = (channel.digital_min, channel.digital_max)
        if not all(-(1 << 15) <= number < 1 << 15 for number in stored):
            raise ValueError(
                f"signal {channel.label!r} is stored as {stored[0]} to {stored[1]}, which 16 bits cannot hold"
            )


def _record_bytes(header: Header) -> int:
    return 2 * sum(channel.n_per_record for channel in header.channels)


def _position(header: Header, label: str, path: str | Path) -> int:
    labels = [channel.label for channel in header.channels]
    if labels.count(label) != 1:
        found = f"{labels.count(label)} signals" if label in labels else "no signal"
        raise InputError(f"{path} holds {found} called {label!r}; it must be one. {did_you_mean(label, labels)}")
    return labels.index(label)


def _digital(path: str | Path, header: Header, label: str) -> np.ndarray[tuple[int, int], np.dtype[np.int16]]:
    """The stored numbers of one signal: (records, values per record)."""
    position = _position(header, label, path)
    widths = [channel.n_per_record for channel in header.channels]
    before, shape = sum(widths[:position]), (header.n_records, sum(widths))
    if 0 in shape:
        return np.empty((0, widths[position]), dtype="<i2")
    # Mapped, not read: the other signals are often the larger part of the file.
    records = np.memmap(path, dtype="<i2", mode="r", offset=header.n_bytes, shape=shape)
    return np.array(records[:, before : before + widths[position]])


def _annotations(entry: bytes, path: str | Path) -> list[Annotation]:
    """One time-stamped list: +onset, byte 21 and a duration where there is one, then texts, each ended by byte 20."""
    time, _, texts = entry.partition(b"\x14")
    onset, _, duration = time.partition(b"\x15")
    try:
        begin, lasting = float(onset), float(duration or 0)
        if not (math.isfinite(begin) and math.isfinite(lasting) and lasting >= 0):
            raise ValueError(f"it begins at {begin} s and lasts {lasting} s")
        remarks = texts.decode("utf-8").split("\x14")
    except ValueError as error:
        raise InputError(f"{path}: cannot read the annotation {entry[:40]!r} ({error}). Fetch it again.") from error
    return [Annotation(begin, lasting, text) for text in remarks if text]
