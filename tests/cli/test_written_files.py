"""What dicot writes may lie in the folder of the recordings: the folder stays readable, and it is said."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from bench.ledger import write_table
from dicot.core.errors import DicotWarning, InputError
from dicot.data.folders import named_recordings
from dicot.store.vectors import read_vectors


@pytest.fixture
def walks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = Path("walks")
    folder.mkdir()
    for name, speed in (("monday", 9), ("tuesday", 20)):
        time = np.arange(600) / 50
        rows = [f"{t:.2f},{np.sin(speed * t):.4f},{'walk' if t < 6 else 'sit'}" for t in time]
        (folder / f"{name}.csv").write_text("\n".join(["t,x,activity", *rows]))
    return folder


def test_a_folder_stays_readable_with_everything_that_commands_wrote_into_it(walks: Path) -> None:
    embed = ["embed", "dicot-base", walks, "--window", "1s", "--label", "activity", "--device", "cpu"]
    for name in ("v.npz", "v.parquet"):
        dicot(*embed, "--out", walks / name)
    vectors = walks / "v.npz"
    dicot("segment", vectors, "--features", "vector", "--out", walks / "segments.csv")
    dicot("outliers", vectors, "--features", "vector", "--out", walks / "outliers.parquet")
    dicot("classify", vectors, "--out", walks / "predictions.csv", "--save", walks / "head.safetensors")
    dicot("explore", vectors, "--export", walks / "page.html")
    dicot("corpus", "build", walks, "--window", "1s", "--out", walks / "corpus")
    write_table(walks / "scores.csv", [])

    said = dicot(*embed, "--out", "again.npz")
    for name in ("v.npz", "v.parquet", "segments.csv", "outliers.parquet", "predictions.csv", "explorer", "scores.csv"):
        assert name in said
    assert "Left out of walks, because dicot wrote it" in said
    np.testing.assert_array_equal(read_vectors("again.npz").x, read_vectors(vectors).x)
    assert "monday.csv" in dicot("inspect", walks)
    assert "up to date" in dicot(*embed, "--out", walks / "v.npz")


def test_a_folder_of_nothing_but_what_dicot_wrote_says_so(walks: Path) -> None:
    embed = ["embed", "dicot-base", walks, "--window", "1s", "--device", "cpu"]
    dicot(*embed, "--out", "vectors/v.npz")
    with pytest.raises(InputError, match=r"vectors holds no recording, but what dicot wrote: v\.npz"):
        dicot("inspect", "vectors")


def test_a_table_of_the_users_own_is_a_recording(walks: Path) -> None:
    (walks / "wednesday.csv").write_text("start,x\n0,1\n1,2\n")
    (walks / "ranges.csv").write_text("recording,start,end,label\nmonday,0,3,walk\n")
    with pytest.warns(DicotWarning, match=r"ranges\.csv"):
        names = [*named_recordings(walks)]
    assert names == ["monday", "tuesday", "wednesday"]
    assert [*named_recordings(walks / "ranges.csv")] == ["ranges"]  # a file that was named itself
