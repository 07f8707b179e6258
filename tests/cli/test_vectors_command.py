"""Some vectors of a file in another one, and searches that start from other files."""

import re
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot.core.errors import InputError
from dicot.store.series import series_of
from dicot.store.vectors import read_vectors


def write(path: Path, n_times: int = 640, every: int = 1, columns: slice = slice(None)) -> Path:
    times = np.arange(n_times) / 50
    noise = np.random.default_rng(sum(map(ord, path.stem[:1]))).normal(size=(n_times, 2)).cumsum(axis=0)
    rows = [["t", "x", "y", "what"]]
    rows += [
        [f"{t:.2f}", f"{x:.4f}", f"{y:.4f}", "late" if t > 6 else "early"]
        for t, (x, y) in zip(times, noise, strict=True)
    ]
    path.write_text("\n".join(",".join(row[columns]) for row in [rows[0], *rows[1::every]]))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three recordings, and `v.parquet`, their vectors by the model in the box."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "in").mkdir()
    for name in "abc":
        write(folder / "in" / f"{name}.csv")
    dicot("embed", folder / "in", "--window", 64, "--label", "what", "--out", folder / "v.parquet", "--device", "cpu")
    return folder


def numbers(said: str) -> list[int]:
    return [int(line.split("│")[1]) for line in said.splitlines() if line.startswith("│")]


def test_a_subset_keeps_its_rows_and_finds_its_series(made: Path, tmp_path: Path) -> None:
    whole, out = read_vectors(made / "v.parquet"), tmp_path / "some.parquet"
    said = dicot(
        "vectors", "select", made / "v.parquet", "--where", "recording=a,c*", "--where", "start>=5", "--out", out
    )
    some, kept = read_vectors(out), (whole.recording != "b") & (whole.start >= 5)
    assert f"{kept.sum()} of {len(whole)} windows" in said
    np.testing.assert_array_equal(some.x, whole.x[kept])
    np.testing.assert_array_equal(some.label, whole.label[kept])
    drawn = series_of(whole, None, {}).window(np.flatnonzero(kept)[3])
    np.testing.assert_array_equal(series_of(some, None, {}).window(3), drawn)
    dicot("vectors", "select", out, "--where", "label!=early", "--out", tmp_path / "fewer.npz")
    assert set(read_vectors(tmp_path / "fewer.npz").label) == {"late"}


def test_a_table_names_windows_by_their_place_or_row(made: Path, tmp_path: Path) -> None:
    whole, table, out = read_vectors(made / "v.parquet"), tmp_path / "windows.csv", tmp_path / "some.npz"
    (row,) = np.flatnonzero((whole.recording == "b") & (whole.start == whole.start[1]))
    place = f"row,recording,start,end\n0,b,{whole.start[1]},{whole.end[1]}\n"  # an exported page counts its rows anew
    for text, rows in ((place, [row]), ("row\n4\n2\n", [2, 4])):
        table.write_text(text)
        dicot("vectors", "select", made / "v.parquet", "--rows", table, "--out", out)
        np.testing.assert_array_equal(read_vectors(out).x, whole.x[rows])


def test_a_subset_takes_new_recordings_but_none_that_was_left_out(tmp_path: Path) -> None:
    folder, whole, out = tmp_path / "in", tmp_path / "v.npz", tmp_path / "some.npz"
    folder.mkdir()
    write(folder / "a.csv"), write(folder / "b.csv")
    dicot("embed", folder, "--window", 64, "--out", whole, "--device", "cpu")
    dicot("vectors", "select", whole, "--where", "recording=a", "--where", "end<=5", "--out", out)
    write(folder / "c.csv")
    dicot("embed", folder, "--window", 64, "--out", out, "--append", "--device", "cpu")
    assert set(read_vectors(out).recording) == {"a", "c"}
    write(folder / "a.csv", 800)
    with pytest.raises(InputError, match=r"a\.csv has grown, and .* was selected"):
        dicot("embed", folder, "--window", 64, "--out", out, "--append", "--device", "cpu")


