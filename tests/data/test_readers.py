"""Recordings in each kind of file, and what is wrong with one, named by file, row and column."""

import gzip
import struct
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.signal_files import annotation_track, write_edf, write_wfdb

from dicot.core.errors import InputError, UnusedKeysWarning
from dicot.data import Reading, Windows, read_recording
from dicot.data.folders import read_recordings
from dicot.data.stream import RecordingStream
from dicot.store.build import build_corpus

GUID = bytes.fromhex("000000001000800000aa00389b71")  # of sound formats, behind their number
CSV = "time,a,b,activity\n0.00,1,-1,sit\n0.02,2,-2,sit\n0.04,,-3,\n0.06,4,-4,walk\n"


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_csv(tmp_path: Path) -> None:
    one = read_recording(written(tmp_path / "walk.csv", CSV), label="activity")
    assert (one.name, one.channels, one.rate, one.origin, one.group) == ("walk", ("a", "b"), 50.0, None, None)
    np.testing.assert_array_equal(one.values, np.array([[1, 2, np.nan, 4], [-1, -2, -3, -4]], np.float32))
    assert one.values.dtype == np.float32
    assert one.times is not None and one.times.tolist() == [0, 0.02, 0.04, 0.06]
    assert one.label.tolist() == ["sit", "sit", "", "walk"]
    assert read_recording(tmp_path / "walk.csv", channels=["b"], label="activity").channels == ("b",)
    assert read_recording(tmp_path / "walk.csv", channels=["b", "a"]).values[0, 0] == -1
    timeless = read_recording(tmp_path / "walk.csv", time="", channels=["a"])
    assert timeless.times is None and timeless.rate is None


def test_rows_out_of_order_are_sorted_with_their_labels(tmp_path: Path) -> None:
    backwards = "stamp;v;label\n2026-01-01T00:00:02;3;c\n2026-01-01T00:00:01;2;b\n2026-01-01T00:00:00;1;a\n"
    one = read_recording(written(tmp_path / "a.csv", backwards), time="stamp", label="label")
    assert one.values.tolist() == [[1, 2, 3]] and one.label.tolist() == ["a", "b", "c"]
    assert one.times is not None and one.times.tolist() == [0, 1, 2] and one.origin == "2026-01-01T00:00:00"


