"""Files made to do harm, and arbitrary content: an error of ours or the right result, in bounded time and memory."""

import json
import os
import resource
import signal
import struct
import sys
import traceback
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.io import savemat

from dicot import OnnxEmbedder, TimeSeriesClassifier, TimeSeriesEmbedder
from dicot.core.errors import DicotError, InputError
from dicot.data import parquetfile
from dicot.data.files import read_windows
from dicot.data.matfile import read_matrix
from dicot.data.reading import read_toml
from dicot.data.recordingfile import read_recording
from dicot.judge.bench.exchange import read_contents
from dicot.model.export import export_onnx
from dicot.model.files import CONFIG, read_config
from dicot.store.search import EmbeddingIndex
from dicot.store.vectors import read_vectors
from dicot.use.labels.windows import read_labels
from tests.signal_files import write_edf, write_wfdb
from tests.survival.run import MEMORY, WORK, _for_memory

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured as Linux does it"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


def fate(read: Callable[[], Any]) -> str:
    """The sentence of our error, or "right"; anything else fails. In a process with the limits of a damaged file."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = Path("/proc/self/status").read_text()
        held = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData"))
        resource.setrlimit(resource.RLIMIT_DATA, (held + MEMORY, held + MEMORY))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, WORK)
        try:
            read()
            said = "right"
        except DicotError as error:
            said = f"out of memory: {error}" if _for_memory(error) else f"ours: {error}"
        except BaseException:
            said = traceback.format_exc()
        os.write(writer, said.encode("utf-8", "replace")[-60_000:])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode()
    _, ended = os.waitpid(child, 0)
    assert ended == 0, "it hangs or dies"
    assert said == "right" or said.startswith("ours: "), said
    return said


@pytest.mark.filterwarnings("ignore:Cases of . time steps are too short")
@pytest.mark.parametrize("unequal", ["pad", "resample"])
def test_a_small_model_that_asks_for_very_long_cases(unequal, tmp_path):
    x = np.random.default_rng(0).normal(size=(8, 1, 20)).astype(np.float32)
    settings = {"dim": 16, "steps": 1, "random_state": 0, "device": "cpu", "verbose": False}
    model = TimeSeriesEmbedder("dicot", prepare={"unequal": unequal}, **settings).fit(x)
    folder = model.save_pretrained(tmp_path / "model")
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    file = onnx.load(export_onnx(model, tmp_path / "sound.onnx").path)
    config = json.loads((folder / CONFIG).read_text())
    del config["sha256"]
    config["preparation"]["n_times"] = 10**9
    (folder / CONFIG).write_text(json.dumps(config))
    about = {entry.key: entry.value for entry in file.metadata_props}
    forged = {**json.loads(about["dicot"]), "n_times": 10**9}
    onnx.helper.set_model_props(file, {**about, "dicot": json.dumps(forged), "dicot.sha256": "changed"})
    onnx.save(file, tmp_path / "model.onnx")
    long = TimeSeriesEmbedder.from_pretrained(folder, device="cpu")
    for use in (
        lambda: long.transform(x),
        lambda: long.transform_time_steps(x),
        lambda: export_onnx(long, tmp_path / "long.onnx"),
        lambda: OnnxEmbedder(tmp_path / "model.onnx", threads=1).transform(x),
        *([] if unequal == "pad" else [lambda: TimeSeriesClassifier(long, steps=1).fit(x, np.arange(8) % 2)]),
    ):
        assert "n_times=1000000000" in fate(use)


def npy(shape: tuple[int, ...], dtype: str = "<f4") -> bytes:
    head = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(64)


@pytest.mark.parametrize(
    "shape", [(10**12,), (2**62, 2**62), (10**6, 10**6, 10**6), (2**63,), (-1, 4), (0, 10**18), (1,) * 5000]
)
def test_arrays_of_absurd_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    (tmp_path / "a.npy").write_bytes(npy(shape))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy(shape))
    for name in ("a.npy", "a.npz"):
        assert str(tmp_path / name) in fate(lambda name=name: read_windows(tmp_path / name))


def test_a_zip_bomb(tmp_path: Path) -> None:
    n, path = 300_000_000, tmp_path / "a.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("X.npy", "w") as member,
    ):
        member.write(npy((n // 4,))[:-64])
        for _ in range(n // 10**6):
            member.write(bytes(10**6))
    assert "fill the memory" in fate(lambda: read_windows(path))


def test_a_table_that_unpacks_to_more_than_memory(tmp_path: Path) -> None:
    zeros = pa.table({name: np.zeros(2_000_000) for name in ("t", "x", "case")})
    with pq.ParquetWriter(tmp_path / "a.parquet", zeros.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(zeros)
    path = tmp_path / "a.parquet"
    assert "fill the memory" in fate(lambda: read_recording(path, time="t"))
    assert "fill the memory" in fate(lambda: read_windows(path, case="case", time="t"))


def test_text_that_is_repeated_to_more_than_memory(tmp_path: Path) -> None:
    """A dictionary holds a text once, for as many rows as there are."""
    n, path = 1000, tmp_path / "a.parquet"
    numbers = {name: np.arange(n, dtype=float) for name in ("t", "x", "case")}
    table = pa.table({**numbers, "what": pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), ["a" * 10**6])})
    pq.write_table(table, path, compression="zstd", store_schema=False)
    assert path.stat().st_size < 50_000
    assert "fill the memory" in fate(lambda: read_recording(path, time="t", label="what"))
    assert "fill the memory" in fate(lambda: read_windows(path, case="case", time="t"))
    assert "fill the memory" in fate(lambda: read_contents(path))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(2 * n, np.float32)), 2)
    table = pa.table({"vector": lists, "recording": table["what"]})
    pq.write_table(table, path, compression="zstd")
    assert "fill the memory" in fate(lambda: read_vectors(path))


def test_vectors_of_one_number_that_are_a_hundred_times_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquetfile, "_SMALL", 1 << 20)
    flat = pa.array(np.zeros(800_000, np.float32))
    table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(flat, 8)})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")
    assert "fill the memory" in fate(lambda: read_vectors(tmp_path / "a.parquet"))


def test_one_long_text_among_many_short_ones(tmp_path: Path) -> None:
    """numpy gives all of them the room of the longest."""
    n = 20_000
    texts = [f"k{i % 2}" for i in range(n)]
    texts[7] = "k" * 100_000
    numbers = [f"{i % 7}\t{i % 5}" for i in range(n)]
    (tmp_path / "a.tsv").write_text("\n".join(f"{a}\t{b}" for a, b in zip(texts, numbers, strict=True)) + "\n")
    head = f"@univariate true\n@classLabel true {' '.join(sorted(set(texts)))}\n@data\n"
    lines = (f"{b}:{a}".replace("\t", ",") for a, b in zip(texts, numbers, strict=True))
    (tmp_path / "a.ts").write_text(head + "\n".join(lines) + "\n")
    rows = (f"{i},{i % 7},{text}" for i, text in enumerate(texts))
    (tmp_path / "a.csv").write_text("t,x,what\n" + "\n".join(rows) + "\n")
    for name in ("a.tsv", "a.ts"):
        assert "100,000 characters" in fate(lambda name=name: read_windows(tmp_path / name))
    assert "100,000 characters" in fate(lambda: read_recording(tmp_path / "a.csv", label="what"))


@pytest.mark.parametrize("field", [(236, b"99999999"), (236, b"-5"), (252, b"9999"), (252, b"-1"), (244, b"1e-300")])
def test_edf_headers_with_huge_and_negative_fields(tmp_path: Path, field: tuple[int, bytes]) -> None:
    eeg = (np.arange(60) % 50, 20, (-250.0, 250.0, -2048, 2047))
    path = write_edf(tmp_path / "a.edf", {"EEG": eeg})
    at, value = field
    width = 4 if at == 252 else 8
    data = path.read_bytes()
    path.write_bytes(data[:at] + value.ljust(width) + data[at + width :])
    said = fate(lambda: read_recording(path))
    assert said.startswith("ours") or value == b"1e-300"


@pytest.mark.parametrize("name", ["../../../../../../etc/passwd", "/etc/passwd", "../outside.dat", "~/x", "r.dat\x00"])
def test_wfdb_headers_that_name_foreign_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "outside.dat").write_bytes(bytes(600))
    write_wfdb(tmp_path / "in" / "r", np.arange(120).reshape(60, 2))
    head = tmp_path / "in" / "r.hea"
    head.write_text(head.read_text().replace("r.dat", name))
    assert fate(lambda: read_recording(head)).startswith("ours")


@pytest.mark.parametrize("fields", [(2, 250, 10**12), (10**9, 250, 60), (2, 0, 60), (2, "1e400", 60), (-2, 250, 60)])
def test_wfdb_headers_with_huge_and_negative_fields(tmp_path: Path, fields: tuple[Any, ...]) -> None:
    write_wfdb(tmp_path / "r", np.arange(120).reshape(60, 2))
    head = tmp_path / "r.hea"
    head.write_text(head.read_text().replace("r 2 250 60", " ".join(["r", *map(str, fields)])))
    assert fate(lambda: read_recording(head)).startswith("ours")


def test_enormous_cells_and_very_many_columns(tmp_path: Path) -> None:
    (tmp_path / "cell.csv").write_text("t,x\n0," + "9" * 20_000_000 + "\n1,2\n")
    assert fate(lambda: read_recording(tmp_path / "cell.csv")).startswith("ours")
    assert fate(lambda: read_labels(tmp_path / "cell.csv")).startswith("ours")
    many = ",".join(map(str, range(1, 1_000_001)))
    (tmp_path / "wide.csv").write_text("\n".join([many, many.replace("1", "3"), many.replace("2", "5")]) + "\n")
    fate(lambda: read_windows(tmp_path / "wide.csv", header=False))
    (tmp_path / "names.csv").write_text("\n".join(["c" + many.replace(",", ",c"), many]) + "\n")
    fate(lambda: read_recording(tmp_path / "names.csv"))


def test_a_sound_file_that_announces_four_gigabytes(tmp_path: Path) -> None:
    form = struct.pack("<HHIIHH", 1, 2, 100, 400, 4, 16)
    body = b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", 2**32 - 4) + bytes(400)
    (tmp_path / "a.wav").write_bytes(b"RIFF" + struct.pack("<I", 2**32 - 1) + body)
    assert fate(lambda: read_recording(tmp_path / "a.wav")).startswith("ours")


@pytest.mark.parametrize("compressed", [False, True])
def test_matlab_files_that_announce_four_gigabytes(tmp_path: Path, compressed: bool) -> None:
    savemat(tmp_path / "a.mat", {"a": np.ones((20, 20))})
    data = (tmp_path / "a.mat").read_bytes()
    for at in (128 + 4, 128 + 12, 128 + 28, 128 + 52):  # sizes of matrix, flags, shape and values; the name is short
        forged = data[:at] + struct.pack("<I", 2**32 - 8) + data[at + 4 :]
        if compressed:
            packed = zlib.compress(forged[128:])
            forged = forged[:128] + struct.pack("<II", 15, len(packed)) + packed
        (tmp_path / "a.mat").write_bytes(forged)
        assert fate(lambda: read_matrix(tmp_path / "a.mat", "a")).startswith("ours")


def test_a_matlab_file_that_unpacks_to_more_than_memory(tmp_path: Path) -> None:
    packer = zlib.compressobj(1)
    packed = b"".join(packer.compress(bytes(10**6)) for _ in range(300)) + packer.flush()
    head = b"MATLAB".ljust(124) + b"\0\1IM"
    (tmp_path / "a.mat").write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    assert "fill the memory" in fate(lambda: read_matrix(tmp_path / "a.mat", "a"))


def test_headers_of_text_files(tmp_path: Path) -> None:
    data = "1,2,3:a\n"
    for number, head in enumerate(
        [
            f"@dimension {10**12}\n@classLabel true a\n",
            f"@dimension {'9' * 10_000}\n@classLabel true a\n",
            "@classLabel true " + " ".join(f"c{i}" for i in range(200_000)) + "\n",
            "@seriesLength -1\n" * 100_000,
        ]
    ):
        (tmp_path / f"{number}.ts").write_text(head + "@data\n" + data)
        fate(lambda number=number: read_windows(tmp_path / f"{number}.ts"))
    (tmp_path / "a.arff").write_text("@attribute a numeric\n" * 300_000 + "@attribute c {a,b}\n@data\n1,2,a\n")
    fate(lambda: read_windows(tmp_path / "a.arff"))


DEEP = 100_000


def test_text_that_is_nested_a_hundred_thousand_times(tmp_path: Path) -> None:
    (tmp_path / "dicot.toml").write_text("window = " + "[" * DEEP + "]" * DEEP)
    assert fate(lambda: read_toml(tmp_path / "dicot.toml")).startswith("ours")
    for name, text in ((CONFIG, "[" * DEEP), ("manifest.json", '{"a":' * DEEP)):
        (tmp_path / name).write_text(text)
    assert fate(lambda: read_config(tmp_path)).startswith("ours")
    assert fate(lambda: EmbeddingIndex.load(tmp_path)).startswith("ours")
    np.savez(tmp_path / "v.npz", X=np.ones((2, 3), np.float32), **{"dicot.source": np.array("[" * DEEP)})
    assert fate(lambda: read_vectors(tmp_path / "v.npz")).startswith("ours")


# --- arbitrary content ------------------------------------------------------------------------------------------------

SOME = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
CELLS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(["", "nan", "?", "1,5", "0x1", "1_0", " 2 ", "-0", "1e999", "2026-01-02", '"', "#"]),
    st.text(max_size=8),
)
LINES = st.lists(st.lists(CELLS, min_size=1, max_size=6), min_size=1, max_size=6)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "ts", "arff"])
@given(rows=LINES, mark=st.sampled_from([",", ";", "\t", ":"]), head=st.booleans())
@SOME
def test_tables_of_arbitrary_cells(tmp_path: Path, suffix: str, rows: list[list[str]], mark: str, head: bool) -> None:
    text = "\n".join(mark.join(row) for row in rows)
    before = {"ts": "@univariate true\n@classLabel false\n@data\n", "arff": "@attribute a real\n@data\n"}
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(((before.get(suffix, "t,x,y\n") if head else "") + text).encode("utf-8", "surrogatepass"))
    for read in (lambda: read_windows(path).x, lambda: read_recording(path).values):
        with suppress(DicotError):
            assert not np.isinf(read()).any()
    if suffix == "csv":
        with suppress(InputError):
            assert all(isinstance(label, str) and label for label in read_labels(path).values())


@given(
    x=hnp.arrays(
        st.sampled_from(
            [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint16, np.bool_, ">f4", "<U3", "M8[s]"]
        ),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
    )
)
@SOME
def test_arbitrary_arrays_are_read_as_they_are_or_refused(tmp_path: Path, x: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", x)
    np.savez(tmp_path / "a.npz", X=x)
    for name in ("a.npy", "a.npz"):
        try:
            found = read_windows(tmp_path / name).x
        except InputError:
            continue
        wanted = (x[:, None] if x.ndim == 2 else x).astype(np.float64)
        assert found.shape == wanted.shape and np.isfinite(found).all()
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-37)


@given(content=st.binary(max_size=300), suffix=st.sampled_from(["npy", "npz", "parquet", "edf", "hea", "wav", "csv"]))
@SOME
def test_arbitrary_bytes(tmp_path: Path, content: bytes, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    starts = {"npy": b"\x93NUMPY\x01\x00", "npz": b"PK\x03\x04", "parquet": b"PAR1", "wav": b"RIFF\x20\0\0\0WAVEfmt "}
    path.write_bytes(starts.get(suffix, b"") + content)
    for read in (read_windows, read_recording):
        with suppress(DicotError):
            read(path)


@given(values=st.lists(st.one_of(st.integers(), st.floats(), st.text(max_size=9), st.booleans()), max_size=5))
@SOME
def test_arbitrary_choices(tmp_path: Path, values: list[Any]) -> None:
    path = tmp_path / "dicot.toml"
    names = ["window", "stride", "rate", "gap", "missing"]
    lines = [f"{name} = {json.dumps(value)}" for name, value in zip(names, values, strict=False)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
    with suppress(InputError):
        assert set(read_toml(path)) <= set(names)
