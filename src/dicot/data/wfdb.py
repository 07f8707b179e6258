"""WFDB records as PhysioNet publishes them: .hea header, .dat signals in formats 212 and 16, .atr annotations."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dicot.data.policies import Array, FloatArray
from dicot.errors import InputError, lookup

RHYTHM = "+"  # the symbol of a change of rhythm; its name is the annotation's aux text
_SKIP, _NUM, _SUB, _CHN, _AUX = 59, 60, 61, 62, 63  # codes that are no annotation of their own
# The symbols of the annotation codes from 0 on; a blank where a code has none.
_SYMBOLS = ' NLRaVFJASEj/Q~ | sT*D"=pB^t+u?![]en@xf()r'.ljust(_SKIP)
_DEFAULT_GAIN = 200.0
_LARGEST_BASELINE = 1 << 31
_GAIN = re.compile(r"(?P<gain>[-+.\deE]+)(\((?P<baseline>-?\d+)\))?(/(?P<unit>\S+))?$")


@dataclass(frozen=True)
class Lead:
    """One signal as the header describes it: physical value = (stored number - baseline) / gain."""

    file: str
    form: str  # how its numbers are stored
    gain: float
    baseline: int
    unit: str
    name: str


@dataclass(frozen=True)
class Header:
    """What the .hea file says."""

    record: str
    rate: float  # Hz
    n_times: int | None  # None where it does not say
    leads: tuple[Lead, ...]


@dataclass(frozen=True)
class Mark:
    """One annotation."""

    sample: int
    symbol: str
    aux: str = ""


def read_wfdb_header(record: str | Path) -> Header:
    """The header of a record, given its path without suffix."""
    path = Path(f"{record}.hea")
    try:
        lines = [line.strip() for line in path.read_text(encoding="latin-1").splitlines()]
        lines = [line for line in lines if line and not line.startswith("#")]
        name, n_leads, *rest = lines[0].split()
        if "/" in name:
            raise ValueError("records of several segments are not supported")
        rate = float(re.split(r"[/(]", rest[0])[0]) if rest else 250.0  # the format's default
        n_times = int(rest[1]) if len(rest) > 1 else 0
        if not (math.isfinite(rate) and rate > 0) or n_times < 0 or int(n_leads) < 0:
            raise ValueError(f"{n_leads} signals of {n_times} time steps at {rate:g} Hz cannot be")
        if len(lines) < 1 + int(n_leads):
            raise ValueError(f"{n_leads} signals are announced, {len(lines) - 1} described")
        return Header(name, rate, n_times or None, tuple(_lead(line) for line in lines[1 : 1 + int(n_leads)]))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}). Check the path.") from error
    except (ValueError, IndexError) as error:
        raise InputError(f"{path} cannot be read as a WFDB header ({error}). Fetch it again.") from error


def wfdb_signal_files(record: str | Path) -> list[Path]:
    """The files that the header of a record names; they lie in its own folder."""
    return [Path(record).parent / file for file in sorted({lead.file for lead in read_wfdb_header(record).leads})]


def read_wfdb_signals(record: str | Path) -> FloatArray:
    """All leads in their physical unit, (C, T); what the record marks as invalid is NaN."""
    header = read_wfdb_header(record)
    forms = {(lead.file, lead.form) for lead in header.leads}
    if len(forms) != 1:
        raise InputError(f"{record}.hea must name one signal file of one format; got {sorted(forms) or 'none'}.")
    ((file, form),) = forms
    unpack, invalid = lookup(_FORMATS, form, "WFDB signal format")
    path = Path(record).parent / file
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is no plain file")
        numbers = unpack(np.fromfile(path, dtype=np.uint8))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}). Fetch it into the folder of its header.") from error
    n_leads = len(header.leads)
    n_times = header.n_times or len(numbers) // n_leads
    if len(numbers) < n_times * n_leads:
        raise InputError(
            f"{path} holds {len(numbers) // n_leads} time steps; its header promises {n_times}. "
            "It is truncated; fetch it again."
        )
    stored = numbers[: n_times * n_leads].reshape(n_times, n_leads)
    out = np.empty((n_leads, n_times), dtype=np.float32)
    for row, column, lead in zip(out, stored.T, header.leads, strict=True):
        with np.errstate(over="ignore"):
            row[:] = (column - np.float64(lead.baseline)) / lead.gain
        if np.isinf(row).any():
            raise InputError(f"{record}.hea: a gain of {lead.gain:g} makes values that are too large. Fetch it again.")
        row[column == invalid] = np.nan
    return out


def read_wfdb_marks(path: str | Path) -> list[Mark]:
    """The annotations of a file in MIT format (.atr, .qrs ...), in the order of the file."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}). Check the path.") from error
    marks: list[Mark] = []
    at = time = 0
    try:
        while (word := _word(raw, at)) != 0:
            code, number = word >> 10, word & 0x3FF
            at += 2
            if code == _SKIP:  # the high half of the interval comes first
                skip = _word(raw, at) << 16 | _word(raw, at + 2)
                time += skip - (skip >> 31 << 32)  # it may be negative
                at += 4
            elif code == _AUX:
                text = raw[at : at + number]
                if len(text) < number:
                    raise IndexError
                marks[-1] = Mark(marks[-1].sample, marks[-1].symbol, text.decode("latin-1").rstrip("\x00"))
                at += number + number % 2
            elif code not in (_NUM, _SUB, _CHN):
                time += number
                if time < 0:
                    raise InputError(f"{path}: the mark before byte {at} lies before the recording. Fetch it again.")
                marks.append(Mark(time, _SYMBOLS[code]))
    except IndexError as error:
        raise InputError(f"{path} is truncated or no annotation file (byte {at} of {len(raw)}). Fetch it.") from error
    return marks