def test_numbers_that_float32_cannot_tell_apart_stay_float64(tmp_path: Path) -> None:
    one = read_recording(written(tmp_path / "a.csv", "v\n" + "\n".join(str(10**9 + i) for i in range(5))))
    assert np.diff(one.values[0]).tolist() == [1, 1, 1, 1]


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    stamps = np.array(["2026-01-01T00:00:00.5", "2026-01-01T00:00:00.0"], dtype="datetime64[us]")
    columns = {"when": stamps, "x": [1.0, 2.0], "y": [3, None], "note": ["one", "two"], "user": ["ann", "ann"]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    one = read_recording(tmp_path / "a.parquet", time="when", group="user")
    assert (one.channels, one.group, one.rate, one.origin) == (("x", "y"), "ann", 2.0, "2026-01-01T00:00:00.000000")
    np.testing.assert_array_equal(one.values, [[2, 1], [np.nan, 3]])
    zoned = pyarrow.array(stamps).cast(pyarrow.timestamp("us", "Europe/Berlin"))
    parquet.write_table(pyarrow.table({"time": zoned, "x": [1.0, 2.0]}), tmp_path / "b.parquet")
    assert read_recording(tmp_path / "b.parquet").values.tolist() == [[2, 1]]
    (tmp_path / "c.parquet").write_bytes((tmp_path / "b.parquet").read_bytes()[:-20])
    with pytest.raises(InputError, match=r"c\.parquet"):
        read_recording(tmp_path / "c.parquet")


def test_npz_with_one_array_or_one_per_channel(tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    np.savez(tmp_path / "a.npz", X=x, channels=["u", "v"], rate=25, label="walk", user=7)
    with pytest.warns(UnusedKeysWarning, match="user"):
        one = read_recording(tmp_path / "a.npz", label="label")
    np.testing.assert_array_equal(one.values, x)
    assert (one.channels, one.rate, set(one.label.tolist())) == (("u", "v"), 25.0, {"walk"})
    np.savez(tmp_path / "b.npz", t=np.arange(6) / 10, u=x[0], v=x[1], user=np.full(6, "ann"))
    one = read_recording(tmp_path / "b.npz", group="user")
    np.testing.assert_array_equal(one.values, x)
    assert (one.channels, one.rate, one.group) == (("u", "v"), 10.0, "ann")
    for name, arrays, message in (
        ("c", {"X": x.T}, r"\(6, 2\)"),
        ("d", {"X": x[None]}, r"\(1, 2, 6\)"),
        ("e", {"X": x, "channels": ["u"]}, "2 channel"),
        ("f", {"u": x[0], "v": x[1, :3]}, "equally long"),
        ("g", {"X": x, "rate": -1}, "rate"),
        ("h", {"X": x, "time": np.arange(5)}, "equally long"),
    ):
        np.savez(tmp_path / name, **arrays)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=rf"{name}\.npz.*{message}"):
            read_recording(tmp_path / f"{name}.npz")


def test_edf(tmp_path: Path) -> None:
    limits = (-100.0, 100.0, -1000, 1000)
    stored = np.arange(40)
    tracks = {"EEG": (stored, 10, limits), "EOG": (-stored, 10, limits), "Temp": (stored[:4], 1, limits)}
    path = write_edf(tmp_path / "night.edf", tracks)
    with pytest.raises(InputError, match=r"night\.edf.*EEG 10 Hz.*Temp 1 Hz"):
        read_recording(path)
    one = read_recording(path, channels=["EOG", "EEG"])
    assert (one.channels, one.rate, one.times, one.origin) == (("EOG", "EEG"), 10.0, None, "1989-04-24T16:13:00")
    np.testing.assert_allclose(one.values, [-stored / 10, stored / 10], atol=1e-5)
    with pytest.raises(InputError, match=r"night\.edf.*label='stage'"):
        read_recording(path, label="stage", channels=["EEG"])
    notes = annotation_track([[b"+0\x14\x14"]], 20)
    with pytest.raises(InputError, match=r"notes\.edf.*no signal"):
        read_recording(write_edf(tmp_path / "notes.edf", {"EDF Annotations": notes}, reserved="EDF+C"))


def test_wfdb(tmp_path: Path) -> None:
    stored = np.arange(60).reshape(30, 2)
    write_wfdb(tmp_path / "100", stored, rate=360)
    one = read_recording(tmp_path / "100.hea")
    assert (one.name, one.channels, one.rate) == ("100", ("ECG1", "ECG2"), 360.0)
    np.testing.assert_allclose(one.values, 1000 * stored.T / 200, rtol=1e-6)  # microvolts
    assert read_recording(tmp_path / "100.hea", channels=["ECG2"]).values.shape == (1, 30)
    with pytest.raises(InputError, match=r"100\.hea.*ECG9"):
        read_recording(tmp_path / "100.hea", channels=["ECG9"])


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_wav(tmp_path: Path, width: int) -> None:
    wanted = np.array([[-1.0, -0.5, 0.0, 0.5], [0.25, 0.0, -0.25, -0.5]])
    scaled = (wanted * (1 << (8 * width - 1))).astype(np.int64) + (128 if width == 1 else 0)
    raw = b"".join(int(v).to_bytes(width, "little", signed=width > 1) for v in scaled.T.reshape(-1))
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((2, width, 8000, 0, "NONE", ""))
        file.writeframes(raw)
    one = read_recording(path)
    np.testing.assert_array_equal(one.values, wanted)
    assert (one.rate, one.channels) == (8000.0, ("channel 0", "channel 1"))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InputError, match=r"sound\.wav"):
        read_recording(path)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", {}, "empty"),
        ("time,a\n0,1\n1,x\n2,3\n", {}, "line 3, column 'a': 'x'"),
        ("time,a\n0,1\n1,inf\n", {}, "line 3, column 'a'.*inf"),
        ("time,a\n0,1\n1,2\n1,3\n", {}, "1 of 3 rows share .* line 4"),
        ("time,a\n0,1\n\n,2\n", {}, "line 4 has no time stamp"),
        ("time,a\n0,1\n1,2,3\n", {}, "Line 3 has 3 cells"),
        ("time,a,label\n0,1,3\n", {}, "'label'.*label="),
        ("time,a,subject\n0,1,3\n", {}, "'subject'.*group="),
        ("time;a\n0;1,5\n1;2,5\n", {}, "decimal point"),
        ("time,a\n0,1\n", {"channels": ["a", ""]}, "no column ''.*time"),
        ("time,a,user\n0,1,ann\n0,2,bob\n", {"group": "user"}, "2 recordings.*ann, bob"),
    ],
)
def test_bad_tables_are_refused_with_file_row_and_column(
    tmp_path: Path, text: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=rf"(?s)bad\.csv.*{message}" if "[" not in message else message[1:]):
        read_recording(written(tmp_path / "bad.csv", text), **arguments)


