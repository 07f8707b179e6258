"""Made folders of recordings beside a plain account of the truth: no window wrong, none missing without a sentence.

`DICOT_FOLDERS=100 pytest tests/data/test_made_folders.py` makes as many folders as you like. The first channel numbers
the samples of a folder, in an order that looks like noise, so that a window tells which samples it holds.
The account knows what happened (which samples were lost, where the rate changed, who was recorded); the library sees
the files alone.
"""

import os
import warnings
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.signal_files import write_edf

from dicot.core.errors import ClockWarning, LeftOutWarning, ShortRecordingWarning
from dicot.data import Windows
from dicot.data.labels import labelled
from dicot.data.wfdb import read_wfdb_signals

FOLDERS = int(os.environ.get("DICOT_FOLDERS", "12"))
NAMES = ("a", "b", "sub/a", "sub/deep/a", "monday/rec", "tuesday/rec", "rec", "x.1", "day 2/x.1")
CLOCKS = ("time", "timestamp", "ts_ms", "Time (s)", "elapsed", "time_us", "date")
PER_SECOND = {"ts_ms": 1e3, "time_us": 1e6}
PRIME, FACTOR = 16381, 6007  # number of a sample -> value of the first channel, and back


def numbers_of(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.astype(np.int64) * pow(FACTOR, -1, PRIME) % PRIME)


@dataclass
class Recorded:
    """What happened: samples that follow each other at one rate lie in one stretch."""

    name: str
    stretches: list[np.ndarray]  # numbers of samples
    rates: list[float]
    times: np.ndarray  # when each was taken, without jitter
    labels: np.ndarray  # NaN where nobody said
    person: int
    jitter: str
    hits: Counter[int] = field(default_factory=Counter)  # how often a sample is expected in a window

    @property
    def samples(self) -> np.ndarray:
        return np.concatenate(self.stretches)


