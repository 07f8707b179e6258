"""WFDB records as PhysioNet publishes them: a .hea header, and .dat signals of formats 212 and 16.

They are read here and not by the package wfdb, which takes a rate of -250 or nan for 250, and a gain of +2.5e1 for 2.
"""

import math
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dicot.core.errors import InputError, lookup, naming
from dicot.data.cases import FloatArray
from dicot.data.reading import Reading
from dicot.data.recording import Parts, signals

_DEFAULT_GAIN = 200.0
_BITS = {"212": 12, "16": 16}  # of a stored number by signal format
_GAIN = re.compile(r"(?P<gain>[-+.\deE]+)(\((?P<baseline>-?\d{1,9})\))?(/(?P<unit>\S+))?$")


class Lead(NamedTuple):
    """One signal as the header describes it: physical value = (stored number - baseline) / gain."""

    file: str
    form: str  # how its numbers are stored
    gain: float
    baseline: int
    unit: str
    name: str


class WfdbHeader(NamedTuple):
    """The content of a .hea file."""

    record: str
    rate: float  # Hz
    n_times: int | None  # None where it does not say
    leads: tuple[Lead, ...]


def read_wfdb_header(record: str | Path) -> WfdbHeader:
    """Read the header of a record, given its path without suffix."""
    path = Path(f"{record}.hea")
    with naming(path):
        lines = [line.strip() for line in path.read_text(encoding="latin-1").splitlines()]
        lines = [line for line in lines if line and not line.startswith("#")]
        name, n_leads, *rest = lines[0].split()
        if "/" in name:
            raise ValueError("records of several segments are not supported")
        rate = float(re.split(r"[/(]", rest[0])[0]) if rest else 250.0  # the format's default
        n_times = int(rest[1]) if len(rest) > 1 else 0
        if not (math.isfinite(rate) and rate > 0) or n_times < 0 or not 0 <= int(n_leads) < len(lines):
            raise ValueError(
                f"{n_leads} signals of {n_times} time steps at {rate:g} Hz are announced, {len(lines) - 1} described"
            )
        return WfdbHeader(name, rate, n_times or None, tuple(_lead(line) for line in lines[1 : 1 + int(n_leads)]))


def _lead(line: str) -> Lead:
    """Parse `FILE FORMAT GAIN(BASELINE)/UNIT BITS ZERO FIRST CHECKSUM BLOCK NAME`; all from GAIN on may be missing."""
    words = line.split(maxsplit=8)
    words += [""] * (9 - len(words))
    scale = _GAIN.match(words[2] or "0")
    # A header from elsewhere must not make us read any file of this machine.
    gain = math.nan if scale is None else float(scale["gain"]) or _DEFAULT_GAIN
    if scale is None or not math.isfinite(gain) or words[0] in (".", "..") or re.search(r"[/\\\0]", words[0]):
        raise ValueError(f"{line!r}: a file of the header's own folder, a format and a gain are expected")
    baseline = int(scale["baseline"] or words[4] or 0)  # without one it is the zero of the converter
    return Lead(words[0], words[1], gain, baseline, scale["unit"] or "mV", words[8])


def wfdb_signal_files(record: str | Path) -> list[Path]:
    """List the files that the header of a record names; they lie in its own folder."""
    return [Path(record).parent / file for file in sorted({lead.file for lead in read_wfdb_header(record).leads})]


def read_wfdb_signals(record: str | Path) -> FloatArray:
    """Read all leads in their physical unit, (C, T); what the record marks as invalid is NaN."""
    header = read_wfdb_header(record)
    forms = {(lead.file, lead.form) for lead in header.leads}
    if len(forms) != 1:
        raise InputError(f"{record}.hea must name one signal file of one format; got {sorted(forms) or 'none'}.")
    ((file, form),) = forms
    bits, path = lookup(_BITS, form, "WFDB signal format"), Path(record).parent / file
    with naming(path):
        raw = np.fromfile(path, np.uint8)
    n_leads, n_stored = len(header.leads), len(raw) * 8 // bits
    n_times = header.n_times or n_stored // n_leads
    if not n_times or n_stored < n_times * n_leads:
        raise InputError(
            f"{path} holds {n_stored // n_leads} time steps; its header announces {n_times}. It is truncated; fetch it "
            "again."
        )
    if form == "16":
        stored = raw.view("<i2")
    else:  # two numbers of 12 bits in three bytes
        low, middle, high = np.pad(raw, (0, -len(raw) % 3)).astype(np.int16).reshape(-1, 3).T
        stored = np.stack([low | (middle & 0x0F) << 8, high | (middle & 0xF0) << 4], axis=1).reshape(-1)
        stored = np.where(stored > 2047, stored - 4096, stored)
    stored = stored[: n_times * n_leads].reshape(n_times, n_leads).T
    values = np.where(stored == -(1 << (bits - 1)), np.nan, stored)
    baseline, gain = (np.array([[getattr(lead, what)] for lead in header.leads]) for what in ("baseline", "gain"))
    return np.ascontiguousarray(((values - baseline) / gain).astype(np.float32))


def read_wfdb(path: Path, reading: Reading) -> Parts:
    """Read the leads of a record, given its header."""
    header = read_wfdb_header(path.with_suffix(""))
    values = read_wfdb_signals(path.with_suffix(""))
    names = [lead.name for lead in header.leads]
    # Many records of PhysioNet call every lead "ECG", and no file says which is which.
    if "" in names or len(set(names)) < len(names):
        names = [f"lead {i}" for i in range(len(names))]
    units = {name: lead.unit for name, lead in zip(names, header.leads, strict=True)}
    return signals(dict(zip(names, values, strict=True)), reading, rate=header.rate, units=units)
