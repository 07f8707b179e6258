"""Recordings become vectors file by file: the rows of Windows.from_folder, only what is new."""

import os
from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import DicotWarning, InputError
from dicot.data import Windows
from dicot.data.allowance import Allowance
from dicot.data.cases import Array
from dicot.data.labels import labelled
from dicot.store.embedding import embed_recordings, is_current
from dicot.store.vectors import read_vectors, write_vectors

CUT = {"window": "1s", "stride": "50%", "label": "activity", "group": "who"}


def write(path: Path, n_times: int = 100, activity: str = "walk", who: str = "ann", seed: int = 0) -> None:
    values = np.random.default_rng(seed).normal(size=(n_times, 2))
    rows = [f"{i / 20:.2f},{x:.4f},{y:.4f},{activity},{who}" for i, (x, y) in enumerate(values)]
    path.write_text("time,x,y,activity,who\n" + "\n".join(rows) + "\n")


def moments(windows: Windows) -> Array:
    """A model that needs no training."""
    return np.concatenate([windows.x.mean(axis=2), windows.x.std(axis=2)], axis=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "recordings"
    made.mkdir()
    for number, name in enumerate(("mon", "tue", "wed")):
        write(made / f"{name}.csv", 100 + 10 * number, "walk" if number else "", f"person {number}", number)
    return made


@pytest.mark.parametrize("suffix", ["parquet", "npz"])
def test_rows_are_those_of_all_windows_at_once(folder: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"v.{suffix}"
    done = embed_recordings(moments, "abc", out, folder, CUT)
    whole, held = Windows.from_folder(folder, **CUT), read_vectors(out)
    assert (done.added, done.files, done.recordings, done.n_features) == (len(whole), 3, 3, 4)
    np.testing.assert_array_equal(held.x, moments(whole))
    for name, wanted in (("recording", whole.recording), ("start", whole.start), ("end", whole.end)):
        np.testing.assert_array_equal(getattr(held, name), wanted)
    np.testing.assert_array_equal(held.group, whole.group)
    np.testing.assert_array_equal(held.label, whole.y)  # no label in the first file
    assert sorted(path.name for path in tmp_path.iterdir()) == ["recordings", out.name], "a part was left"
    source = held.source
    assert source is not None
    assert (source.kind, source.data, source.model) == ("recordings", (str(folder),), "abc")
    assert (source.channels, source.rate, source.n_times, source.stride) == (("x", "y"), 20.0, 20, 10)
    assert CUT.items() <= source.options.items()
    assert source.recordings["tue"]["file"] == str(folder / "tue.csv")


def test_only_what_is_new_is_embedded(folder: Path, tmp_path: Path) -> None:
    whole, grown, seen = tmp_path / "whole.parquet", tmp_path / "grown.parquet", []

    def counted(windows: Windows) -> Array:
        seen.append(len(windows))
        return moments(windows)

    write(folder / "thu.csv", 120, "7", "person 3", 3)
    embed_recordings(moments, "abc", whole, folder, CUT)
    (folder / "thu.csv").rename(tmp_path / "thu.csv")
    embed_recordings(counted, "abc", grown, folder, CUT, append=True)  # there is no file yet
    (tmp_path / "thu.csv").rename(folder / "thu.csv")
    before, seen[:] = grown.read_bytes(), []
    done = embed_recordings(counted, "abc", grown, folder, CUT, append=True)
    assert (done.there, done.added, seen) == (30, 11, [11])
    one, other = read_vectors(whole), read_vectors(grown)
    order = np.lexsort((other.start, other.recording))
    assert one.recording is not None and one.start is not None
    sorted_rows = np.lexsort((one.start, one.recording))
    for name in ("x", "recording", "start", "end", "group", "label"):
        np.testing.assert_array_equal(getattr(other, name)[order], getattr(one, name)[sorted_rows])
    assert grown.read_bytes() != before
    after = grown.read_bytes()
    done = embed_recordings(counted, "abc", grown, folder, CUT, append=True)
    assert done.added == 0 and seen == [11] and grown.read_bytes() == after


def test_a_recording_that_has_grown_gets_its_new_windows(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.parquet"
    embed_recordings(moments, "abc", out, folder, CUT)
    write(folder / "mon.csv", 150, "", "person 0", 0)  # the same values, and more
    os.utime(folder / "tue.csv", (1, 1))  # only copied: not read again
    done = embed_recordings(moments, "abc", out, folder, CUT, append=True)
    assert (done.there, done.added, done.files) == (30, 5, 1)
    held = read_vectors(out)
    assert held.recording is not None and held.start is not None
    assert held.start[held.recording == "mon"].tolist() == [i / 2 for i in range(14)]
    assert embed_recordings(moments, "abc", out, folder, CUT, append=True).added == 0


def altered(path: Path) -> None:
    """Other values in a file of the same size."""
    lines = path.read_text().split("\n")
    time, x, *others = lines[5].split(",")
    lines[5] = ",".join([time, f"{x[:-1]}{(int(x[-1]) + 1) % 10}", *others])
    path.write_text("\n".join(lines))


@pytest.mark.parametrize("how", ["values", "values, time put back", "shorter", "label", "grown and values"])
def test_a_recording_that_has_changed_is_refused(folder: Path, tmp_path: Path, how: str) -> None:
    out, mon = tmp_path / "v.parquet", folder / "mon.csv"
    embed_recordings(moments, "abc", out, folder, CUT)
    before, facts = out.read_bytes(), mon.stat()
    write(folder / "new.csv", 100)
    if "shorter" in how:
        write(mon, 90, "", "person 0", 0)
    elif "label" in how:
        write(mon, 100, "walk", "person 0", 0)
    elif "grown" in how:
        write(mon, 150, "", "person 0", 0)
    if "values" in how:
        altered(mon)
    if "time" in how:
        os.utime(mon, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        assert (mon.stat().st_size, mon.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)
    with pytest.raises(
        InputError, match=r"mon\.csv has changed since .*v\.parquet was made of it.* --overwrite in place of --append"
    ):
        embed_recordings(moments, "abc", out, folder, CUT, append=True)
    assert out.read_bytes() == before and not list(tmp_path.glob(".*"))


def test_a_signal_file_of_wfdb_is_looked_at_too(tmp_path: Path) -> None:
    folder, out = tmp_path / "recordings", tmp_path / "v.npz"
    folder.mkdir()
    (folder / "a.hea").write_text("a 1 20 60\na.dat 16 200 16 0 0 0 0 I\n")
    np.arange(60, dtype="<i2").tofile(folder / "a.dat")
    embed_recordings(moments, "abc", out, folder, {"window": "1s"})
    np.arange(1, 61, dtype="<i2").tofile(folder / "a.dat")
    with pytest.raises(InputError, match=r"a\.hea has changed"):
        embed_recordings(moments, "abc", out, folder, {"window": "1s"}, append=True)


@pytest.mark.parametrize("suffix", ["parquet", "npz"])
@pytest.mark.parametrize(("activity", "label"), [("run", "run"), ("7", 7.0)])
def test_labels_may_come_later(tmp_path: Path, suffix: str, activity: str, label: object) -> None:
    folder, out = tmp_path / "recordings", tmp_path / f"v.{suffix}"
    folder.mkdir()
    write(folder / "a.csv", 40, "")
    embed_recordings(moments, "abc", out, folder, CUT)
    write(folder / "b.csv", 40, activity)
    embed_recordings(moments, "abc", out, folder, CUT, append=True)
    held = read_vectors(out)
    assert held.label is not None
    np.testing.assert_array_equal(labelled(held.label), [False] * 3 + [True] * 3)
    assert held.label[3:].tolist() == [label] * 3


def test_other_windows_or_models_are_not_mixed(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.parquet"
    embed_recordings(moments, "a" * 64, out, folder, CUT)
    before = out.read_bytes()
    other = tmp_path / "other"
    other.mkdir()
    write(other / "mon.csv", 100)
    slow = tmp_path / "slow"
    slow.mkdir()
    (slow / "fri.csv").write_text("time,x,y,activity,who\n" + "\n".join(f"{i},1,2,walk,ann" for i in range(50)))
    for model, data, options, message in (
        ("b" * 64, folder, CUT, "made by the model aaaaaaaaaaaa, and this one is bbbbbbbbbbbb"),
        ("a" * 64, folder, {**CUT, "window": "2s"}, "--window 1s, 20 time steps; now --window 2s are 40"),
        ("a" * 64, folder, {**CUT, "stride": "10%"}, "--stride 50%, 10 time steps; now --stride 10% are 2"),
        ("a" * 64, folder, {**CUT, "channels": ["x"]}, r"channels=\['x', 'y'\]; now channels=\['x'\]"),
        ("a" * 64, folder, {**CUT, "rate": 10.0}, "rate=None; now rate=10"),
        ("a" * 64, other, CUT, "other/mon.csv has changed since .* another file than .*recordings/mon.csv"),
        ("a" * 64, slow, CUT, "what was cut before has 20 .*'fri' 1 "),
    ):
        with pytest.raises(InputError, match=message):
            embed_recordings(moments, model, out, data, options, append=True)
    write_vectors(tmp_path / "plain.parquet", {"": {"X": np.zeros((2, 3), np.float32)}})
    with pytest.raises(InputError, match="does not say which recordings"):
        embed_recordings(moments, "abc", tmp_path / "plain.parquet", folder, CUT, append=True)
    assert out.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_what_was_finished_before_an_error_is_not_done_again(folder: Path, tmp_path: Path) -> None:
    out, whole, seen = tmp_path / "v.parquet", tmp_path / "whole.parquet", []
    embed_recordings(moments, "abc", whole, folder, CUT)

    def breaks(windows: Windows) -> Array:
        if seen:
            raise KeyboardInterrupt
        seen.append(str(windows.recording[0]))  # type: ignore[index]
        return moments(windows)

    with pytest.raises(KeyboardInterrupt):
        embed_recordings(breaks, "abc", out, folder, CUT)
    assert not out.exists()

    def goes_on(windows: Windows) -> Array:
        seen.append(str(windows.recording[0]))  # type: ignore[index]
        return moments(windows)

    assert embed_recordings(goes_on, "abc", out, folder, CUT).continued == 1
    assert seen == ["mon", "tue", "wed"]
    assert out.read_bytes() == whole.read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_parts_of_another_run_are_not_taken(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.parquet"

    def breaks(windows: Windows) -> Array:
        if str(windows.recording[0]) == "tue":  # type: ignore[index]
            raise KeyboardInterrupt
        return moments(windows)

    with pytest.raises(KeyboardInterrupt):
        embed_recordings(breaks, "abc", out, folder, CUT)
    assert embed_recordings(lambda windows: 2 * moments(windows), "xyz", out, folder, CUT).continued == 0
    np.testing.assert_array_equal(read_vectors(out).x, 2 * moments(Windows.from_folder(folder, **CUT)))


@pytest.mark.parametrize("first", ["1", "1.0"])
def test_a_number_stays_one_class_where_more_is_appended(tmp_path: Path, first: str) -> None:
    made, out = tmp_path / "recordings", tmp_path / "v.parquet"
    made.mkdir()
    write(made / "mon.csv", activity=first, who=first)
    embed_recordings(moments, "abc", out, made, CUT)
    write(made / "tue.csv", activity="1.0", who="1.0")
    text = (made / "tue.csv").read_text().splitlines()
    (made / "tue.csv").write_text("\n".join([*text[:3], text[3].replace("1.0,1.0", ",1.0"), *text[4:]]) + "\n")
    embed_recordings(moments, "abc", out, made, CUT, append=True)
    held = read_vectors(out)
    assert held.label is not None and held.group is not None
    assert set(held.label.tolist()) == {"1"}
    assert set(held.group.tolist()) == {1}


def test_windows_with_other_long_labels_have_another_hash() -> None:
    from dicot.data.stream import windows_hash

    def hashed(y: list[object]) -> str:
        about = {"recording": np.array(["a", "a"]), "start": np.arange(2.0), "end": np.arange(2.0) + 1}
        return windows_hash(Windows(np.zeros((2, 1, 4), np.float32), np.array(y), np.array([1, 1]), **about))

    assert hashed([1000001.0, 1000002.0]) != hashed([1000002.0, 1000001.0])
    assert hashed([1, 2]) == hashed([1.0, 2.0])


def rows_of(path: Path) -> list[tuple[object, ...]]:
    held = read_vectors(path)
    return sorted(zip(*(values.tolist() for values in held.places()), map(tuple, held.x.tolist()), strict=True))


def test_a_file_in_a_new_folder_does_not_rename_those_that_are_there(tmp_path: Path) -> None:
    """Appended to, a file has the rows of one that is written anew, also where a recording has grown meanwhile."""
    folder, out, anew = tmp_path / "recordings", tmp_path / "v.parquet", tmp_path / "anew.parquet"
    (folder / "sub").mkdir(parents=True)
    write(folder / "sub" / "a.csv", 100)
    embed_recordings(moments, "abc", out, folder, CUT)
    (folder / "new").mkdir()
    write(folder / "new" / "a.csv", 120, seed=1)
    write(folder / "a.csv", 80, seed=2)
    write(folder / "sub" / "a.csv", 150)  # the same values, and more
    embed_recordings(moments, "abc", out, folder, CUT, append=True)
    embed_recordings(moments, "abc", anew, folder, CUT)
    assert rows_of(out) == rows_of(anew)
    assert set(read_vectors(out).source.recordings) == {"a", "new/a", "sub/a"}  # type: ignore[union-attr]
    altered(folder / "sub" / "a.csv")
    with pytest.raises(InputError, match=r"sub.a\.csv has changed since"):
        embed_recordings(moments, "abc", out, folder, CUT, append=True)


def test_a_recording_under_another_name_is_told_and_not_embedded_twice(folder: Path, tmp_path: Path) -> None:
    out, wider = tmp_path / "v.parquet", f"{tmp_path}/*/*.csv"
    embed_recordings(moments, "abc", out, folder, CUT)
    before = rows_of(out)
    (folder / "mon.csv").rename(folder / "monday.csv")
    with pytest.warns(DicotWarning, match=r"v\.parquet has the windows of monday \(there as mon\) under another name"):
        assert embed_recordings(moments, "abc", out, folder, CUT, append=True).added == 0
    with pytest.warns(DicotWarning, match=r"recordings/monday \(there as mon\), recordings/tue \(there as tue\)"):
        assert embed_recordings(moments, "abc", out, wider, CUT, append=True).added == 0
    assert rows_of(out) == before
    (folder / "monday.csv").rename(folder / "mon.csv")
    write(folder / "mon.csv", 150, "", "person 0", 0)
    with pytest.raises(InputError, match=r"has .*mon\.csv as 'mon'\. .* it is 'recordings/mon', and it has changed"):
        embed_recordings(moments, "abc", out, wider, CUT, append=True)
    write(folder / "mon.csv", 100, "", "person 0", 0)
    (folder / "copy.csv").write_bytes((folder / "mon.csv").read_bytes())  # beside it: a recording of its own
    assert embed_recordings(moments, "abc", out, folder, CUT, append=True).added == 9
    moved = folder.rename(tmp_path / "moved")
    write(moved / "thu.csv", 60)
    assert embed_recordings(moments, "abc", out, moved, CUT, append=True).added == 5  # only what is new


@pytest.mark.filterwarnings("ignore:Left out")
def test_a_run_that_was_killed_names_its_bad_files_again_and_ends_with_the_same_bytes(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "sun.csv").write_bytes(b"")
    whole, killed, calls = tmp_path / "whole.npz", tmp_path / "killed.npz", []

    def dies(windows: Windows) -> Array:
        calls.append(len(windows))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return moments(windows)

    embed_recordings(moments, "abc", whole, folder, CUT, allowance=Allowance(bad_files=True))
    with pytest.raises(KeyboardInterrupt):
        embed_recordings(dies, "abc", killed, folder, CUT, allowance=Allowance(bad_files=True))
    allowance = Allowance(bad_files=True)
    with pytest.warns(DicotWarning, match=r"Left out .*sun\.csv"):
        done = embed_recordings(moments, "abc", killed, folder, CUT, allowance=allowance)
    assert done.continued == 1 and [*allowance.files] == ["sun"]
    assert killed.read_bytes() == whole.read_bytes()
    source = read_vectors(killed).source
    assert source is not None and "sun" not in source.recordings
    assert is_current(source, "abc", folder, CUT, Allowance(bad_files=True)), "the bad file is as bad as before"
    write(folder / "sun.csv", 100, "walk", "person 4", 4)
    assert not is_current(source, "abc", folder, CUT, Allowance(bad_files=True))


def test_a_sensor_that_gave_nothing_is_a_bad_file_too(folder: Path, tmp_path: Path) -> None:
    text = (folder / "tue.csv").read_text().splitlines()
    dead = [text[0], *(",".join([row.split(",")[0], "", *row.split(",")[2:]]) for row in text[1:])]
    (folder / "sun.csv").write_text("\n".join(dead))
    how = {**CUT, "missing": "interpolate"}
    with pytest.raises(InputError, match=r"channel 'x'"):
        Windows.from_folder(folder, **how)
    allowance = Allowance(bad_files=True)
    with pytest.warns(DicotWarning, match=r"Left out .*sun\.csv.*channel 'x'"):
        windows = Windows.from_folder(folder, allowance=allowance, **how)
    assert [*allowance.files] == ["sun"] and windows.recording is not None and "sun" not in windows.recording
    with pytest.warns(DicotWarning, match=r"Left out .*sun\.csv"):
        done = embed_recordings(moments, "abc", tmp_path / "v.npz", folder, how, allowance=Allowance(bad_files=True))
    assert done.added == len(windows)


def test_more_than_a_fifth_without_a_window_is_an_error_before_any_work_and_a_fifth_is_not(
    folder: Path, tmp_path: Path
) -> None:
    write(folder / "thu.csv", 120, "walk", "person 3", 3)
    write(folder / "short.csv", 15, "walk", "person 4", 4)

    def refuses(windows: Windows) -> Array:
        raise AssertionError("nothing may be embedded")

    out = tmp_path / "v.npz"
    with pytest.warns(DicotWarning, match="short"):
        embed_recordings(moments, "abc", out, folder, CUT)  # 1 of 5
    write(folder / "brief.csv", 12, "walk", "person 5", 5)
    for how in (CUT, {**CUT, "rate": 40.0}):
        with pytest.raises(InputError, match=r"2 of 6 recordings have no window.*brief, short.*--allow-partial"):
            embed_recordings(refuses, "abc", tmp_path / "other.npz", folder, how)
    allowance = Allowance(partial=True)
    with pytest.warns(DicotWarning, match="brief, short"):
        embed_recordings(moments, "abc", tmp_path / "other.npz", folder, CUT, allowance=allowance)
    assert allowance.recordings == ["brief", "short"] and allowance
    with pytest.warns(DicotWarning, match="brief"):  # the windows that are there count too
        embed_recordings(moments, "abc", out, folder, CUT, append=True)


def test_what_a_long_stride_skips_is_not_left_out(folder: Path, tmp_path: Path) -> None:
    done = embed_recordings(moments, "abc", tmp_path / "v.npz", folder, {**CUT, "stride": "4s"})
    assert done.recordings == 3


@pytest.mark.filterwarnings("ignore")
def test_what_was_embedded_before_too_little_was_seen_is_not_embedded_again(tmp_path: Path) -> None:
    folder, seen = tmp_path / "gappy", []
    folder.mkdir()
    for name in ("mon", "tue"):
        write(folder / f"{name}.csv", 100)
        rows = (folder / f"{name}.csv").read_text().splitlines()
        kept = [rows[0], *(row for number, row in enumerate(rows[1:]) if number < 40 or number % 20 > 3)]
        (folder / f"{name}.csv").write_text("\n".join(kept))

    def counted(windows: Windows) -> Array:
        seen.append(len(windows))
        return moments(windows)

    with pytest.raises(InputError, match=r"% of the rows .*--set gap="):
        embed_recordings(counted, "abc", tmp_path / "v.npz", folder, CUT)
    n_calls = len(seen)
    embed_recordings(counted, "abc", tmp_path / "v.npz", folder, CUT, allowance=Allowance(partial=True))
    assert n_calls == 2 and len(seen) == 2
