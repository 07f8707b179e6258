"""Rows of one time stamp, as phones write them in bursts."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot.core.errors import DicotWarning, InputError, SettingNeededError
from dicot.data import Reading, Windows, read_recording
from dicot.data.recording import merge_values

BURST = 4  # samples that a phone writes with one stamp


def write(path: Path, n_bursts: int = 100) -> Path:
    """Write a phone's file: 50 stamps a second in whole milliseconds, four rows of each."""
    stamps = np.repeat(np.arange(n_bursts) * 20, BURST)
    values = np.arange(len(stamps)) % BURST
    lines = [f"{stamp},{value},{10 * value},sit" for stamp, value in zip(stamps, values, strict=True)]
    path.parent.mkdir(exist_ok=True)
    path.write_text("time_ms,x,y,activity\n" + "\n".join(lines))
    return path


def test_equal_stamps_are_refused_in_one_line_with_counts_and_the_ready_option(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv")
    with pytest.raises(SettingNeededError) as raised:
        read_recording(path, label="activity")
    message = str(raised.value)
    assert "a.csv: 300 of 400 rows share their time stamp with the row before, in bursts of up to 4" in message
    assert "line 3" in message and "--duplicates mean" in message and "--group" in message
    assert "\n" not in message and raised.value.settings == {"duplicates": "mean"}


@pytest.mark.parametrize(("how", "x"), [("mean", 1.5), ("first", 0.0)])
def test_a_burst_becomes_its_mean_or_its_first_row(tmp_path: Path, how: str, x: float) -> None:
    reading = Reading(label="activity", duplicates=how)
    recording = read_recording(write(tmp_path / "a.csv"), reading)
    assert recording.n_times == 100 and recording.rate == 50 and recording.n_merged == 300
    assert recording.values[:, 0].tolist() == [x, 10 * x] and set(recording.label) == {"sit"}


def test_bursts_out_of_order_are_merged_in_the_order_of_time(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("t,x\n2,5\n0,1\n1,3\n0,2\n2,7\n")
    with pytest.raises(InputError, match=r"2 of 5 rows share .* bursts of up to 2; the first is line 5"):
        read_recording(path)
    assert read_recording(path, duplicates="mean").values.tolist() == [[1.5, 3, 6]]
    assert read_recording(path, duplicates="first").values.tolist() == [[1, 3, 5]]


def test_the_mean_is_of_what_is_not_missing() -> None:
    values = np.array([[1.0, np.nan, np.nan, np.nan], [np.nan, 4.0, 6.0, 2.0]], dtype=np.float32)
    merged = merge_values(values, np.array([0, 2]), "mean")
    assert merged.dtype == np.float32
    np.testing.assert_array_equal(merged, [[1, np.nan], [4, 4]])


def test_how_many_rows_were_merged_is_said_once_for_all_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.csv")
    said = r"600 of 800 rows, in 2 recording\(s\), share their time stamp .* their mean was taken"
    with pytest.warns(DicotWarning, match=said):
        windows = Windows.from_folder(tmp_path, 50, label="activity", duplicates="mean")
    assert windows.rate == 50


def test_inspect_says_what_is_alike_once_and_names_what_is_no_recording(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for number in range(20):
        write(folder / f"walk_{number}" / "sub.csv", 20 + number)
    (folder / "subjects_info.csv").write_text("code,weight,height\n" + "\n".join(f"{n},70,180" for n in range(23)))
    said = " ".join(dicot("inspect", folder, code=1).split())
    assert said.count("share their time stamp") == 1
    assert "20 files, " in said and "and 17 more" in said
    assert "subjects_info.csv (23 rows without time stamps: code, weight, height) is no recording" in said
    pattern = f"{folder}/*/*.csv"
    assert f"Next: dicot inspect '{pattern}' --duplicates mean" in said and "dicot pretrain" not in said

    said = " ".join(dicot("inspect", pattern, "--duplicates", "mean").split())
    assert "1,770 of 2,360 rows, in 20 recording(s), share their time stamp" in said
    assert f"Next: dicot explore '{pattern}'" in said and "--duplicates mean" in said


def test_recordings_are_told_by_what_they_hold_and_not_by_their_number(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    write(folder / "walk.csv", 1000)
    for name in ("people", "devices", "rooms"):
        (folder / f"{name}.csv").write_text("code,weight\n" + "\n".join(f"{n},{n * n % 7}" for n in range(5)))
    said = " ".join(dicot("inspect", folder, "--duplicates", "first", code=1).split())
    for name in ("people", "devices", "rooms"):
        assert f"{name}.csv (5 rows without time stamps: code, weight)" in said
    assert "are no recordings: the recordings have x, y" in said
    assert "walk.csv │ 1,000 │" in said