def test_cases_keep_their_series_too(tmp_path: Path) -> None:
    dicot("embed", "ItalyPowerDemand", "--out", tmp_path / "v.npz", "--device", "cpu")
    whole = read_vectors(tmp_path / "v.npz")
    for condition, rows in (("label=1", whole.label == 1), ("part=test", whole.part == "test")):
        dicot("vectors", "select", tmp_path / "v.npz", "--where", condition, "--out", tmp_path / "s.npz")
        some = read_vectors(tmp_path / "s.npz")
        drawn = series_of(whole, None, {}).window(np.flatnonzero(rows)[-1])
        np.testing.assert_array_equal(series_of(some, None, {}).window(len(some) - 1), drawn)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Say which windows"),
        (["--where", "lable=late"], r"v\.parquet: it has no column 'lable'.*Did you mean 'label'"),
        (["--where", "label=lat"], "no window has the label 'lat'. Did you mean 'late'"),
        (["--where", "start>=noon"], "compares 'noon' with column 'start', which holds numbers"),
        (["--where", "label>=3"], "column 'label', which holds text"),
        (["--where", "late"], "got 'late'"),
        (["--where", "start>=90", "--where", "label=late"], "no window is left: of .* 0 by 'start>=90', "),
        (["--rows", "rows.csv"], r"rows\.csv: line 3 names recording a, start noon, end 11: no vector"),
        (["--rows", "odd.csv"], r"odd\.csv: it must have the columns recording, start, end; it has when"),
    ],
)
def test_what_cannot_be_selected_is_named(made: Path, tmp_path: Path, monkeypatch, words: list[str], told: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("recording,start,end\na,0,1.28\na,noon,11\n")
    Path("odd.csv").write_text("when\n3\n")
    with pytest.raises(InputError, match=told):
        dicot("vectors", "select", made / "v.parquet", *words, "--out", "x.parquet")
    assert not Path("x.parquet").exists()


def test_search_from_a_piece_of_a_recording(made: Path, tmp_path: Path) -> None:
    out, page, whole = made / "v.parquet", tmp_path / "page.html", read_vectors(made / "v.parquet")
    (first,) = np.flatnonzero((whole.recording == "b") & (whole.start == 0))
    said = dicot("search", out, "--from", write(tmp_path / "b1.csv", 100), "-k", 2, "--plot", page)
    assert numbers(said)[0] in (first, first + 1) and said.count("0.0000") == 1, "both overlap: one is listed"
    assert page.read_text().count("<svg") == 4 and page.read_text().count('class="marked"') == 2
    assert numbers(dicot("search", out, "--from", tmp_path / "b1.csv", "--like", "b1@1.2", "-k", 1)) == [first + 1]
    for piece in (write(tmp_path / "b2.csv", columns=slice(1, 3)), write(tmp_path / "b3.csv", every=2)):
        (found,) = numbers(dicot("search", out, "--from", piece, "-k", 1))  # without time stamps; at half the rate
        assert whole.recording[found] == "b"


def test_search_from_another_file_of_vectors(made: Path, tmp_path: Path) -> None:
    dicot("vectors", "select", made / "v.parquet", "--where", "recording=c", "--out", tmp_path / "c.npz")
    said = dicot("search", made / "v.parquet", "--from", tmp_path / "c.npz", "--like", "c@0.5", "-k", 1)
    assert re.search(r"0\.0000 │ c ", said)


def test_what_cannot_be_compared_is_refused(made: Path, tmp_path: Path) -> None:
    out, bare, other = made / "v.parquet", tmp_path / "bare.npz", tmp_path / "other.npz"
    short, few = write(tmp_path / "short.csv", 60), write(tmp_path / "few.csv", columns=slice(2))
    np.savez(bare, X=np.ones((2, 512), np.float32))
    np.savez(other, X=np.ones((2, 3), np.float32))
    for vectors, words, told in (
        (out, [short], "at least 64 time steps .* short of 60"),
        (out, [few], r"few\.csv.* no column 'y'"),
        (bare, [short], r"bare\.npz does not say how recordings were cut"),
        (out, [bare], "Say which window"),
        (out, [other, "--like", 0], "different models"),
    ):
        with pytest.raises(InputError, match=told):
            dicot("search", vectors, "--from", *words)
