"""Without a model: from a folder to vectors and a map, and a model of one's own as the one in the box."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.cli.test_recording_commands import write
from tests.commands import dicot
from tests.explorer.conftest import page_files

from dicot import TimeSeriesEmbedder
from dicot.core.errors import InputError
from dicot.methods.across import Across
from dicot.model.files import model_hash
from dicot.store.vectors import read_vectors


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dicot.explorer.page.load_assets", page_files)
    (tmp_path / "walks").mkdir()
    for name in ("monday", "tuesday"):
        write(tmp_path / "walks" / f"{name}.csv")
    return Path("walks")


def test_a_folder_becomes_vectors_without_a_model_and_with_suggested_windows(folder: Path) -> None:
    said = dicot("embed", folder, "--out", "v.parquet", "--device", "cpu")
    assert "window 2.56s: 2 of 2 recordings repeat" in said and "--window 5s" in said
    known = read_vectors("v.parquet")
    assert known.source is not None and known.source.model == model_hash("v.model")
    assert known.source.n_times == 128
    dicot("embed", "v.model", folder, "--window", "2.56s", "--stride", "25%", "--out", "w.npz", "--device", "cpu")
    np.testing.assert_array_equal(read_vectors("w.npz").x, known.x)
    write(folder / "wednesday.csv", 700)
    said = dicot("embed", folder, "--out", "v.parquet", "--append", "--device", "cpu")
    assert "Windows of 2.56s, as in v.parquet" in said and "new ones" in said


def test_a_folder_becomes_a_map_and_is_embedded_again_only_when_it_changed(folder: Path, tmp_path: Path) -> None:
    pages = (f"page{number}.html" for number in range(9))

    def explored(*words: object) -> str:
        return dicot("explore", folder, *words, "--export", next(pages))

    assert "Series: x, y" in explored() and '"n":' in Path("page0.html").read_text()
    out = tmp_path / "walks-vectors.npz"
    before = out.stat().st_mtime_ns
    assert "up to date" in explored() and out.stat().st_mtime_ns == before
    write(folder / "tuesday.csv", 900)
    said = explored()
    assert "Windows of 2.56s, as in walks-vectors.npz" in said and out.stat().st_mtime_ns > before
    assert "made anew" in said and "Labels given by hand stay" in said
    with pytest.raises(InputError, match=r"window=2.56s; now stride=50%, window=2s.*explore walks-vectors.npz.*--over"):
        explored("--window", "2s")
    assert "Windows" not in explored("--window", "2s", "--overwrite")
    assert read_vectors(out).source.n_times == 100
    (folder / "tuesday.csv").unlink()
    with pytest.raises(InputError, match="has windows of tuesday"):
        explored("--window", "2s")
    with pytest.raises(InputError, match="--data is for vectors"):
        explored("--data", folder)


def test_vectors_lie_outside_of_the_recordings_and_replace_no_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert "walks-vectors.npz" in dicot("explore", "*.csv", "--export", tmp_path / "page.html")
    assert not list(Path().glob("*.npz")) and (tmp_path / "walks-vectors.npz").is_file()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other" / "walks").mkdir(parents=True)
    write(tmp_path / "other" / "walks" / "monday.csv")
    with pytest.raises(InputError, match="not made of other/walks"):
        dicot("explore", "other/walks", "--export", "other.html")


def test_cases_become_a_map(folder: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez("cases.npz", X=rng.normal(size=(12, 2, 40)))
    assert "12 cases -> 1024" in dicot("explore", "cases.npz", "--export", "page.html")
    assert "synthetic test: 90 cases" in dicot("explore", "synthetic", "--export", "page1.html")
    assert "up to date" in dicot("explore", "synthetic", "--export", "page2.html")
    assert "made anew" in dicot("explore", "cases.npz", "--export", "page3.html")


def killed_in_the_last_step(method: object, batch: object, progress: float) -> None:
    if progress == 1:
        raise KeyError("killed")


def test_a_pool_of_ones_own_becomes_a_model_for_any_series(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    gaps = rng.normal(size=(5, 3, 30))
    gaps[0, 1, 4], gaps[1, :, 20:] = np.nan, np.nan  # a missing value, and a case that is shorter
    np.savez("gaps.npz", X=gaps)
    np.savez("one.npz", X=rng.normal(size=(1, 1, 90)).cumsum(axis=2))
    words = ["pretrain", "gaps.npz", "one.npz", folder, "ItalyPowerDemand", "--universal", "--out", "own"]
    words += ["--steps", 2, "--set", "batch_size=8", "--set", "n_series=40", "--set", "dim=16", "--device", "cpu"]
    assert "dicot embed own DATA" in dicot(*words) and "| one.npz | 1 | 1 | 90 |" in Path("own/card.md").read_text()
    weights = Path("own/model.safetensors").read_bytes()
    assert "already holds this run" in dicot(*words) and Path("own/model.safetensors").read_bytes() == weights
    shutil.rmtree("own")
    with monkeypatch.context() as patch:
        patch.setattr(Across, "after_step", killed_in_the_last_step)
        with pytest.raises(KeyError, match="killed"):
            dicot(*words, "--set", "checkpoint_seconds=0")
    assert "resumed and finished" in dicot(*words) and Path("own/model.safetensors").read_bytes() == weights
    assert "-> 512 features" in dicot("embed", "own", folder, "--out", "v.npz", "--device", "cpu")
    with pytest.raises(InputError, match="NaN in case 0"):
        dicot("embed", "own", "gaps.npz", "--out", "w.npz", "--device", "cpu")
    dicot("embed", "own", "gaps.npz", "--set", "missing=interpolate", "--out", "w.npz", "--device", "cpu")
    small = TimeSeriesEmbedder(preset="instant", dim=16, device="cpu")
    assert small.fit(rng.normal(size=(20, 3, 50)), initial="own").transform(gaps[2:]).shape[0] == 3
    dicot("pretrain", "ItalyPowerDemand", "--out", "plain", "--device", "cpu")
    with pytest.raises(InputError, match="plain holds another model"):
        dicot(*[word if word != "own" else "plain" for word in words])


def test_the_preset_without_training_stands_beside_rivals_and_controls() -> None:
    pytest.importorskip("aeon", reason="aeon is not installed")
    said = dicot("evaluate", "synthetic", "--preset", "instant", "--protocols", "knn_5", "--device", "cpu")
    assert "Nothing here was trained." in said
    assert all(
        f"  {name}, seed 1: " in said
        for name in ("instant", "minirocket", "stats-spectrum + forest", "random", "raw-flat")
    )


def test_best_says_what_it_decides_and_why(tmp_path: Path) -> None:
    few = dicot("pretrain", "ItalyPowerDemand", "--preset", "best", "--out", tmp_path / "few", "--device", "cpu")
    assert "fewer than 500 cases are too few to learn from, so it is instant" in few
    assert re.search(r"fitted in \d+\.\d s, nothing was trained", few) and "trained: 0.0 s" not in few
    np.savez(tmp_path / "many.npz", X=np.random.default_rng(0).normal(size=(500, 1, 16)))
    words = ["pretrain", tmp_path / "many.npz", "--preset", "best", "--out", tmp_path / "many", "--device", "cpu"]
    said = dicot(*words, "--minutes", 0.001)
    assert "500 cases are enough to learn from" in said and "trained: " in said
