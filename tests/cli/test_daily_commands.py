"""Every day: a saved classifier on new recordings, and whether they are still what they were."""

import csv
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot.cli import exitcodes
from dicot.cli.exitcodes import CANNOT_TELL, CHANGE_FOUND, PARTIAL
from dicot.core.errors import InputError
from dicot.store.vectors import read_vectors
from dicot.use.segments import label_runs

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def record(folder: Path, names: str, fast: float = 5.0, day: int = 2) -> Path:
    """Recordings of 12 s at 20 per second: slow waves, and in the second half fast ones."""
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        rng = np.random.default_rng(ord(name))
        time = np.arange(240) / 20
        values = np.sin(2 * np.pi * np.where(time < 6, 0.5, fast) * time) + 0.1 * rng.normal(size=240)
        stamps = pd.Timestamp(f"2026-03-{day:02}T08:{number:02}:00Z") + pd.to_timedelta(time, unit="s")
        pd.DataFrame({"time": stamps, "x": values, "kind": np.where(time < 6, "slow", "fast")}).to_csv(
            folder / f"{name}.csv", index=False, date_format="%Y-%m-%dT%H:%M:%S.%fZ"
        )
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings, a model, their vectors and a classifier."""
    folder = tmp_path_factory.mktemp("daily")
    source = record(folder / "old", "abcdefgh")
    small = ["--method", "dicot", "--set", "encoder=fcn", "--set", "dim=8", "--steps", 1, "--device", "cpu"]
    dicot("pretrain", source, "--window", "1s", "--label", "kind", *small, "--out", folder / "model")
    dicot("embed", folder / "model", source, "--window", "1s", "--label", "kind", "--out", folder / "v.parquet")
    dicot("classify", folder / "v.parquet", "--save", folder / "head.safetensors")
    for file in record(folder / "new", "pqrs", day=9).iterdir():  # nobody has labelled these
        pd.read_csv(file).drop(columns="kind").to_csv(file, index=False)
    return folder


def test_one_argument_says_all_and_new_recordings_are_added(made: Path, tmp_path: Path) -> None:
    out, ranges, folder = tmp_path / "p.parquet", tmp_path / "r.csv", tmp_path / "week"
    folder.mkdir()
    for name in ("p.csv", "q.csv"):
        shutil.copy(made / "new" / name, folder)
    said = dicot("predict", made / "head.safetensors", folder, "--out", out, "--ranges", ranges)
    assert "2 recording(s)" in said and "fast" in said
    table = pd.read_parquet(out)
    assert [*table.columns[:5]] == ["recording", "start", "end", "start_time", "end_time"]
    assert {"predicted", "p_fast", "p_slow", "vector"} < {*table.columns}
    assert str(table.start_time[0]) == "2026-03-09 08:00:00+00:00"
    np.testing.assert_allclose(table.p_fast + table.p_slow, 1)
    truth = np.where((table.start + table.end) / 2 < 6, "slow", "fast")
    assert (table.predicted == truth).mean() > 0.9
    with ranges.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["recording"] == "p" and rows[0]["label"] == "slow" and rows[0]["start_time"].startswith("2026-03-09")
    shutil.copy(made / "new" / "r.csv", folder)
    said = dicot("predict", made / "head.safetensors", folder, "--out", out, "--append")
    grown = pd.read_parquet(out)
    assert grown[: len(table)].equals(table) and set(grown.recording) == {"p", "q", "r"} and "new ones" in said
    assert "Nothing is new" in dicot("predict", made / "head.safetensors", folder, "--out", out, "--append")
    dicot("predict", made / "head.safetensors", folder, "--out", tmp_path / "whole.parquet")
    assert (tmp_path / "whole.parquet").read_bytes() == out.read_bytes()


def test_what_does_not_fit_the_classifier_is_refused(made: Path, tmp_path: Path) -> None:
    head, out = tmp_path / "head.safetensors", tmp_path / "p.parquet"
    shutil.copy(made / "head.safetensors", head)
    with pytest.raises(
        InputError, match=r"head\.safetensors: The vectors were made by the model .*another one.*--model"
    ):
        dicot("predict", head, made / "new", "--out", out, "--model", "dicot-base")
    slow = record(tmp_path / "slow", "t")
    pd.read_csv(slow / "t.csv")[::2].to_csv(slow / "t.csv", index=False)
    with pytest.raises(InputError, match="10 time steps per second; what was cut before has 20"):
        dicot("predict", head, slow, "--out", out)
    (made / "model").rename(tmp_path / "moved")
    try:
        with pytest.raises(InputError, match=r"there is none at .*model.*--model"):
            dicot("predict", head, made / "new", "--out", out)
        assert not out.exists()
        dicot("predict", head, made / "new", "--out", out, "--model", tmp_path / "moved")
    finally:
        (tmp_path / "moved").rename(made / "model")


def test_neighbouring_windows_of_one_prediction_are_a_range() -> None:
    start, p = np.array([0.0, 1, 2, 9, 0, 1]), np.array([1, 0.75, 0, 0, 0.4, 1])
    found = label_runs(np.stack([p, 1 - p], axis=1), ["x", "y"], np.array([*"aaaabb"]), start, start + 2)
    told = found[["recording", "start", "end", "label", "probability"]]
    assert [*told.itertuples(index=False, name=None)] == [
        ("a", 0.0, 2.5, "x", 0.875), ("a", 2.5, 4.0, "y", 1.0), ("a", 9.0, 11.0, "y", 1.0),
        ("b", 0.0, 1.5, "y", 0.6), ("b", 1.5, 3.0, "x", 1.0),
    ]  # fmt: skip


def test_a_page_tells_what_changed_and_the_exit_code_alarms(made: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "odd.parquet", tmp_path / "page.html"
    odd = record(tmp_path / "odd", "tuvwxyz", fast=9.0, day=16)
    dicot("predict", made / "head.safetensors", odd, "--out", out)
    call = ["monitor", made / "v.parquet", out, "--out", page, "--overwrite", "--top", 2]
    said = dicot(*call, "--head", made / "head.safetensors", "--by", "week", code=4)
    assert "Changed: 2026-W12" in said and "was trained with" in said and "p classes" not in said
    text = page.read_text()
    assert "Changed: 2026-W12" in text and text.count("<li>") >= 2 and "data:image/svg+xml" in text
    assert "No change" in dicot("monitor", made / "v.parquet", made / "v.parquet", "--out", page, "--overwrite")
    people = tmp_path / "people.parquet"  # a recording that nobody told a group of is no group
    table = pd.read_parquet(made / "v.parquet")
    table.assign(group=np.where(table.recording < "e", "ann", "bob")).to_parquet(people)
    said = dicot("monitor", people, out, "--out", page, "--overwrite", "--top", 0, code=4)
    assert "Only one of the files has groups" in said and "comparisons of recordings" in said
    bare = tmp_path / "bare.npz"
    np.savez(bare, X=read_vectors(out).x)
    for words, message in (([bare], "--unit window"), ([bare, "--unit", "day"], "does not say the day")):
        with pytest.raises(InputError, match=message):
            dicot("monitor", made / "v.parquet", *words, "--out", tmp_path / "other.html")


BROKEN = {
    "truncated.npz": b"PK\x03\x04 and nothing more",
    "empty.csv": b"",
    "header.csv": b"time,x\n",
    "garbage.csv": bytes(range(256)) * 4,
    "other.csv": b"time,y\n0,1\n0.05,2\n0.10,3\n0.15,1\n",
}


@pytest.mark.parametrize("name", [*BROKEN, "locked.csv"])
def test_a_file_that_cannot_be_read_does_not_stop_the_night(made: Path, tmp_path: Path, name: str) -> None:
    folder, out = tmp_path / "week", tmp_path / "p.parquet"
    shutil.copytree(made / "new", folder)
    bad = folder / name
    bad.write_bytes(BROKEN.get(name, b"time,x\n0,1\n"))
    if name == "locked.csv":
        bad.chmod(0)
        if os.access(bad, os.R_OK):
            pytest.skip("this user may read every file")
    predict = ("predict", made / "head.safetensors", folder, "--out", out)
    said = dicot(*predict, code=PARTIAL)
    assert f"Left out {bad}: " in said and "4 recording(s)" in said
    assert [*pd.read_parquet(out).recording.unique()] == ["p", "q", "r", "s"]
    source = read_vectors(out).source
    assert source is not None and [*source.recordings] == ["p", "q", "r", "s"]
    with pytest.raises(InputError, match=name):
        dicot(*predict, "--strict", "--overwrite")


def test_a_file_that_was_bad_yesterday_is_picked_up_today(made: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "week", tmp_path / "v.parquet"
    shutil.copytree(made / "new", folder)
    whole = (folder / "r.csv").read_bytes()
    (folder / "r.csv").write_bytes(whole[:9])
    embed = ("embed", made / "model", folder, "--window", "1s", "--out", out)
    assert "Left out" in dicot(*embed, code=PARTIAL)
    dicot("predict", made / "head.safetensors", folder, "--out", tmp_path / "p.parquet", code=PARTIAL)
    before = out.read_bytes()
    said = dicot(*embed, "--append", code=PARTIAL)
    assert "Nothing is new" in said and "r.csv" in said and out.read_bytes() == before
    (folder / "r.csv").write_bytes(whole)
    assert "new ones" in dicot(*embed, "--append")
    assert {*read_vectors(out).recording} == {*"pqrs"}
    (folder / "p.csv").write_bytes(b"")  # was embedded while it could be read
    said = dicot(*embed, "--append", code=PARTIAL)
    assert "p.csv" in said and {*read_vectors(out).recording} == {*"pqrs"}


def test_equal_reasons_are_one_line_and_no_file_at_all_is_an_error(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "week"
    shutil.copytree(made / "new", folder)
    for name in "abc":
        (folder / f"{name}.npz").write_bytes(b"PK")
    embed = ("embed", made / "model", folder, "--window", "1s", "--out", tmp_path / "v.parquet")
    lines = [line for line in dicot(*embed, code=PARTIAL).splitlines() if "Left out" in line]
    assert len(lines) == 1 and "3 files" in lines[0] and all(f"{name}.npz" in lines[0] for name in "abc")
    for file in folder.glob("*.csv"):
        file.unlink()
    with pytest.raises(InputError, match=r"None of the 3 files can be used.*a\.npz"):
        dicot(*embed, "--append")


@pytest.mark.parametrize("command", ["outliers", "segment", "monitor", "explore", "events"])
def test_recordings_behind_vectors_that_are_broken_now_are_left_out(made: Path, tmp_path: Path, command: str) -> None:
    folder, out, page = tmp_path / "week", tmp_path / "v.parquet", tmp_path / "page.html"
    shutil.copytree(made / "old", folder)
    dicot("embed", made / "model", folder, "--window", "1s", "--label", "kind", "--out", out)
    (folder / "c.csv").write_bytes(b"")
    words = {
        "outliers": ("outliers", out, "--out", tmp_path / "t.csv"),
        "segment": ("segment", out, "--out", tmp_path / "t.csv"),
        "events": ("events", "fast", out, "--out", tmp_path / "t.csv"),
        "monitor": ("monitor", made / "v.parquet", out, "--out", page, "--alarm", 0.01),
        "explore": ("explore", out, "--export", page),
    }[command]
    said = dicot(*words, code=0 if command == "explore" else PARTIAL)
    assert "c.csv has changed since" in said
    if command in ("outliers", "segment", "events"):
        assert {*pd.read_csv(tmp_path / "t.csv").recording} <= {*"abdefgh"}
    else:
        assert page.exists()
    if command != "explore":
        with pytest.raises(InputError, match=r"c\.csv has changed since"):
            dicot(*words, "--strict", "--overwrite")


def test_training_and_evaluation_say_what_they_leave_out(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "week"
    shutil.copytree(made / "old", folder)
    (folder / "z.npz").write_bytes(b"PK")
    cut = (folder, "--window", "1s", "--label", "kind")
    small = ["--method", "dicot", "--set", "encoder=fcn", "--set", "dim=8", "--steps", 1, "--device", "cpu"]
    assert "z.npz" in dicot("pretrain", *cut, *small, "--out", tmp_path / "model", code=PARTIAL)
    assert "z.npz" in dicot("evaluate", *cut, *small, "--protocols", "knn_10", code=PARTIAL)
    build = ("corpus", "build", *cut, "--out", tmp_path / "corpus", "--workers", 1)
    with pytest.raises(InputError, match=r"z\.npz"):
        dicot(*build, "--strict")
    assert "z.npz" in dicot(*build, code=PARTIAL)
    assert "z.npz" in dicot(*build, code=PARTIAL), "the next run knows it too"


def test_exit_codes_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "daily.md").read_text(encoding="utf-8")
    table = page.partition("## Exit codes")[2].partition("\n## ")[0]
    listed = sorted(int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE))
    assert listed == sorted({value for value in vars(exitcodes).values() if isinstance(value, int)})


def long_vectors(path: Path, n_windows: int, seed: int, shift: float = 0.0, label: str = "a") -> Path:
    """Vectors of one long recording, a window a second, of which neighbours are alike."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n_windows + 3, 4))
    x = sum(noise[lag : lag + n_windows] for lag in range(4)) / 2 + shift
    start = np.arange(n_windows, dtype=float)
    places = {"recording": np.full(n_windows, f"r{seed}"), "start": start, "end": start + 1}
    np.savez(path, X=x.astype(np.float32), y=np.full(n_windows, label), **places)
    return path