@pytest.mark.parametrize("kind", ["wfdb", "edf"])
def test_a_voltage_is_the_same_in_whatever_unit_and_format_it_is_kept(tmp_path: Path, kind: str) -> None:
    stored = np.arange(-20, 40).reshape(30, 2)
    for name, gain in (("a", "200/mV"), ("b", "0.2/uV"), ("c", "200"), ("d", "200000/V"), ("e", "0.2/µV")):
        write_wfdb(tmp_path / name, stored, rate=10, gain=gain)
    for name, unit, high in (("p", "uV", 5000), ("q", "mV", 5), ("r", "MV", 5), ("s", "V", 0.005)):
        tracks = {f"ECG{i + 1}": (row, 10, (-high, high, -1000, 1000)) for i, row in enumerate(stored.T)}
        write_edf(tmp_path / f"{name}.edf", tracks, unit=unit)
    found = read_recordings([tmp_path / "a.hea", *tmp_path.glob("*.hea" if kind == "wfdb" else "*.edf")])
    assert len(found) == 5
    for one in found:
        np.testing.assert_allclose(one.values, 5.0 * stored.T, rtol=1e-6, err_msg=one.name)
        assert one.units == ("uV", "uV")


def test_units_that_nothing_converts_are_refused_by_name(tmp_path: Path) -> None:
    for name, unit in (("a", "degC"), ("b", "degF"), ("c", ""), ("d", "DEGC")):
        write_edf(tmp_path / f"{name}.edf", {"Temp": (np.arange(40), 10, (0.0, 50.0, 0, 100))}, unit=unit)
    same = read_recordings([tmp_path / "a.edf", tmp_path / "c.edf", tmp_path / "d.edf"])
    assert [one.units for one in same] == [("degC",), ("",), ("DEGC",)]
    message = "'Temp' is in degC in 'a' and in degF in 'b'"
    with pytest.raises(InputError, match=message):
        Windows.from_folder(tmp_path, 10)
    with pytest.raises(InputError, match=message):
        RecordingStream(tmp_path, Reading(10))
    with pytest.raises(InputError, match=message):
        build_corpus([tmp_path / "a.edf", tmp_path / "b.edf"], tmp_path / "corpus", 10)


def test_two_channels_of_one_name_are_refused(tmp_path: Path) -> None:
    x = np.arange(20.0).reshape(2, 10)
    np.savez(tmp_path / "a.npz", X=x, channels=["acc", "acc"])
    np.savez(tmp_path / "b.npz", X=x, channels=["t", "v"], t=np.arange(10))
    written(tmp_path / "c.csv", "acc,acc\n1,2\n3,4\n")
    pq.write_table(pa.Table.from_arrays(list(map(pa.array, x)), names=["acc", "acc"]), tmp_path / "d.parquet")
    for name, said in (("a.npz", "acc"), ("b.npz", "'t' is"), ("c.csv", "acc"), ("d.parquet", "acc")):
        with pytest.raises(InputError, match=rf"{name}.*{said}"):
            read_recording(tmp_path / name)
    written(tmp_path / "e.csv", "acc,gyro\n1,2\n3,4\n")
    with pytest.raises(InputError, match="once; got .*acc"):
        read_recording(tmp_path / "e.csv", channels=["acc", "acc"])


