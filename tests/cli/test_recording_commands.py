"""From a folder of recordings to a table, to what is suggested, to a model and to vectors."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot.core.errors import InputError
from dicot.model.files import model_hash
from dicot.store.vectors import read_vectors

SMALL = ["--method", "dicot", "--set", "dim=8", "--steps", 1, "--device", "cpu"]


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
    assert f"Next: dicot explore {tmp_path} --window " in said
    assert "1 channel(s): y" in dicot("inspect", tmp_path / "a.csv", "--channels", "y")


def test_a_file_that_cannot_be_read_is_named_beside_the_others(tmp_path: Path) -> None:
    write(tmp_path / "a.csv")
    (tmp_path / "bad.csv").write_text("t,x,y\n0,1,2\n1,walking,3\n")
    said = dicot("inspect", tmp_path, code=1)
    assert "a.csv" in said and "bad.csv" in said and "walking" in said and "window" in said


def test_files_that_are_no_recordings_are_named(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.csv")
    for name in ("labels", "labels2"):
        (tmp_path / f"{name}.csv").write_text("recording,what\na,walk\nb,sit\n")
    (tmp_path / "lengths.csv").write_text("metres\n3\n4\n")
    said = dicot("inspect", tmp_path, code=1)
    assert "lengths.csv (2 rows without time stamps: metres)" in said
    assert "are no recordings: the recordings have x, y" in said
    assert "Other commands leave out" in said and "labels2.csv (recording, what)" in said
    dicot("inspect", tmp_path, "--write", code=1)
    assert (tmp_path / "dicot.toml").is_file()


def test_a_pattern_leaves_out_a_table_where_the_names_begin_with_different_letters(tmp_path: Path) -> None:
    for name in ("D01_SA01_R01", "F02_SA03_R01", "F02_SA03_R02"):
        write(tmp_path / f"{name}.csv")
    (tmp_path / "subjects_info.csv").write_text("age,metres\n30,1.7\n40,1.8\n")
    said = dicot("inspect", tmp_path, code=1)
    assert f"Next: dicot explore '{tmp_path}/*_R*.csv'" in said
    assert "F02_SA03_R01.csv" in dicot("inspect", tmp_path / "*_R*.csv")


def test_of_many_recordings_the_first_are_shown_with_totals_and_warnings_stand_below(tmp_path: Path) -> None:
    for number in range(30):
        write(tmp_path / f"day{number:02}.csv", 100)
    (tmp_path / "info.csv").write_text("age,metres\n30,1.7\n40,1.8\n")
    said = dicot("inspect", tmp_path, code=1)
    assert "day19.csv" in said and "day20.csv" not in said
    totals = "... and 10 more recordings. All 30 together: 3,000 rows, 0:01:00, 0 gaps, 0.0% missing."
    assert totals in said
    assert said.index("info.csv") > said.index(totals), "it would be off the screen"


def test_without_time_stamps_inspect_says_once_how_the_rate_is_given(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("x\n" + "\n".join(f"{value:.4f}" for value in np.sin(np.arange(600))))
    said = dicot("inspect", tmp_path)
    sentence = "No file has time stamps, so windows are counted in time steps. If you know the rate: --set rate=50"
    assert said.count(sentence) == 1 and said.count("counted in time steps") == 1
    assert sentence not in dicot("inspect", tmp_path, "--set", "rate=50")


def test_the_example_for_names_does_not_guess_which_part_is_the_person(tmp_path: Path) -> None:
    for name in ("1600_A", "1600_B", "1601_A", "1601_B"):
        write(tmp_path / f"{name}.csv")
    said = dicot("inspect", tmp_path)
    assert "--names '{a}_{b}'" in said and "{activity}" not in said and "{subject}" not in said


def test_what_lies_in_no_window_is_told_by_every_command(tmp_path: Path) -> None:
    folder, model = tmp_path / "recordings", tmp_path / "model"
    folder.mkdir()
    times = np.concatenate([np.arange(600) / 50, 12 + np.arange(400) / 25])
    values = np.random.default_rng(0).normal(size=1000)
    (folder / "a.csv").write_text("t,x\n" + "\n".join(f"{t:.2f},{v:.4f}" for t, v in zip(times, values, strict=True)))
    told = "of rows .* of 1,000\\) lie in no window, because of another rate than 50 per second \\(400; .*resample"
    for words in (
        ["inspect", folder],
        ["pretrain", folder, "--window", "2s", "--out", model, *SMALL],
        ["embed", model, folder, "--window", "2s", "--out", tmp_path / "v.npz", "--device", "cpu"],
        ["corpus", "build", folder, "--window", "2s", "--out", tmp_path / "corpus"],
    ):
        looks_only = words[0] == "inspect"
        if not looks_only:
            with pytest.raises(InputError, match=r"40 % of the rows .*--set resample=true.*--allow-partial"):
                dicot(*words)
            words.append("--allow-partial")
        said = " ".join(dicot(*words, code=0 if looks_only else 3).split())
        assert re.search(told, said), said
    said = dicot("pretrain", folder, "--window", "2s", "--set", "resample=true", "--out", tmp_path / "other", *SMALL)
    assert "lie in no window" not in said


def test_a_folder_becomes_a_model_and_a_table_of_vectors(tmp_path: Path) -> None:
    folder, model, out = tmp_path / "recordings", tmp_path / "model", tmp_path / "vectors.parquet"
    folder.mkdir()
    for name in ("monday", "tuesday"):
        write(folder / f"{name}.csv")
    cut = ["--window", "2s", "--channels", "y"]
    said = dicot("pretrain", folder, *cut, "--stride", "25%", "--out", model, *SMALL)
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
        dicot(
            "embed",
            model,
            folder,
            "--window",
            "2s",
            "--channels",
            "x",
            "--out",
            model.parent / "other.npz",
            "--device",
            "cpu",
        )
    with pytest.raises(InputError, match=r"X has 25 time steps per second; this model was fitted on 50.*rate"):
        dicot("embed", model, folder, *cut, "--set", "rate=25", "--out", model.parent / "other.npz", "--device", "cpu")
    for words, message in (
        (["--stride", "1s"], "Give --window too"),
        (["--window", "2s", "--set", "case=id"], "case is for files of cases"),
        ([], "is a folder.*--window"),
    ):
        with pytest.raises(InputError, match=message):
            dicot("pretrain", folder, "--out", tmp_path / "other", *words)


def test_a_toml_beside_the_recordings_keeps_commands_short(tmp_path: Path) -> None:
    folder, model, out = tmp_path / "recordings", tmp_path / "model", tmp_path / "vectors.parquet"
    folder.mkdir()
    for name in ("monday", "tuesday"):
        write(folder / f"{name}.csv")
    said = dicot("inspect", folder, "--channels", "y", "--write")
    assert f"Wrote {folder / 'dicot.toml'}" in said and f"Next: dicot explore {folder}\n" in said
    with pytest.raises(InputError, match=r"dicot\.toml is there already. Say --overwrite"):
        dicot("inspect", folder, "--write")
    assert "of y at 50 per second" in dicot("pretrain", folder, "--out", model, *SMALL)
    settings = json.loads((model / "config.json").read_text())
    assert settings["preparation"]["channels"] == ["y"] and settings["estimator"]["prepare"]["scale"] == "dataset"
    assert "1 channel(s): y" in dicot("inspect", folder), "inspect goes by it too"
    dicot("embed", model, folder, "--out", out, "--stride", "100%", "--device", "cpu")  # an option wins
    source = read_vectors(out).source
    assert source is not None and source.stride == source.n_times == settings["preparation"]["n_times"]
    write(folder / "wednesday.csv")
    said = dicot("embed", model, folder, "--out", out, "--append", "--stride", "100%", "--device", "cpu")
    assert "new ones" in said and len(set(read_vectors(out).recording)) == 3
    with pytest.raises(InputError, match="stride.*100%.*now"):
        dicot("embed", model, folder, "--out", out, "--append", "--device", "cpu")
    (folder / "dicot.toml").write_text('chanels = ["y"]')
    with pytest.raises(InputError, match="'chanels'. Did you mean 'channels'"):
        dicot("pretrain", folder, "--out", tmp_path / "other", *SMALL)
    (folder / "dicot.toml").write_text('channels = ["y"]')
    with pytest.raises(InputError, match=r"dicot\.toml has no window"):
        dicot("pretrain", folder, "--out", tmp_path / "other", *SMALL)
    dicot("inspect", folder, "--channels", "x", "--write", "--overwrite")
    assert 'channels = ["x"]' in (folder / "dicot.toml").read_text()


def test_a_folder_with_a_toml_counts_also_where_a_data_set_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "synthetic").mkdir()
    write(tmp_path / "synthetic" / "a.csv")
    (tmp_path / "synthetic" / "dicot.toml").write_text('window = "2s"')
    said = dicot("pretrain", "synthetic", "--out", "m", *SMALL)
    assert "1 recording(s) of x, y" in said


def test_vectors_of_cases_say_their_source_too(tmp_path: Path) -> None:
    model, out = tmp_path / "model", tmp_path / "v.npz"
    dicot("pretrain", "synthetic", "--out", model, *SMALL)
    dicot("embed", model, "synthetic", "--out", out, "--device", "cpu")
    source = read_vectors(out).source
    assert source is not None and (source.kind, source.data) == ("name", ("synthetic",))
    assert source.model == model_hash(model)
    with pytest.raises(InputError, match="--append is for recordings"):
        dicot("embed", model, "synthetic", "--out", out, "--append", "--device", "cpu")


def test_a_model_takes_the_channels_and_the_window_that_it_was_fitted_on(tmp_path: Path) -> None:
    folder, model = tmp_path / "recordings", tmp_path / "model"
    folder.mkdir()
    write(folder / "a.csv")
    dicot("pretrain", folder, "--window", "2s", "--out", model, *SMALL)
    dicot("embed", model, folder, "--window", "2s", "--out", tmp_path / "v.npz", "--device", "cpu")
    expected = read_vectors(tmp_path / "v.npz")
    lines = [line.split(",") for line in (folder / "a.csv").read_text().splitlines()]
    (folder / "a.csv").write_text("\n".join(f"{t},{y},{x},{'z' if i == 0 else 7}" for i, (t, x, y) in enumerate(lines)))
    said = dicot("embed", model, folder, "--out", tmp_path / "w.npz", "--device", "cpu")
    assert "Windows of 100 time steps, as the model was fitted on" in said
    got = read_vectors(tmp_path / "w.npz")
    np.testing.assert_array_equal(got.x, expected.x)  # columns are swapped, and one more is left alone
    said = dicot("embed", model, folder, "--window", "1s", "--out", tmp_path / "u.npz", "--device", "cpu")
    assert said.count("have 50 time steps; this model was fitted on 100") == 1
    (folder / "a.csv").write_text("\n".join(f"{t},{x}" for t, x, _ in lines))
    with pytest.raises(InputError, match=r"a\.csv: .*'y'"):
        dicot("embed", model, folder, "--out", tmp_path / "t.npz", "--device", "cpu")
    assert sorted(path.name for path in tmp_path.glob("*.npz")) == ["u.npz", "v.npz", "w.npz"]


def test_columns_of_a_long_table_are_put_in_order(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6, 30, 2))
    for name, order in (("a", (0, 1)), ("b", (1, 0))):
        rows = [
            f"{i},{t},{values[i, t, order[0]]:.4f},{values[i, t, order[1]]:.4f}" for i in range(6) for t in range(30)
        ]
        (tmp_path / f"{name}.csv").write_text(f"id,t,{'xy'[order[0]]},{'xy'[order[1]]}\n" + "\n".join(rows))
    table = ["--set", "case=id", "--time", "t"]
    dicot("pretrain", tmp_path / "a.csv", *table, "--out", tmp_path / "model", *SMALL)
    made = []
    for name in ("a", "b"):
        embed = ["embed", tmp_path / "model", tmp_path / f"{name}.csv", *table, "--out", tmp_path / f"{name}.npz"]
        dicot(*embed, "--device", "cpu")
        made.append(read_vectors(tmp_path / f"{name}.npz").x)
    np.testing.assert_array_equal(*made)
    (tmp_path / "b.csv").write_text((tmp_path / "b.csv").read_text().replace("id,t,y", "id,t,z"))
    with pytest.raises(InputError, match=r"'y'"):
        dicot("embed", tmp_path / "model", tmp_path / "b.csv", *table, "--out", tmp_path / "v.npz", "--device", "cpu")


def test_search_finds_the_nearest_windows_that_do_not_overlap(tmp_path: Path) -> None:
    starts = np.arange(6.0)
    x = np.array([[1, 0], [1, 0.1], [1, 0.2], [0, 1], [1, 0.3], [-1, 0]], np.float32)
    arrays = {"X": x, "recording": np.array(["a"] * 5 + ["b"]), "start": starts, "end": starts + 2}
    np.savez(tmp_path / "v.npz", **arrays)
    said = dicot("search", tmp_path / "v.npz", "--like", "a@0.5", "-k", "2")
    found = [line.split("│")[1].strip() for line in said.splitlines() if line.startswith("│")]
    assert found == ["2", "5"], "row 1 overlaps the window itself, and rows 3 and 4 overlap or touch row 2"
    assert "0.0194" in said
    for words, message in (
        (["a@x"], "RECORDING@SECONDS"),
        (["c@1"], "Unknown recording 'c'"),
        (["77"], "0 to 5; got .77"),
    ):
        with pytest.raises(InputError, match=message):
            dicot("search", tmp_path / "v.npz", "--like", *words)


def test_what_was_found_is_drawn(tmp_path: Path) -> None:
    folder, model, out = tmp_path / "recordings", tmp_path / "model", tmp_path / "v.parquet"
    folder.mkdir()
    for name in ("monday", "tuesday", "wednesday"):
        write(folder / f"{name}.csv")
    dicot("pretrain", folder, "--window", "2s", "--out", model, *SMALL)
    dicot("embed", model, folder, "--window", "2s", "--out", out, "--device", "cpu")
    page = tmp_path / "page.html"
    said = dicot("search", out, "--like", "monday@5", "-k", "3", "--plot", page)
    text = page.read_text()
    assert f"Wrote {page}" in said and text.count("<svg") == 4 and text.count("<path") == 8
    assert text.count('class="marked"') == 1 and "monday @ 4" in text
    said = dicot("outliers", out, "-k", "2", "--top", "5", "--plot", page, "--overwrite")
    text = page.read_text()
    assert text.count("<svg") == 5 and text.count("p <b>0.") + text.count("p <b>1.") == 5
    folder.rename(tmp_path / "moved")
    before = page.read_bytes()
    with pytest.raises(InputError, match=r"There is no .*--data"):
        dicot("search", out, "--like", "0", "--plot", page, "--overwrite")
    assert page.read_bytes() == before
    dicot("search", out, "--like", "0", "--plot", page, "--overwrite", "--data", tmp_path / "moved")
    for words, message in (
        (["--data", "x"], "--data is for --plot"),
        (["--plot", "page.png"], r"'\.png'; a page is an \.html"),
    ):
        with pytest.raises(InputError, match=message):
            dicot("search", out, "--like", "0", *words)
