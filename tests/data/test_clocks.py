"""Clocks: counters that wrap, clocks that are set back, rows that came late, and units that nobody named."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicot.core.errors import ClockWarning, InputError, LeftOutWarning
from dicot.data import Allowance, Windows, inspect_recordings, suggest_windows
from dicot.data.readers import read_recording


def write(path: Path, stamps: Any) -> Path:
    """Write a recording whose values tell the order of its rows."""
    pd.DataFrame({"time": stamps, "x": values_of_rows(len(stamps))}).to_csv(path, index=False)
    return path


def values_of_rows(n: int) -> np.ndarray:
    return np.asarray(np.arange(n) * 137 % 1000)


def values_of(recording: Any) -> np.ndarray:
    return np.asarray(recording.values[0])


def remark_kinds(recording: Any) -> list[str]:
    return [remark.kind for remark in recording.remarks]


@pytest.mark.parametrize(
    ("bits", "step", "kind"),
    [(32, 20, np.uint32), (16, 20, np.uint16), (32, 10_000, np.uint32), (32, 10_000, np.int32)],
    ids=["32 bits in ms", "16 bits in ms", "32 bits in us", "32 bits with a sign in us"],
)
def test_a_counter_that_wraps_is_counted_on(tmp_path: Path, bits: int, step: int, kind: Any) -> None:
    first = 2 ** (bits - (kind is np.int32)) - 2000 * step if bits > 16 else 30_000
    stamps = (first + step * np.arange(4000)).astype(np.int64).astype(kind)
    recording = read_recording(write(tmp_path / "a.csv", stamps), unit="ms" if step == 20 else "us")
    np.testing.assert_array_equal(values_of(recording), values_of_rows(4000))
    assert recording.times is not None
    np.testing.assert_allclose(np.diff(recording.times), 0.02 if step == 20 else 0.01)
    assert "wrap" in remark_kinds(recording)


def test_seconds_of_the_day_go_on_behind_midnight(tmp_path: Path) -> None:
    stamps = np.round((86_000 + np.arange(1000) * 0.5) % 86_400, 1)
    recording = read_recording(write(tmp_path / "a.csv", stamps))
    np.testing.assert_array_equal(values_of(recording), values_of_rows(1000))
    assert recording.times is not None and np.ptp(recording.times) == pytest.approx(499.5)


def test_the_end_of_summer_time_does_not_mix_two_hours(tmp_path: Path) -> None:
    true = pd.date_range("2026-10-24T23:00", periods=3 * 3600, freq="s", tz="UTC")
    local = true.tz_convert("Europe/Berlin").tz_localize(None)
    recording = read_recording(write(tmp_path / "a.csv", local.strftime("%Y-%m-%dT%H:%M:%S")))
    np.testing.assert_array_equal(values_of(recording), values_of_rows(3 * 3600))
    np.testing.assert_allclose(np.diff(recording.times), 1)
    assert remark_kinds(recording) == ["summer time"]
    assert "line 7202" in recording.remarks[0].sentence


@pytest.mark.parametrize("second_start", [0.0, 30.01, 200.0], ids=["before", "within", "nearer"])
def test_a_clock_that_was_set_back_cuts_the_recording_there(tmp_path: Path, second_start: float) -> None:
    stamps = np.concatenate([300 + np.arange(2000) / 50, second_start + np.arange(1500) / 50])
    if second_start == 30.01:
        stamps[:2000] -= 290  # both parts share 30 seconds
    path = write(tmp_path / "a.csv", np.round(stamps, 3))
    recording = read_recording(path)
    np.testing.assert_array_equal(values_of(recording), values_of_rows(3500))
    assert remark_kinds(recording) == ["set back"] and "line 2002" in recording.remarks[0].sentence
    with pytest.warns(ClockWarning, match="a: Its time goes back at line 2002.*cut there.*--group NAME"):
        windows = Windows.from_folder(path, 100, 100)
    first_values = windows.x[:, 0, 0].astype(int)
    assert values_of_rows(2001)[-1] in first_values, "a window begins at the place"
    assert len(windows) == 35, "none is lost"


def test_rows_that_came_late_are_sorted_and_counted(tmp_path: Path) -> None:
    stamps = np.arange(4000) / 50
    rows = np.arange(4000).reshape(-1, 25)
    swapped = rows[np.arange(160).reshape(-1, 2)[:, ::-1].ravel()].ravel()  # every packet before the one it follows
    recording = read_recording(write(tmp_path / "a.csv", stamps[swapped]))
    np.testing.assert_array_equal(recording.times, stamps)
    assert remark_kinds(recording) == ["late"] and "at 80 of its 4,000 rows" in recording.remarks[0].sentence

    shuffled = np.random.default_rng(0).permutation(4000)
    for order in (shuffled, np.arange(4000)[::-1]):
        recording = read_recording(write(tmp_path / "a.csv", stamps[order]))
        np.testing.assert_array_equal(recording.times, stamps)
        assert remark_kinds(recording) == ["late"]


def test_a_single_wrong_stamp_moves_no_other_row(tmp_path: Path) -> None:
    stamps = np.arange(1000) / 50
    stamps[500] = 17.013  # far ahead, between others
    recording = read_recording(write(tmp_path / "a.csv", stamps))
    assert remark_kinds(recording) == ["late"] and recording.times is not None
    np.testing.assert_allclose(np.delete(recording.times, 850), np.delete(np.arange(1000) / 50, 500))


def test_remarks_of_a_folder_are_told_once_for_each_kind(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / f"{name}.csv", np.concatenate([np.arange(2000), np.arange(1500)]) / 50)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Windows.from_folder(tmp_path, 100)
    sentences = [str(one.message) for one in caught if issubclass(one.category, ClockWarning)]
    assert len(sentences) == 1 and "b, c" in sentences[0]


@pytest.mark.parametrize(
    ("first", "step", "unit"),
    [
        (5_000_000_000, 20, "ms"),  # on for 58 days; as seconds it would be 2128
        (0, 20_000, "us"),
        (800_000_000_000, 20_000_000, "ns"),  # on for 13 minutes; as ms it would be 1995, once in five hours
        (1_700_000_000, 1, "s"),
        (1_700_000_000_000, 86_400_000, "ms"),  # one a day keeps to the calendar
        (0, 600, "s"),
        (0, 1000, "ms"),
        (252_207_666_810_782, 50_354_004, "ns"),
    ],
)
def test_units_lead_to_a_sane_year_and_rate(tmp_path: Path, first: int, step: int, unit: str) -> None:
    recording = read_recording(write(tmp_path / "a.csv", first + step * np.arange(200)))
    per_second = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    assert recording.assumed_unit == unit
    assert recording.rate == pytest.approx(per_second / step)
    told = read_recording(write(tmp_path / "a.csv", first + step * np.arange(200)), unit=unit)
    assert told.assumed_unit is None and not told.remarks


def test_a_unit_that_may_be_another_is_told_with_the_setting(tmp_path: Path) -> None:
    counter = read_recording(write(tmp_path / "a.csv", 5_000_000_000 + 20 * np.arange(200)))
    assert counter.origin is None and "--set unit=ms" in counter.remarks[0].sentence
    slow = read_recording(write(tmp_path / "a.csv", 20 * np.arange(200)))
    assert slow.rate == 0.05 and "--set unit=ms" in slow.remarks[0].sentence
    usual = read_recording(write(tmp_path / "a.csv", np.arange(200)))
    assert not usual.remarks


def test_numbers_that_are_time_in_no_unit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--set unit=ms"):
        read_recording(write(tmp_path / "a.csv", 3e20 + 1e9 * np.arange(200)))


def write_counters(folder: Path, starts: dict[str, float]) -> None:
    """Write recordings of a watch that counts nanoseconds since it was switched on, 50 per second."""
    for name, start in starts.items():
        write(folder / f"{name}.csv", np.round((start + np.arange(3000) / 50) * 1e9).astype(np.int64))


def test_a_file_that_seems_to_count_in_another_unit_is_read_as_most_are(tmp_path: Path) -> None:
    # Ten days of nanoseconds, alone, look like microseconds of the year 1998, one row in 20 seconds.
    write_counters(tmp_path, {"a": 3, "b": 640, "c": 5000, "d": 900_000})
    assert read_recording(tmp_path / "d.csv").assumed_unit == "us"
    rows = inspect_recordings(tmp_path)
    assert [row.rate for row in rows] == [50, 50, 50, 50]
    assert "Its time stamps alone would be in another unit" in rows[3].remarks[0].sentence
    advice = suggest_windows(rows)
    assert advice.reading.unit == "ns" and "rate" not in advice.reasons
    with pytest.raises(InputError, match="'d' were read as microseconds, 0.05 per second.*--set unit=ns"):
        Windows.from_folder(tmp_path, "2s")
    with pytest.raises(InputError, match="--set unit=ns"):
        Windows.from_folder(tmp_path, "2s", rate=50)
    assert len(Windows.from_folder(tmp_path, "2s", "100%", unit="ns")) == 4 * 30


def test_files_of_different_units_and_one_rate_are_read_together(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", 1_700_000_000 + np.arange(500))
    write(tmp_path / "b.csv", 1_700_000_000_000 + 1000 * np.arange(500))
    assert len(Windows.from_folder(tmp_path, "50s", "100%")) == 20
    assert suggest_windows(inspect_recordings(tmp_path)).reading.unit is None


def write_with_lost_rows(path: Path, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    stamps = pd.date_range("2026-03-01", periods=6000, freq="s").strftime("%Y-%m-%d %H:%M:%S").to_numpy()
    write(path, stamps[rng.random(6000) > 0.045])


def test_lost_rows_do_not_change_the_rate_however_wide_a_gap_is(tmp_path: Path) -> None:
    write_with_lost_rows(tmp_path / "a.csv")
    for gap in (1.5, 2.5, 3.5, 50):
        recording = read_recording(tmp_path / "a.csv", gap=gap)
        assert recording.rate == 1


def test_lost_rows_that_leave_most_in_no_window_are_bridged_by_what_is_suggested(tmp_path: Path) -> None:
    write_with_lost_rows(tmp_path / "a.csv")
    advice = suggest_windows(inspect_recordings(tmp_path))
    assert advice.reading.gap == 3.5 and advice.reading.resample
    assert "Bridged" in advice.reasons["gap"]
    reading = advice.reading
    assert reading.window is not None
    with pytest.raises(InputError, match="8. % of the rows .*--set gap=3.5 --set resample=true bridges up to 2 lost"):
        Windows.from_folder(tmp_path, reading.window, reading.stride)
    bridged = Windows.from_folder(tmp_path, reading.window, reading.stride, gap=reading.gap, resample=True)
    assert bridged.rate == 1
    assert f"makes {len(bridged)}" in advice.reasons["stride"], "what is told is what is cut"


def test_a_warning_of_rows_in_no_window_names_the_options_that_bridge_lost_rows(tmp_path: Path) -> None:
    write_with_lost_rows(tmp_path / "a.csv")
    with pytest.warns(LeftOutWarning, match="--set gap=3.5 --set resample=true bridges up to 2 lost rows in a row"):
        Windows.from_folder(tmp_path, "20s", allowance=Allowance(partial=True))


def write_activities(path: Path, order: list[int], pause: float, start: str | None = None) -> tuple[Path, pd.DataFrame]:
    """Write activities of 20 seconds at 50 Hz in an order of the file; return the table in the order of time."""
    n_rows = 1000
    parts = []
    for activity in range(len(order)):
        seconds = activity * (n_rows / 50 + pause) + np.arange(n_rows) / 50
        values = activity * n_rows + np.arange(n_rows)
        parts.append(pd.DataFrame({"time": np.round(seconds, 2), "x": values, "activity": f"kind {activity}"}))
    table = pd.concat([parts[activity] for activity in order])
    if start is not None:
        dates = pd.Timestamp(start) + pd.to_timedelta(table["time"], unit="s")
        table["time"] = dates.dt.strftime("%Y-%m-%dT%H:%M:%S.%f")
    table.to_csv(path, index=False)
    return path, pd.concat(parts)


@pytest.mark.parametrize("pause", [5.0, 3600.0], ids=["short pauses", "pauses of an hour"])
@pytest.mark.parametrize("start", [None, "2026-10-25T00:30:00"], ids=["seconds", "dates"])
@pytest.mark.parametrize(
    ("order", "n_parts"),
    [([6, 2, 0, 7, 3, 1, 5, 4], 8), ([2, 0, 3, 1], 4), ([3, 1, 2, 0], 3)],
    ids=["eight", "a part between others", "two in their order"],
)
def test_parts_stored_out_of_order_are_put_in_the_order_of_time(
    tmp_path: Path, order: list[int], n_parts: int, start: str | None, pause: float
) -> None:
    path, true = write_activities(tmp_path / "a.csv", order, pause, start)
    recording = read_recording(path, label="activity")
    assert recording.times is not None
    np.testing.assert_allclose(recording.times - recording.times[0], true["time"], atol=1e-6)
    np.testing.assert_array_equal(values_of(recording), true["x"])
    np.testing.assert_array_equal(recording.label, true["activity"])
    assert remark_kinds(recording) == ["parts"]
    assert f"its {n_parts} parts were put in the order of time" in recording.remarks[0].sentence
    assert "line 1002" in recording.remarks[0].sentence


def test_windows_of_parts_out_of_order_keep_their_written_times_and_labels(tmp_path: Path) -> None:
    path, _ = write_activities(tmp_path / "a.csv", [3, 1, 4, 0, 2], pause=5)
    with pytest.warns(ClockWarning, match="its 5 parts were put in the order of time"):
        windows = Windows.from_folder(path, 500, 500, label="activity")
    assert windows.y is not None
    assert windows.y.tolist() == [f"kind {activity}" for activity in range(5) for _ in range(2)]
    np.testing.assert_allclose(windows.start, [25 * activity + 10 * half for activity in range(5) for half in range(2)])


def test_rows_that_came_late_within_parts_out_of_order_are_counted_apart(tmp_path: Path) -> None:
    path, true = write_activities(tmp_path / "a.csv", [2, 0, 3, 1], pause=5)
    table = pd.read_csv(path)
    order = np.arange(len(table))
    order[[100, 101]] = [101, 100]
    table.iloc[order].to_csv(path, index=False)
    recording = read_recording(path, ignore=("activity",))
    np.testing.assert_array_equal(values_of(recording), true["x"])
    assert remark_kinds(recording) == ["parts", "late"]
    assert "at 1 of its 4,000 rows" in recording.remarks[1].sentence


def test_a_clock_that_tells_a_time_twice_was_set_back_however_often(tmp_path: Path) -> None:
    stamps = np.concatenate([100 + np.arange(1000) / 50, 50 + np.arange(1000) / 50, 60 + np.arange(1000) / 50])
    recording = read_recording(write(tmp_path / "a.csv", np.round(stamps, 2)))
    np.testing.assert_array_equal(values_of(recording), values_of_rows(3000))
    assert remark_kinds(recording) == ["set back"]
