"""Recordings: EDF with annotations, and WFDB records in both formats with theirs."""

import math
import re
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from dicot.data.edf import read_edf_annotations, read_edf_signal
from dicot.data.wfdb import read_wfdb_header, read_wfdb_marks, read_wfdb_signals
from tests.signal_files import annotation_track, write_edf, write_marks, write_wfdb
from tests.survival.kind import Kind, UnreadableError
from tests.survival.mutations import BINARY, TEXT, change_number_in_place
from tests.survival.reference import finite, whole

RECORDS, PER_RECORD = 3, 20


def _edf(folder: Path) -> None:
    numbers = np.random.default_rng(3).integers(-2000, 2000, RECORDS * PER_RECORD)
    lists = [[b"+%d\x14\x14" % i, b"+%d.5\x150.5\x14stage %d\x14" % (i, i)] for i in range(RECORDS)]
    eeg = (numbers, PER_RECORD, (-250.0, 250.0, -2048, 2047))
    write_edf(folder / "a.edf", {"EEG": eeg, "EDF Annotations": annotation_track(lists, 40)}, reserved="EDF+C")


def _read_edf(folder: Path) -> Any:
    signal = read_edf_signal(folder / "a.edf", "EEG")
    return signal.values, signal.rate, read_edf_annotations(folder / "a.edf")


def change_edf_header(data: bytes, dice: Random) -> bytes:
    """Another number in the header, as wide as the old one."""
    return change_number_in_place(data[:768], dice) + data[768:]


def _edf_fields(data: bytes) -> tuple[list[dict[str, str]], int, float]:
    n_signals = whole(data[252:256].decode("latin-1"))
    if not 0 < n_signals < 100 or len(data) < 256 * (1 + n_signals):
        raise UnreadableError(f"{n_signals} signals in a header of {len(data)} bytes")
    at, signals = 256, [{} for _ in range(n_signals)]
    for name, width in zip(
        ("label", "", "", "low", "high", "first", "last", "", "count"), (16, 80, 8, 8, 8, 8, 8, 80, 8), strict=True
    ):
        for signal in signals:
            signal[name] = data[at : at + width].decode("latin-1").strip()
            at += width
    return signals, whole(data[236:244].decode("latin-1")), finite(data[244:252].decode("latin-1"))


def judge_edf(folder: Path, result: Any, sound: Any) -> str:
    values, rate, annotations = result
    data = (folder / "a.edf").read_bytes()
    signals, n_records, seconds = _edf_fields(data)
    counts = [whole(signal["count"]) for signal in signals]
    labels = [signal["label"] for signal in signals]
    if min(counts) < 0 or seconds <= 0 or labels.count("EEG") != 1 or labels.count("EDF Annotations") != 1:
        raise UnreadableError(f"counts {counts}, {seconds} seconds, labels {labels}")
    eeg, notes = labels.index("EEG"), labels.index("EDF Annotations")
    low, high = finite(signals[eeg]["low"]), finite(signals[eeg]["high"])
    first, last = whole(signals[eeg]["first"]), whole(signals[eeg]["last"])
    for signal in signals:
        finite(signal["low"]), finite(signal["high"]), whole(signal["first"]), whole(signal["last"])
    start, width = 256 * (1 + len(signals)), sum(counts)
    held = (len(data) - start) // (2 * width) if width else 0
    n_records = held if n_records == -1 else n_records
    if not 0 <= n_records <= held or first == last or counts[eeg] == 0:
        raise UnreadableError(f"{n_records} records promised, {held} held; digital range {first} to {last}")
    stored = np.frombuffer(data, "<i2", n_records * width, start).reshape(n_records, width)
    digital = stored[:, sum(counts[:eeg]) : sum(counts[: eeg + 1])].ravel().astype(float)
    wanted = (digital - first) * ((high - low) / (last - first)) + low
    if not np.isfinite(values).all():
        return "NaN or inf among the values"
    if values.shape != wanted.shape or not np.allclose(
        values, wanted, rtol=1e-5, atol=1e-37 + 1e-5 * max(abs(low), abs(high))
    ):
        return "the values are not those of the file"
    if not math.isclose(rate, counts[eeg] / seconds):
        return f"the rate is {rate}, by the header {counts[eeg] / seconds}"
    raw = stored[:, sum(counts[:notes]) : sum(counts[: notes + 1])]
    return _judge_annotations([record.tobytes() for record in raw], annotations)


def _judge_annotations(records: list[bytes], annotations: Any) -> str:
    wanted = []
    for entry in (entry for record in records for entry in record.split(b"\x00") if entry):
        stamp, *texts = entry.decode("utf-8", "replace").split("\x14")
        onset, _, duration = stamp.partition("\x15")
        times = finite(onset), finite(duration) if duration else 0.0
        if times[1] < 0:
            raise UnreadableError(f"an annotation lasts {duration} s")
        wanted += [(*times, text) for text in texts if text]
    found = [(note.onset, note.duration, note.text) for note in annotations]
    return "" if found == wanted else f"the annotations are {found[:3]}, in the file {wanted[:3]}"


