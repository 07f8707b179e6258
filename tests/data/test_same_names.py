"""Recordings of one file name in several folders: their names keep the folder, everywhere."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.store.embedding import embed_recordings
from dicot.store.vectors import read_vectors
from dicot.use.labels.tables import read_labels
from dicot.use.labels.windows import put_on_windows

DAYS = ("day1", "day2")


def write_day(folder: Path, seed: int) -> None:
    """Twenty seconds at 10 Hz."""
    folder.mkdir(parents=True)
    values = np.random.default_rng(seed).normal(size=200)
    rows = [f"{row / 10:.1f},{value:.4f}" for row, value in enumerate(values)]
    (folder / "acc.csv").write_text("time,x\n" + "\n".join(rows) + "\n")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    for seed, day in enumerate(DAYS):
        write_day(tmp_path / "study" / day, seed)
    return tmp_path / "study"


def embedded(study: Path, append: bool = False) -> Path:
    out = study.parent / "v.parquet"
    embed_recordings(lambda windows: windows.x.mean(axis=2), "m", out, study, {"window": "2s"}, append=append)
    return out


def labels_by_recording(study: Path) -> dict[str, set[object]]:
    windows = Windows.from_folder(study, "2s")
    assert windows.y is not None and windows.recording is not None
    return {name: set(windows.y[windows.recording == name].tolist()) for name in set(windows.recording.tolist())}


def test_they_are_called_by_their_folders(study: Path) -> None:
    shown = dicot("inspect", study)
    assert "day1/acc.csv" in shown and "day2/acc.csv" in shown
    for source in (study, str(study / "day*" / "acc.csv")):
        recording = Windows.from_folder(source, "2s").recording
        assert recording is not None and set(recording.tolist()) == {"day1/acc", "day2/acc"}


def test_two_folders_that_are_named_themselves_say_what_to_name(study: Path) -> None:
    with pytest.raises(InputError, match=f"'acc'.*Name {study}, the folder that holds both"):
        Windows.from_folder([study / day for day in DAYS], "2s")


def test_new_ones_are_appended_under_names_of_their_own(study: Path) -> None:
    out = embedded(study)
    write_day(study / "day3", 3)
    embedded(study, append=True)
    recording = read_vectors(out).recording
    assert recording is not None
    assert set(recording.tolist()) == {"day1/acc", "day2/acc", "day3/acc"}


def test_a_table_of_labels_names_them_with_their_folders(study: Path) -> None:
    table = study / "labels.csv"
    table.write_text("file,label\nday1/acc.csv,walk\nday2/acc,sit\n")
    assert labels_by_recording(study) == {"day1/acc": {"walk"}, "day2/acc": {"sit"}}
    table.write_text("file,start,end,label\nday1\\acc.csv,0,20,walk\nday2/acc.csv,0,20,sit\n")
    assert labels_by_recording(study) == {"day1/acc": {"walk"}, "day2/acc": {"sit"}}
    table.write_text("file,label\nacc.csv,walk\n")
    with pytest.raises(InputError, match="line 2: 'acc.csv' may be day1/acc, day2/acc. Name it with its folder"):
        labels_by_recording(study)


def test_labels_given_by_hand_stay_with_their_recording(study: Path) -> None:
    vectors, store = embedded(study), study.parent / "labels.sqlite"
    dicot("label", "add", store, "day2/acc@2.5", "walk", "--vectors", vectors)
    assert {key[0] for key in read_labels(store)} == {"day2/acc"}
    with pytest.raises(InputError, match="day1/acc.*day2/acc"):
        dicot("label", "add", store, "acc@2.5", "walk", "--vectors", vectors)

    table = study.parent / "mine.csv"
    table.write_text("file,start,end,label\nday1/acc.csv,0,10,sit\nday2\\acc.csv.gz,10,20,run\n")
    dicot("label", "import", store, table, "--vectors", vectors)
    known = read_vectors(vectors)
    labels, lost = put_on_windows(read_labels(store), *known.places())
    assert not lost
    assert set(labels[known.recording == "day1/acc"].tolist()) == {"", "sit"}
    assert set(labels[known.recording == "day2/acc"].tolist()) == {"", "walk", "run"}

    table.write_text("file,start,end,label\nacc.csv,0,10,sit\n")
    with pytest.raises(InputError, match="'acc' may be day1/acc, day2/acc. Name it with its folder"):
        dicot("label", "import", store, table, "--vectors", vectors)
