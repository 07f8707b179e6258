"""Labels given on the command line, and what to label next."""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot import LabelStore, suggest
from dicot.core.errors import InputError
from dicot.data.labels import as_text
from dicot.store.embedding import embed_recordings
from dicot.store.vectors import read_vectors
from dicot.use.labels.tables import read_labels
from dicot.use.labels.windows import put_on_windows


def write(path: Path, n: int = 60) -> np.ndarray:
    """Windows of two seconds, half overlapping, of two recordings."""
    x = np.random.default_rng(0).normal(size=(n, 5)).astype(np.float32)
    x[::3] += 4
    start = np.arange(n) % (n // 2) * 1.28
    np.savez(path, X=x, recording=np.repeat(["monday", "a@b"], n // 2), start=start, end=start + 2.56)
    return x


def rows(said: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]


def test_labels_are_added_shown_and_taken_back(tmp_path: Path) -> None:
    vectors, store = tmp_path / "v.npz", tmp_path / "labels.sqlite"
    write(vectors)
    dicot("label", "add", store, "monday@2.0", "walk", "--vectors", vectors, "--by", "me")
    dicot("label", "add", store, "a@b@0.1", "run", "--vectors", vectors)
    said = dicot("label", "add", store, "monday@2.0", "sit", "--vectors", vectors)
    assert "was walk" in said and "2 label(s)" in said
    with LabelStore(store) as kept:
        assert kept.current() == {("a@b", 0.0, 2.56): "run", ("monday", 1.28, 3.84): "sit"}
        assert [(change.new, change.by) for change in kept.history()] == [("walk", "me"), ("run", ""), ("sit", "")]
    said = dicot("label", "show", store)
    assert rows(said) == [["a@b", "0", "2.56", "run"], ["monday", "1.28", "3.84", "sit"]]
    assert "2 label(s)" in said and "1 sit" in said
    assert "monday, 1.28 to 3.84 s: walk" in dicot("label", "undo", store)
    assert "a@b, 0 to 2.56 s: no label" in dicot("label", "undo", store)
    assert rows(dicot("label", "show", store)) == [["monday", "1.28", "3.84", "walk"]]
    dicot("label", "undo", store, "-n", 5)
    assert "Nothing is left" in dicot("label", "undo", store)
    dicot("label", "add", store, 31, "walk", "--vectors", vectors)  # a row by its number
    assert read_labels(store) == {("a@b", 1.28, 3.84): "walk"}


def test_suggestions_are_those_of_the_library_and_can_be_labelled_by_name(tmp_path: Path) -> None:
    vectors, store = tmp_path / "v.npz", tmp_path / "labels.sqlite"
    x = write(vectors)
    said = dicot("label", "suggest", store, "--vectors", vectors, "-n", 4)
    assert "without any label" in said and not store.exists()
    listed = rows(said)
    assert [int(row[1]) for row in listed] == suggest(x, None, 4).tolist()
    assert f"dicot label add {store} {listed[0][0]} LABEL --vectors {vectors}" in said
    y = np.full(60, "", dtype="<U4")
    for window, row, *_ in listed:  # the name leads back to the same row, though windows overlap
        y[int(row)] = "odd" if int(row) % 3 == 0 else "even"
        dicot("label", "add", store, window, y[int(row)], "--vectors", vectors)
    data = np.load(vectors)
    given, lost = put_on_windows(read_labels(store), data["recording"], data["start"], data["end"])
    assert given.tolist() == y.tolist() and not lost
    said = dicot("label", "suggest", store, "--vectors", vectors, "-n", 4)
    assert [int(row[1]) for row in rows(said)] == suggest(x, y, 4).tolist()


def test_errors_name_what_is_wrong_and_leave_no_store(tmp_path: Path) -> None:
    vectors, store = tmp_path / "v.npz", tmp_path / "labels.sqlite"
    x = write(vectors)
    np.savez(tmp_path / "bare.npz", X=x)
    for window, label, file, message in (
        ("tuesday@1", "walk", vectors, "Unknown recording 'tuesday'"),
        ("monday@900", "walk", vectors, "No window of 'monday' lies at 900 s"),
        ("monday@x", "walk", vectors, "RECORDING@SECONDS"),
        ("77", "walk", vectors, "no row 77"),
        ("monday@1", " ", vectors, "LABEL is empty"),
        ("monday@1", "walk", tmp_path / "bare.npz", r"bare\.npz: it does not say recording, start and end"),
    ):
        with pytest.raises(InputError, match=message):
            dicot("label", "add", store, window, label, "--vectors", file)
    for words in (["show", store], ["undo", store]):
        with pytest.raises(InputError, match=r"no label store at .*labels\.sqlite"):
            dicot("label", *words)
    assert not store.exists()
    with LabelStore(store) as kept:
        kept.set([("monday", 500.0, 502.0)], "walk")
    with pytest.raises(InputError, match=r"1 of 1 label\(s\) of .*labels\.sqlite are on no window"):
        dicot("label", "suggest", store, "--vectors", vectors)


def test_a_label_stays_with_its_recording(tmp_path: Path) -> None:
    """Also where a file is added that has the same name in another folder."""
    folder, vectors, store = tmp_path / "recordings", tmp_path / "v.npz", tmp_path / "labels.sqlite"

    def embed() -> None:
        embed_recordings(lambda windows: windows.x.mean(axis=2), "abc", vectors, folder, {"window": 10, "stride": 10})

    (folder / "monday").mkdir(parents=True)
    table = "time,v\n" + "\n".join(f"{i / 10},{i}" for i in range(50))
    (folder / "monday" / "rec.csv").write_text(table)
    embed()
    dicot("label", "add", store, 2, "walk", "--vectors", vectors)
    (folder / "rec.csv").write_text(table.replace("0,", "0,1"))
    embed()
    known = read_vectors(vectors)
    given, lost = put_on_windows(read_labels(store), *known.places())
    assert known.recording is not None and not lost
    assert known.recording[given == "walk"].tolist() == ["monday/rec"]


@pytest.mark.parametrize("noise", [0, 1e-15, -1e-15])
def test_a_label_of_an_older_version_is_on_its_window(noise: float) -> None:
    """It had the noise of float64 in its times, also where the microsecond is a half."""
    start = np.arange(1, 4000, 2) / 16_000
    labels = {("a", float(time + noise), float(time + 1 + noise)): "walk" for time in start}
    given, lost = put_on_windows(labels, np.repeat("a", len(start)), start.round(9), (start + 1).round(9))
    assert not lost and (given == "walk").all()


def test_one_window_cannot_have_two_labels() -> None:
    labels = {("a", 0.0, 2.0): "walk", ("a", 1e-9, 2.0): "run"}
    with pytest.raises(InputError, match="two labels: 'walk'"):
        put_on_windows(labels, ["a"], [0.0], [2.0])


def test_a_table_of_labels_that_pandas_wrote_beside_an_empty_cell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("recording,start,end,label\na,0,1,1.0\na,1,2,\na,2,3,-1.0\na,3,4,007\n")
    assert read_labels(tmp_path / "a.csv") == {("a", 0.0, 1.0): "1", ("a", 3.0, 4.0): "007"}


def test_ranges_go_in_label_windows_and_come_out(tmp_path: Path) -> None:
    vectors, store, other = tmp_path / "v.npz", tmp_path / "labels.sqlite", tmp_path / "other.sqlite"
    write(vectors)
    ranges = "monday.csv,0,12,walk\nmonday.csv,9,30,run\na@b.csv,90,95,run\n"
    (tmp_path / "r.csv").write_text(f"file,start,end,label\n{ranges}")
    said = dicot("label", "import", store, tmp_path / "r.csv", "--vectors", vectors)
    assert "1 of 3 label(s)" in said and "The windows of 'a@b' lie from" in said
    data = np.load(vectors)
    given, _ = put_on_windows(read_labels(store), data["recording"], data["start"], data["end"])
    middle = np.where(data["recording"] == "monday", (data["start"] + data["end"]) / 2, -1)
    assert set(given[(middle > 0) & (middle < 8.9)]) == {"walk"}
    assert set(given[(middle > 9.1) & (middle < 30)]) == {"run"}
    dicot("label", "export", store, "--out", tmp_path / "l.json", "--vectors", vectors)
    dicot("label", "import", other, tmp_path / "l.json")
    dicot("label", "add", other, "monday@2.0", "run", "--vectors", vectors)
    assert "3 of 3 labels are equal" in dicot("label", "agree", store, other)
    assert rows(dicot("label", "agree", store, other, "--vectors", vectors)) == [["walk", "run", "1"]]
    dicot("label", "undo", store)
    assert read_labels(store) == {}, "an import is one call"
    (tmp_path / "r.csv").write_text("recording,start,end,label\nmonday,5,2,walk\n")
    with pytest.raises(InputError, match=r"r\.csv: line 2 has 'end' 2 before 'start' 5"):
        dicot("label", "import", tmp_path / "new.sqlite", tmp_path / "r.csv")
    assert not (tmp_path / "new.sqlite").exists()


MISSPELLED = "recording,start,end,label\nmonday,0,12,walk\nMonday.csv,12,20,run\nsunday,0,9,run\nMonday.csv,20,30,sit\n"


@pytest.mark.parametrize("store", ["labels.sqlite", "v.labels.sqlite"])
def test_labels_of_recordings_that_do_not_exist_are_refused_by_line(tmp_path: Path, store: str) -> None:
    """Two of three rows went into the file of labels by names that no recording has."""
    write(tmp_path / "v.npz")
    (tmp_path / "r.csv").write_text(MISSPELLED)
    is_beside = store.startswith("v.")
    words = [] if is_beside else ["--vectors", tmp_path / "v.npz"]
    with pytest.raises(InputError) as refusal:
        dicot("label", "import", tmp_path / store, tmp_path / "r.csv", *words)
    message = str(refusal.value)
    assert "r.csv: 3 of 4 label(s) name recordings that" in message and "v.npz does not have" in message
    assert "Lines 3, 5: There is no recording 'Monday.csv'. Did you mean 'monday'?" in message
    assert "Line 4: There is no recording 'sunday'. Did you mean 'monday'?" in message
    assert not (tmp_path / store).exists()


def test_an_import_says_what_it_was_compared_with(tmp_path: Path) -> None:
    write(tmp_path / "v.npz")
    (tmp_path / "r.csv").write_text("recording,start,end,label\nmonday,0,12,walk\n")
    said = dicot("label", "import", tmp_path / "labels.sqlite", tmp_path / "r.csv")
    assert "not checked" in said and "labels.sqlite" in said and "--vectors v.parquet" in said
    said = dicot("label", "import", tmp_path / "v.labels.sqlite", tmp_path / "r.csv")
    assert f"compared with {tmp_path / 'v.npz'}" in said


def test_wrong_labels_are_listed_with_reasons(tmp_path: Path) -> None:
    vectors, out = tmp_path / "v.npz", tmp_path / "doubts.csv"
    x, y = write(vectors, 120), np.where(np.arange(120) % 3 == 0, "odd", "even")
    y[[33, 70]] = "even", "odd"
    np.savez(vectors, **{**dict(np.load(vectors)), "X": x + 4 * (x > 3), "y": y})
    said = dicot("label", "check", vectors, "--out", out)
    assert "2 of 120 label(s) are probably wrong, by hiding the labels of whole recordings" in said
    with out.open(newline="") as file:
        found = {int(row["row"]): row for row in csv.DictReader(file)}
    assert {row: one["predicted"] for row, one in found.items()} == {33: "odd", 70: "even"}
    assert found[33]["near"].startswith("odd (a@b@") and float(found[33]["given"]) < 0.5
    np.savez(vectors, **{**dict(np.load(vectors)), "y": np.where(np.arange(120) % 20 < 1, y, "")})
    said = dicot("label", "check", vectors).strip()
    assert said == "3 labels per class are too few to doubt one; 10 are needed.", "and no empty list"


def test_a_label_is_one_class_however_it_is_typed(tmp_path: Path) -> None:
    vectors, store = tmp_path / "v.npz", tmp_path / "labels.sqlite"
    write(vectors)
    places = [f"monday@{second}" for second in (0.1, 3, 6)]
    for place, label in zip(places, ("1", "1.0", "2"), strict=True):
        said = dicot("label", "add", store, place, label, "--vectors", vectors)
        assert f": {label.removesuffix('.0')}." in said
    with LabelStore(store) as kept:
        kept.set([("monday", 9.0, 11.0)], 1)  # a program, with a number
        assert set(map(as_text, kept.current().values())) == {"1", "2"}
        assert "1.0" not in kept.names()
    assert "3 1, 1 2" in dicot("label", "show", store)
    known = read_vectors(vectors)
    labels, _ = put_on_windows(read_labels(store), *known.places())
    assert set(labels.tolist()) == {"", "1", "2"}