def test_leads_of_one_name_are_numbered_and_signals_of_one_name_refused(tmp_path: Path) -> None:
    write_wfdb(tmp_path / "a", np.arange(40).reshape(20, 2))
    header = (tmp_path / "a.hea").read_text()
    (tmp_path / "a.hea").write_text(header.replace("ECG1", "ECG").replace("ECG2", "ECG"))
    one = read_recording(tmp_path / "a.hea")
    assert one.channels == ("lead 0", "lead 1") and one.values[1, 0] == 5
    path = write_edf(tmp_path / "b.edf", {f"EEG{i}": (np.arange(20), 10, (-1, 1, -10, 10)) for i in range(2)})
    path.write_bytes(path.read_bytes().replace(b"EEG0", b"EEG ").replace(b"EEG1", b"EEG "))
    with pytest.raises(InputError, match=r"b\.edf has 2 signals called 'EEG'.*--channels"):
        read_recording(path)


@pytest.mark.parametrize("kind", ["f4", "f8", "i2", "i4"])
@pytest.mark.parametrize("extensible", [False, True])
def test_wav_of_other_programs(tmp_path: Path, kind: str, extensible: bool) -> None:
    """Floating point numbers are not clipped at 1, and a header may be of the extensible kind."""
    from scipy.io import wavfile

    values = np.array([[0.5, -3.25], [100.0, 1e-3], [0.0, -1.0]])
    stored = values.astype(kind) if kind[0] == "f" else (values * 100).astype(kind)
    path = tmp_path / "sound.wav"
    wavfile.write(path, 8000, stored)
    if extensible:
        raw, tag, width = path.read_bytes(), 3 if kind[0] == "f" else 1, stored.dtype.itemsize
        form = b"\xfe\xff" + raw[22:36] + struct.pack("<HHIH", 22, 8 * width, 3, tag) + GUID
        body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + raw[raw.index(b"data") :]
        path.write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
    wanted = stored if kind[0] == "f" else stored / 2.0 ** (8 * stored.dtype.itemsize - 1)
    one = read_recording(path)
    np.testing.assert_array_equal(one.values, wanted.T.astype(np.float32))
    assert one.rate == 8000


