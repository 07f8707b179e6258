"""SLEEP from small files in the format of Sleep-EDF."""

from pathlib import Path

import numpy as np
import pytest
from tests.signal_files import write_edf, write_hypnogram

from bench.datasets.standins import around_sleep
from bench.paper.raw import prepare_by_name
from bench.paper.raw.physiology import read_night
from dicot.core.errors import InputError
from dicot.data.datasets import load

EEG = "EEG Fpz-Cz"
TRAIN = (14, 5, 4, 17, 8, 7, 19, 12, 0, 15, 16, 9)
TEST = (6, 18, 2, 13)


def write_night(
    folder: Path, name: str, stages: list[tuple[float, str]], n_epochs: int, value: int = 0, rate: int = 100
) -> Path:
    """A PSG whose epoch i holds the number value + i, and a hypnogram of (duration, stage)."""
    numbers = np.repeat(value + np.arange(n_epochs), 30 * rate)
    tracks = {EEG: (numbers, 30 * rate, (-2048, 2047, -2048, 2047)), "Temp": (np.zeros(n_epochs), 1, (0, 1, 0, 1))}
    path = write_edf(folder / f"{name}E0-PSG.edf", tracks, 30)
    onsets = np.cumsum([0, *(duration for duration, _ in stages)])
    marks = [(onset, duration, stage) for onset, (duration, stage) in zip(onsets[:-1], stages, strict=True)]
    write_hypnogram(folder / f"{name}EC-Hypnogram.edf", marks)
    return path


def sleep_stages(*parts: tuple[int, str]) -> list[tuple[float, str]]:
    return [(30 * n, stage if stage == "Movement time" else f"Sleep stage {stage}") for n, stage in parts]


def test_epochs_and_stages_of_a_night(tmp_path: Path) -> None:
    stages = sleep_stages((2, "W"), (1, "1"), (1, "2"), (1, "Movement time"), (1, "3"), (1, "4"), (2, "R"))
    stages += [(17, "Sleep stage ?")]  # what is not scored may have any length
    x, y = read_night(write_night(tmp_path, "SC4001", stages, n_epochs=10))
    assert x.shape == (8, 1, 3000)
    assert x.dtype == np.float32
    assert x[:, 0, 0].tolist() == [0, 1, 2, 3, 5, 6, 7, 8]
    assert (x == x[:, :, :1]).all()  # no epoch reaches into the next
    assert y.tolist() == [0, 0, 1, 2, 3, 3, 4, 4]


def test_half_an_hour_of_waking_is_kept_on_each_side(tmp_path: Path) -> None:
    stages = sleep_stages((70, "W"), (1, "2"), (1, "?"), (1, "W"), (1, "R"), (65, "W"))
    x, y = read_night(write_night(tmp_path, "SC4001", stages, n_epochs=139))
    assert x[[0, -1], 0, 0].tolist() == [10, 133]
    assert len(y) == 60 + 3 + 60
    assert around_sleep(np.array([0, 1, 0, 4, 0])).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match="sleep"):
        around_sleep(np.zeros(5))


def test_prepared_by_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = tmp_path / "raw"
    (raw / "sleep-cassette").mkdir(parents=True)
    for subject in range(25):  # the whole publication has more subjects
        for night in (1,) if subject == 13 else (1, 2):
            name = f"SC4{subject:02d}{night}"
            write_night(raw / "sleep-cassette", name, sleep_stages((2, "1"), (1, "R")), 3, 100 * subject + 10 * night)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("DICOT_DATA", str(tmp_path / "data"))
    card = prepare_by_name("sleep", raw)
    assert "72 training cases instead of 25612, 21 test cases" in card.notes[0]
    split = load("sleep")
    assert split.test is not None
    assert (card.n_classes, card.stride, card.labels) == (5, 3000, ("W", "N1", "N2", "N3", "REM"))
    assert split.train.group.tolist() == np.repeat(TRAIN, 6).tolist()  # type: ignore[union-attr]
    assert split.test.group.tolist() == np.repeat(TEST, [6, 6, 6, 3]).tolist()  # type: ignore[union-attr]
    assert split.train.y.tolist() == [1, 1, 4] * 24  # type: ignore[union-attr]
    # Both nights of a subject, one after the other: subject 14 comes first.
    assert split.train.x[:6, 0, 0].tolist() == [1410, 1411, 1412, 1420, 1421, 1422]
    assert split.test.x[-3:, 0, 0].tolist() == [1310, 1311, 1312]


def test_epochs_outside_of_the_signal_are_left_out(tmp_path: Path) -> None:
    path = write_night(tmp_path, "SC4001", [], n_epochs=3)
    marks = [(0, 60, "Sleep stage 1"), (60, 3e9, "Sleep stage R"), (3e10, 30, "Sleep stage 2")]
    hypnogram = write_hypnogram(tmp_path / "SC4001EC-Hypnogram.edf", marks)
    x, y = read_night(path)
    assert y.tolist() == [1, 1, 4]
    assert x[:, 0, 0].tolist() == [0, 1, 2]
    write_hypnogram(hypnogram, [(-30, 60, "Sleep stage 2")])
    with pytest.raises(InputError, match="'Sleep stage 2'.*30 s"):
        read_night(path)
