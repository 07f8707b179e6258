"""Folders of recordings: which files count, and their windows."""

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.data import folders
from dicot.data.folders import find_recordings, read_recordings
from dicot.errors import InputError, LeftOutWarning, ShortRecordingWarning, UnevenSamplingWarning


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
    return folders.windows_from(source, *arguments, **{"channels": ["a", "b"], **options})


def names(files: list[Path], root: Path) -> list[str]:
    return [file.relative_to(root).as_posix() for file in files]


def test_which_files_count(tmp_path: Path) -> None:
    for name in ("b.csv", "a.CSV", "deep/er/c.csv", ".hidden.csv", ".git/d.csv", "100.hea", "100.dat", "dicot.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert names(find_recordings(tmp_path), tmp_path) == ["100.hea", "a.CSV", "b.csv", "deep/er/c.csv"]
    assert names(find_recordings(f"{tmp_path}/*.csv"), tmp_path) == ["b.csv"]
    assert names(find_recordings(f"{tmp_path}/**/*.csv"), tmp_path) == ["b.csv", "deep/er/c.csv"]
    several = [tmp_path / "b.csv", str(tmp_path / "deep"), tmp_path / "deep" / "er" / "c.csv"]
    assert names(find_recordings(several), tmp_path) == ["b.csv", "deep/er/c.csv"]
    assert names(find_recordings(tmp_path / "b.csv"), tmp_path) == ["b.csv"]
    (tmp_path / "none").mkdir()
    (tmp_path / "other" / "d.txt").parent.mkdir()
    (tmp_path / "other" / "d.txt").touch()
    for source, message in (
        (tmp_path / "none", "none holds no recording.*no file"),
        (tmp_path / "other", r"other holds no recording.*\.txt"),
        (f"{tmp_path}/*.wav", r"\*\.wav"),
        (tmp_path / "lost", "lost"),
        ([], "names no recording"),
    ):
        with pytest.raises(InputError, match=message):
            find_recordings(source)


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
    with pytest.raises(InputError, match=r"all\.csv.*line 3 .* line 2.*group="):
        windows_from(tmp_path, 20, channels=["a", "b"])


def test_short_recordings_are_named_in_one_warning(tmp_path: Path) -> None:
    for name, n in (("long", 100), ("brief", 30), ("tiny", 3)):
        write(tmp_path / f"{name}.csv", np.arange(n) / 50)
    with pytest.warns(ShortRecordingWarning) as caught:
        windows = windows_from(tmp_path, "1s")
    assert len(caught) == 1 and "brief, tiny" in str(caught[0].message)
    assert windows.recording is not None and set(windows.recording.tolist()) == {"long"}
    with pytest.raises(InputError, match="length=500.* 100 "):
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


def test_windows_that_last_unequally_long_are_warned_of(tmp_path: Path) -> None:
    slow, fast = np.arange(100) * 0.025, 2.5 + np.arange(100) * 0.018
    write(tmp_path / "a.csv", np.concatenate([slow, fast]))
    with pytest.warns(UnevenSamplingWarning, match="resample"):
        windows_from(tmp_path, 20)
    windows_from(tmp_path, 20, resample=True)


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
    with pytest.warns(
        LeftOutWarning, match=r"^4\d % of rows .* of 1,000\).*another rate than 50 .*\(400; .*--resample"
    ):
        windows = windows_from(tmp_path, "2s", "100%")
    assert windows.rate == 50 and windows.start is not None and windows.end is not None
    assert windows.start.tolist() == [0, 2, 4, 6, 8, 10] and windows.end.max() == pytest.approx(12)
    even = windows_from(tmp_path, "2s", "100%", resample=True)
    assert even.start is not None and even.start.tolist() == pytest.approx(np.arange(0, 26, 2))


def test_stretches_that_are_too_short_are_counted_and_a_few_rows_are_not(tmp_path: Path) -> None:
    times = np.arange(1000) / 50
    times[400:] += 10
    times[450:] += 10
    write(tmp_path / "a.csv", times)
    with pytest.warns(LeftOutWarning, match=r"gaps that are shorter than a window \(50; .*--gap"):
        windows_from(tmp_path, 100)
    write(tmp_path / "a.csv", np.concatenate([np.arange(5000), 6000 + np.arange(20)]) / 50)
    assert len(windows_from(tmp_path, 100)) == 99, "0.4 % of rows: nothing is said"


def test_gaps_are_what_is_said_also_where_the_rate_is_found(tmp_path: Path) -> None:
    steps = np.where(np.arange(1, 400) % 4 == 0, 0.04, 0.02)  # every fifth sample is not there, on purpose
    write(tmp_path / "a.csv", np.concatenate([[0], np.cumsum(steps)]))
    windows = windows_from(tmp_path, 100, gap=3)
    assert windows.rate == pytest.approx(40, rel=0.01) and len(windows) == 7


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
    with pytest.raises(InputError, match=r"a\.csv has channel 0, channel 1; .*b\.csv has gyro, channel 0"):
        read_recordings(tmp_path)


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


def test_files_of_one_name_keep_their_suffix(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", np.arange(100) / 50)
    np.savez(tmp_path / "a.npz", a=np.zeros(100), b=np.zeros(100), rate=50)
    assert [one.name for one in read_recordings(tmp_path, channels=["a", "b"])] == ["a.csv", "a.npz"]