@pytest.mark.parametrize("compressed", [False, True])
def test_mat(tmp_path: Path, compressed: bool) -> None:
    from scipy.io import savemat

    t, x = np.arange(20) / 10, np.arange(40.0).reshape(2, 20)
    columns = {"time": t[:, None], "acc": x[:1], "gyro": x[1][:, None], "label": np.repeat([1, 2], 10), "note": "hello"}
    savemat(tmp_path / "a.mat", columns, do_compression=compressed)
    savemat(tmp_path / "b.mat", {"X": x, "rate": 10.0}, do_compression=compressed)
    with pytest.warns(UnusedKeysWarning, match=r"a\.mat.*note"):
        one = read_recording(tmp_path / "a.mat", label="label")
    assert (one.name, one.channels, one.rate, one.label.tolist()) == ("a", ("acc", "gyro"), 10, [1] * 10 + [2] * 10)
    np.testing.assert_array_equal(one.values, x)
    other = read_recording(tmp_path / "b.mat")
    assert (other.channels, other.rate) == (("channel 0", "channel 1"), 10)
    np.testing.assert_array_equal(other.values, x)
    savemat(tmp_path / "c.mat", {"X": x.T})
    with pytest.raises(InputError, match=r"c\.mat.*\(20, 2\).*transposed"):
        read_recording(tmp_path / "c.mat")
    (tmp_path / "d.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(512))
    with pytest.raises(InputError, match=r"d\.mat.*7\.3.*-v7"):
        read_recording(tmp_path / "d.mat")


def test_packed_csv(tmp_path: Path) -> None:
    path = tmp_path / "walk.csv.gz"
    path.write_bytes(gzip.compress(CSV.encode()))
    one, plain = read_recording(path), read_recording(written(tmp_path / "walk.csv", CSV))
    assert (one.name, one.channels, one.rate) == ("walk", plain.channels, plain.rate)
    np.testing.assert_array_equal(one.values, plain.values)
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(InputError, match=r"walk\.csv\.gz"):
        read_recording(path)


def clocked(path: Path, name: str, clock: Any, more: dict[str, Any] | None = None) -> Path:
    """A table with a column of this name and one sensor."""
    rng = np.random.default_rng(0)
    columns = {name: clock, **(more or {}), "x": rng.normal(size=len(clock))}
    rows = zip(*columns.values(), strict=True)
    path.write_text(",".join(columns) + "\n" + "\n".join(",".join(map(str, row)) for row in rows))
    return path


@pytest.mark.parametrize(
    ("name", "per_second"),
    [
        ("ts_ms", 1000),
        ("timestamp_ms", 1000),
        ("Time (s)", 1),
        ("Time [ms]", 1000),
        ("time_us", 1e6),
        ("t_ns", 1e9),
        ("epoch", 1),
        ("elapsed", 1),
        ("seconds", 1),
        ("seconds_elapsed", 1),
        ("millis", 1000),
        ("SensorTimestamp", 1),
        ("LinuxTime", 1),
        ("utc", 1),
    ],
)
def test_time_under_another_name_is_time(tmp_path: Path, name: str, per_second: float) -> None:
    seconds = np.arange(200) / 50
    seconds[100:] += 10
    path = clocked(tmp_path / "a.csv", name, [f"{second * per_second:.6f}" for second in seconds])
    one = read_recording(path)
    assert one.channels == ("x",) and one.rate == pytest.approx(50) and one.times is not None
    np.testing.assert_allclose(one.times, seconds, atol=1e-6)
    assert read_recording(path, channels=["x"]).rate == pytest.approx(50), "also where channels are named"
    assert read_recording(path, channels=["x", name]).channels == ("x", name), "who names it gets it"
    table = {"x": np.random.default_rng(0).normal(size=200), name: seconds * per_second}
    np.savez(tmp_path / "a.npz", **table)
    assert read_recording(tmp_path / "a.npz").rate == pytest.approx(50)
    np.savez(tmp_path / "b.npz", **{"X": table["x"][None], name: table[name]})
    assert read_recording(tmp_path / "b.npz").rate == pytest.approx(50)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    assert read_recording(tmp_path / "a.parquet").rate == pytest.approx(50)


def test_dates_under_any_name_are_time(tmp_path: Path) -> None:
    path = clocked(tmp_path / "a.csv", "when", [f"2026-03-01T12:00:{i / 50:09.6f}" for i in range(200)])
    assert read_recording(path).rate == pytest.approx(50)


@pytest.mark.parametrize("name", ["index", "Unnamed: 0", "sample", "frame", ""])
def test_a_counter_of_rows_is_no_channel(tmp_path: Path, name: str) -> None:
    path = clocked(tmp_path / "a.csv", name or "Unnamed: 0", range(200))
    with pytest.warns(UnusedKeysWarning, match="counts the rows and is left out"):
        one = read_recording(path)
    assert one.channels == ("x",) and one.times is None
    with pytest.warns(UnusedKeysWarning, match="counts the rows and is left out"):
        both = read_recording(clocked(path, name or "Unnamed: 0", range(200), {"time": np.arange(200) / 50}))
    assert both.channels == ("x",) and both.rate == 50, "time wins"
    gap = [*range(100), *range(150, 250)]
    with pytest.raises(InputError, match="rises evenly.*--time.*--channels"):
        read_recording(clocked(path, name or "Unnamed: 0", gap))


def test_what_rises_evenly_is_asked_about(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    steps = np.full(300, 0.02) + rng.uniform(-0.002, 0.002, 300)
    steps[100] = 60
    clock = np.cumsum(steps)
    with pytest.raises(InputError, match="'col3' rises evenly.*--time col3 .*--set unit=ms.*--channels"):
        read_recording(clocked(tmp_path / "a.csv", "col3", clock))
    np.savez(tmp_path / "a.npz", X=np.stack([clock, rng.normal(size=300)]))
    with pytest.raises(InputError, match="'channel 0' rises evenly"):
        read_recording(tmp_path / "a.npz")
    energy = np.cumsum(rng.exponential(1, 300))
    assert read_recording(clocked(tmp_path / "b.csv", "energy", energy)).channels == ("energy", "x")
    assert read_recording(clocked(tmp_path / "b.csv", "ramp", range(30))).channels == ("ramp", "x"), "few rows"
    with pytest.raises(InputError, match="epoch, ts_ms could each hold the time stamps.*--time"):
        read_recording(clocked(tmp_path / "b.csv", "epoch", clock, {"ts_ms": clock * 1000}))
    with pytest.warns(UnusedKeysWarning, match="'ts_ms' holds times and is left out"):
        assert read_recording(clocked(tmp_path / "b.csv", "time", clock, {"ts_ms": clock * 1000})).channels == ("x",)