def record(rng: np.random.Generator, name: str, first: int, rate: float, clean: bool) -> Recorded:
    """Draw stretches with lost samples between them, some at half the rate, and labels that come in blocks."""
    stretches, rates, times, now = [], [], [], 0.0
    jitter = str(rng.choice(["none", "none", "uniform", "late"]))
    for number in range(1 if clean else int(rng.integers(1, 5))):
        n, slow = int(rng.integers(60, 400)), number > 0 and rate / 2 not in rates and rng.random() < 0.25
        own = rate / 2 if slow else rate
        n = n + 200 if not slow else max(100, n // 2)  # most of a recording has its usual rate
        if number:
            slower = min(own, rates[-1])
            now += int(rng.integers(2, 5 if rng.random() < 0.5 else 500)) / slower  # at least one sample is lost
        stretches.append(first + sum(map(len, stretches)) + np.arange(n))
        rates.append(own)
        times.append(now + np.arange(n) / own)
        now = times[-1][-1]
    if len(set(rates)) > 1:
        jitter = "none"  # which sample is the first of another rate, nobody could tell
    total = sum(map(len, stretches))
    labels = np.repeat(rng.choice([1.0, 2.0, 3.0, np.nan], total // 40 + 1), 40)[:total]
    if rng.random() < 0.5:
        labels = np.where(np.isnan(labels), 2.0, labels)
    return Recorded(name, stretches, rates, np.concatenate(times), labels, int(rng.integers(1, 4)), jitter)


def stamps(rng: np.random.Generator, one: Recorded, rate: float) -> np.ndarray:
    """Return the time stamps that a phone would have written: jitter, or a late delivery that catches up."""
    moved = one.times.copy()
    if one.jitter == "uniform":
        moved += rng.uniform(-0.3, 0.3, len(moved)) / rate
    elif one.jitter == "late":
        edges = np.cumsum([0, *map(len, one.stretches)])
        for start, stop in pairwise(edges):
            moved[rng.choice(np.arange(start + 20, stop - 24, 5), 2, replace=False)] += 0.8 / rate
    return np.asarray(moved)


def write_table(rng: np.random.Generator, root: Path, one: Recorded, clock: str, rate: float) -> None:
    seconds = 1.7e9 + stamps(rng, one, rate) if clock in ("date", "timestamp") else stamps(rng, one, rate)
    column: Any = np.round(seconds * PER_SECOND.get(clock, 1.0), 0 if clock in PER_SECOND else 6)
    if clock == "date":
        column = pd.to_datetime(np.round(seconds * 1e6), unit="us").strftime("%Y-%m-%dT%H:%M:%S.%f")
    elif clock in PER_SECOND:
        column = column.astype(np.int64)
    whole = not np.isnan(one.labels).any()
    frame = pd.DataFrame(
        {
            clock: column,
            "code": one.samples * FACTOR % PRIME,
            "wave": np.round(np.sin(one.times), 6),
            "activity": one.labels.astype(int) if whole else one.labels,
            "person": np.full(len(column), one.person if rng.random() < 0.5 else float(one.person)),
        }
    )
    if rng.random() < 0.3:
        frame = frame.sample(frac=1, random_state=int(rng.integers(100)))  # rows in any order
    path = root / one.name
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = rng.choice([".csv", ".csv.gz", ".parquet"])
    if kind == ".parquet":
        frame.to_parquet(f"{path}{kind}", index=False)
    else:
        frame.to_csv(f"{path}{kind}", index=False)


def cut(one: Recorded, rate: float, window: int, stride: int) -> list[tuple[str, list[int], float | None, int]]:
    """Cut a recording as anybody would by hand: recording, samples, label and person of each window."""
    by_sample = dict(zip(one.samples.tolist(), one.labels.tolist(), strict=True))
    found = []
    for samples, own in zip(one.stretches, one.rates, strict=True):
        start = 0
        while own == rate and start + window <= len(samples):
            inside = samples[start : start + window].tolist()
            known = Counter(by_sample[i] for i in inside if by_sample[i] == by_sample[i])
            most = max(known.values(), default=0)
            label = min(v for v, n in known.items() if n == most) if sum(known.values()) * 2 >= window else None
            found.append((one.name, inside, label, one.person))
            one.hits.update(inside)
            start += stride
    return found


@pytest.mark.parametrize("seed", range(FOLDERS))
def test_windows_of_a_made_folder_are_those_of_a_plain_account(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    rate = float(rng.choice([20, 25, 50, 100]))
    window = int(rng.integers(30, 120))
    stride = int(rng.integers(window // 3, window + 1))
    names = sorted(rng.choice(NAMES, size=int(rng.integers(2, 6)), replace=False).tolist())
    clock, clean, recorded = str(rng.choice(CLOCKS)), bool(rng.random() < 0.2), []
    for name in names:
        first = sum(len(one.samples) for one in recorded)
        recorded.append(record(rng, name, first, rate, clean))
        write_table(rng, tmp_path, recorded[-1], clock, rate)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        windows = Windows.from_folder(tmp_path, window, stride, label="activity", group="person")
    expected = [found for one in recorded for found in cut(one, rate, window, stride)]
    assert windows.channels == ("code", "wave") and windows.rate == pytest.approx(rate, rel=5e-3)
    assert windows.recording is not None and windows.y is not None and windows.group is not None
    assert windows.start is not None and windows.end is not None
    known = labelled(windows.y)
    held = numbers_of(windows.x[:, 0])
    ours = {
        (str(windows.recording[i]), int(held[i, 0])): (
            held[i].tolist(),
            float(windows.y[i]) if known[i] else None,
            int(windows.group[i]),
        )
        for i in range(len(windows))
    }
    assert len(ours) == len(windows), "no window twice"
    assert ours == {(name, samples[0]): (samples, label, person) for name, samples, label, person in expected}
    times = np.concatenate([one.times for one in recorded])
    begin = np.concatenate([np.full(len(one.samples), one.times[0]) for one in recorded])
    at = held[:, 0]
    taken = times[at] - (begin[at] if clock in ("date", "timestamp") else 0)
    np.testing.assert_allclose(windows.start, taken, atol=1.5 / rate)
    np.testing.assert_allclose(windows.end - windows.start, window / rate, atol=1.5 / rate)
    # Whatever is in no window is said, with its number, unless it is little.
    rows = len(times)
    covered = sum(len(one.hits) for one in recorded)
    short = sum(len(one.samples) for one in recorded if not one.hits)
    sentences = [str(one.message) for one in said if one.category is LeftOutWarning]
    named = [str(one.message) for one in said if one.category is ShortRecordingWarning]
    for one in recorded:
        assert one.hits or any(one.name in sentence for sentence in named)
    gone = sum(n < window for one in recorded for n in map(len, one.stretches) if one.hits)
    gone += sum(own != rate for one in recorded for own in one.rates)
    if rows - covered - short >= 0.25 * rows or gone:
        assert len(sentences) == 1 and f"({rows - covered - short:,} of {rows:,})" in sentences[0]
    for one in said:
        # Some tables are written in any order.
        assert one.category is not ClockWarning or "put in the order of time" in str(one.message)
        assert one.category in (LeftOutWarning, ShortRecordingWarning, ClockWarning), one.message


@pytest.mark.parametrize("seed", range(max(2, FOLDERS // 4)))
def test_resampled_windows_lie_on_the_line_that_was_recorded(seed: int, tmp_path: Path) -> None:
    """A ramp stays a ramp on any grid, and a window that spanned a gap would hold samples that nobody took."""
    rng = np.random.default_rng([1, seed])
    rate, window = float(rng.choice([20, 50])), int(rng.integers(30, 80))
    one = record(rng, "walk", 0, rate, clean=False)
    table = {"time": np.round(one.times, 6), "ramp": np.round(one.times, 6), "noise": rng.normal(size=len(one.times))}
    pd.DataFrame(table).to_csv(tmp_path / "walk.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        windows = Windows.from_folder(tmp_path, window, window, channels=["ramp"], time="time", resample=True)
    edges = np.cumsum([0, *map(len, one.stretches)])
    assert windows.start is not None and windows.end is not None and windows.rate == pytest.approx(rate, rel=5e-3)
    spans = [(one.times[a], one.times[b - 1]) for a, b in pairwise(edges)]
    found = np.zeros(len(spans), int)
    for ramp, start in zip(windows.x[:, 0], windows.start, strict=True):
        np.testing.assert_allclose(ramp, start + np.arange(window) / windows.rate, atol=2e-4)
        inside = [i for i, (low, high) in enumerate(spans) if low - 1e-3 <= ramp[0] and ramp[-1] <= high + 1e-3]
        assert len(inside) == 1
        found[inside[0]] += 1
    for count, (low, high) in zip(found, spans, strict=True):
        assert abs(count - int(((high - low) * windows.rate + 1) / window)) <= 1


@pytest.mark.parametrize("seed", range(max(2, FOLDERS // 10)))
def test_one_signal_in_any_unit_gives_the_same_windows(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([2, seed])
    numbers = rng.integers(-2000, 2000, 1000)
    write_edf(tmp_path / "micro.edf", {"EEG": (numbers, 100, (-2048, 2047, -2048, 2047))})
    raw = (tmp_path / "micro.edf").read_bytes()
    milli = raw.replace(b"uV".ljust(8), b"mV".ljust(8)).replace(b"-2048   2047    -", b"-2.048  2.047   -", 1)
    (tmp_path / "milli.edf").write_bytes(milli)
    windows = Windows.from_folder(str(tmp_path / "*.edf"), 100, 100)
    half = len(windows) // 2
    assert half == 10
    np.testing.assert_allclose(windows.x[:half], windows.x[half:], rtol=1e-3, atol=1e-6)
    for name, gain in (("milli", "200(0)/mV"), ("micro", "0.2(0)/uV")):
        (tmp_path / f"{name}.hea").write_text(f"{name} 1 100 1000\n{name}.dat 16 {gain} 16 0 0 0 0 EEG\n")
        (tmp_path / f"{name}.dat").write_bytes(numbers.astype("<i2").tobytes())
    assert np.isfinite(read_wfdb_signals(tmp_path / "milli")).all()
    windows = Windows.from_folder(str(tmp_path / "*.hea"), 100, 100)
    np.testing.assert_allclose(windows.x[:half], windows.x[half:], rtol=1e-5, atol=1e-6)