def test_one_long_recording_gives_no_verdict_and_blocks_of_time_do(tmp_path: Path) -> None:
    old, page = long_vectors(tmp_path / "old.npz", 2000, 1), tmp_path / "page.html"
    odd, same = long_vectors(tmp_path / "odd.npz", 2000, 2, 3.0), long_vectors(tmp_path / "same.npz", 2000, 3)
    words = ("--out", page, "--overwrite", "--top", 0)
    said = " ".join(dicot("monitor", old, odd, *words, code=CANNOT_TELL).split())
    assert "Cannot tell whether anything has changed" in said and "No change" not in said
    assert "of the new windows are odd" in said
    unit = re.search(r"--unit (\S+)\.", said)
    assert unit is not None and "Cannot tell" in page.read_text()
    said = dicot("monitor", old, odd, *words, "--unit", unit[1], code=CHANGE_FOUND)
    assert f"comparisons of {unit[1]} blocks" in " ".join(said.split())
    assert "No change was found" in dicot("monitor", old, same, *words, "--unit", unit[1])
    assert "Blocks should last" in dicot("monitor", old, odd, *words, "--unit", "2s", code=CHANGE_FOUND)
    dicot("monitor", old, odd, *words, "--unit", "1h", code=CANNOT_TELL)
    with pytest.raises(InputError, match="--unit is group, recording, week, day, window, or a time such as 10min"):
        dicot("monitor", old, odd, *words, "--unit", "fortnight")


