"""Some vectors of a file in another one, and searches that start from other files."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot.core.errors import InputError
from dicot.store.series import series_of
from dicot.store.vectors import read_vectors, write_vectors

HOW = ("--window", 64, "--names", "{what}_{who}", "--label", "what", "--group", "who", "--device", "cpu", "--out")


def write(path: Path, n_times: int = 320, every: int = 1) -> Path:
    noise = np.random.default_rng(ord(path.stem[0])).normal(size=(n_times, 2)).cumsum(axis=0)
    path.write_text("\n".join(["t,x,y", *[f"{i / 50:.2f},{x:.4f},{y:.4f}" for i, (x, y) in enumerate(noise)][::every]]))
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "in").mkdir()
    for name in ("run_ann", "sit_bob", "walk_cid"):
        write(folder / "in" / f"{name}.csv")
    dicot("embed", folder / "in", *HOW, folder / "v.parquet")
    return folder / "v.parquet"


def test_a_subset_finds_its_series_and_takes_what_is_new(made: Path, tmp_path: Path) -> None:
    whole, out, table = read_vectors(made), tmp_path / "some.parquet", tmp_path / "windows.csv"
    dicot("vectors", "select", made, "--where", "label=run,w*", "--where", "start>=2", "--out", out)
    some, kept = read_vectors(out), np.flatnonzero((whole.recording != "sit_bob") & (whole.start >= 2))
    np.testing.assert_array_equal(some.x, whole.x[kept])
    np.testing.assert_array_equal(series_of(some, None, {}).window(3), series_of(whole, None, {}).window(kept[3]))
    write(made.parent / "in" / "run_dot.csv")
    dicot("embed", made.parent / "in", *HOW, out, "--append")
    assert set(read_vectors(out).group) == {"ann", "cid", "dot"}, "what was left out does not come back"
    write(made.parent / "in" / "run_ann.csv", 400)
    with pytest.raises(InputError, match=r"run_ann\.csv has grown, and .* was selected"):
        dicot("embed", made.parent / "in", *HOW, out, "--append")
    place = f"row,recording,start,end\n0,sit_bob,{whole.start[1]},{whole.end[1]}\n"  # a page counts its rows anew
    for text, rows in ((place, [whole.recording.tolist().index("sit_bob") + 1]), ("row\n4\n2\n", [2, 4])):
        table.write_text(text)
        dicot("vectors", "select", made, "--rows", table, "--out", out, "--overwrite")
        np.testing.assert_array_equal(read_vectors(out).x, whole.x[rows])


def test_a_search_starts_from_a_piece_of_a_recording_or_other_vectors(made: Path, tmp_path: Path) -> None:
    page, piece, slow = tmp_path / "page.html", write(tmp_path / "s1.csv", 64), write(tmp_path / "s3.csv", every=2)
    assert "0.0000 │ sit_bob   │     0 " in dicot("search", made, "--from", piece, "-k", 1, "--plot", page)
    assert page.read_text().count("<svg") == 2 and page.read_text().count('class="marked"') == 1
    assert "sit_bob" in dicot("search", made, "--from", slow, "-k", 1), "at half the rate"
    dicot("vectors", "select", made, "--where", "label=sit", "--out", tmp_path / "s.npz")
    assert "0.0000" in dicot("search", made, "--from", tmp_path / "s.npz", "--like", "sit_bob@0.1", "-k", 1)


def test_what_cannot_be_done_is_named(made: Path, tmp_path: Path) -> None:
    rows, short, out = tmp_path / "rows.csv", write(tmp_path / "short.csv", 60), tmp_path / "x.npz"
    rows.write_text("recording,start,end\nrun_ann,0,1.28\na,noon,11\n")
    for option, value, told in (
        ("--where", "lable=run", r"v\.parquet: it has no column 'lable'.*Did you mean 'label'"),
        ("--where", "label=runs", "no window has the label 'runs'. Did you mean 'run'"),
        ("--where", "start>=noon", "compares 'noon' with column 'start', which holds numbers"),
        ("--where", "start>=90", "no window is left: of .* 0 by 'start>=90'"),
        ("--rows", rows, r"rows\.csv: line 3 names recording a, start noon, end 11: no"),
        ("--from", short, "at least 64 time steps .* short of 60"),
    ):
        with pytest.raises(InputError, match=told):
            dicot(*(["search"] if option == "--from" else ["vectors", "select", "--out", out]), made, option, value)
    assert not out.exists()


def test_names_with_brackets_and_commas_are_names(tmp_path: Path) -> None:
    names = ["[x]1", "[x]2", "x3", "left,wrist", "left", "D01_a", "D02_a", "D03_a"]
    times = np.arange(len(names), dtype=float)
    arrays = {"X": np.eye(len(names), 4, dtype=np.float32), "recording": np.array(names), "start": times}
    write_vectors(tmp_path / "v.parquet", {"": {**arrays, "end": times + 1, "y": np.arange(len(names)) % 2}})

    def selected(where: str) -> list[str]:
        out = tmp_path / "some.parquet"
        dicot("vectors", "select", tmp_path / "v.parquet", "--where", where, "--out", out, "--overwrite")
        return read_vectors(out).recording.tolist()

    assert selected("recording=[x]*") == ["[x]1", "[x]2"]
    assert selected("recording=[x]1") == ["[x]1"]
    assert selected("recording=left,wrist") == ["left,wrist"]
    assert selected("recording=x3,left,wrist,[x]2") == ["[x]2", "x3", "left,wrist"]
    assert selected("recording=left,x3") == ["x3", "left"]
    assert selected("recording=left,w*") == ["left,wrist"]
    assert selected("recording=D0[12]_*") == ["D01_a", "D02_a"]
    assert selected("label=1.0") == names[1::2]
    with pytest.raises(InputError, match="no window has the recording 'y'"):
        selected("recording=left,wrist,y")
