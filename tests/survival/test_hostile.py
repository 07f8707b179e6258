"""Files made to do harm: no code of theirs runs, no path leads out of its folder, no header takes all memory."""

import json
import struct
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dicot import EmbeddingIndex, OnnxEmbedder, TimeSeriesEmbedder, Windows, load
from dicot.core.errors import DicotError, InputError
from dicot.model.export import export_onnx
from dicot.store.vectors import read_vectors
from tests.signal_files import write_wfdb

DEEP = 100_000
X = np.random.default_rng(0).normal(size=(8, 1, 20)).astype(np.float32)


class Harm:
    """An object whose unpickling makes a file."""

    def __reduce__(self) -> Any:
        return (open, ("harm", "w"))


def test_pickled_objects_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    objects = np.array([Harm(), None], dtype=object)
    np.save(tmp_path / "a.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=objects)
    for read in (lambda path: load(str(path)), lambda path: Windows.from_folder(path, window=4), read_vectors):
        for name in ("a.npy", "a.npz"):
            with pytest.raises(DicotError, match=name):
                read(tmp_path / name)
    assert not (tmp_path / "harm").exists()


@pytest.mark.slow
def test_vectors_that_unpack_to_very_much(tmp_path: Path) -> None:
    packed = zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with packed as archive, archive.open("X.npy", "w", force_zip64=True) as member:
        member.write(npy((2**19, 513))[:-64])
        for _ in range(513):
            member.write(bytes(2**21))
    with pytest.raises(DicotError, match=r"a\.npz.*unpacks to 1,0\d\d,"):
        read_vectors(tmp_path / "a.npz")


def test_a_model_that_asks_for_very_long_cases(tmp_path: Path) -> None:
    small = {"encoder": "fcn", "dim": 8, "steps": 1, "random_state": 0, "device": "cpu", "verbose": False}
    model = TimeSeriesEmbedder("dicot", prepare={"unequal": "pad"}, **small).fit(X)
    folder = model.save_pretrained(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    del config["sha256"]
    config["preparation"]["n_times"] = 10**9
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(DicotError, match="1000000000"):
        TimeSeriesEmbedder.from_pretrained(folder, device="cpu").transform(X)
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    file = onnx.load(export_onnx(model, tmp_path / "m.onnx").path)
    about = {entry.key: entry.value for entry in file.metadata_props}
    forged = {**json.loads(about["dicot"]), "n_times": 10**9}
    onnx.helper.set_model_props(file, {**about, "dicot": json.dumps(forged), "dicot.sha256": "changed"})
    onnx.save(file, tmp_path / "m.onnx")
    with pytest.raises(DicotError, match="1000000000"):
        OnnxEmbedder(tmp_path / "m.onnx", threads=1).transform(X)


def npy(shape: tuple[int, ...]) -> bytes:
    head = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(64)


@pytest.mark.parametrize("shape", [(10**12,), (2**62, 2**62), (2**63,), (-1, 4), (0, 10**18)])
def test_arrays_of_absurd_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    (tmp_path / "a.npy").write_bytes(npy(shape))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", npy(shape))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(DicotError, match=name):
            load(str(tmp_path / name))
    with pytest.raises(DicotError, match="a.npz"):
        read_vectors(tmp_path / "a.npz")


@pytest.mark.parametrize("name", ["../../../../../../etc/passwd", "/etc/passwd", "../outside.dat"])
def test_wfdb_headers_that_name_foreign_files(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "outside.dat").write_bytes(bytes(600))
    write_wfdb(tmp_path / "in" / "r", np.arange(120).reshape(60, 2))
    head = tmp_path / "in" / "r.hea"
    head.write_text(head.read_text().replace("r.dat", name))
    with pytest.raises(DicotError):
        Windows.from_folder(head, window=4)


def test_json_that_is_nested_a_hundred_thousand_times(tmp_path: Path) -> None:
    for name in ("config.json", "manifest.json", "index.json"):
        (tmp_path / name).write_text('{"a":' * DEEP)
    np.savez(tmp_path / "v.npz", X=np.ones((2, 3), np.float32), **{"dicot.source": np.array("[" * DEEP)})
    for read in (TimeSeriesEmbedder.from_pretrained, EmbeddingIndex.load, lambda path: read_vectors(path / "v.npz")):
        with pytest.raises(DicotError):
            read(tmp_path)


SOME = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
CELLS = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.sampled_from(["", "nan", "?", "1,5", "0x1", "1_0", " 2 ", "-0", "1e999", "2026-01-02", '"', "#"]),
    st.text(max_size=8),
)
LINES = st.lists(st.lists(CELLS, min_size=1, max_size=6), min_size=1, max_size=6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", ["csv", "tsv", "ts", "arff"])
@given(rows=LINES, mark=st.sampled_from([",", ";", "\t", ":"]), head=st.booleans())
@SOME
def test_tables_of_arbitrary_cells(tmp_path: Path, suffix: str, rows: list[list[str]], mark: str, head: bool) -> None:
    text = "\n".join(mark.join(row) for row in rows)
    before = {"ts": "@univariate true\n@classLabel false\n@data\n", "arff": "@attribute a real\n@data\n"}
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(((before.get(suffix, "t,x,y\n") if head else "") + text).encode("utf-8", "surrogatepass"))
    readers = [lambda: load(str(path)).train.x]
    readers += [lambda: Windows.from_folder(path, window=2).x] if suffix == "csv" else []
    for read in readers:
        with suppress(DicotError):
            assert not np.isinf(read()).any()


@given(
    x=hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.int64, np.bool_, ">f4", "<U3", "M8[s]"]),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
    )
)
@SOME
def test_arbitrary_arrays_are_read_as_they_are_or_refused(tmp_path: Path, x: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", x)
    try:
        found = load(str(tmp_path / "a.npy")).train.x
    except InputError:
        return
    wanted = (x[:, None] if x.ndim == 2 else x).astype(np.float64)
    assert found.shape == wanted.shape and np.isfinite(found).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-37)
