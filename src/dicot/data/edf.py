"""EDF and EDF+ files: the signals of a sleep or other recording, without what is annotated beside them.

They are read here and not by pyedflib, which misreads numbers such as 1e9 and refuses a file whose number of records
was never filled in.
"""

import math
from datetime import datetime
from pathlib import Path
from statistics import mode
from typing import NamedTuple

import numpy as np

from dicot.core.errors import InputError, did_you_mean, naming
from dicot.core.settings import COLUMNS, how_to_set
from dicot.data.cases import Array, FloatArray
from dicot.data.reading import Reading
from dicot.data.recording import Parts, signals

ANNOTATIONS = "EDF Annotations"
_BLOCK = 256  # bytes of the header before the signals', and then for each signal


class EdfChannel(NamedTuple):
    """One signal as the header describes it."""

    label: str
    unit: str
    physical_min: float
    physical_max: float
    digital_min: int
    digital_max: int
    n_per_record: int  # values in one data record


class EdfHeader(NamedTuple):
    """What stands before the values."""

    start: str  # date and time, as written: dd.mm.yy hh.mm.ss
    version: str  # "EDF+C", "EDF+D" (with gaps between data records) or "" for plain EDF
    n_records: int
    seconds_per_record: float  # 0 in files of annotations alone
    channels: tuple[EdfChannel, ...]

    def stored(self, path: Path, label: str) -> tuple[EdfChannel, Array]:
        """Return a signal's description and its stored numbers, (records, values in one)."""
        labels = [channel.label for channel in self.channels]
        if labels.count(label) != 1:
            known = did_you_mean(label, labels)
            raise InputError(
                f"{path} has {labels.count(label)} signals called {label!r}. Choose others: "
                f"{how_to_set('channels', COLUMNS)}. {known}"
            )
        widths, number = [channel.n_per_record for channel in self.channels], labels.index(label)
        whole = np.memmap(path, "<i2", "r", _BLOCK * (1 + len(widths)), (self.n_records, sum(widths)))
        first = sum(widths[:number])
        return self.channels[number], np.array(whole[:, first : first + widths[number]])


class EdfSignal(NamedTuple):
    """The values of one signal in its physical unit."""

    values: FloatArray  # (T,)
    rate: float  # Hz
    unit: str


def read_edf_header(path: Path) -> EdfHeader:
    """Read the header alone; a file that is shorter than it announces is refused."""
    with naming(path):
        with path.open("rb") as file:
            text = file.read(_BLOCK).decode("latin-1")
            n_signals = int(text[252:256])
            text += file.read(max(0, n_signals) * _BLOCK).decode("latin-1")

        def column(start: int, width: int) -> list[str]:
            # The fields of all signals follow each other: all labels, then all transducers, and so on.
            begin = _BLOCK + start * n_signals
            return [text[begin + i * width : begin + (i + 1) * width].strip() for i in range(n_signals)]

        fields = zip(column(0, 16), column(96, 8), *(column(at, 8) for at in (104, 112, 120, 128, 216)), strict=True)
        channels = tuple(
            EdfChannel(label, unit, float(low), float(high), int(first), int(last), int(count))
            for label, unit, low, high, first, last, count in fields
        )
        n_records, seconds = int(text[236:244]), float(text[244:252])
        widths = [channel.n_per_record for channel in channels]
        if n_records < -1 or not 0 <= seconds < math.inf or min(widths, default=0) < 1:
            raise ValueError(f"it announces {n_records} records of {seconds:g} s with {widths} values")
        held = (path.stat().st_size - _BLOCK * (1 + n_signals)) // (2 * sum(widths))
        if held < n_records:
            raise ValueError(f"it holds {held} of {n_records} records that its header announces: it is truncated")
        start = f"{text[168:176].strip()} {text[176:184].strip()}"
        # -1 while a recording goes on
        return EdfHeader(start, text[192:197].strip(), held if n_records < 0 else n_records, seconds, channels)


def read_edf_signal(path: Path, label: str) -> EdfSignal:
    """Read the signal called `label`, scaled to its physical unit."""
    header = read_edf_header(path)
    channel, digital = header.stored(path, label)
    span, low, high = channel.digital_max - channel.digital_min, channel.physical_min, channel.physical_max
    if header.version == "EDF+D":
        raise InputError(f"{path} has gaps between its data records (EDF+D), which are not supported.")
    if span <= 0 or not math.isfinite(high - low) or high == low or header.seconds_per_record == 0:
        raise InputError(f"{path}: signal {label!r} has no range or no duration: {channel}.")
    values = (digital.reshape(-1) - np.float64(channel.digital_min)) * ((high - low) / span) + low
    return EdfSignal(values.astype(np.float32), channel.n_per_record / header.seconds_per_record, channel.unit)


def read_edf(path: Path, reading: Reading) -> Parts:
    """Read the signals of a file, which must have one rate."""
    header = read_edf_header(path)
    labels = [channel.label for channel in header.channels if channel.label != ANNOTATIONS]
    if not labels:
        raise InputError(
            "The file holds annotations and no signal. Leave it out, for example by a pattern such as *PSG.edf."
        )
    found = {label: read_edf_signal(path, label) for label in reading.channels or labels}
    rates = {label: signal.rate for label, signal in found.items()}
    if len(set(rates.values())) > 1:
        said = ", ".join(f"{label} {rate:g} Hz" for label, rate in rates.items())
        usual = mode(rates.values())
        of_usual_rate = [label for label, rate in rates.items() if rate == usual]
        choice = how_to_set("channels", of_usual_rate)
        raise InputError(f"The signals have several rates: {said}. Choose those of one rate: {choice}.")
    try:
        start = datetime.strptime(header.start, "%d.%m.%y %H.%M.%S")
        # The format counts years from 1985 to 2084.
        origin = start.replace(year=start.year % 100 + (1900 if start.year % 100 >= 85 else 2000)).isoformat()
    except ValueError:
        origin = None  # the header holds no date
    columns, units = ({label: getattr(one, what) for label, one in found.items()} for what in ("values", "unit"))
    return signals(columns, reading, rate=rates[next(iter(rates))], origin=origin, units=units)
