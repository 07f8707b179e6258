"""Two devices of one person in separate files, joined on a common clock."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import dicot

from dicot.core.errors import DicotWarning, InputError
from dicot.data import Reading, Windows, inspect_recordings
from dicot.data.devices import join_advice
from dicot.data.folders import read_recordings
from dicot.store.embedding import embed_recordings
from dicot.store.series import series_of
from dicot.store.vectors import read_vectors

JOINED = {"names": "{subject}_{device}", "join": "device"}
PHONE_RATE, WATCH_RATE = 50, 20


def wave(times: Any) -> Any:
    """Rise and fall in straight lines, which bend at whole seconds alone, so that interpolation is exact."""
    return np.round(np.abs(np.asarray(times) % 8 - 4), 6)


def write(path: Path, times: Any, columns: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [",".join(map(str, row)) for row in zip(times, *columns.values(), strict=True)]
    path.write_text("\n".join([",".join(["time", *columns]), *rows]))
    return path


def phone(path: Path, start: float = 0.0, seconds: float = 20.0) -> Path:
    times = np.round(start + np.arange(0, seconds, 1 / PHONE_RATE), 6)
    return write(path, times, {"x": 2 * wave(times), "y": np.sin(times)})


def watch(path: Path, start: float = 0.0, seconds: float = 20.0) -> Path:
    times = np.round(start + np.arange(0, seconds, 1 / WATCH_RATE), 6)
    return write(path, times, {"x": -wave(times), "heart": 60 + wave(times)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two people, whose watch begins three seconds later than the phone and goes on for longer."""
    for person in ("ann", "bob"):
        phone(tmp_path / "people" / f"{person}_phone.csv", 5.0)
        watch(tmp_path / "people" / f"{person}_watch.csv", 8.0)
    return tmp_path / "people"


def test_devices_of_a_person_become_one_recording_of_their_common_time_at_the_higher_rate(folder: Path) -> None:
    recordings = read_recordings(folder, **JOINED)
    assert [recording.name for recording in recordings] == ["ann", "bob"]
    ann = recordings[0]
    assert ann.channels == ("phone.x", "phone.y", "watch.x", "watch.heart") and ann.rate == PHONE_RATE
    assert ann.times is not None and ann.times[0] == 8.0 and ann.times[-1] == pytest.approx(24.98, abs=0.021)
    np.testing.assert_allclose(ann.values[0], 2 * wave(ann.times), atol=1e-5)
    np.testing.assert_allclose(ann.values[2], -wave(ann.times), atol=1e-5)
    np.testing.assert_allclose(ann.values[3], 60 + wave(ann.times), rtol=1e-6)


def test_the_rate_is_that_which_was_asked_for(folder: Path) -> None:
    (ann, _) = read_recordings(folder, rate=10, **JOINED)
    assert ann.rate == 10 and ann.times is not None and np.allclose(np.diff(ann.times), 0.1)
    windows = Windows.from_folder(folder, "2s", rate=10, **JOINED)
    assert windows.rate == 10 and windows.channels == ann.channels and windows.n_times == 20


def test_a_gap_of_one_device_is_a_gap_of_all(tmp_path: Path) -> None:
    phone(tmp_path / "ann_phone.csv")
    times = np.concatenate([np.arange(0, 8, 0.05), np.arange(12, 20, 0.05)])
    write(tmp_path / "ann_watch.csv", times, {"heart": wave(times)})
    (ann,) = inspect_recordings(tmp_path, **JOINED)
    assert ann.file == "ann.csv" and ann.gaps == 1 and len(ann.stretches) == 2
    windows = Windows.from_folder(tmp_path, "1s", **JOINED)
    assert windows.start is not None and not ((windows.start > 7) & (windows.start < 12)).any()


def test_dates_are_one_clock_also_where_devices_begin_on_other_days(tmp_path: Path) -> None:
    midnight = np.datetime64("2026-03-02T00:00:00", "ms")
    for device, first in (("phone", -10), ("watch", 0)):
        seconds = first + np.arange(0, 30, 0.05)
        dates = midnight + np.round(1000 * seconds).astype("m8[ms]")
        write(tmp_path / f"ann_{device}.csv", dates, {"x": wave(seconds)})
    (ann,) = read_recordings(tmp_path, **JOINED)
    assert ann.times is not None and ann.origin == "2026-03-01T23:59:50" and ann.times[0] == pytest.approx(10)
    np.testing.assert_allclose(ann.values[0], ann.values[1], atol=1e-5)