def test_recordings_too_short_for_blocks_are_told_how_long_a_block_is(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    old, new = long_vectors(tmp_path / "old.npz", 420, 1), long_vectors(tmp_path / "new.npz", 360, 3)
    words = ("--out", page, "--overwrite", "--top", 0)
    said = " ".join(dicot("monitor", old, new, *words, code=CANNOT_TELL).split())
    alike = re.search(r"Windows stay alike for (\d+)s, so a block must last (\S+) to be independent of", said)
    assert alike is not None and alike[2] == "1min" and 20 * int(alike[1]) == 60
    assert "Each side needs 10 of them, 10min, and the reference holds 7min, the new windows 6min" in said
    assert "Record longer, compare more recordings" in said
    shorter = re.search(r"or take shorter blocks, which alarm more often than --alarm 0.05 says: (--unit \S+)\.", said)
    assert shorter is not None and shorter[1] == "--unit 30s"
    said = " ".join(dicot("monitor", old, new, *words, *shorter[1].split()).split())
    assert "Blocks should last 1min or more" in said and "e+" not in said
    assert "No change was found. These 30s blocks are too short to be independent" in said
    assert "more than 5% of such comparisons may raise an alarm" in said and "at most" not in said


def test_too_few_blocks_of_a_given_length_are_told_a_shorter_one(tmp_path: Path) -> None:
    old, new = long_vectors(tmp_path / "old.npz", 2000, 1), long_vectors(tmp_path / "new.npz", 2000, 3)
    words = ("--out", tmp_path / "page.html", "--overwrite", "--top", 0)
    said = " ".join(dicot("monitor", old, new, *words, "--unit", "1h", code=CANNOT_TELL).split())
    assert "or take shorter blocks: --unit 2min." in said
    short = long_vectors(tmp_path / "short.npz", 8, 4)
    said = " ".join(dicot("monitor", old, short, *words, code=CANNOT_TELL).split())
    assert "Record longer, or compare more recordings." in said and "inf" not in said


def test_labels_that_somebody_gave_are_shown_and_prove_nothing(tmp_path: Path) -> None:
    old, page = long_vectors(tmp_path / "old.npz", 2000, 1), tmp_path / "page.html"
    new = long_vectors(tmp_path / "new.npz", 900, 3, label="b")
    said = dicot("monitor", old, new, "--out", page, "--top", 0, "--unit", "1min")
    assert "No change was found" in said and "p classes" not in said
    assert "Labels that were given of b rose from 0 % to 100 %" in said


def test_the_page_says_what_changed_and_leads_to_the_windows(made: Path, tmp_path: Path) -> None:
    folder, out, page = tmp_path / "small", tmp_path / "v.parquet", tmp_path / "page.html"
    folder.mkdir()
    for file in (made / "new").glob("*.csv"):
        table = pd.read_csv(file)
        table.assign(x=table.x / 10).to_csv(folder / file.name, index=False)
    dicot("embed", made / "model", folder, "--window", "1s", "--out", out)
    call = ("monitor", made / "v.parquet", out, "--out", page, "--unit", "window", "--head", made / "head.safetensors")
    said = dicot(*call, code=CHANGE_FOUND)
    assert "x is ten times smaller" in said
    text = page.read_text()
    assert "What has changed most" in text and "x is ten times smaller" in text
    assert 'href="#window-1"' in text and 'id="window-1"' in text and f"dicot explore {out}" in text


def test_appending_vectors_alone_does_not_drop_predictions_or_columns_of_ones_own(made: Path, tmp_path: Path) -> None:
    out, week = tmp_path / "p.parquet", tmp_path / "week"
    week.mkdir()
    shutil.copy(made / "new" / "p.csv", week)
    dicot("predict", made / "head.safetensors", week, "--out", out)
    shutil.copy(made / "new" / "q.csv", week)
    before = out.read_bytes()
    with pytest.raises(InputError, match="columns that would be lost: predicted, p_fast, p_slow.*dicot predict HEAD"):
        dicot("embed", made / "model", week, "--window", "1s", "--out", out, "--append")
    assert out.read_bytes() == before
    pd.read_parquet(out).assign(note="checked").to_parquet(out)
    with pytest.raises(InputError, match="would be lost: note. Leave these columns out"):
        dicot("predict", made / "head.safetensors", week, "--out", out, "--append")
