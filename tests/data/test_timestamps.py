"""Time stamps: what is read as one, order, gaps, rate and interpolation."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.clocks import to_seconds
from dicot.data.labels import lost_values
from dicot.data.timestamps import even_grid, interpolate_at, nearest, rate_of, stretches, time_order, usual_rate


def seconds(values: Any, **arguments: Any) -> tuple[list[float], str | None]:
    column = np.asarray(values)
    times, origin = to_seconds(column, lost_values(column), **arguments)
    assert times.dtype == np.float64
    return times.tolist(), origin


def test_numbers_are_seconds_unless_they_count_smaller_units_since_1970() -> None:
    assert seconds([0, 1, 3]) == ([0, 1, 3], None)
    assert seconds([0.5, 0.25]) == ([0.5, 0.25], None)
    assert seconds([0, 20], unit="ms") == ([0, 0.02], None)
    for factor in (1, 10**3, 10**6, 10**9):
        now = 1_772_000_000 * factor
        assert seconds([now + 3 * factor, now, now + 1]) == ([3, 0, 1 / factor], "2026-02-25T06:13:20+00:00")


def test_dates_count_from_the_first() -> None:
    assert seconds(["2026-03-01T12:00:01.5", "2026-03-01 12:00:00"]) == ([1.5, 0], "2026-03-01T12:00:00")
    # 2:00 in summer time is half an hour after 1:30 in winter time.
    assert seconds(["2026-03-29T01:30:00+01:00", "2026-03-29T03:00:00+02:00"])[0] == [0, 1800]
    assert seconds(["2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00"])[0] == [0, 0]
    aware = [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=1)))]
    assert seconds(np.array(aware, dtype=object)) == ([0, 3600], "2026-01-01T00:00:00+00:00")
    stamps = np.array(["2026-01-01T00:00:00.000000020", "2026-01-01"], dtype="datetime64[ns]")
    assert seconds(stamps) == ([pytest.approx(2e-8), 0], "2026-01-01T00:00:00.000000000")
    assert seconds(np.array([0, 1500], dtype="timedelta64[ms]")) == ([0, 1.5], None)


def test_digits_behind_microseconds_count() -> None:
    written = [f"2026-03-01T12:30:00.{250 * i:09d}Z" for i in (1, 2, 4)]
    times, origin = seconds(written)
    assert times == pytest.approx([0, 2.5e-7, 7.5e-7], abs=1e-15) and origin == "2026-03-01T12:30:00.000000250+00:00"
    assert seconds(["2026-03-01T12:30:00.000000500", "2026-03-01T12:30:00.5"])[0] == pytest.approx([0, 0.4999995])


@pytest.mark.parametrize(
    ("values", "arguments", "message"),
    [
        (["2026-01-01", "yesterday"], {}, "row 1.*yesterday"),
        (["2026-01-01T00:00:00", "2026-01-01T00:00:01Z"], {}, "row 1.*zone"),
        ([0.0, np.nan], {}, "row 1 has no time stamp"),
        (["2026-01-01", ""], {}, "row 1 has no time stamp"),
        ([0.0, np.inf], {}, "row 1 has no time stamp"),
        (["2026-01-01"], {"unit": "ms"}, "ms"),
        ([True, False], {}, "no time stamp"),
    ],
)
def test_what_is_no_time_stamp(values: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        seconds(values, **arguments)


def test_rows_are_put_in_order_and_those_of_one_time_stay_as_they_came() -> None:
    order = time_order(np.array([3.0, 1.0, 3.0, 2.0]))
    assert order is not None and order.tolist() == [1, 3, 0, 2]
    assert time_order(np.array([1.0, 1.0, 2.0])) is None


def runs_of(times: Any, gap: float = 1.5) -> list[slice]:
    return [one.rows for one in stretches(times, gap)]


def test_gaps_and_rate() -> None:
    steps = np.ones(29)
    steps[[10, 20]] = 1.6
    times = np.concatenate([[0], np.cumsum(steps)])
    runs = [slice(0, 11), slice(11, 21), slice(21, 30)]
    assert runs_of(times) == runs
    assert runs_of(times, 1.7) == [slice(0, 30)]
    assert runs_of(np.array([0, 1, 2, 3, 4.4, 5.4, 6.4])) == [slice(0, 7)]
    assert runs_of(times[:1]) == [slice(0, 1)]
    assert rate_of(times, runs) == 1
    assert rate_of(times[:1], [slice(0, 1)]) is None
    milliseconds = np.floor(np.arange(1000) * 2.5) / 1000  # 400 Hz as some loggers write it
    assert rate_of(milliseconds, runs_of(milliseconds)) == pytest.approx(400, rel=1e-3)


@pytest.mark.parametrize("lateness", [1, 3, 8, 20])
def test_time_stamps_that_came_late_and_catch_up_are_no_gap(lateness: int) -> None:
    times = np.arange(3000) / 50
    for row in range(100, 2900, 100):  # some wait for the one behind them, and come at once
        times[row : row + lateness] = times[row + lateness] - 1e-4 * np.arange(lateness, 0, -1)
    assert runs_of(times) == [slice(0, 3000)]
    lost = np.delete(times, np.arange(2950, 2950 + lateness))
    assert runs_of(lost) == [slice(0, 2950), slice(2950, 3000 - lateness)]


def test_lost_samples_are_found_under_jitter() -> None:
    found = extra = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        lost = rng.choice(np.arange(50, 2950, 60), 10, replace=False)
        times = np.sort(np.arange(3000) / 50 + rng.uniform(-0.006, 0.006, 3000))
        starts = {run.start for run in runs_of(np.delete(times, lost))} - {0}
        truth = {int(row - np.count_nonzero(lost < row)) for row in lost}
        found, extra = found + len(starts & truth), extra + len(starts - truth)
    assert found + extra == 300 and found > 0.99 * 300, "each is seen, and now and then a few rows from its place"


def test_stretches_of_another_rate_have_their_own() -> None:
    times = np.concatenate([np.arange(300) / 50, 6 + np.arange(400) / 25, 122 + np.arange(500) / 50])
    found = stretches(times)
    assert [(one.rows.start, one.rows.stop, one.rate) for one in found] == [
        (0, 300, 50),
        (300, 700, 25),
        (700, 1200, 50),
    ]
    assert usual_rate(times, found) == 50
    assert usual_rate(times[:700], stretches(times[:700])) == 25
    assert [one.part for one in stretches(times, gap=3)] == [0, 0], "steps of 40 ms are none then; the pause is"
    drifting = np.cumsum(0.02 * (1 + 0.05 * np.sin(np.arange(20_000) / 2000)))
    assert runs_of(drifting) == [slice(0, 20_000)]


def test_interpolation_is_exact_for_straight_lines_and_leaves_even_time_stamps_alone() -> None:
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 10, 200))
    values = np.stack([2 * times + 1, -times])
    grid = even_grid(times, 20.0)
    assert np.diff(grid) == pytest.approx(0.05) and grid[0] == times[0] and times[-1] - 0.05 < grid[-1] <= times[-1]
    np.testing.assert_allclose(interpolate_at(grid, times, values), np.stack([2 * grid + 1, -grid]))
    even = np.arange(50) / 20.0
    assert even_grid(even, 20.0) is even
    assert interpolate_at(even, even, values) is values


def test_missing_values_stay_missing_and_labels_come_from_the_nearest_time() -> None:
    times, grid = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 0.4, 0.6, 1.0, 1.5, 2.9])
    out = interpolate_at(grid, times, np.array([[0.0, 1.0, np.nan, 3.0]]))
    np.testing.assert_allclose(out, [[0, 0.4, 0.6, 1, np.nan, np.nan]])
    assert nearest(grid, times).tolist() == [0, 0, 1, 1, 1, 3]


@pytest.mark.parametrize("first", [252_207_666_810_782, 18_347_181_709_209])
def test_counters_that_are_no_dates_are_read_by_their_rate(first):
    stamps = np.array([first, first + 50_354_004])
    times, origin = to_seconds(stamps, np.zeros(2, bool))
    assert origin is None and np.diff(times)[0] == pytest.approx(0.050354004)


def test_numbers_that_are_no_date_in_any_unit_are_refused():
    stamps = np.array([3e20, 3e20 + 1e9])
    with pytest.raises(InputError, match="--set unit"):
        to_seconds(stamps, np.zeros(2, bool))
    with pytest.raises(InputError, match="year 11476.*--set unit"):
        to_seconds(stamps, np.zeros(2, bool), unit="ns")