def _word(raw: bytes, at: int) -> int:
    """The 16 bits at a place, low byte first."""
    return raw[at] | raw[at + 1] << 8


def _lead(line: str) -> Lead:
    """`FILE FORMAT GAIN(BASELINE)/UNIT BITS ZERO FIRST CHECKSUM BLOCK NAME`, where all from GAIN on may be missing."""
    words = line.split(maxsplit=8)
    words += [""] * (9 - len(words))
    found = _GAIN.match(words[2] or "0")
    if not words[1].isdecimal() or found is None:
        raise ValueError(f"{line!r}: a plain format number and a gain are expected after the file's name")
    # A header from elsewhere must not make us read any file of this machine.
    if words[0] in (".", "..") or re.search(r"[/\\\0]", words[0]):
        raise ValueError(f"{line!r}: signals must be in a file of the header's own folder, given by its plain name")
    gain = float(found["gain"]) or _DEFAULT_GAIN
    baseline = int(found["baseline"] or words[4] or 0)  # without one it is the zero of the converter
    if not math.isfinite(gain) or abs(baseline) > _LARGEST_BASELINE:
        raise ValueError(f"{line!r}: gain and baseline must be ordinary numbers")
    return Lead(words[0], words[1], gain, baseline, found["unit"] or "mV", words[8])


def _unpack_212(raw: Array) -> Array:
    """Two numbers of 12 bits in three bytes; the middle byte has the high bits of the first in its low half."""
    # A file of an odd count ends after the second byte of its last group.
    whole = np.zeros(-(-len(raw) // 3) * 3, dtype=np.uint8)
    whole[: len(raw)] = raw
    low, middle, high = (part.astype(np.int16) for part in whole.reshape(-1, 3).T)
    numbers = np.empty(2 * len(low), dtype=np.int16)
    numbers[0::2] = low | (middle & 0x0F) << 8
    numbers[1::2] = high | (middle & 0xF0) << 4
    numbers[numbers > 2047] -= 4096
    return numbers[: len(raw) * 2 // 3]


def _unpack_16(raw: Array) -> Array:
    return raw[: len(raw) // 2 * 2].view("<i2")


# For each format: how to unpack it, and the number that stands for no value.
_FORMATS: dict[str, tuple[Callable[[Array], Array], int]] = {"212": (_unpack_212, -2048), "16": (_unpack_16, -32768)}
