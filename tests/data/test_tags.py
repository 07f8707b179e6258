"""Labels and groups of whole recordings: by the names of files, of folders, and by a table."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot.core.errors import DicotWarning, InputError
from dicot.data import Windows
from dicot.data.namepattern import NamePattern, suggest_pattern
from dicot.store.embedding import embed_recordings, is_current
from dicot.store.folder import Corpus
from dicot.store.series import series_of
from dicot.store.vectors import read_vectors

BY_NAME = {"names": "{activity}_{subject}", "label": "activity", "group": "subject"}


def write(path: Path, extra: str = "", hour: int = 8) -> None:
    """Ten seconds at 10 Hz, with dates."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"2026-03-02T{hour:02d}:00:{i / 10:06.3f}+01:00,{np.sin(i):.3f}{',1' * bool(extra)}" for i in range(100)]
    path.write_text(f"time,x{extra}\n" + "\n".join(rows) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(("walk_ann", "walk_bob", "sit_ann")):
        write(tmp_path / "rec" / f"{name}.csv", hour=8 + number)
    return tmp_path / "rec"


def labels_of(windows: Windows) -> dict[str, set[str]]:
    assert windows.y is not None and windows.recording is not None
    return {name: set(windows.y[windows.recording == name].tolist()) for name in np.unique(windows.recording).tolist()}


def test_label_and_group_are_fields_of_the_name(folder: Path, tmp_path: Path) -> None:
    windows = Windows.from_folder(folder, "2s", **BY_NAME)
    assert labels_of(windows) == {"sit_ann": {"sit"}, "walk_ann": {"walk"}, "walk_bob": {"walk"}}
    assert set(windows.group.tolist()) == {"ann", "bob"}
    for path in folder.glob("*.csv"):
        activity, subject = path.stem.split("_")
        write(tmp_path / "deep" / "all" / activity / f"{subject}.csv")
    named = {"names": "{activity}/{subject:1}{rest}", "label": "activity", "group": "subject"}
    deep = Windows.from_folder(tmp_path / "deep", "2s", **named)
    assert labels_of(deep) == {"all/sit/ann": {"sit"}, "all/walk/ann": {"walk"}, "all/walk/bob": {"walk"}}
    assert set(deep.group.tolist()) == {"a", "b"}


def test_a_pattern_that_does_not_fit_or_could_mean_two_things_is_refused(folder: Path) -> None:
    for pattern, said in (
        ("{activity}-{subject}", "3 of 3 files are not called like .*sit_ann.csv"),
        ("{activity}_{activity}", "each by a name of its own"),
        ("{a}{b}_{c}", "Nothing tells where {a} ends"),
    ):
        with pytest.raises(InputError, match=said):
            Windows.from_folder(folder, "2s", names=pattern, label="activity")
    with pytest.raises(InputError, match="a=x, b=y_z or a=x_y, b=z"):
        NamePattern("{a}_{b}").fields_of("x_y_z")
    with pytest.warns(DicotWarning, match="such as --label activity "):
        assert Windows.from_folder(folder, "2s", names="{activity}_{subject}").y is None
    (folder / "labels.csv").write_text("file,activity\nwalk_ann,a\n")
    with pytest.raises(InputError, match="label='activity' is a field of .* and a column"):
        Windows.from_folder(folder, "2s", **BY_NAME)
    write(folder / "walk_ann.csv", ",activity")
    with pytest.raises(InputError, match="walk_ann.csv: label='activity' is a field of .* and a column of the file"):
        Windows.from_folder(folder, "2s", **BY_NAME, channels=["x"], table="")


def test_a_pattern_is_suggested_where_names_have_a_form(folder: Path) -> None:
    assert suggest_pattern(["D01_SA01_R01", "D02_SA01_R02", "D02_SA02_R01"]) == "{a}_{b}_{c}"
    assert suggest_pattern(["exp01-user1", "exp02-user1", "exp03-user2"]) == "{exp}-{user}"
    assert suggest_pattern(["walk/a_1", "sit/a_1", "sit/a_2"]) == "{a}/a_{b}"
    assert suggest_pattern(["monday", "tuesday"]) is suggest_pattern(["2026-01-01", "2026-01-02"]) is None
    assert "a: sit, walk (2 in all); b: ann, bob (2 in all)" in dicot("inspect", folder)
    shown = dicot("inspect", folder, "--names", "{activity}_{subject}", "--label", "activity", "--write")
    assert "activity: sit, walk (2 in all)" in shown
    assert 'names = "{activity}_{subject}"' in (folder / "dicot.toml").read_text()
    dicot("corpus", "build", folder, "--workers", 1, "--out", folder.parent / "corpus")
    assert set(Corpus.open(folder.parent / "corpus").columns()["label"]) == {"walk", "sit"}


def test_a_table_of_labels_is_found_and_is_no_recording(folder: Path) -> None:
    for place in (folder, folder.parent):
        table = place / "labels.csv"
        table.write_text("file;label;group\nwalk_ann.csv;1;a\nwalk_bob;2;b\nsit_ann;3;a\n")
        windows = Windows.from_folder(folder, "2s")
        assert labels_of(windows) == {"walk_ann": {1}, "walk_bob": {2}, "sit_ann": {3}}
        assert set(windows.group.tolist()) == {"a", "b"}
        shown = dicot("inspect", folder)
        assert f"Labels of {table}" in shown and "sit_ann.csv" in shown and "move away" not in shown
        assert Windows.from_folder(folder, "2s", table="").y is None
        assert labels_of(Windows.from_folder([*folder.glob("*.csv")], "2s"))["sit_ann"] == {3}
        table.unlink()
    (folder / "labels.csv").write_text("recording,label\nother,1\n")
    with pytest.warns(DicotWarning, match="is not used. It names other"):
        assert Windows.from_folder(folder, "2s").y is None
    (folder / "labels.csv").write_text("recording,kind\nwalk_ann,1\n")
    with pytest.warns(DicotWarning, match="says nothing of 2 of 3 recordings: sit_ann, walk_bob"):
        assert labels_of(Windows.from_folder(folder, "2s", label="kind"))["walk_ann"] == {1}


def test_windows_take_the_label_of_the_range_that_covers_more_than_half(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text(
        "file,start,end,label\nwalk_ann,0,5,up\nwalk_ann,5,10,down\nsit_ann,,,all\n"
        "walk_bob,2026-03-02T08:00:02Z,2026-03-02T09:00:06.5+01:00,mid\n"
    )
    windows = Windows.from_folder(folder, "2s", table=str(table))  # one begins every second
    by_name = {name: windows.y[windows.recording == name].tolist() for name in set(windows.recording.tolist())}
    assert by_name["walk_ann"] == [*["up"] * 4, "", *["down"] * 4]
    assert by_name["walk_bob"] == ["", "", *["mid"] * 4, "", "", ""]
    assert by_name["sit_ann"] == ["all"] * 9


def test_a_table_that_cannot_be_used_is_refused_by_its_line(folder: Path) -> None:
    table = folder / "t.csv"
    for rows, said in (
        ("start,label\nwalk_ann,0,a", "start and end"),
        ("start,end,label\nwalk_ann,5,2,a", "line 2: A range from 5 to 2"),
        ("start,end,label\nwalk_ann,0,3,a\nwalk_ann,1,,a", "line 3: A range from 1 to None"),
        ("start,end,label\nwalk_ann,noon,evening,a", "line 2: A range from noon"),
        ("label\nwalk_ann,a\nwalk_ann.csv,b", "line 3: 'walk_ann.csv' has two of label: 'a' above, 'b' here"),
        ("label\nother,a", "It names other, and none of the recordings"),
        ("kind\nwalk_ann,a", "has no column 'label'"),
    ):
        table.write_text(f"file,{rows}\n")
        with pytest.raises(InputError, match=f"t.csv.*{said}"):
            Windows.from_folder(folder, "2s", table=str(table))


def test_vectors_know_when_labels_of_a_table_have_changed(folder: Path, tmp_path: Path) -> None:
    table, out, options = folder / "labels.csv", tmp_path / "v.parquet", {"window": "2s", "label": "kind"}
    table.write_text("file,kind\nwalk_ann,a\nwalk_bob,b\nsit_ann,c\n")

    def embed(**how: bool) -> int:
        return embed_recordings(lambda windows: windows.x.mean(axis=2), "m", out, folder, options, **how).added

    embed()
    known = read_vectors(out)
    assert known.source is not None and is_current(known.source, "m", folder, options)
    window = series_of(known, None, {}).window(0)
    assert window is not None and np.isclose(window.mean(), known.x[0])
    write(folder / "new.csv")
    table.write_text(table.read_text() + "new,d\n")
    assert embed(append=True) == 9 and set(read_vectors(out).label) == {"a", "b", "c", "d"}
    table.write_text(table.read_text().replace("walk_bob,b", "walk_bob,x"))
    held = read_vectors(out).source
    assert held is not None and not is_current(held, "m", folder, options)
    with pytest.raises(InputError, match="walk_bob.csv has another label"):
        embed(append=True)
