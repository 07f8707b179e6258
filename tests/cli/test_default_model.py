"""Without a model: the preset instant is fitted on DATA, kept beside the vectors, and used by all that comes later."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.commands import dicot
from tests.explorer.conftest import page_files

from dicot import TimeSeriesEmbedder, Windows
from dicot.cli import exitcodes
from dicot.core.errors import InputError
from dicot.data import Reading
from dicot.data.stream import RecordingStream
from dicot.model.box import BOX
from dicot.model.files import model_hash
from dicot.store.vectors import read_vectors

CPU = ("--device", "cpu")
CUT = ("--window", "2s", *CPU)


def write(path: Path, n_times: int = 1000) -> None:
    """Write a recording whose windows differ."""
    times = np.arange(n_times) / 50
    values = np.random.default_rng(n_times).normal(size=n_times).cumsum()
    rows = (f"{time:.2f},{value:.4f},{np.sin(time):.4f}" for time, value in zip(times, values, strict=True))
    path.write_text("t,x,y\n" + "\n".join(rows))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dicot.explorer.page.load_assets", page_files)
    (tmp_path / "walks").mkdir()
    for name, n_times in (("monday", 1000), ("tuesday", 1001)):
        write(tmp_path / "walks" / f"{name}.csv", n_times)
    return Path("walks")


def made_by(path: str) -> str:
    source = read_vectors(path).source
    assert source is not None
    return source.model


def test_a_folder_is_embedded_by_a_model_that_is_fitted_on_it_and_kept_beside_the_vectors(folder: Path) -> None:
    said = dicot("embed", folder, *CUT, "--out", "v.parquet")
    assert "Model instant, 38 windows: fitted in " in said and "nothing was trained. Wrote v.model" in said
    known = read_vectors("v.parquet")
    assert known.x.shape == (38, 1024)
    assert made_by("v.parquet") == model_hash("v.model") != model_hash(BOX["dicot-base"])
    windows = Windows.from_folder(folder, "2s", "50%")
    kept = TimeSeriesEmbedder.from_pretrained("v.model", device="cpu")
    np.testing.assert_array_equal(kept.transform(windows), known.x)
    fitted = TimeSeriesEmbedder(random_state=1, device="cpu").fit(windows)
    np.testing.assert_array_equal(fitted.transform(windows), known.x)


def test_another_model_may_be_named(folder: Path) -> None:
    dicot("embed", folder, *CUT, "--out", "v.npz", "--model", "dicot-base")
    assert made_by("v.npz") == model_hash(BOX["dicot-base"]) and not Path("v.model").exists()
    with pytest.raises(InputError, match="The model is named twice"):
        dicot("embed", "dicot-base", folder, *CUT, "--out", "w.npz", "--model", "dicot-base")


def test_what_is_appended_is_embedded_by_the_model_that_was_kept(folder: Path) -> None:
    dicot("embed", folder, *CUT, "--out", "v.parquet", "--append")
    before, model = read_vectors("v.parquet").x, model_hash("v.model")
    write(folder / "wednesday.csv", 700)
    said = dicot("embed", folder, *CPU, "--out", "v.parquet", "--append")
    assert "13 new ones" in said and "fitted" not in said
    assert made_by("v.parquet") == model_hash("v.model") == model
    np.testing.assert_array_equal(read_vectors("v.parquet").x[: len(before)], before)
    shutil.rmtree("v.model")
    write(folder / "thursday.csv", 700)
    with pytest.raises(InputError, match=r"v.parquet was made by the model \w+, which is neither in v.model"):
        dicot("embed", folder, *CPU, "--out", "v.parquet", "--append")


def test_vectors_of_another_model_are_appended_to_by_that_model(folder: Path) -> None:
    dicot("embed", "dicot-base", folder, *CUT, "--out", "v.parquet")
    write(folder / "wednesday.csv", 700)
    assert "13 new ones" in dicot("embed", folder, *CPU, "--out", "v.parquet", "--append")
    assert made_by("v.parquet") == model_hash(BOX["dicot-base"])


def test_a_killed_run_goes_on_with_the_model_that_it_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dicot("embed", folder, *CUT, "--out", "whole.npz")

    def killed(*given: object) -> None:
        raise KeyError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(TimeSeriesEmbedder, "transform", killed)
        with pytest.raises(KeyError, match="killed"):
            dicot("embed", folder, *CUT, "--out", "v.npz")
    before = Path("v.model/config.json").read_bytes()
    assert "v.model already holds this run" in dicot("embed", folder, *CUT, "--out", "v.npz")
    assert Path("v.model/config.json").read_bytes() == before
    np.testing.assert_array_equal(read_vectors("v.npz").x, read_vectors("whole.npz").x)


def test_a_model_of_other_vectors_is_not_replaced(folder: Path, tmp_path: Path) -> None:
    dicot("embed", folder, *CUT, "--out", "v.parquet")
    model = model_hash("v.model")
    (tmp_path / "other").mkdir()
    write(tmp_path / "other" / "a.csv", 500)
    with pytest.raises(InputError, match="v.model holds a model that was not fitted to these windows"):
        dicot("embed", "other", *CUT, "--out", "v.npz")
    assert model_hash("v.model") == model and not Path("v.npz").exists()
    dicot("embed", "other", *CUT, "--out", "v.npz", "--overwrite")
    assert model_hash("v.model") == made_by("v.npz") != model
    Path("w.model").mkdir()
    Path("w.model/notes.txt").write_text("mine")
    with pytest.raises(InputError, match="w.model, and something else is there"):
        dicot("embed", folder, *CUT, "--out", "w.parquet")


def test_the_same_windows_use_the_model_that_is_there(folder: Path) -> None:
    dicot("embed", folder, *CUT, "--out", "v.parquet")
    assert "v.model already holds this run" in dicot("embed", folder, *CUT, "--out", "v.npz")
    np.testing.assert_array_equal(read_vectors("v.npz").x, read_vectors("v.parquet").x)


def test_cases_are_embedded_by_a_model_of_their_training_part(folder: Path) -> None:
    dicot("embed", "ItalyPowerDemand", "--out", "v.npz", *CPU)
    known = read_vectors("v.npz")
    assert known.part is not None and made_by("v.npz") == model_hash("v.model")
    kept = TimeSeriesEmbedder.from_pretrained("v.model", device="cpu")
    assert kept.data_["n_cases"] == (known.part == "train").sum()


def test_cases_of_unequal_length_and_one_case_alone_are_embedded(folder: Path) -> None:
    rng = np.random.default_rng(0)
    unequal = rng.normal(size=(6, 2, 40))
    unequal[2, :, 25:] = np.nan
    np.savez("unequal.npz", X=unequal)
    dicot("embed", "unequal.npz", "--out", "v.npz", *CPU)
    assert np.isfinite(read_vectors("v.npz").x).all()
    (folder / "monday.csv").unlink()
    write(folder / "tuesday.csv", 100)
    dicot("embed", folder, *CUT, "--out", "one.npz")
    assert len(read_vectors("one.npz")) == 1
    np.savez("equal.npz", X=np.ones((5, 2, 40)) * np.sin(np.arange(40)))
    dicot("embed", "equal.npz", "--out", "equal-vectors.npz", *CPU)
    assert len(np.unique(read_vectors("equal-vectors.npz").x, axis=0)) == 1


def test_a_corpus_is_embedded_by_a_model_of_its_windows(folder: Path) -> None:
    dicot("corpus", "build", folder, "--out", "corpus", "--window", "2s")
    dicot("embed", "corpus", "--out", "shards", *CPU)
    assert made_by("shards") == model_hash("shards.model")
    dicot("embed", "corpus", "--out", "v.npz", *CPU)
    np.testing.assert_array_equal(read_vectors("v.npz").x, read_vectors("shards").x)


def test_the_map_has_the_model_of_its_folder(folder: Path) -> None:
    dicot("explore", folder, "--window", "2s", "--export", "first.html")
    fitted = made_by("walks-vectors.npz")
    assert fitted == model_hash("walks-vectors.model")
    assert "up to date" in dicot("explore", folder, "--window", "2s", "--export", "second.html")
    dicot("explore", folder, "--window", "2s", "--model", "dicot-base", "--export", "third.html", "--overwrite")
    assert made_by("walks-vectors.npz") == model_hash(BOX["dicot-base"])


def test_a_map_of_more_recordings_keeps_the_model_that_classifiers_go_with(folder: Path) -> None:
    dicot("explore", folder, "--window", "2s", "--export", "first.html")
    fitted = model_hash("walks-vectors.model")
    write(folder / "wednesday.csv", 1002)
    said = dicot("explore", folder, "--window", "2s", "--export", "second.html")
    assert "is made anew from walks" in said and "Model: walks-vectors.model, as before" in said
    assert made_by("walks-vectors.npz") == model_hash("walks-vectors.model") == fitted
    assert "wednesday" in set(read_vectors("walks-vectors.npz").recording.tolist())
    # The model names its channels now. The same words again change nothing.
    assert "is up to date" in dicot("explore", folder, "--window", "2s", "--export", "again.html")
    dicot("explore", folder, "--window", "2s", "--export", "third.html", "--overwrite")
    assert made_by("walks-vectors.npz") == model_hash("walks-vectors.model") != fitted


def test_why_and_search_find_the_model_beside_the_vectors(folder: Path, tmp_path: Path) -> None:
    dicot("embed", folder, *CUT, "--out", "v.parquet")
    assert "channel" in dicot("why", "v.parquet", "monday@1")
    Path("moved").mkdir()
    for name in ("v.parquet", "v.model"):
        shutil.move(name, Path("moved") / name)
    assert "channel" in dicot("why", "moved/v.parquet", "monday@1")
    assert "tuesday" in dicot("search", "moved/v.parquet", "--from", folder / "tuesday.csv", "--like", "tuesday@1")


def test_vectors_of_two_fits_are_refused_with_the_command_that_makes_them_compare(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    write(tmp_path / "new" / "a.csv", 500)
    dicot("embed", folder, *CUT, "--out", "reference.parquet")
    dicot("embed", "new", *CUT, "--out", "new.parquet")
    with pytest.raises(InputError, match="dicot embed reference.model DATA --out new.parquet"):
        dicot("monitor", "reference.parquet", "new.parquet", "--out", "page.html")
    dicot("embed", "reference.model", "new", *CUT, "--out", "w.parquet")
    assert made_by("w.parquet") == made_by("reference.parquet")


def test_a_fit_on_few_windows_is_no_reference_to_tell_a_change_from(folder: Path) -> None:
    dicot("embed", folder, *CUT, "--out", "reference.npz")
    dicot("embed", "reference.model", folder, *CUT, "--out", "new.npz")
    compare = ("monitor", "reference.npz", "--unit", "window", "--overwrite", "--out", "page.html")
    said = dicot(*compare, "new.npz")
    assert "No change was found" in said
    assert "fitted on its own 38 windows, too few" in said
    assert "dicot embed dicot-base DATA --out reference-dicot-base.npz" in said, "reference.npz is not replaced"

    # What differs may differ because the model has seen the reference and not the new windows.
    for file in folder.glob("*.csv"):
        table = pd.read_csv(file)
        table[["x", "y"]] *= 10
        table.to_csv(file, index=False)
    dicot("embed", "reference.model", folder, *CUT, "--out", "new.npz", "--overwrite")
    said = dicot(*compare, "new.npz", code=exitcodes.CANNOT_TELL)
    assert "Cannot tell whether anything has changed. The model of reference.npz" in said


def test_a_recording_that_has_changed_is_embedded_by_the_remedy_that_append_names(folder: Path) -> None:
    command = ("embed", "dicot-base", folder, *CUT, "--out", "v.npz")
    dicot(*command)
    table = pd.read_csv(folder / "monday.csv")
    table["x"] += 1
    table.to_csv(folder / "monday.csv", index=False)
    said = dicot(*command, "--append", code=exitcodes.PARTIAL)
    assert "write --overwrite in place of --append" in said
    assert "Left out" not in dicot(*command, "--overwrite")


def test_a_sample_of_recordings_is_seeded_and_in_order(folder: Path) -> None:
    write(folder / "wednesday.csv", 3000)
    stream = RecordingStream(folder, Reading(window="2s"))
    everything = stream.sample(1000, 2**30, seed=1)
    assert everything is not None
    np.testing.assert_array_equal(everything.x, Windows.from_folder(folder, "2s").x)
    assert everything.fingerprint() == Windows.from_folder(folder, "2s").fingerprint()
    some, again = (RecordingStream(folder, Reading(window="2s")).sample(20, 2**30, seed=1) for _ in range(2))
    assert some is not None and again is not None and len(some) == 20
    np.testing.assert_array_equal(some.x, again.x)
    few = stream.sample(20, 3 * everything.x[0].nbytes, seed=1)
    assert few is not None and len(few) == 3


def test_of_very_many_recordings_not_all_are_read_for_a_sample(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        write(folder / f"day{number}.csv", 200)
    monkeypatch.setattr("dicot.data.stream.SAMPLED_FILES", 3)
    stream = RecordingStream(folder, Reading(window="2s"))
    cut: list[str] = []
    windows_of = stream.windows
    monkeypatch.setattr(stream, "windows", lambda name: cut.append(name) or windows_of(name))
    stream.sample(2, 2**30, seed=1)
    assert 3 <= len(cut) < 12
