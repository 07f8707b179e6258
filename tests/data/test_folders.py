"""Folders of recordings: which files count, and their windows."""

import wave
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import InputError, LeftOutWarning, ShortRecordingWarning
from dicot.data import Allowance, Reading, Windows
from dicot.data.folders import named_recordings, read_recordings
from dicot.data.readers import READERS, Reader
from dicot.data.recording import Parts, signals


def write(path: Path, times: Any, *, columns: str = "a,b", slope: float = 1.0, extra: Any = None) -> Path:
    """A table of two channels, slope * time and its negative; `extra` is a last column by name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name, cells = next(iter(extra.items())) if extra else ("", None)
    lines = [f"time,{columns}" + (f",{name}" if extra else "")]
    for i, t in enumerate(times):
        lines.append(f"{t:.6f},{slope * t:.6f},{-slope * t:.6f}" + (f",{cells[i]}" if cells is not None else ""))
    path.write_text("\n".join(lines) + "\n")
    return path


def windows_from(source: Any, *arguments: Any, **options: Any) -> Any:
    """Values are straight lines here, and such are asked about where nobody names them."""
    return Windows.from_folder(source, *arguments, **{"channels": ["a", "b"], **options})


def names(files: Iterable[Path], root: Path) -> list[str]:
    return [file.relative_to(root).as_posix() for file in files]


def test_which_files_count(tmp_path: Path) -> None:
    for name in ("b.csv", "a.CSV", "deep/er/c.csv", ".hidden.csv", ".git/d.csv", "100.hea", "100.dat", "dicot.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert names(named_recordings(tmp_path).values(), tmp_path) == ["100.hea", "a.CSV", "b.csv", "deep/er/c.csv"]
    assert names(named_recordings(f"{tmp_path}/*.csv").values(), tmp_path) == ["b.csv"]
    assert names(named_recordings(f"{tmp_path}/**/*.csv").values(), tmp_path) == ["b.csv", "deep/er/c.csv"]
    several = [tmp_path / "b.csv", str(tmp_path / "deep"), tmp_path / "deep" / "er" / "c.csv"]
    assert names(named_recordings(several).values(), tmp_path) == ["b.csv", "deep/er/c.csv"]
    assert names(named_recordings(tmp_path / "b.csv").values(), tmp_path) == ["b.csv"]
    (tmp_path / "none").mkdir()
    (tmp_path / "other" / "d.txt").parent.mkdir()
    (tmp_path / "other" / "d.txt").touch()
    for source, message in (
        (tmp_path / "none", "none holds no recording.*nor any other file"),
        (tmp_path / "other", r"other holds no recording.*\.txt"),
        (f"{tmp_path}/*.wav", r"\*\.wav"),
        (tmp_path / "lost", "lost"),
        ([], "names no recording"),
    ):
        with pytest.raises(InputError, match=message):
            named_recordings(source)


def test_a_folder_becomes_windows(tmp_path: Path) -> None:
    write(tmp_path / "ann" / "day.csv", np.arange(200) / 50, extra={"activity": ["sit"] * 100 + ["walk"] * 100})
    gap = np.concatenate([np.arange(70) / 50, 10 + np.arange(60) / 50])
    write(tmp_path / "bob" / "day.csv", gap, extra={"activity": ["run"] * 130})
    windows = windows_from(tmp_path, "1s", "50%", label="activity")
    assert (windows.x.shape, windows.channels, windows.rate) == ((9, 2, 50), ("a", "b"), 50.0)
    assert windows.recording is not None and windows.start is not None and windows.end is not None
    assert windows.recording.tolist() == ["ann/day"] * 7 + ["bob/day"] * 2
    assert windows.group is not None and windows.group.tolist() == windows.recording.tolist()
    np.testing.assert_allclose(windows.start, [0, 0.5, 1, 1.5, 2, 2.5, 3, 0, 10])
    np.testing.assert_allclose(windows.end - windows.start, 1)
    np.testing.assert_allclose(windows.x[:, 0, 0], windows.start, atol=1e-5)  # values are the time itself
    assert windows.y is not None and windows.y.tolist()[:3] == ["sit"] * 3 and windows.y[-1] == "run"
    same = windows_from(f"{tmp_path}/*/*.csv", 50, 25, label="activity")
    np.testing.assert_array_equal(same.x, windows.x)


def test_a_column_of_groups_divides_a_file(tmp_path: Path) -> None:
    times = [t for i in range(50) for t in (i / 10, i / 10)]  # two people, row by row
    write(tmp_path / "all.csv", times, extra={"user": ["ann", "bob"] * 50})
    windows = windows_from(tmp_path, 20, 20, group="user")
    assert windows.group is not None and windows.recording is not None
    assert windows.group.tolist() == ["ann"] * 2 + ["bob"] * 2
    assert windows.recording.tolist() == ["all:ann"] * 2 + ["all:bob"] * 2
    with pytest.raises(InputError, match=r"all\.csv.*50 of 100 rows.*line 3\..*--group"):
        windows_from(tmp_path, 20, channels=["a", "b"])


def test_short_recordings_are_named_in_one_warning(tmp_path: Path) -> None:
    for name, n in (("long", 100), ("brief", 30), ("tiny", 3)):
        write(tmp_path / f"{name}.csv", np.arange(n) / 50)
    with pytest.raises(
        InputError, match=r"2 of 3 recordings have no window.*brief, tiny.*--window 3 .*--allow-partial"
    ):
        windows_from(tmp_path, "1s")
    allowance = Allowance(partial=True)
    with pytest.warns(ShortRecordingWarning) as caught:
        windows = windows_from(tmp_path, "1s", allowance=allowance)
    assert allowance.recordings == ["brief", "tiny"]
    assert len(caught) == 1 and "brief, tiny" in str(caught[0].message)
    assert windows.recording is not None and set(windows.recording.tolist()) == {"long"}
    with pytest.raises(InputError, match="500 time steps.* 100"):
        windows_from(tmp_path, "10s")


def test_uneven_time_stamps_are_resampled_on_request_and_not_across_gaps(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    steps = rng.uniform(0.011, 0.029, 400)
    steps[[100, 101, 102]] = [0.04, 0.016, 0.016]  # a gap of two steps, shorter than one of 10 Hz
    times = np.cumsum(steps)
    write(tmp_path / "a.csv", times)
    even = windows_from(tmp_path, "1s", "100%", rate=10, gap=1.9)
    assert even.x.shape[2] == 10 and even.rate == 10 and even.start is not None
    np.testing.assert_allclose(np.diff(even.x[:, 0], axis=1), 0.1, atol=1e-4)  # the values are the time
    np.testing.assert_allclose(even.x[:, 0, 0], even.start, atol=1e-4)
    gap = (times[99] + times[100]) / 2
    last = even.x[:, 0, -1]
    assert not ((even.start < gap) & (last > gap)).any() and (last < gap).any()
    assert even.start[even.start > gap][0] == pytest.approx(times[100], abs=1e-6)  # the grid starts anew behind it
    at_own_rate = windows_from(tmp_path, "1s", "100%", resample=True, gap=1.9)
    assert at_own_rate.rate == pytest.approx(50, rel=0.05)
    np.testing.assert_allclose(np.diff(at_own_rate.x[:, 0], axis=1), 1 / at_own_rate.rate, atol=1e-4)


def test_jitter_makes_no_gaps(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    jittered = np.arange(3000) / 50 + rng.uniform(-0.006, 0.006, 3000)  # 60 s of an ordinary phone
    write(tmp_path / "a.csv", jittered)
    windows = windows_from(tmp_path, "2.56s")
    assert len(windows) == (3000 - 128) // 64 + 1 and windows.rate == pytest.approx(50, rel=1e-3)
    assert windows.start is not None and windows.end is not None
    np.testing.assert_allclose(windows.start, np.arange(len(windows)) * 1.28, atol=0.0061)
    np.testing.assert_allclose(windows.end - windows.start, 2.56, atol=0.0122)
    write(tmp_path / "a.csv", np.delete(jittered, np.arange(1500, 1600)))
    cut = windows_from(tmp_path, "2.56s")
    assert len(cut) == (1500 - 128) // 64 + 1 + (1400 - 128) // 64 + 1, "a gap is one all the same"


def test_what_has_another_rate_is_left_out_and_counted(tmp_path: Path) -> None:
    times = np.concatenate([np.arange(600) / 50, 12 + np.arange(400) / 25])
    write(tmp_path / "a.csv", times)
    with pytest.raises(InputError, match=r"40 % of the rows.*400 are at another rate.*--set resample=true"):
        windows_from(tmp_path, "2s", "100%")
    allowance = Allowance(partial=True)
    with pytest.warns(LeftOutWarning, match=r"^4\d % of rows .* of 1,000\).*another rate than 50 .*\(400; .*resample"):
        windows = windows_from(tmp_path, "2s", "100%", allowance=allowance)
    assert allowance.rows == 400
    assert windows.rate == 50 and windows.start is not None and windows.end is not None
    assert windows.start.tolist() == [0, 2, 4, 6, 8, 10] and windows.end.max() == pytest.approx(12)
    even = windows_from(tmp_path, "2s", "100%", resample=True)
    assert even.start is not None and even.start.tolist() == pytest.approx(np.arange(0, 26, 2))


def test_stretches_that_are_too_short_are_counted_and_a_few_rows_are_not(tmp_path: Path) -> None:
    times = np.arange(1000) / 50
    times[400:] += 10
    times[450:] += 10
    write(tmp_path / "a.csv", times)
    with pytest.warns(LeftOutWarning, match=r"gaps that are shorter than a window \(50; a smaller --window"):
        windows_from(tmp_path, 100)
    write(tmp_path / "a.csv", np.concatenate([np.arange(5000), 6000 + np.arange(20)]) / 50)
    assert len(windows_from(tmp_path, 100)) == 99, "0.4 % of rows: nothing is said"


def test_lost_rows_that_a_gap_bridges_leave_the_rate_as_it_is(tmp_path: Path) -> None:
    steps = np.where(np.arange(1, 400) % 4 == 0, 0.04, 0.02)  # every fifth sample is not there
    write(tmp_path / "a.csv", np.concatenate([[0], np.cumsum(steps)]))
    windows = windows_from(tmp_path, 100, gap=3, resample=True)
    assert windows.rate == 50 and len(windows) == 8
    np.testing.assert_allclose(windows.end - windows.start, 2)


def test_labels_of_resampled_recordings_stay_in_place(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", np.arange(100) / 50, extra={"label": [1] * 50 + [2] * 50})
    windows = windows_from(tmp_path, "200ms", "100%", rate=100, label="label")
    assert windows.start is not None and windows.y is not None and windows.x.shape[2] == 20
    assert windows.y.tolist() == [1 if start < 0.99 else 2 for start in windows.start]


def test_two_rates_in_one_folder_need_resampling(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", np.arange(200) / 50)
    write(tmp_path / "b.csv", np.arange(400) / 100)
    with pytest.raises(InputError, match="'[ab]' has (50|100) .*'[ab]' (50|100) .*rate="):
        windows_from(tmp_path, "1s")
    windows = windows_from(tmp_path, "1s", "100%", rate=50)
    assert windows.x.shape == (8, 2, 50)
    np.testing.assert_allclose(windows.x[:4], windows.x[4:], atol=1e-4)


def test_without_time_stamps_the_rate_is_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("v\n" + "\n".join(map(str, range(100))))
    windows = windows_from(tmp_path, "1s", "100%", rate=25, channels=["v"])
    assert windows.x[:, 0, 0].tolist() == [0, 25, 50, 75]
    assert windows.start is not None and windows.start.tolist() == [0, 1, 2, 3]
    assert windows_from(tmp_path, 25, channels=["v"]).rate is None
    for arguments in ({"window": "1s"}, {"window": 25, "resample": True}):
        with pytest.raises(InputError, match="rate="):
            windows_from(tmp_path, channels=["v"], **arguments)
    write(tmp_path / "b.csv", np.arange(100) / 25, columns="v,w")
    with pytest.raises(InputError, match="rate of a is not known.* b "):
        windows_from(tmp_path, 25, channels=["v"])


def test_formats_can_be_mixed_and_columns_may_be_swapped(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", np.arange(100) / 50, columns="channel 0,channel 1")
    swapped = write(tmp_path / "b.csv", np.arange(100) / 50, columns="channel 1,channel 0", slope=-1)
    with wave.open(str(tmp_path / "c.wav"), "wb") as file:
        file.setparams((2, 2, 50, 0, "NONE", ""))
        file.writeframes(np.zeros((100, 2), "<i2").tobytes())
    windows = windows_from(tmp_path, 50, 50, channels=["channel 0", "channel 1"])
    assert windows.recording is not None and windows.recording.tolist() == ["a", "a", "b", "b", "c", "c"]
    np.testing.assert_array_equal(windows.x[2:4], windows.x[:2])
    write(tmp_path / "a.csv", np.arange(50) / 50, columns="channel 0,channel 1")
    write(swapped, np.arange(50) / 50, columns="gyro,channel 0", slope=-1)
    with pytest.raises(InputError, match="'a' has channel 0, channel 1; 'b' has gyro, channel 0"):
        Windows.from_folder(f"{tmp_path}/*.csv", 10)


def test_numbers_and_text_as_labels_become_text(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", np.arange(10), extra={"label": [1] * 10})
    write(tmp_path / "b.csv", np.arange(10), extra={"label": ["rest"] * 10})
    windows = windows_from(tmp_path, 10, label="label")
    assert windows.y is not None and windows.y.tolist() == ["1", "rest"]


def test_missing_values(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", np.arange(20))
    path.write_text(path.read_text().replace("\n7.000000,7.000000", "\n7.000000,"))
    with pytest.raises(InputError, match="'a'.*channel 'a' at 1 of 20 .* 7.*missing="):
        windows_from(tmp_path, 10)
    assert windows_from(tmp_path, 10, missing="interpolate").x[0, 0].tolist() == list(range(10))
    with pytest.raises(InputError, match="intrapolate"):
        windows_from(tmp_path, 10, missing="intrapolate")


def labelled_table(labels: Any, people: Any) -> Any:
    import pandas as pd

    n = len(labels)
    return pd.DataFrame({"time": np.arange(n) / 10, "a": np.sin(np.arange(n)), "label": labels, "who": people})


@pytest.mark.parametrize("suffixes", [("csv", "csv"), ("parquet", "parquet"), ("csv", "parquet"), ("parquet", "csv")])
@pytest.mark.parametrize("third", [None, ["none"] * 40])
def test_a_number_is_one_class_and_one_person_however_pandas_writes_it(
    tmp_path: Path, suffixes: tuple[str, str], third: Any
) -> None:
    whole = labelled_table([1] * 20 + [2] * 20, 7)
    lacking = labelled_table([1.0, np.nan, *[1.0] * 18, *[2.0] * 20], 7.0)
    tables = {"a": (whole, suffixes[0]), "b": (lacking, suffixes[1])}
    tables |= {} if third is None else {"c": (labelled_table(third, "007"), "csv")}
    for name, (table, suffix) in tables.items():
        getattr(table, f"to_{suffix}")(tmp_path / f"{name}.{suffix}", index=False)
    windows = Windows.from_folder(tmp_path, 10, 10, label="label", group="who")
    assert windows.y is not None and windows.group is not None
    assert list(map(str, windows.y[:4].astype(float))) == ["1.0", "1.0", "2.0", "2.0"]
    assert windows.y[4:8].tolist() == windows.y[:4].tolist()
    assert len(set(windows.group[:8].tolist())) == 1
    assert third is None or set(windows.group[8:].tolist()) == {"007"}, "a text that is no plain number stays"


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ([1000001, 1000002], ["1000001", "1000002"]),
        ([0.1 + 0.2, 0.3], ["0.30000000000000004", "0.3"]),
        ([-0.0, 0.0], ["0", "0"]),
        ([1e15, 2.5], ["1000000000000000", "2.5"]),
        ([True, False], ["True", "False"]),
        ([2**53, 2**53 + 1], ["9007199254740992", "9007199254740993"]),
    ],
)
@pytest.mark.parametrize("other", ["text", None])
def test_numbers_as_labels_never_merge(tmp_path: Path, labels: Any, wanted: list[str], other: str | None) -> None:
    labelled_table(np.repeat(labels, 10), 1).to_parquet(tmp_path / "a.parquet")
    unlike = [other] * 20 if other else np.repeat([np.nan, 5.0], 10)
    labelled_table(unlike, 1).to_parquet(tmp_path / "b.parquet")
    y = Windows.from_folder(tmp_path, 10, 10, label="label").y
    assert y is not None
    assert len(set(y[:2].tolist())) == len(set(wanted))
    assert other is None or y[:2].tolist() == wanted


def test_true_and_false_are_the_same_where_one_is_missing(tmp_path: Path) -> None:
    labelled_table([True] * 10 + [False] * 10, 1).to_parquet(tmp_path / "a.parquet")
    labelled_table([None] + [True] * 9 + [False] * 10, 1).to_parquet(tmp_path / "b.parquet")
    y = Windows.from_folder(tmp_path, 10, 10, label="label").y
    assert y is not None and y.tolist() == ["True", "False"] * 2


def test_recordings_are_named_after_the_number_of_their_group(tmp_path: Path) -> None:
    for name, kind in (("a", int), ("b", float)):
        labelled_table([1] * 20, np.repeat([1, 2], 10).astype(kind)).to_parquet(tmp_path / f"{name}.parquet")
    found = read_recordings(tmp_path, label="label", group="who")
    assert [one.name for one in found] == ["a:1", "a:2", "b:1", "b:2"]


@pytest.fixture
def silent(tmp_path: Path) -> Path:
    """File b has no value of channel b after its gap, c has none, and d lacks a stretch shorter than a window."""
    times = np.concatenate([np.arange(40) / 50, 5 + np.arange(40) / 50])
    for name, lost in (("a", []), ("b", range(40, 80)), ("c", range(80)), ("d", range(70, 80))):
        stamps = np.concatenate([times[:70], times[70:] + 9]) if name == "d" else times
        lines = [f"{t:.2f},{i % 7},{'' if i in lost else i % 5}" for i, t in enumerate(stamps)]
        (tmp_path / f"{name}.csv").write_text("time,a,b\n" + "\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize("resample", [False, True])
@pytest.mark.parametrize(
    ("name", "said"), [("c", "'c' has no value.*channel 'b'"), ("b", "'b' has no.*'b' from 5 to 5")]
)
def test_a_channel_without_any_value_is_refused_and_not_made_up(
    silent: Path, name: str, said: str, resample: bool
) -> None:
    from dicot.store.build import build_corpus
    from dicot.store.embedding import embed_recordings

    cut: Any = {"window": 20, "stride": 20, "missing": "interpolate", "resample": resample}
    some = [silent / "a.csv", silent / f"{name}.csv"]
    with pytest.raises(InputError, match=said):
        windows_from(some, **cut)
    with pytest.raises(InputError, match=said):
        embed_recordings(lambda windows: windows.x[:, 0], "model", silent / "v.npz", some, cut)
    with pytest.raises(InputError, match=said):
        build_corpus(some, silent / "corpus", **cut)
    x = windows_from(some, **cut | {"missing": "zero"}).x
    assert not x[6:, 1].any() and x[:6, 1].any(axis=1).sum() == (4 if name == "c" else 6)
    assert windows_from(some, **cut, channels=["a"]).x.any(axis=2).all()
    with pytest.warns(LeftOutWarning, match=r"\(20 of 160\)"):
        short = windows_from([silent / "a.csv", silent / "d.csv"], **cut)
    assert short.x.any(axis=2).all(), "a stretch that gives no window is nobody's harm"


def test_a_recording_is_called_after_its_path_below_what_was_named(tmp_path: Path, monkeypatch: Any) -> None:
    recs = tmp_path / "recs"

    def called(source: Any) -> list[str]:
        return [one.name for one in read_recordings(source)]

    write(recs / "monday" / "am" / "a.b.csv", np.arange(10))
    assert called(recs) == ["monday/am/a.b"]  # also where no other file makes it necessary
    assert called(f"{recs}/**/*.csv") == called(f"{recs}/mon*/am/*") == ["monday/am/a.b"]
    assert called(recs / "monday") == called(f"{recs}/monday/*/a*.csv") == ["am/a.b"]
    assert called(recs / "monday" / "am" / "a.b.csv") == ["a.b"]
    write(recs / "a.CSV", np.arange(10))
    write(recs / "tuesday" / "am" / "c.csv", np.arange(10))
    assert called(recs) == ["a", "monday/am/a.b", "tuesday/am/c"]
    assert called([recs / "monday", recs / "tuesday"]) == ["am/a.b", "am/c"]
    assert called([recs / "tuesday" / "am" / "c.csv", recs]) == ["a", "monday/am/a.b", "c"]  # named by itself first
    monkeypatch.chdir(recs)
    assert called(".") == called("**/*.[cC]*") == ["a", "monday/am/a.b", "tuesday/am/c"]


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("x/a.csv", "y/a.csv"):
        write(tmp_path / name, np.arange(100) / 50)
    assert [one.name for one in read_recordings(tmp_path, channels=["a", "b"])] == ["x/a", "y/a"]
    for several in ([tmp_path / "x", tmp_path / "y"], [tmp_path / "x" / "a.csv", tmp_path / "y" / "a.csv"]):
        with pytest.raises(InputError, match=r"x.a\.csv and .*y.a\.csv would .* called 'a'\. .*the folder"):
            windows_from(several, 10)
    np.savez(tmp_path / "x" / "a.npz", a=np.zeros(100), b=np.zeros(100), rate=50)
    with pytest.raises(InputError, match=r"a\.csv and .*a\.npz would .* called 'x/a'\. Name those of one kind"):
        windows_from(tmp_path, 10)
    assert [one.name for one in read_recordings(f"{tmp_path}/**/*.csv", channels=["a", "b"])] == ["x/a", "y/a"]


def test_a_file_called_as_a_group_of_another_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", np.arange(40) / 10, extra={"user": [1, 2] * 20})
    write(tmp_path / "a:2.csv", np.arange(40) / 10, extra={"user": [3] * 40})
    with pytest.raises(InputError, match=r"a\.csv has a recording 'a:2', .* file .*a:2\.csv has such a name"):
        windows_from(tmp_path, 10, group="user")
    (tmp_path / "a:2.csv").rename(tmp_path / "a-2.csv")
    assert [one.name for one in read_recordings(tmp_path, group="user")] == ["a-2", "a:1", "a:2"]


def test_a_reader_is_one_function_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_gauge(path: Path, reading: Reading) -> Parts:
        return signals({"level": np.loadtxt(path)}, reading, rate=10.0)

    monkeypatch.setitem(READERS, ".gauge", Reader(read_gauge))
    np.savetxt(tmp_path / "tide.gauge", np.sin(np.arange(200) / 9))
    windows = Windows.from_folder(tmp_path, "5s", "100%")
    assert (windows.x.shape, windows.channels, windows.rate) == ((4, 1, 50), ("level",), 10.0)
    assert set(windows.recording.tolist()) == {"tide"}
    with pytest.raises(InputError, match=r"tide\.gauge.*'depth'"):
        Windows.from_folder(tmp_path, "5s", channels=["depth"])
