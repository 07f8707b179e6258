"""Windows and vectors say in UTC when they are, and go to pandas and come from there."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.commands import dicot

from dicot import TimeSeriesEmbedder
from dicot.core.errors import ClockWarning, InputError
from dicot.data import Windows
from dicot.store.embedding import embed_recordings
from dicot.store.vectors import read_vectors, write_columns

START = pd.Timestamp("2026-03-02T08:00:00.25+01:00")


def frame(recording: str = "a", n: int = 40) -> pd.DataFrame:
    """n / 10 seconds of a recording, one row per time step."""
    time = START + pd.to_timedelta(np.arange(n) / 10, unit="s")
    return pd.DataFrame({"file": recording, "time": time, "x": np.sin(np.arange(n)), "who": 7, "kind": "walk"})


def write(path: Path, dates: bool = True) -> None:
    rows = frame().assign(**({} if dates else {"time": np.arange(40) / 10}))
    rows[["time", "x"]].to_csv(path, index=False, date_format="%Y-%m-%dT%H:%M:%S.%f%z")


@pytest.mark.parametrize("suffix", ["parquet", "npz"])
def test_vectors_keep_utc_times_also_beside_recordings_without(tmp_path: Path, suffix: str) -> None:
    (folder := tmp_path / "rec").mkdir()
    write(folder / "a.csv", dates=False)
    out = tmp_path / f"v.{suffix}"

    def embed(**how: bool) -> None:
        embed_recordings(lambda windows: windows.x.mean(axis=2), "m", out, folder, {"window": "1s"}, **how)

    embed()
    assert "start_time" not in read_vectors(out).columns()
    write(folder / "b.csv")
    embed(append=True)
    held = read_vectors(out)
    first = np.datetime64("2026-03-02T07:00:00.250000")
    dated = held.recording == "b"
    assert np.isnat(held.start_time[~dated]).all() and held.start_time[dated][0] == first
    np.testing.assert_array_equal(held.end_time[dated] - first, (held.end[dated] * 1e6).astype("m8[us]"))
    if suffix == "parquet":
        assert str(pd.read_parquet(out).start_time.dtype) == "datetime64[us, UTC]"
    write_columns(tmp_path / "t.csv", held.columns())
    assert pd.read_csv(tmp_path / "t.csv").start_time[dated][7] == "2026-03-02T07:00:00.250Z"
    assert "2026-03-02T07:00:00.250" in dicot("search", out, "--like", "a@0", "-k", "14")


def test_a_data_frame_gives_the_windows_of_the_same_files(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write(tmp_path / f"{name}.csv")
    both = pd.concat([frame("b"), frame("a")], ignore_index=True).sample(frac=1, random_state=0)
    told = {"recording": "file", "time": "time", "channels": ["x"], "label": "kind", "group": "who"}
    with pytest.warns(ClockWarning, match="its rows were put in the order of time"):
        made = Windows.from_table(both, window="1s", **told)
    read = Windows.from_folder(tmp_path, "1s")
    for name in ("a", "b"):
        mine, other = (one.subset(one.recording == name) for one in (made, read))
        np.testing.assert_array_equal(mine.x, other.x)
        np.testing.assert_array_equal(mine.start_time, other.start_time)
    shown = repr(made)
    for fact in ("2 recordings", "channels: x", "1 s each, 10 time", "walk (14)", "2026-03-02T07:00:00.250Z to"):
        assert fact in shown
    table = made.to_pandas()
    assert table.group.tolist() == [7] * 14 and table.start_time.min() == START.tz_convert("UTC")
    indexed = Windows.from_table(frame().set_index("time")[["x"]], window="1s")
    np.testing.assert_array_equal(indexed.start_time, read.start_time[:7])
    with pytest.raises(InputError, match="Recording '7' has several values of group='file'"):
        Windows.from_table(both, window="1s", recording="who", channels=["x"], group="file", time="")
    model = TimeSeriesEmbedder(steps=2, device="cpu", random_state=0).fit(made)
    embedded = model.embed_folder(tmp_path, "1s")
    assert embedded.columns[:3].tolist() == ["recording", "start", "end"] and len(embedded) == 14
    np.testing.assert_array_equal(embedded.filter(regex="^v[0-9]+$").to_numpy(), model.transform(read))
