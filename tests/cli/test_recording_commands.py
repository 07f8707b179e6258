"""From a folder of recordings to a table, to what is suggested, to a model and to vectors."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot.errors import InputError
from dicot.vectors import read_vectors


def write(path: Path, n_times: int = 1000) -> None:
    times = np.arange(n_times) / 50
    values = np.sin(2 * np.pi * times)
    path.write_text("t,x,y\n" + "\n".join(f"{t:.2f},{v:.4f},{2 * v:.4f}" for t, v in zip(times, values, strict=True)))


def test_recordings_are_shown_and_windows_suggested(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.csv")
    said = dicot("inspect", tmp_path)
    line = next(line for line in said.splitlines() if "a.csv" in line)
    assert [cell.strip() for cell in line.split("│")[1:7]] == ["a.csv", "1,000", "0:00:20", "50", "0", "0.0%"]
    assert "2 channel(s): x, y" in said and "repeat" in said
    assert f"Next: dicot pretrain {tmp_path} --window " in said
    assert "1 channel(s): y" in dicot("inspect", tmp_path / "a.csv", "--channels", "y")


def test_a_file_that_cannot_be_read_is_named_beside_the_others(tmp_path: Path) -> None:
    write(tmp_path / "a.csv")
    (tmp_path / "bad.csv").write_text("t,x,y\n0,1,2\n1,walking,3\n")
    said = dicot("inspect", tmp_path, code=1)
    assert "a.csv" in said and "bad.csv" in said and "walking" in said and "window" in said


def test_a_folder_becomes_a_model_and_a_table_of_vectors(tmp_path: Path) -> None:
    folder, model, out = tmp_path / "recordings", tmp_path / "model", tmp_path / "vectors.parquet"
    folder.mkdir()
    for name in ("monday", "tuesday"):
        write(folder / f"{name}.csv")
    cut = ["--window", "2s", "--channels", "y"]
    small = ["--method", "dicot", "--dim", 8, "--steps", 1, "--device", "cpu"]
    said = dicot("pretrain", folder, *cut, "--stride", "25%", "--out", model, *small)
    assert "2 recording(s) of y at 50 per second" in said and "74 cases, 1 channel(s), 100 time steps" in said
    dicot("embed", model, folder, *cut, "--out", out, "--device", "cpu")
    vectors = read_vectors(out)
    assert vectors.x.shape == (38, 8)
    assert vectors.recording is not None and vectors.start is not None and vectors.end is not None
    assert vectors.recording.tolist() == ["monday"] * 19 + ["tuesday"] * 19
    np.testing.assert_allclose(vectors.start[:3], [0, 1, 2])
    np.testing.assert_allclose(vectors.end[:3], [2, 3, 4])
    np.testing.assert_array_equal(vectors.x[:19], vectors.x[19:])  # the recordings are the same
    with pytest.raises(InputError, match="X has the channels x; this model was fitted on y"):
        dicot("embed", model, folder, "--window", "2s", "--channels", "x", "--out", out, "--device", "cpu")
    with pytest.raises(InputError, match=r"X has 25 time steps per second; this model was fitted on 50.*--rate 50"):
        dicot("embed", model, folder, *cut, "--rate", "25", "--out", out, "--device", "cpu")
    for words, message in (
        (["--stride", "1s"], "Give --window too"),
        (["--window", "2s", "--case", "id"], "--case is for tables of cases"),
        ([], "is a folder.*--window"),
    ):
        with pytest.raises(InputError, match=message):
            dicot("pretrain", folder, "--out", tmp_path / "other", *words)


def test_search_finds_the_nearest_windows_that_do_not_overlap(tmp_path: Path) -> None:
    starts = np.arange(6.0)
    x = np.array([[1, 0], [1, 0.1], [1, 0.2], [0, 1], [1, 0.3], [-1, 0]], np.float32)
    arrays = {"X": x, "recording": np.array(["a"] * 5 + ["b"]), "start": starts, "end": starts + 2}
    np.savez(tmp_path / "v.npz", group=np.array([1, 1, 1, 2, 2, 2]), **arrays)
    said = dicot("search", tmp_path / "v.npz", "--like", "a@0.5", "-k", "2")
    found = [line.split("│")[1].strip() for line in said.splitlines() if line.startswith("│")]
    assert found == ["2", "4"], "row 1 overlaps the window itself"
    assert "0.0194" in said
    said = dicot("search", tmp_path / "v.npz", "--like", "0", "--groups", "2", "--before", "6", "-k", "5")
    assert [line.split("│")[1].strip() for line in said.splitlines() if line.startswith("│")] == ["4", "3"]
    for like, message in (("a@x", "RECORDING@SECONDS"), ("c@1", "Unknown recording 'c'"), ("77", "row 77")):
        with pytest.raises(InputError, match=message):
            dicot("search", tmp_path / "v.npz", "--like", like)
    with pytest.raises(InputError, match="groups of this file are numbers"):
        dicot("search", tmp_path / "v.npz", "--like", "0", "--groups", "x")