def _wfdb(form: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        stored = np.random.default_rng(form).integers(-500, 500, (60, 2))
        (folder / "in").mkdir()
        write_wfdb(folder / "in" / "r", stored, form=form)
        write_marks(folder / "in" / "r.atr", [(5, 28, "(N"), (20, 1, ""), (1500, 5, ""), (1600, 28, "(AFIB")])
        (folder / "outside.dat").write_bytes(b"\x07" * 600)

    return make


def _read_wfdb(folder: Path) -> Any:
    record = folder / "in" / "r"
    return read_wfdb_header(record), read_wfdb_signals(record), read_wfdb_marks(folder / "in" / "r.atr")


def name_outside(data: bytes, dice: Random) -> bytes:
    """A header that names a file of another folder."""
    return data.replace(b"r.dat", dice.choice([b"../outside.dat", b"../in/../outside.dat", b"/etc/hostname", b"."]))


def judge_wfdb(folder: Path, result: Any, sound: Any) -> str:
    header, signals, marks = result
    lines = [line.strip() for line in (folder / "in" / "r.hea").read_text(encoding="latin-1").splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    _, n_leads, *rest = lines[0].split()
    rate = finite(re.split(r"[/(]", rest[0])[0]) if rest else 250.0
    leads, n_times = whole(n_leads), whole(rest[1]) if len(rest) > 1 else 0
    if rate <= 0 or leads < 1 or n_times < 0 or len(lines) < 1 + leads:
        raise UnreadableError(f"rate {rate}, {leads} leads, {n_times} time steps, {len(lines)} lines")
    if not math.isclose(header.rate, rate):
        return f"the rate is {header.rate}, in the file {rate}"
    words = [[*line.split(maxsplit=8), *[""] * 9] for line in lines[1 : 1 + leads]]
    if {(w[0], w[1]) for w in words} not in ({("r.dat", "212")}, {("r.dat", "16")}):
        raise UnreadableError(f"signals in {[w[:2] for w in words]}")
    raw = (folder / "in" / "r.dat").read_bytes()
    stored = (
        _twelve_bits(raw)
        if words[0][1] == "212"
        else list(struct.unpack(f"<{len(raw) // 2}h", raw[: len(raw) // 2 * 2]))
    )
    n_times = n_times or len(stored) // leads
    if len(stored) < n_times * leads or not n_times:
        raise UnreadableError(f"{len(stored)} numbers for {n_times} time steps of {leads}")
    numbers = np.array(stored[: n_times * leads], dtype=float).reshape(n_times, leads).T
    lost = -2048 if words[0][1] == "212" else -32768
    for row, w, found in zip(numbers, words, signals, strict=True):
        gain = re.fullmatch(r"([^(/]+)(?:\(([^)]*)\))?(?:/\S+)?", w[2] or "0")
        if gain is None:
            raise UnreadableError(f"gain {w[2]!r}")
        scale, baseline = finite(gain[1]) or 200.0, finite(str(whole(gain[2] or w[4] or "0")))
        wanted = np.where(row == lost, np.nan, (row - baseline) / scale)
        if np.isinf(found).any():
            return "inf among the values"
        if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=1e-5, atol=1e-6, equal_nan=True):
            return "the signals are not those of the file"
    return _judge_marks((folder / "in" / "r.atr").read_bytes(), marks)


def _twelve_bits(raw: bytes) -> list[int]:
    numbers = []
    for i in range(len(raw) * 2 // 3):
        at = i // 2 * 3
        value = raw[at] | (raw[at + 1] & 0x0F) << 8 if i % 2 == 0 else raw[at + 2] | (raw[at + 1] & 0xF0) << 4
        numbers.append(value - 4096 if value > 2047 else value)
    return numbers


def _judge_marks(raw: bytes, marks: Any) -> str:
    wanted: list[tuple[int, str]] = []
    at = time = 0
    try:
        while (word := struct.unpack_from("<H", raw, at)[0]) != 0:
            code, number = word >> 10, word & 0x3FF
            at += 2
            if code == 59:
                high, low = struct.unpack_from("<hH", raw, at)
                time, at = time + (high << 16) + low, at + 4
            elif code == 63:
                wanted[-1] = (wanted[-1][0], raw[at : at + number].decode("latin-1").rstrip("\x00"))
                at += number + number % 2
            elif code not in (60, 61, 62):
                time += number
                wanted.append((time, ""))
    except (struct.error, IndexError) as error:
        raise UnreadableError(f"the annotations end too early ({error})") from error
    if any(sample < 0 for sample, _ in wanted):
        raise UnreadableError("an annotation lies before the beginning")
    found = [(mark.sample, mark.aux) for mark in marks]
    return "" if found == wanted else f"the marks are {found[:3]}, in the file {wanted[:3]}"


WFDB = {"in/r.hea": (*TEXT, name_outside, name_outside), "in/r.dat": BINARY, "in/r.atr": BINARY}

KINDS = [
    Kind("edf", _edf, {"a.edf": (*BINARY, *(change_edf_header,) * 12)}, _read_edf, judge_edf),
    Kind("wfdb-212", _wfdb(212), WFDB, _read_wfdb, judge_wfdb),
    Kind("wfdb-16", _wfdb(16), WFDB, _read_wfdb, judge_wfdb),
]
