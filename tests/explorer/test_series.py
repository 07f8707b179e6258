"""Values behind windows: read when they are looked at, from recordings or cases."""

from pathlib import Path

import numpy as np
import pytest

from dicot.data import windows_from
from dicot.errors import InputError
from dicot.explorer import series as module
from dicot.explorer.series import decimate, series_of, stretched
from dicot.vectors import Vectors


def vectors_of(folder: Path, window: str | int, **options: object) -> tuple[Vectors, np.ndarray]:
    windows = windows_from(folder, window, "50%", **options)
    known = Vectors(np.zeros((len(windows), 3), np.float32), windows.recording, windows.start, windows.end)
    return known, windows.x


def test_decimation_keeps_every_extreme() -> None:
    rng = np.random.default_rng(0)
    for n_times, most in ((1001, 1000), (5000, 100), (997, 10), (64, 64)):
        values = rng.normal(size=(2, n_times))
        values[0, rng.integers(n_times)] = 100
        values[1, rng.integers(n_times)] = -100
        drawn = decimate(values, most)
        assert drawn.shape == (2, min(n_times, most))
        assert (drawn.max(axis=1) == values.max(axis=1)).all() and (drawn.min(axis=1) == values.min(axis=1)).all()
    ramp = np.arange(1000.0)[None]
    assert (np.diff(decimate(ramp, 100)[0]) >= 0).all()  # in the order of time
    values = np.full((1, 500), np.nan)
    values[0, 123] = 7
    assert np.nanmax(decimate(values, 20)) == 7 and np.isnan(decimate(values, 20)).sum() == 18
    assert stretched(np.arange(3.0)[None], 6).tolist() == [[0, 0, 1, 1, 2, 2]]


def write(path: Path, columns: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")


def test_windows_are_those_that_were_cut(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    time = np.round(np.arange(300) / 30, 6)
    time[150:] += 5  # a gap
    write(tmp_path / "r" / "a" / "one.csv", {"time": time, "p": rng.normal(size=300), "q": rng.normal(size=300)})
    write(tmp_path / "r" / "b" / "one.csv", {"q": rng.normal(size=300), "time": time, "p": rng.normal(size=300)})
    known, x = vectors_of(tmp_path / "r", "1s")
    series = series_of(known, str(tmp_path / "r"), {})
    assert series is not None and series.channels == ("p", "q")
    assert set(known.recording.tolist()) == {"a/one", "b/one"}
    for row, wanted in enumerate(x):
        got = series.window(row)
        assert got is not None and got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_recordings_of_one_file_are_told_apart_by_group(tmp_path: Path) -> None:
    user = np.repeat(["u:1", "u2"], 100)
    write(tmp_path / "all.csv", {"user": user, "v": np.arange(200.0)})
    known, x = vectors_of(tmp_path / "all.csv", 20, group="user")
    series = series_of(known, str(tmp_path / "all.csv"), {"group": "user"})
    assert series is not None
    for row, wanted in enumerate(x):
        np.testing.assert_array_equal(series.window(row), wanted)
    with pytest.raises(InputError, match=r"all\.csv has no recording 'all:u:1'.*--group"):
        series_of(known, str(tmp_path / "all.csv"), {"channels": ["v"]})


def test_a_rate_is_needed_where_no_time_is_known(tmp_path: Path) -> None:
    write(tmp_path / "one.csv", {"v": np.arange(200.0)})
    known, x = vectors_of(tmp_path / "one.csv", "0.5s", rate=50.0)
    series = series_of(known, str(tmp_path / "one.csv"), {}, 50.0)
    assert series is not None and series.rate == 50
    np.testing.assert_array_equal(series.window(3), x[3])
    with pytest.raises(InputError, match=r"no time stamps.*--rate"):
        series_of(known, str(tmp_path / "one.csv"), {})
    steps, x = vectors_of(tmp_path / "one.csv", 25)
    series = series_of(steps, str(tmp_path / "one.csv"), {})  # places in time steps need none
    assert series is not None
    np.testing.assert_array_equal(series.window(3), x[3])


def test_other_recordings_than_those_embedded_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "one.csv", {"v": np.arange(200.0)})
    write(tmp_path / "other" / "two.csv", {"v": np.arange(200.0)})
    write(tmp_path / "short" / "one.csv", {"v": np.arange(3.0)})
    known = Vectors(np.zeros((1, 2), np.float32), np.array(["one"]), np.array([100.0]), np.array([150.0]))
    with pytest.raises(InputError, match="they name one, the data have two"):
        series_of(known, str(tmp_path / "other"), {})
    with pytest.raises(InputError, match="'one' has no values from 100 to 150"):
        series_of(known, str(tmp_path / "short"), {})
    with pytest.raises(InputError, match="There is no file or folder"):
        series_of(known, str(tmp_path / "nowhere"), {})


def test_a_recording_that_is_not_there_is_named_and_its_windows_have_no_series(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / "r" / f"{name}.csv", {"v": np.arange(50.0)})
    known, _ = vectors_of(tmp_path / "r", 10)
    (tmp_path / "r" / "a.csv").unlink()
    series = series_of(known, str(tmp_path / "r"), {})
    assert series is not None and getattr(series, "lost", None) == ["a"]
    assert series.window(0) is None and series.surroundings(0) is None
    assert series.window(len(known) - 1) is not None


def test_files_are_read_when_they_are_needed_and_forgotten_when_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / "r" / f"{name}.csv", {"v": np.arange(50.0)})
    known, _ = vectors_of(tmp_path / "r", 10)
    read: list[str] = []
    usual = module.read_file
    monkeypatch.setattr(module, "read_file", lambda path, choice: read.append(path.stem) or usual(path, choice))
    series = series_of(known, str(tmp_path / "r"), {})
    assert series is not None and read == ["a"]
    per_file = len(known) // 3
    for row in (1, per_file, 2, per_file + 1):
        series.window(row)
    assert read == ["a", "b"]
    monkeypatch.setattr(module, "MEMORY", 1000)  # a recording takes 600
    for row in (2 * per_file, per_file, 0):
        series.window(row)
    assert read == ["a", "b", "c", "b", "a"]


