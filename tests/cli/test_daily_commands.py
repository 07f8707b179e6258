"""Every day: a saved classifier on new recordings, and whether they are still what they were."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

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
    with pytest.raises(InputError, match="has 20 time steps per second, 't' 10"):
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
    call = ["monitor", made / "v.parquet", out, "--out", page, "--top", 2]
    said = dicot(*call, "--head", made / "head.safetensors", "--by", "week", code=4)
    assert "Changed: 2026-W12" in said and "was trained with" in said and "p classes" not in said
    text = page.read_text()
    assert "Changed: 2026-W12" in text and text.count("<li>") >= 2 and "data:image/svg+xml" in text
    assert "No change" in dicot("monitor", made / "v.parquet", made / "v.parquet", "--out", page)
    people = tmp_path / "people.parquet"  # a recording that nobody told a group of is no group
    table = pd.read_parquet(made / "v.parquet")
    table.assign(group=np.where(table.recording < "e", "ann", "bob")).to_parquet(people)
    said = dicot("monitor", people, out, "--out", page, "--top", 0, code=4)
    assert "Only one of the files has groups" in said and "comparisons of recordings" in said
    bare = tmp_path / "bare.npz"
    np.savez(bare, X=read_vectors(out).x)
    for words, message in (([bare], "--unit window"), ([bare, "--unit", "day"], "does not say the day")):
        with pytest.raises(InputError, match=message):
            dicot("monitor", made / "v.parquet", *words, "--out", tmp_path / "other.html")