def test_seconds_since_1970_lose_no_digits(tmp_path: Path) -> None:
    for device, first in (("phone", 1_700_000_000.0), ("watch", 1_700_000_001.3)):
        times = first + np.arange(0, 30, 0.05)
        rows = [f"{time:.3f},{value}" for time, value in zip(times, wave(times - 1.7e9), strict=True)]
        (tmp_path / f"ann_{device}.csv").write_text("\n".join(["time,x", *rows]))
    windows = Windows.from_folder(tmp_path, "1s", "100%", **JOINED)
    assert windows.start is not None and windows.start.tolist()[:3] == [1.3, 2.3, 3.3]


def test_folders_of_devices_are_joined_too_and_groups_go_by_the_joined_name(tmp_path: Path) -> None:
    for person in ("ann", "bob"):
        phone(tmp_path / "phone" / f"{person}.csv")
        watch(tmp_path / "watch" / f"{person}.csv")
    how = {"names": "{device}/{subject}", "join": "device", "group": "subject"}
    windows = Windows.from_folder(tmp_path, "2s", **how)
    assert windows.recording is not None and windows.group is not None
    assert set(windows.recording.tolist()) == set(windows.group.tolist()) == {"ann", "bob"}


def test_labels_of_time_steps_come_from_the_device_that_has_them(tmp_path: Path) -> None:
    times = np.arange(0, 10, 0.05)
    phone(tmp_path / "ann_phone.csv", seconds=10)
    write(tmp_path / "ann_watch.csv", times, {"heart": wave(times), "doing": np.where(times < 5, "sit", "walk")})
    windows = Windows.from_folder(tmp_path, "1s", "100%", label="doing", **JOINED)
    assert windows.y is not None and windows.y.tolist() == ["sit"] * 5 + ["walk"] * 4


def test_a_person_with_one_device_is_left_out_and_named(folder: Path) -> None:
    phone(folder / "cid_phone.csv")
    with pytest.warns(DicotWarning, match=r"Left out 1 of 3 recordings, .* phone and watch: cid \(phone\)"):
        assert len(read_recordings(folder, **JOINED)) == 2


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([("phone", 0.0), ("watch", 100.0)], r"ann_phone.csv: .*no time in common: phone from 0 .*, watch from 100"),
        ([("phone", 0.0)], r"No two files agree in all of '\{subject\}_\{device\}' but \{device\}, which is phone"),
    ],
)
def test_what_cannot_be_joined_is_refused_with_its_reason(
    tmp_path: Path, files: list[tuple[str, float]], message: str
) -> None:
    for device, start in files:
        (phone if device == "phone" else watch)(tmp_path / f"ann_{device}.csv", start)
    with pytest.raises(InputError, match=message):
        read_recordings(tmp_path, **JOINED)


def test_a_device_without_time_stamps_has_no_common_clock(tmp_path: Path) -> None:
    phone(tmp_path / "ann_phone.csv")
    (tmp_path / "ann_watch.csv").write_text("heart\n" + "\n".join(["60", "61"] * 50))
    with pytest.raises(InputError, match="watch has no time stamps"):
        read_recordings(tmp_path, **JOINED)


@pytest.mark.parametrize("options", [{"join": "device"}, {**JOINED, "join": "who"}, {**JOINED, "label": "device"}])
def test_the_field_of_devices_must_be_one_of_the_names_alone(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="field of names|label or group"):
        Reading(**options)