def test_vectors_that_name_their_recordings_need_no_data(tmp_path: Path) -> None:
    write(tmp_path / "r" / "a.csv", {"t": np.arange(50.0) / 10, "v": np.arange(50.0), "w": np.ones(50)})
    known, x = vectors_of(tmp_path / "r", "1s", channels=["v"])
    entry = {"file": str(tmp_path / "r" / "a.csv"), "bytes": 1}
    source = {"kind": "recordings", "options": {"window": "1s", "channels": ["v"]}, "rate": 10.0}
    object.__setattr__(known, "source", {**source, "channels": ["v"], "recordings": {"a": entry}})
    series = series_of(known, None, {})
    assert series is not None and series.channels == ("v",)
    np.testing.assert_array_equal(series.window(2), x[2])
    entry["file"] = str(tmp_path / "moved.csv")
    assert series_of(known, None, {}) is None  # it is no longer there
    object.__setattr__(known, "source", {**source, "recordings": {"a": "somewhere"}})
    with pytest.raises(InputError, match="cannot be used"):
        series_of(known, None, {})


def test_cases_are_rows_of_the_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 2, 30)).astype(np.float32)
    np.savez(tmp_path / "cases.npz", X_train=x[:5], X_test=x[5:])
    data = str(tmp_path / "cases.npz")
    part = np.repeat(["train", "test"], [5, 4])
    both = series_of(Vectors(np.zeros((9, 3), np.float32), part=part), data, {})
    test = series_of(Vectors(np.zeros((4, 3), np.float32)), data, {})
    assert both is not None and test is not None and both.channels == ("channel 0", "channel 1")
    np.testing.assert_array_equal(both.window(6), x[6])
    np.testing.assert_array_equal(test.window(1), x[6])
    around = test.surroundings(1)
    assert around is not None and (around.first, around.last) == (0, 29)
    with pytest.raises(InputError, match=r"5 train cases and 4 test cases, and there are 7 vectors"):
        series_of(Vectors(np.zeros((7, 3), np.float32)), data, {})
