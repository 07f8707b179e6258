"""The series behind vectors: the very values that were embedded, found again by the file's own word."""

from pathlib import Path

import numpy as np
import pytest

from dicot import windows_from
from dicot.data import Windows
from dicot.data.policies import Array
from dicot.embedded import embed_recordings
from dicot.errors import InputError
from dicot.series import SeriesReader
from dicot.vectors import read_vectors, write_vectors


def mean(windows: Windows) -> Array:
    return windows.x.mean(axis=2)


def write(path: Path, times: np.ndarray, groups: int = 1, seed: int = 0) -> None:
    values = np.random.default_rng(seed).normal(size=(len(times), 2))
    lines = [f"{t:.4f},{x:.4f},{y:.4f},{i % groups}" for i, (t, (x, y)) in enumerate(zip(times, values, strict=True))]
    path.parent.mkdir(exist_ok=True)
    path.write_text("t,x,y,who\n" + "\n".join(lines))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "recordings"
    gap = np.arange(200) / 20
    gap[90:] += 3
    write(made / "a.csv", gap)
    write(made / "b.csv", np.cumsum(np.random.default_rng(1).uniform(0.04, 0.06, 200)), seed=1)
    return made


@pytest.mark.parametrize(
    "options",
    [
        {"window": "1s", "time": "t", "group": "who"},
        {"window": 15, "stride": 4, "time": "t", "group": "who", "channels": ["y", "x"], "missing": "interpolate"},
        {"window": "1s", "time": "t", "group": "who", "resample": True},
        {"window": "1s", "time": "t", "channels": ["x"], "rate": 10.0},
        {"window": 16, "time": "", "channels": ["x", "y"]},
    ],
)
def test_values_are_those_that_were_embedded(folder: Path, tmp_path: Path, options: dict) -> None:
    out = tmp_path / "v.parquet"
    embed_recordings(mean, "abc", out, folder, options)
    windows, vectors = windows_from(folder, **options), read_vectors(out)
    reader = SeriesReader(vectors, out)
    assert reader.channels == windows.channels
    for row in range(len(vectors)):
        np.testing.assert_array_equal(reader.values(row), windows.x[row])


def test_a_file_of_several_groups_and_recordings_that_were_moved(tmp_path: Path) -> None:
    folder, out = tmp_path / "recordings", tmp_path / "v.npz"
    write(folder / "both.csv", np.arange(400) / 20, groups=2)
    options = {"window": "1s", "time": "t", "group": "who"}
    embed_recordings(mean, "abc", out, folder, options)
    windows, vectors = windows_from(folder, **options), read_vectors(out)
    assert windows.recording is not None and set(windows.recording) == {"both:0", "both:1"}
    np.testing.assert_array_equal(SeriesReader(vectors, out).values(len(vectors) - 1), windows.x[-1])
    moved = folder.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"recordings of .*v\.npz are gone: .*both\.csv.*--data"):
        SeriesReader(vectors, out)
    np.testing.assert_array_equal(SeriesReader(vectors, out, moved).values(0), windows.x[0])
    (moved / "both.csv").rename(moved / "other.csv")
    with pytest.raises(InputError, match=r"'both:0' of .*v\.npz is in none of the 1 files"):
        SeriesReader(vectors, out, moved).values(0)


def test_a_file_that_was_changed_is_named(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.npz"
    embed_recordings(mean, "abc", out, folder, {"window": "1s", "time": "t", "group": "who"})
    vectors = read_vectors(out)
    write(folder / "b.csv", np.arange(30) / 20)
    reader = SeriesReader(vectors, out)
    with pytest.raises(InputError, match=r"b\.csv has no time steps of 'b' from .* row 30 of .*v\.npz"):
        reader.values(30)


def test_cases_of_a_file_come_in_its_order(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(5, 2, 8)).astype(np.float32)
    np.savez(tmp_path / "cases.npz", X_train=x[:3], X_test=x[3:])
    source = {"kind": "file", "data": [str(tmp_path / "cases.npz")], "options": {}, "channels": None, "rate": None}
    part = {"X": np.zeros((3, 2), np.float32)}
    write_vectors(tmp_path / "v.npz", {"train": part, "test": {"X": np.zeros((2, 2), np.float32)}}, source)
    reader = SeriesReader(read_vectors(tmp_path / "v.npz"), tmp_path / "v.npz")
    assert reader.channels == ("channel 0", "channel 1")
    np.testing.assert_array_equal([reader.values(row) for row in range(5)], x)
    write_vectors(tmp_path / "w.npz", {"": part}, source)
    with pytest.raises(InputError, match=r"cases\.npz has 5 cases, and .*w\.npz has vectors of 3"):
        SeriesReader(read_vectors(tmp_path / "w.npz"), tmp_path / "w.npz")


def test_files_that_do_not_say_their_source(folder: Path, tmp_path: Path) -> None:
    options = {"window": "1s", "time": "t", "group": "who"}
    windows = windows_from(folder, **options)
    known = {"X": mean(windows), "recording": windows.recording, "start": windows.start, "end": windows.end}
    write_vectors(tmp_path / "v.npz", {"": known})
    vectors = read_vectors(tmp_path / "v.npz")
    with pytest.raises(InputError, match=r"v\.npz does not say what it was made of.*--data"):
        SeriesReader(vectors, tmp_path / "v.npz")
    (folder / "dicot.toml").write_text('time = "t"\ngroup = "who"\n')
    np.testing.assert_array_equal(SeriesReader(vectors, tmp_path / "v.npz", folder).values(7), windows.x[7])
    write_vectors(tmp_path / "w.npz", {"": known}, {"kind": "recordings", "options": 3})
    with pytest.raises(InputError, match=r"w\.npz is damaged"):
        SeriesReader(read_vectors(tmp_path / "w.npz"), tmp_path / "w.npz")
