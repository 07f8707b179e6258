"""What is written beside signals of sleep and hearts: annotations of EDF+ files, and marks of WFDB records."""

from pathlib import Path
from typing import NamedTuple

from dicot.core.errors import naming
from dicot.data.edf import ANNOTATIONS, read_edf_header

RHYTHM = "+"  # the symbol of a change of rhythm; its name is the annotation's aux text
_SKIP, _NUM, _SUB, _CHN, _AUX = 59, 60, 61, 62, 63  # codes that modify the annotation before them
# The symbols of the annotation codes from 0 on; a blank where a code has none.
_SYMBOLS = ' NLRaVFJASEj/Q~ | sT*D"=pB^t+u?![]en@xf()r'.ljust(_SKIP)


class Annotation(NamedTuple):
    """A remark with its place in time, in seconds from the start of the file."""

    onset: float
    duration: float  # 0 where the file names none
    text: str


def read_edf_annotations(path: Path) -> list[Annotation]:
    """Read the annotations of an EDF+ file in the order of the file, without the marks that only keep time."""
    _, records = read_edf_header(path).stored(path, ANNOTATIONS)
    found, begin = [], None
    with naming(path):
        for entry in b"\0".join(record.tobytes() for record in records).split(b"\0"):
            if not entry:
                continue
            times, *texts = entry.split(b"\x14")
            onset, lasting = (float(part or 0) for part in times.partition(b"\x15")[::2])
            begin = onset if begin is None else begin  # of the first record, from which the signals count
            found += [Annotation(onset - begin, lasting, text.decode()) for text in texts if text]
    return found


class Mark(NamedTuple):
    """One annotation."""

    sample: int
    symbol: str
    aux: str = ""


def read_wfdb_marks(path: str | Path) -> list[Mark]:
    """Read the annotations of a file in MIT format (.atr, .qrs ...), in the order of the file."""
    marks: list[Mark] = []
    at = time = 0
    with naming(Path(path)):
        raw = Path(path).read_bytes()
        while (word := raw[at] | raw[at + 1] << 8) != 0:
            code, number = word >> 10, word & 0x3FF
            at += 2
            if code == _SKIP:  # the high half of the interval comes first, and it may be negative
                high, low = (int.from_bytes(raw[place : place + 2], "little") for place in (at, at + 2))
                time += (high << 16 | low) - (high >> 15 << 32)
                at += 4
            elif code == _AUX:
                if at + number > len(raw):
                    raise ValueError("it ends within a text")
                marks[-1] = marks[-1]._replace(aux=raw[at : at + number].decode("latin-1").rstrip("\x00"))
                at += number + number % 2
            elif code not in (_NUM, _SUB, _CHN):
                time += number
                marks.append(Mark(time, _SYMBOLS[code]))
    return marks
