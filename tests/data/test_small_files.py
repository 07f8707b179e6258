"""Thousands of short recordings: what is done for each file is done once."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.core import storage
from dicot.data import Windows, inspect_recordings
from dicot.data.folders import RecordingFiles
from dicot.data.reading import Reading
from dicot.data.stream import RecordingStream
from dicot.data.timestamps import stretches
from dicot.store.embedding import embed_recordings
from dicot.store.vectors import read_vectors

N_FILES = 200
CUT = {"window": 10}
FIRST_LINE = 1  # a look at the first line of each file, which tells whether dicot wrote it


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    recordings = tmp_path / "recordings"
    recordings.mkdir()
    for number in range(N_FILES):
        rows = [f"{step / 10:.1f},{value:.4f},{number % 3}" for step, value in enumerate(rng.normal(size=30))]
        (recordings / f"trial_{number:03d}.csv").write_text("time,x,y\n" + "\n".join(rows))
    return recordings


@pytest.fixture(autouse=True)
def forced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which files and folders were forced to disk, which is not done here."""
    descriptors: list[int] = []
    monkeypatch.setattr(storage.os, "fsync", descriptors.append)
    return descriptors


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each .csv file was opened, by whatever library."""
    counts: Counter[str] = Counter()
    plain_open = Path.open

    def count(path: Path, *arguments: Any, **options: Any) -> Any:
        counts[path.name] += 1
        return plain_open(path, *arguments, **options)

    def refuse(path: Any, *arguments: Any, **options: Any) -> Any:
        raise AssertionError(f"pandas was started for {path}")

    monkeypatch.setattr(Path, "open", count)
    monkeypatch.setattr("pandas.read_csv", refuse)
    return counts


def test_inspecting_reads_each_file_once(folder: Path, opened: Counter[str]) -> None:
    assert len(inspect_recordings(folder)) == N_FILES
    assert {opened[file.name] for file in folder.iterdir()} == {FIRST_LINE + 1}


def test_embedding_reads_each_file_once_and_hashes_it_once(
    folder: Path, tmp_path: Path, opened: Counter[str], forced: list[int]
) -> None:
    calls: list[int] = []

    def embed(windows: Windows) -> Any:
        calls.append(len(windows))
        return windows.x.mean(axis=2)

    done = embed_recordings(embed, "abc", tmp_path / "v.npz", folder, CUT)
    assert done.recordings == done.files == N_FILES
    assert {opened[file.name] for file in folder.iterdir()} == {FIRST_LINE + 2}
    assert sum(calls) == 5 * N_FILES and len(calls) <= 40, "several files at once"
    assert len(forced) < 2 * N_FILES


def test_what_was_inspected_is_not_read_again_to_be_cut(folder: Path, opened: Counter[str]) -> None:
    files = RecordingFiles(folder)
    inspect_recordings(files)
    stream = RecordingStream(files, Reading(window=10, channels=("x", "y"), missing="interpolate"))
    windows, cut = stream.cut_files(list(stream.files))
    assert sum(map(len, windows)) == 5 * N_FILES and len(cut) == N_FILES
    assert {opened[file.name] for file in folder.iterdir()} == {FIRST_LINE + 1}


def test_what_was_inspected_is_read_again_where_that_gives_something_else(folder: Path) -> None:
    files = RecordingFiles(folder)
    inspect_recordings(files)
    for options in ({"channels": ("y",)}, {"channels": ("y", "x")}, {"unit": "ms"}, {"group": "y"}, {"ignore": ("x",)}):
        reading = Reading(window=10, **options)
        name = next(iter(files.named(reading)))
        shared, fresh = files.read(name, reading), RecordingFiles(folder).read(name, reading)
        assert [one.channels for one in shared] == [one.channels for one in fresh]
        assert [(one.name, one.rate, one.n_times) for one in shared] == [(o.name, o.rate, o.n_times) for o in fresh]


def test_vectors_of_files_that_were_embedded_together_are_those_of_all_windows(folder: Path, tmp_path: Path) -> None:
    embed_recordings(lambda windows: windows.x.mean(axis=2), "abc", tmp_path / "v.npz", folder, CUT)
    vectors = read_vectors(tmp_path / "v.npz")
    windows = Windows.from_folder(folder, **CUT)
    np.testing.assert_array_equal(vectors.x, windows.x.mean(axis=2))
    assert vectors.recording.tolist() == windows.recording.tolist()  # type: ignore[union-attr]
    assert vectors.start.tolist() == windows.start.tolist()  # type: ignore[union-attr]


def test_a_run_over_many_small_files_goes_on_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    out, whole = tmp_path / "v.npz", tmp_path / "whole.npz"
    embed_recordings(lambda windows: windows.x.mean(axis=2), "abc", whole, folder, CUT)
    calls: list[int] = []

    def breaks(windows: Windows) -> Any:
        calls.append(len(windows))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return windows.x.mean(axis=2)

    with pytest.raises(KeyboardInterrupt):
        embed_recordings(breaks, "abc", out, folder, CUT)
    done = embed_recordings(lambda windows: windows.x.mean(axis=2), "abc", out, folder, CUT)
    assert done.continued == sum(calls[:3]) // 5 and out.read_bytes() == whole.read_bytes()


def test_even_time_stamps_are_one_stretch_like_those_that_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    clocks = [np.cumsum(rng.uniform(0.02, 0.02 * width, 200)) for width in (1.0, 1.1, 1.19, 1.5, 3.0)]
    quick = [stretches(clock) for clock in clocks]
    monkeypatch.setattr("dicot.data.timestamps._EVEN", 0.0)
    assert quick == [stretches(clock) for clock in clocks]
