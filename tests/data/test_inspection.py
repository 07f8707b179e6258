"""A first look at recordings, and the windows that it suggests."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.data import Windows
from dicot.data.inspection import (
    BARS,
    Inspected,
    dominant_period,
    inspect_recordings,
)
from dicot.data.suggestion import suggest_windows


def noise(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def write(path: Path, times: Any, values: np.ndarray) -> None:
    lines = [
        f"{t:.4f}," + ",".join("" if v != v else f"{v:.5f}" for v in row)
        for t, row in zip(times, values.T, strict=True)
    ]
    path.write_text("time," + ",".join(f"c{i}" for i in range(len(values))) + "\n" + "\n".join(lines))


def test_rows(tmp_path: Path) -> None:
    times = np.concatenate([np.arange(300) / 50, 20 + np.arange(100) / 50])
    values = np.stack([np.sin(2 * np.pi * times), noise(0, 400)])
    values[1, :80] = np.nan
    write(tmp_path / "a.csv", times, values)
    write(tmp_path / "b.csv", np.arange(50) / 10, noise(1, 1, 50))
    (tmp_path / "c.csv").write_text("time,c0\n0,1\n1,x\n")
    first, second, third = inspect_recordings(tmp_path)
    assert (first.file, first.rows, first.rate, first.gaps, first.stretches) == ("a.csv", 400, 50.0, 1, (300, 100))
    assert first.seconds == pytest.approx(22) and first.missing == 0.1 and first.channels == ("c0", "c1")
    assert len(first.sparkline) == 24 and set(first.sparkline) <= set(BARS)
    assert first.period == pytest.approx(50, rel=0.05)
    assert (second.file, second.rate, second.gaps, second.period) == ("b.csv", 10.0, 0, None)
    assert second.seconds == pytest.approx(5)
    assert third.file == "c.csv" and "line 3" in third.problem and third.rows == 0


@pytest.mark.parametrize("period", [12.5, 50, 200])
def test_periods_are_found_in_noise(period: float) -> None:
    wave = np.sin(2 * np.pi * np.arange(2000) / period)
    beats = (np.arange(2000) % round(period) < 3).astype(float)
    for seed in range(5):
        assert dominant_period(wave + 0.5 * noise(seed, 1, 2000)) == pytest.approx(period, rel=0.05)
        assert dominant_period(beats + 0.05 * noise(seed, 1, 2000) + 7) == pytest.approx(round(period), rel=0.05)


def test_no_period_is_found_where_there_is_none() -> None:
    for seed in range(20):
        assert dominant_period(noise(seed, 2, 1000)) is None
        assert dominant_period(np.cumsum(noise(seed, 1, 1000), axis=1)) is None
    assert dominant_period(np.ones((1, 500))) is None
    assert dominant_period(np.arange(500.0)[None]) is None
    assert dominant_period(np.sin(np.arange(20.0))[None]) is None  # too short to tell


def row(**changed: Any) -> Inspected:
    facts = {
        "file": "a",
        "rows": 6000,
        "rate": 50.0,
        "stretches": (6000,),
        "channels": ("u",),
        "means": (0.0,),
        "stds": (1,),
    }
    return Inspected(**(facts | changed))


def test_suggested_windows_hold_some_periods() -> None:
    said = suggest_windows([row(period=26.0), row(period=25.0), row(period=None)])
    assert said.reading.window == "2.04s" and "2 of 3" in said.reasons["window"] and "0.51 s" in said.reasons["window"]
    assert suggest_windows([row(period=25.0, rate=None)] * 4).reading.window == 100


def test_suggested_scales() -> None:
    assert suggest_windows([row(channels=("u", "v"), means=(0, 0), stds=(1, 40))]).reasons["scale"].count("40")
    levels = [row(means=(float(10 * i),)) for i in range(5)]
    assert suggest_windows(levels).reading.scale == "case" and "level of u" in suggest_windows(levels).reasons["scale"]
    assert suggest_windows([row(), row()]).reading.scale == "dataset"
    load = [row(channels=("u", "load"), means=(0.0, 10.0 * i), stds=(1.0, 1.0)) for i in range(5)]
    assert suggest_windows(load).reading.scale == "dataset", "one channel whose level tells does not speak for all"
    louder = [row(means=(10.0 * i,), stds=(1.0 + i,)) for i in range(5)]
    assert suggest_windows(louder).reading.scale == "dataset", "the size tells recordings apart"


def test_windows_of_fast_vibration_are_no_moments(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number, size in enumerate((1.0, 1.2, 2.5, 4.0)):
        hits = np.zeros(48_000)
        hits[:: 120 + 10 * number] = 5  # a fault about a hundred times a second, ringing at 3 kHz
        ring = np.convolve(hits, np.exp(-np.arange(60) / 15) * np.sin(np.pi / 2 * np.arange(60)))[:48_000]
        np.savez(tmp_path / f"{number}.npz", X=size * (ring + rng.normal(0, 0.3, 48_000))[None], rate=12_000)
    said = suggest_windows(inspect_recordings(tmp_path))
    assert (
        Windows.from_folder(tmp_path, said.reading.window, said.reading.stride).n_times >= 1024
        and said.reading.scale == "dataset"
    )
    assert suggest_windows([row(stds=(0.0,))]).reading.scale is None


def test_what_is_suggested_can_be_used(tmp_path: Path) -> None:
    times = np.arange(3000) / 31.25
    for seed in range(3):
        write(tmp_path / f"{seed}.csv", times, np.sin(2 * np.pi * times / 1.3) + 0.2 * noise(seed, 2, 3000))
    said = suggest_windows(inspect_recordings(tmp_path))
    windows = Windows.from_folder(tmp_path, said.reading.window, said.reading.stride)
    assert windows.n_times == pytest.approx(4 * 1.3 * 31.25, abs=2)
    assert f"{len(windows)}" in said.reasons["stride"]


def test_a_long_period_does_not_make_a_window_of_half_the_recording() -> None:
    said = suggest_windows([row(rows=15_831, stretches=(15_831,), period=1727.0, rate=None)])
    assert isinstance(said.reading.window, int) and said.reading.window <= 15_831 / 40
    assert "some tens of windows" in said.reasons["window"]


@pytest.mark.parametrize(
    ("rate", "seconds"), [(20.0, 3.2), (50.0, 2.56), (100.0, 2.56), (200.0, 2.56), (1.0, 128), (1 / 60, 7680)]
)
def test_windows_without_a_period_go_by_the_rate(rate: float, seconds: float) -> None:
    said = suggest_windows([row(rows=50_000, stretches=(50_000,), rate=rate)])
    assert said.reading.window == f"{seconds:g}s" and "a common size" in said.reasons["window"]


@pytest.mark.parametrize(("n", "stride"), [(10, "25%"), (60, "50%"), (1000, "100%")])
def test_strides_make_some_hundreds_to_some_thousands_of_windows(n: int, stride: str) -> None:
    said = suggest_windows([row(rows=3000, stretches=(3000,))] * n)
    assert said.reading.stride == stride and said.reading.window == "2.56s"
