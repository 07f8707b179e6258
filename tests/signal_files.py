"""Small files in the raw formats of signal recordings, written byte by byte; readers are tested against them."""

import struct
from datetime import datetime
from pathlib import Path

import numpy as np

Track = tuple[np.ndarray, int, tuple[float, float, int, int]]  # stored numbers, values per record, ranges


def text(value: object, width: int) -> bytes:
    return str(value).encode("latin-1").ljust(width)


def write_edf(
    path: Path,
    tracks: dict[str, Track],
    seconds: float = 1.0,
    reserved: str = "",
    start: str = "24.04.8916.13.00",
    n_records: int | None = None,
    unit: str = "uV",
) -> Path:
    """An EDF file; `tracks` are {label: (stored numbers, values per record, (physical and digital ranges))}."""
    counts = [count for _, count, _ in tracks.values()]
    records = {len(numbers) // count for numbers, count, _ in tracks.values()}
    assert len(records) == 1, "all signals must last as long"
    (n_complete,) = records
    # EDF+ asks for subfields here: who was recorded, and when once more.
    day = datetime.strptime(start[:8], "%d.%m.%y").strftime("%d-%b-%Y").upper()
    head = (
        text("0", 8)
        + text("X X X X", 80)
        + text(f"Startdate {day} X X X", 80)
        + text(start, 16)
        + text(256 * (1 + len(tracks)), 8)
    )
    head += text(reserved, 44) + text(n_complete if n_records is None else n_records, 8) + text(seconds, 8)
    head += text(len(tracks), 4)
    ranges = [limits for _, _, limits in tracks.values()]
    head += b"".join(text(label, 16) for label in tracks) + b" " * 80 * len(tracks) + text(unit, 8) * len(tracks)
    head += b"".join(text(limits[i], 8) for i in range(4) for limits in ranges)
    head += b" " * 80 * len(tracks) + b"".join(text(count, 8) for count in counts) + b" " * 32 * len(tracks)
    body = b"".join(
        np.asarray(numbers).astype("<i2")[i * count : (i + 1) * count].tobytes()
        for i in range(n_complete)
        for numbers, count, _ in tracks.values()
    )
    path.write_bytes(head + body)
    return path


def annotation_track(entries: list[list[bytes]], width: int) -> Track:
    """The EDF+ signal of annotations: for each data record its time-stamped lists, in `width` bytes."""
    packed = b"".join(b"".join(entry + b"\x00" for entry in record).ljust(width, b"\x00") for record in entries)
    return np.frombuffer(packed, dtype="<i2"), width // 2, (-1, 1, -32768, 32767)


def _plain(number: float, sign: str = "") -> str:
    """EDF+ has no exponents."""
    return f"{number:{sign}.6f}".rstrip("0").rstrip(".")


def write_hypnogram(path: Path, stages: list[tuple[float, float, str]], start: str = "24.04.8916.13.00") -> Path:
    """A file of annotations alone, as Sleep-EDF has them: one record of no duration."""
    lists = [b"+0\x14\x14"] + [
        f"{_plain(on, '+')}\x15{_plain(lasts)}\x14{name}\x14".encode() for on, lasts, name in stages
    ]
    width = (sum(map(len, lists)) + len(lists) + 2) // 2 * 2
    return write_edf(path, {"EDF Annotations": annotation_track([lists], width)}, 0, "EDF+C", start)


def pack_212(numbers: np.ndarray) -> bytes:
    """Numbers of 12 bits, two in three bytes; of an odd count the last has two bytes."""
    bits = np.append(numbers, np.zeros(len(numbers) % 2, int)) & 0xFFF
    first, second = bits[0::2], bits[1::2]
    packed = np.stack([first & 0xFF, first >> 8 | second >> 8 << 4, second & 0xFF], axis=1).astype(np.uint8).tobytes()
    return packed if len(numbers) % 2 == 0 else packed[:-1]


def write_wfdb(record: Path, stored: np.ndarray, form: int = 212, rate: int = 250, gain: str = "200") -> None:
    """NAME.hea and NAME.dat from stored numbers (time, leads)."""
    numbers = stored.reshape(-1)
    raw = pack_212(numbers) if form == 212 else numbers.astype("<i2").tobytes()
    record.with_suffix(".dat").write_bytes(raw)
    lines = [f"{record.name} {stored.shape[1]} {rate} {len(stored)} 10:00:00"]
    lines += [f"{record.name}.dat {form} {gain} 12 0 0 0 0 ECG{i + 1}" for i in range(stored.shape[1])]
    record.with_suffix(".hea").write_text("\n".join(["# a comment", *lines, "# another"]) + "\n")


def write_marks(path: Path, marks: list[tuple[int, int, str]]) -> None:
    """Annotations (sample, code, aux) in MIT format; steps of more than 1023 samples need a skip."""
    out, last = b"", 0
    for sample, code, aux in marks:
        step = sample - last
        if not 0 <= step < 1024:
            out += struct.pack("<HHH", 59 << 10, (step >> 16) & 0xFFFF, step & 0xFFFF)
            step = 0
        out += struct.pack("<H", code << 10 | step)
        if aux:
            raw = aux.encode() + b"\x00"
            out += struct.pack("<H", 63 << 10 | len(raw)) + raw + b"\x00" * (len(raw) % 2)
        last = sample
    path.write_bytes(out + b"\x00\x00")
