"""The series behind vectors: the very values that were embedded, found again by the file's own word or the user's."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.cases import Array
from dicot.store.embedding import embed_recordings
from dicot.store.series import AbsentSeriesError, Series, series_of
from dicot.store.vectors import MadeOf, Vectors, read_vectors, write_vectors


def mean(windows: Windows) -> Array:
    return windows.x.mean(axis=2)


def write(path: Path, columns: dict[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")


def write_walk(path: Path, times: np.ndarray, groups: int = 1, seed: int = 0, missing: slice = slice(0)) -> None:
    values = np.random.default_rng(seed).normal(size=(2, len(times))).round(4)
    x = values[0].astype(object)
    x[missing] = ""
    write(path, {"t": times.round(4), "x": x, "y": values[1], "who": np.arange(len(times)) % groups})


def vectors_of(folder: Path, window: str | int, **options: object) -> tuple[Vectors, np.ndarray]:
    """Vectors that do not say what they were made of, and the windows."""
    windows = Windows.from_folder(folder, window, "50%", **options)
    known = Vectors(np.zeros((len(windows), 3), np.float32), windows.recording, windows.start, windows.end)
    return known, windows.x


def found(known: Vectors, data: str | Path | None = None, *words: object, **more: object) -> Series:
    """The series of vectors, which must be at hand."""
    return series_of(known, data, *(words or ({},)), **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "recordings"
    gap = np.arange(200) / 20
    gap[90:] += 3
    write_walk(made / "a.csv", gap)
    write_walk(made / "b.csv", np.cumsum(np.random.default_rng(1).uniform(0.04, 0.06, 200)), seed=1)
    return made


@pytest.mark.parametrize(
    "options",
    [
        {"window": "1s", "time": "t", "group": "who"},
        {"window": 15, "stride": 4, "time": "t", "group": "who", "channels": ["y", "x"], "missing": "interpolate"},
        {"window": "1s", "time": "t", "group": "who", "resample": True},
        {"window": "1s", "time": "t", "channels": ["x"], "rate": 10.0},
        {"window": "1s", "time": "t", "channels": ["x"], "rate": 30.0, "gap": 100.0},
        {"window": 16, "time": "", "channels": ["x", "y"]},
    ],
)
def test_values_are_those_that_were_embedded(folder: Path, tmp_path: Path, options: dict) -> None:
    out = tmp_path / "v.parquet"
    embed_recordings(mean, "abc", out, folder, options)
    windows, vectors = Windows.from_folder(folder, **options), read_vectors(out)
    series = found(vectors)
    assert series.channels == windows.channels and series.rate == windows.rate
    for row in range(len(vectors)):
        np.testing.assert_array_equal(series.window(row), windows.x[row])
        around = series.surroundings(row)
        assert around is not None and around.time[around.first] == pytest.approx(vectors.start[row], abs=1e-9)
        np.testing.assert_array_equal(around.values[:, around.first : around.last + 1], windows.x[row])


@pytest.mark.parametrize("more", [{}, {"rate": 10.0}])
@pytest.mark.parametrize("missing", ["interpolate", "zero"])
def test_missing_values_are_filled_in_as_they_were_and_not_across_a_gap(
    tmp_path: Path, missing: str, more: dict
) -> None:
    times = np.arange(200) / 20
    times[90:] += 3
    write_walk(tmp_path / "r" / "a.csv", times, missing=slice(84, 95))
    options = {"window": "1s", "time": "t", "channels": ["x", "y"], "missing": missing, **more}
    embed_recordings(mean, "abc", tmp_path / "v.npz", tmp_path / "r", options)
    windows, vectors = Windows.from_folder(tmp_path / "r", **options), read_vectors(tmp_path / "v.npz")
    series = found(vectors)
    np.testing.assert_array_equal([series.window(row) for row in range(len(vectors))], windows.x)


def test_a_file_of_several_groups_and_recordings_that_were_moved(tmp_path: Path) -> None:
    folder, out = tmp_path / "recordings", tmp_path / "v.npz"
    write_walk(folder / "both.csv", np.arange(400) / 20, groups=2)
    options = {"window": "1s", "time": "t", "group": "who"}
    embed_recordings(mean, "abc", out, folder, options)
    windows, vectors = Windows.from_folder(folder, **options), read_vectors(out)
    assert windows.recording is not None and set(windows.recording) == {"both:0", "both:1"}
    np.testing.assert_array_equal(found(vectors).window(len(vectors) - 1), windows.x[-1])
    moved = folder.rename(tmp_path / "elsewhere")
    with pytest.raises(AbsentSeriesError, match=rf"No recording of {out} .* There is no {folder / 'both.csv'}.*--data"):
        series_of(vectors, None, {}, path=out)
    np.testing.assert_array_equal(found(vectors, moved).window(0), windows.x[0])
    (moved / "both.csv").rename(moved / "other.csv")
    with pytest.raises(
        InputError, match=r"No recording of .*v\.npz can be shown. .* not among the data, other.*--data"
    ):
        series_of(vectors, moved, {}, path=out)


@pytest.mark.parametrize("how", ["at its place", "at its place, time put back", "in data that are named"])
def test_a_file_that_was_changed_is_named_and_not_drawn(folder: Path, tmp_path: Path, how: str) -> None:
    out, b, state = tmp_path / "v.npz", folder / "b.csv", (folder / "b.csv").stat()
    embed_recordings(mean, "abc", out, folder, {"window": "1s", "time": "t", "group": "who"})
    vectors = read_vectors(out)
    b.write_text(b.read_text().replace("1", "2"))  # other values and times, as many bytes
    if "time" in how:
        os.utime(b, ns=(state.st_atime_ns, state.st_mtime_ns))
    series = found(vectors, folder if "named" in how else None, path=out)
    assert series.window(0) is not None
    assert series.window(len(vectors) - 1) is None and series.surroundings(len(vectors) - 1) is None
    assert list(series.lost) == ["b"]
    assert f"{b} has changed since {out} was made of it" in series.lost["b"]
    (folder / "a.csv").write_text((folder / "a.csv").read_text().replace("1", "2"))
    with pytest.raises(AbsentSeriesError, match=rf"{folder / 'a.csv'} has changed since {out} was made of it"):
        series_of(vectors, None, {}, path=out)


def test_without_a_hash_the_time_steps_tell(folder: Path, tmp_path: Path) -> None:
    known, _ = vectors_of(folder, "1s", time="t", group="who")
    write_walk(folder / "b.csv", np.arange(30) / 20)
    series = found(known, folder, {"time": "t", "group": "who"}, path=tmp_path / "v.npz")
    for look in (series.window, series.surroundings):
        with pytest.raises(InputError, match=r"b\.csv has no time steps of 'b' from .* row 30 of .*v\.npz.*--data"):
            look(30)


def test_recordings_of_one_file_are_told_apart_by_group(tmp_path: Path) -> None:
    user = np.repeat(["u:1", "u2"], 100)
    write(tmp_path / "all.csv", {"user": user, "v": -np.arange(200.0)})
    known, x = vectors_of(tmp_path / "all.csv", 20, group="user")
    series = found(known, str(tmp_path / "all.csv"), {"group": "user"})
    for row, wanted in enumerate(x):
        np.testing.assert_array_equal(series.window(row), wanted)
    with pytest.raises(InputError, match=r"all\.csv has no recording 'all:u:1', where row 0 of.*--group"):
        series_of(known, str(tmp_path / "all.csv"), {"channels": ["v"]})
    with pytest.raises(InputError, match="case is for tables of cases"):
        series_of(known, str(tmp_path / "all.csv"), {"case": "user"})


def test_vectors_that_do_not_say_their_source_go_by_the_choices_beside_the_data(folder: Path, tmp_path: Path) -> None:
    known, x = vectors_of(folder, "1s", time="t", channels=["x"], rate=10.0)
    with pytest.raises(AbsentSeriesError, match="v.npz does not say what it was made of"):
        series_of(known, None, {}, path=tmp_path / "v.npz")
    (folder / "dicot.toml").write_text('time = "t"\nchannels = ["x"]\nrate = 10\n')
    np.testing.assert_array_equal(found(known, folder).window(7), x[7])
    (folder / "dicot.toml").write_text('time = "t"\nchannels = ["y"]\nrate = 5\n')
    series = found(known, folder, {"channels": ["x"]}, 10.0)  # what the user says wins
    assert series.channels == ("x",)
    np.testing.assert_array_equal(series.window(7), x[7])
    (folder / "dicot.toml").write_text('time = "t"\nchannels = ["x"]\nresample = true\n')
    with pytest.raises(InputError, match="to which rate.*rate"):
        series_of(known, folder, {})


def test_cases_are_rows_of_the_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 2, 30)).astype(np.float32)
    np.savez(tmp_path / "cases.npz", X_train=x[:5], X_test=x[5:])
    data = str(tmp_path / "cases.npz")
    part = np.repeat(["train", "test"], [5, 4])
    both = found(Vectors(np.zeros((9, 3), np.float32), part=part), data)
    test = found(Vectors(np.zeros((4, 3), np.float32)), data)
    assert both.channels == ("channel 0", "channel 1")
    np.testing.assert_array_equal(both.window(6), x[6])
    np.testing.assert_array_equal(test.window(1), x[6])
    around = test.surroundings(1)
    assert around is not None and (around.first, around.last) == (0, 29)
    with pytest.raises(InputError, match="gap is for recordings"):
        series_of(Vectors(np.zeros((9, 3), np.float32)), data, {"gap": 2.0})
    with pytest.raises(InputError, match=r"5 train cases and 4 test cases, and the file of vectors has 7 vectors"):
        series_of(Vectors(np.zeros((7, 3), np.float32)), data, {})


def test_cases_that_the_vectors_name_need_no_data(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(5, 2, 8)).astype(np.float32)
    file, out = tmp_path / "cases.npz", tmp_path / "v.npz"
    turned = x.transpose(0, 2, 1)
    np.savez(file, X_train=turned[:3], X_test=turned[3:])
    source = MadeOf.of_cases(str(file), {"layout": "ntc"}, None, "abc")
    part = {"X": np.zeros((3, 2), np.float32)}
    write_vectors(out, {"train": part, "test": {"X": np.zeros((2, 2), np.float32)}}, source)
    vectors = read_vectors(out)
    series = found(vectors)
    assert series.channels == ("channel 0", "channel 1")
    np.testing.assert_array_equal([series.window(row) for row in range(5)], x)
    write_vectors(tmp_path / "w.npz", {"": part}, source)
    with pytest.raises(InputError, match=r"cases\.npz holds 3 train cases and 2 test cases, and .*w\.npz has 3 vec"):
        series_of(read_vectors(tmp_path / "w.npz"), None, {}, path=tmp_path / "w.npz")
    file.rename(tmp_path / "moved.npz")
    with pytest.raises(AbsentSeriesError, match=rf"{file}, which {out} was made of, is not here.*--data"):
        series_of(vectors, None, {}, path=out)
    np.testing.assert_array_equal(found(vectors, tmp_path / "moved.npz").window(4), x[4])


def test_a_data_set_by_name_is_read_with_its_policies() -> None:
    source = MadeOf.of_cases("ItalyPowerDemand", {"missing": "zero"}, None, "abc")
    known = Vectors(np.zeros((1096, 2), np.float32), source=source)
    window = found(known).window(1095)
    assert window is not None and window.shape == (1, 24)
    gone = Vectors(np.zeros((4, 2), np.float32), source=replace(source, data=("no-such-set",)))
    with pytest.raises(AbsentSeriesError, match="no-such-set, which .* is not here"):
        series_of(gone, None, {})


@pytest.mark.parametrize(
    "options",
    [{}, {"unit": "ms"}, {"missing": "interpolate"}, {"missing": "zero", "gap": 5.0}, {"resample": True, "rate": 10.0}],
    ids=str,
)
def test_options_of_a_cut_find_its_values_again(tmp_path: Path, options: dict[str, Any]) -> None:
    """Vectors that do not say how they were made: the options of `dicot embed` are given again."""
    times = np.arange(200) / 20
    times[90:] += 0.1
    lost = slice(84, 95) if "missing" in options else slice(0, 0)
    write_walk(tmp_path / "r" / "a.csv", times * 1000 if "unit" in options else times, missing=lost)
    cut = {"time": "t", "channels": ["x", "y"], **options}
    windows = Windows.from_folder(tmp_path / "r", "1s", **cut)
    arrays = {"recording": windows.recording, "start": windows.start, "end": windows.end}
    write_vectors(tmp_path / "v.npz", {"": {"X": mean(windows), **arrays}})
    vectors, rate = read_vectors(tmp_path / "v.npz"), cut.pop("rate", None)
    series = series_of(vectors, tmp_path / "r", cut, rate)
    assert series is not None
    np.testing.assert_array_equal([series.window(row) for row in range(len(vectors))], windows.x)
