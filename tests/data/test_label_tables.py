"""A table of labels that does not fit to the recordings: other units, ranges outside, names of no recording."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot.core.errors import DicotWarning, InputError
from dicot.data import Windows, inspect_recordings
from dicot.store.embedding import embed_recordings

SECONDS = 20.0


def write_recording(path: Path, first: float = 0.0, column: str = "time") -> None:
    """Twenty seconds at 10 Hz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{first + i / 10:.3f},{np.sin(i):.3f}" for i in range(200)]
    path.write_text(f"{column},x\n" + "\n".join(rows) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("walk_ann", "walk_bob", "sit_ann"):
        write_recording(tmp_path / "rec" / f"{name}.csv")
    return tmp_path / "rec"


def write_ranges(path: Path, factor: float = 1.0, names: tuple[str, ...] = ("walk_ann", "walk_bob", "sit_ann")) -> Path:
    """Each recording is `a` for eight seconds and then `b` until its end."""
    rows = [f"{name},{factor * start:g},{factor * end:g},{label}" for name in names for start, end, label in HALVES]
    path.write_text("file,start,end,label\n" + "\n".join(rows) + "\n")
    return path


HALVES = ((0, 8, "a"), (8, 20, "b"))


def refusal(*words: object) -> str:
    """What a command that is refused says."""
    with pytest.raises(InputError) as caught:
        dicot(*words)
    return str(caught.value)


def counted(windows: Windows) -> dict[str, int]:
    assert windows.y is not None
    labels, counts = np.unique(windows.y, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize(("factor", "unit"), [(1e3, "ms"), (1e6, "us"), (1e9, "ns"), (10, "steps")])
def test_a_table_in_another_unit_is_refused_with_its_remedy(folder: Path, factor: float, unit: str) -> None:
    table = write_ranges(folder / "labels.csv", factor)
    in_seconds = counted(Windows.from_folder(folder, "2s", table=str(write_ranges(folder.parent / "s.csv"))))
    message = refusal("corpus", "build", folder, "--window", "2s", "--workers", 1, "--out", folder.parent / "corpus")
    assert f"{table}, line " in message
    assert "where the recording lasts from 0 to 20 s" in message
    assert f"--set table_unit={unit}" in message
    assert counted(Windows.from_folder(folder, "2s", table_unit=unit)) == in_seconds
    with pytest.raises(InputError, match=f"table_unit={unit}"):
        inspect_recordings(folder)


def test_ranges_that_count_since_1970_are_put_on_the_clock_of_the_recording(folder: Path) -> None:
    since_1970 = 1_700_000_000
    for path in folder.glob("*.csv"):
        write_recording(path, since_1970)
    rows = [f"{path.stem},{since_1970 + 4},{since_1970 + 12},a" for path in folder.glob("*.csv")]
    (folder / "labels.csv").write_text("file,start,end,label\n" + "\n".join(rows) + "\n")
    windows = Windows.from_folder(folder, "2s")
    assert windows.y is not None and windows.start is not None
    assert set(windows.start[windows.y == "a"].tolist()) == {4, 5, 6, 7, 8, 9, 10}


def test_ranges_from_zero_of_a_recording_that_counts_from_elsewhere_are_refused(folder: Path) -> None:
    for path in folder.glob("*.csv"):
        write_recording(path, first=5000)
    write_ranges(folder / "labels.csv")
    with pytest.raises(InputError, match="lasts from 5000 to 5020 s"):
        Windows.from_folder(folder, "2s")


def test_a_range_that_ends_beyond_its_recording_is_named(folder: Path) -> None:
    table = write_ranges(folder / "labels.csv")
    table.write_text(table.read_text() + "walk_ann,30,40,c\n" + "sit_ann,19,26,b\n")
    with pytest.warns(DicotWarning, match="2 of 8 ranges") as caught:
        Windows.from_folder(folder, "2s")
    message = str(next(one.message for one in caught if "of 8 ranges" in str(one.message)))
    assert "line 8, 'walk_ann' from 30 to 40 s" in message
    assert "line 9, 'sit_ann' from 19 to 26 s" in message


@pytest.mark.filterwarnings("error")
def test_a_range_may_end_less_than_a_window_beyond_its_recording(folder: Path) -> None:
    table = write_ranges(folder / "labels.csv")
    table.write_text(table.read_text().replace(",20,b", ",21.5,b"))
    assert counted(Windows.from_folder(folder, "2s")) == {"a": 21, "b": 33, "": 3}


def test_ranges_that_give_no_window_a_label_are_counted(folder: Path) -> None:
    table = write_ranges(folder / "labels.csv")
    table.write_text(table.read_text() + "walk_ann,3.2,3.8,fall\n")
    with pytest.warns(DicotWarning, match="1 of 7 ranges .* more than half of no window"):
        windows = Windows.from_folder(folder, "2s")
    assert "fall" not in counted(windows)


@pytest.mark.parametrize("text", ["Walk_Ann", "walk_ann.txt", "elsewhere/walk_ann.csv", "walk_an"])
def test_a_row_of_no_recording_is_refused_by_its_line_with_what_may_be_meant(folder: Path, text: str) -> None:
    for table in (folder / "labels.csv", folder.parent / "mine.csv"):
        table.write_text(f"file,label\nwalk_bob,1\n{text},2\nsit_ann,3\n")
        option = {} if table.name == "labels.csv" else {"table": str(table)}
        with pytest.raises(InputError, match=f"line 3: .*{text}.* Did you mean 'walk_ann'?") as caught:
            Windows.from_folder(folder, "2s", **option)
        assert "--table ''" in str(caught.value)
    only = folder / "labels.csv"
    only.write_text(f"file,label\n{text},2\n")
    with pytest.raises(InputError, match="Did you mean 'walk_ann'?"):
        Windows.from_folder(folder, "2s")


def test_a_table_may_write_paths_from_where_it_lies(folder: Path) -> None:
    (folder.parent / "labels.csv").write_text(
        f"file,label\nrec/walk_ann.csv,1\nrec\\walk_bob.csv,2\n{folder / 'sit_ann.csv'},3\n"
    )
    assert counted(Windows.from_folder(folder, "2s")) == {1: 19, 2: 19, 3: 19}


@pytest.mark.filterwarnings("error")
def test_rows_of_recordings_that_were_not_asked_for_are_no_error(folder: Path) -> None:
    (folder / "labels.csv").write_text("file,label\nwalk_ann,1\nwalk_bob,2\nsit_ann,3\n")
    assert counted(Windows.from_folder(folder / "walk_ann.csv", "2s")) == {1: 19}
    assert counted(Windows.from_folder(str(folder / "walk*.csv"), "2s")) == {1: 19, 2: 19}


def test_labels_are_checked_on_their_way_into_a_store(folder: Path) -> None:
    vectors, store = folder.parent / "v.parquet", folder.parent / "labels.sqlite"
    embed_recordings(lambda windows: windows.x.mean(axis=2), "m", vectors, folder, {"window": "2s"})
    table = write_ranges(folder.parent / "ms.csv", 1e3)
    message = refusal("label", "import", store, table, "--vectors", vectors)
    assert "6 of 6 ranges" in message and "milliseconds" in message
    assert not store.exists()


def test_a_range_that_reaches_beyond_is_named_on_its_way_into_a_store(folder: Path) -> None:
    vectors, store = folder.parent / "v.parquet", folder.parent / "labels.sqlite"
    embed_recordings(lambda windows: windows.x.mean(axis=2), "m", vectors, folder, {"window": "2s"})
    table = write_ranges(folder.parent / "late.csv")
    table.write_text(table.read_text().replace("sit_ann,8,20,b", "sit_ann,8,29,b"))
    shown = dicot("label", "import", store, table, "--vectors", vectors)
    assert "1 of 6 ranges reach beyond" in shown
    assert "'sit_ann' from 8 to 29 s" in shown


def test_embedded_labels_of_a_table_in_steps_know_where_a_recording_has_a_gap(tmp_path: Path) -> None:
    lines = [f"{time:.1f},{np.sin(time):.3f}" for time in [*np.arange(0, 10, 0.1), *np.arange(100, 110, 0.1)]]
    (tmp_path / "a.csv").write_text("time,x\n" + "\n".join(lines) + "\n")
    (tmp_path / "labels.csv").write_text("file,start,end,label\na,0,100,first\na,100,200,second\n")
    windows = Windows.from_folder(tmp_path, "2s", table_unit="steps")
    assert windows.y is not None and windows.start is not None
    assert set(windows.y[windows.start < 50].tolist()) == {"first"}
    assert set(windows.y[windows.start > 50].tolist()) == {"second"}