def test_joined_recordings_are_embedded_appended_and_shown(folder: Path, tmp_path: Path) -> None:
    out, how = tmp_path / "v.parquet", {"window": "2s", **JOINED}

    def embed(windows: Windows) -> Any:
        return windows.x.mean(axis=2)

    embed_recordings(embed, "abc", out, folder, how)
    vectors = read_vectors(out)
    assert vectors.x.shape[1] == 4 and set(vectors.recording.tolist()) == {"ann", "bob"}  # type: ignore[union-attr]
    series = series_of(vectors, None, {})
    window = series.window(0)
    assert window is not None and series.channels[2] == "watch.x"
    np.testing.assert_allclose(window.mean(axis=1), vectors.x[0], rtol=1e-5)

    phone(folder / "cid_phone.csv", 5.0)
    watch(folder / "cid_watch.csv", 8.0)
    assert embed_recordings(embed, "abc", out, folder, how, append=True).files == 1
    watch(folder / "ann_watch.csv", 9.0)
    with pytest.raises(InputError, match="has changed since"):
        embed_recordings(embed, "abc", out, folder, how, append=True)


def test_the_command_line_joins_and_says_how_where_nobody_asked(folder: Path, tmp_path: Path) -> None:
    advice = (
        "phone has x, y; watch has heart, x. To join devices of one person: --names '{subject}_{device}' --join device"
    )
    assert advice in " ".join(dicot("inspect", folder).split())
    with pytest.raises(InputError, match="same channels: .*--names '{subject}_{device}' --join device"):
        Windows.from_folder(folder, "2s")

    said = " ".join(dicot("inspect", folder, "--names", JOINED["names"], "--join", "device").split())
    assert "ann.csv" in said and "4 channel(s): phone.x, phone.y, watch.x, watch.heart" in said
    assert "--join device" in said.partition("Next:")[2]


def test_inspect_takes_files_that_can_be_joined_for_recordings_and_its_next_command_joins_them(tmp_path: Path) -> None:
    for person in ("ann", "bob"):
        phone(tmp_path / "people" / "phone" / f"{person}.csv", 5.0)
        times = np.arange(0, 20, 0.05)
        write(tmp_path / "people" / "watch" / f"{person}.csv", times, {"heart": 60 + wave(times)})
    said = dicot("inspect", tmp_path / "people")
    assert "recordings:" not in said and "watch/bob.csv" in said

    words = shlex.split(said.partition("Next: dicot ")[2])
    assert words[-4:] == ["--names", "{device}/{subject}", "--join", "device"]
    assert "phone.x, phone.y, watch.heart" in dicot(*words)

    assert "No dicot.toml is written yet" in dicot("inspect", tmp_path / "people", "--write")
    dicot(*words, "--write")
    assert 'join = "device"' in (tmp_path / "people" / "dicot.toml").read_text()


def test_nobody_is_told_to_join_what_is_of_one_kind() -> None:
    alike = {name: ["x"] for name in ["ann_phone", "ann_watch", "bob_phone", "bob_watch"]}
    assert join_advice(alike) is None
    assert join_advice({"ann_phone": ["x"], "bob_watch": ["y"], "cid_phone": ["x"]}) is None, "nobody has two"
    folders = {"phone/ann": ["x"], "watch/ann": ["y"], "phone/bob": ["x"], "watch/bob": ["y"]}
    advice = join_advice(folders)
    assert advice is not None and "--names '{device}/{subject}' --join device" in advice.sentence


def test_a_model_fitted_on_joined_channels_finds_them_by_their_names(folder: Path) -> None:
    named = ("watch.heart", "phone.x")
    (ann, _) = read_recordings(folder, channels=named, **JOINED)
    assert ann.channels == named
    (ann, _) = read_recordings(folder, channels=("x",), **JOINED)
    assert ann.channels == ("phone.x", "watch.x")


def test_bursts_of_a_device_are_averaged_before_it_is_joined(tmp_path: Path) -> None:
    phone(tmp_path / "ann_phone.csv")
    times = np.repeat(np.arange(0, 20, 0.1), 4)
    write(tmp_path / "ann_watch.csv", times, {"heart": wave(times)})
    with pytest.raises(InputError, match=r"ann_watch.csv: 600 of 800 rows share their time stamp"):
        read_recordings(tmp_path, **JOINED)
    (ann,) = read_recordings(tmp_path, duplicates="mean", **JOINED)
    assert ann.n_merged == 600 and ann.rate == PHONE_RATE
