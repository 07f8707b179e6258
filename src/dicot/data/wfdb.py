"""WFDB records as PhysioNet publishes them: .hea header, .dat signals by the package wfdb, .atr annotations.

Header and annotations are read here: wfdb takes a rate of -250 or nan for 250, a gain of +2.5e1 for 2, three announced
signals of which one is described, and annotation files that end too early, whose last marks it drops. All of these are
refused, and it gets the record only after that.
"""

import math
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError, lookup, need_extra
from dicot.data.policies import FloatArray
from dicot.data.reading import Reading
from dicot.data.recording import Parts, signals

RHYTHM = "+"  # the symbol of a change of rhythm; its name is the annotation's aux text
_SKIP, _NUM, _SUB, _CHN, _AUX = 59, 60, 61, 62, 63  # codes that modify the annotation before them
# The symbols of the annotation codes from 0 on; a blank where a code has none.
_SYMBOLS = ' NLRaVFJASEj/Q~ | sT*D"=pB^t+u?![]en@xf()r'.ljust(_SKIP)
_DEFAULT_GAIN = 200.0
_BASELINE_LIMIT = 1 << 31
# Bits of a stored number by signal format; of those that wfdb reads, the ones that the tests know.
_BITS = {"212": 12, "16": 16}
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
class WfdbHeader:
    """The content of a .hea file."""

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


def read_wfdb_header(record: str | Path) -> WfdbHeader:
    """Read the header of a record, given its path without suffix."""
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
            raise ValueError(f"{n_leads} signals of {n_times} time steps at {rate:g} Hz are impossible")
        if len(lines) < 1 + int(n_leads):
            raise ValueError(f"{n_leads} signals are announced, {len(lines) - 1} described")
        return WfdbHeader(name, rate, n_times or None, tuple(_lead(line) for line in lines[1 : 1 + int(n_leads)]))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}). Check the path.") from error
    except (ValueError, IndexError) as error:
        raise InputError(f"{path} cannot be read as a WFDB header ({error}). Fetch it again.") from error


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
    bits = lookup(_BITS, form, "WFDB signal format")
    path = Path(record).parent / file
    try:
        if path.exists() and not path.is_file():
            raise OSError("it is not a plain file")
        n_stored = path.stat().st_size * 8 // bits
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}). Fetch it into the folder of its header.") from error
    n_times = header.n_times or n_stored // len(header.leads)
    if not n_times or n_stored < n_times * len(header.leads):
        raise InputError(
            f"{path} holds {n_stored // len(header.leads)} time steps; its header announces {n_times}. "
            "It is truncated; fetch it again."
        )
    values = _by_wfdb(path, n_times, header.leads)
    for lead, row in zip(header.leads, values, strict=True):
        if np.isinf(row).any():
            raise InputError(f"{record}.hea: a gain of {lead.gain:g} makes values that are too large. Fetch it again.")
    return values


def _by_wfdb(path: Path, n_times: int, leads: Sequence[Lead]) -> FloatArray:
    """Unpack and scale a signal file; wfdb reads it beside a header that says nothing but what was checked."""
    try:
        import wfdb
    except ImportError as error:
        raise need_extra("wfdb", "prepare", "Reading WFDB records") from error
    lines = [f"checked {len(leads)} 1 {n_times}"]
    lines += [f"checked.dat {lead.form} {lead.gain!r}({lead.baseline})/NU" for lead in leads]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "checked.hea").write_text("\n".join(lines) + "\n")
        (Path(folder) / "checked.dat").symlink_to(path.absolute())
        with np.errstate(over="ignore"):  # refused by the caller, who knows the lead
            record = wfdb.rdrecord(str(Path(folder) / "checked"))
            return np.ascontiguousarray(record.p_signal.T.astype(np.float32))


def read_wfdb_marks(path: str | Path) -> list[Mark]:
    """Read the annotations of a file in MIT format (.atr, .qrs ...), in the order of the file."""
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
        raise InputError(
            f"{path} is truncated or not an annotation file (byte {at} of {len(raw)}). Fetch it again."
        ) from error
    return marks


def _word(raw: bytes, at: int) -> int:
    """Return the 16 bits at a byte, low byte first."""
    return raw[at] | raw[at + 1] << 8


def _lead(line: str) -> Lead:
    """Parse `FILE FORMAT GAIN(BASELINE)/UNIT BITS ZERO FIRST CHECKSUM BLOCK NAME`; all from GAIN on may be missing."""
    words = line.split(maxsplit=8)
    words += [""] * (9 - len(words))
    scale = _GAIN.match(words[2] or "0")
    if not words[1].isdecimal() or scale is None:
        raise ValueError(f"{line!r}: a plain format number and a gain are expected after the file's name")
    # A header from elsewhere must not make us read any file of this machine.
    if words[0] in (".", "..") or re.search(r"[/\\\0]", words[0]):
        raise ValueError(f"{line!r}: signals must be in a file of the header's own folder, given by its plain name")
    gain = float(scale["gain"]) or _DEFAULT_GAIN
    baseline = int(scale["baseline"] or words[4] or 0)  # without one it is the zero of the converter
    if not math.isfinite(gain) or abs(baseline) > _BASELINE_LIMIT:
        raise ValueError(f"{line!r}: gain and baseline must be ordinary numbers")
    return Lead(words[0], words[1], gain, baseline, scale["unit"] or "mV", words[8])


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
