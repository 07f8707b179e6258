"""What the workbench keeps: dicot.toml, vectors and their source, maps, indices, labels, classifiers, exports."""

import json
import os
import sqlite3
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dicot import FewLabelClassifier, LabelStore, OnnxEmbedder, TimeSeriesEmbedder
from dicot.core.storage.seals import OPEN, sealed
from dicot.data import Windows
from dicot.data.reading import FILE, read_toml
from dicot.explorer.kept import overview_file, read_or_make
from dicot.model.deployed import CHANGED, SEAL
from dicot.model.export import export_onnx
from dicot.model.heads import MARK, Head
from dicot.store.recordings import embed_recordings
from dicot.store.search import EmbeddingIndex
from dicot.store.series import series_of
from dicot.store.vectors import SOURCE, Vectors, read_vectors, write_vectors
from tests.survival.array_kinds import parse_npz
from tests.survival.kind import Kind, UnreadableError
from tests.survival.model_kinds import X, same_bits
from tests.survival.mutations import BINARY, JSON, TENSORS, TEXT, ZIP
from tests.survival.verdicts import unsound

TOML = """# how these recordings are cut
window = "0.5s"
stride = "50%"
time = "t"
channels = ["x", "y"]
rate = 20.0
label = "what"
missing = "error"
gap = 1.5
"""
CUT = {"window": "0.5s", "stride": "50%", "time": "t", "channels": ["x", "y"], "label": "what"}


def _recordings(folder: Path) -> None:
    (folder / "data").mkdir()
    rng = np.random.default_rng(5)
    for name in ("monday", "tuesday"):
        rows = [f"{i / 20:.2f},{x:.3f},{y:.3f},{'walk' if i < 25 else 'rest'}" for i, (x, y) in _pairs(rng)]
        (folder / "data" / f"{name}.csv").write_text("t,x,y,what\n" + "\n".join(rows) + "\n")


def _pairs(rng: np.random.Generator) -> Any:
    return enumerate(rng.normal(size=(50, 2)).tolist())


def _choices(folder: Path) -> None:
    _recordings(folder)
    (folder / "data" / FILE).write_text(TOML)


def _read_toml(folder: Path) -> Any:
    choices = read_toml(folder / "data" / FILE)
    return choices, Windows.from_folder(folder / "data", **{"window": 10, **choices})


def judge_choices(folder: Path, result: Any, sound: Any) -> str:
    import tomllib

    choices, windows = result
    if choices != tomllib.loads((folder / "data" / FILE).read_text(encoding="utf-8")):
        return "it says something else"
    return unsound(windows)


def _moments(windows: Any) -> np.ndarray:
    return np.concatenate([windows.x.mean(axis=2), windows.x.std(axis=2)], axis=1).astype(np.float32)


@cache
def _vectors() -> Vectors:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        _recordings(Path(place))
        embed_recordings(_moments, "a" * 64, Path(place) / "v.npz", Path(place) / "data", CUT)
        held = read_vectors(Path(place) / "v.npz")
        return Vectors(
            np.array(held.x), held.recording, held.start, held.end, held.group, held.label, None, held.source
        )


def _write(path: Path, source: dict[str, Any] | None) -> None:
    held = _vectors()
    arrays = {"X": held.x, "recording": held.recording, "start": held.start, "end": held.end}
    arrays |= {"y": held.label, "group": held.group}
    write_vectors(path, {"": arrays}, source)


def _save_vectors(suffix: str) -> Any:
    return lambda folder: _write(folder / f"v.{suffix}", {"kind": "recordings", "options": {}, "recordings": {}})


def judge_npz(folder: Path, result: Vectors, sound: Vectors) -> str:
    held = parse_npz(folder / "v.npz")
    for name, key in {"x": "X", "start": "start", "end": "end", "recording": "recording", "label": "y"}.items():
        found = getattr(result, name)
        if found is None and held.get(key):
            return f"{key} is in the file, and not read"
        if found is not None and not any(_same(found, array) for array in held.get(key, [])):
            raise UnreadableError(f"{key} is damaged or not there")
    return ""


def judge_parquet(folder: Path, result: Vectors, sound: Vectors) -> str:
    """pyarrow reads it as well, by its own way from columns to lists."""
    try:
        table = pq.read_table(folder / "v.parquet", page_checksum_verification=True)
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
    except (pa.ArrowException, OSError, KeyError) as error:
        raise UnreadableError(str(error)) from error
    if not _same(result.x, np.array(columns["vector"], np.float32)):
        return "the vectors are others"
    for name in ("recording", "start", "end"):
        found = getattr(result, name)
        if (found is None) != (name not in columns) or (found is not None and not _same(found, columns[name])):
            return f"{name} is another one"
    return ""


def _same(found: Any, wanted: Any) -> bool:
    if wanted is None:
        return False
    wanted = np.asarray(wanted)
    if found.shape != wanted.shape:
        return False
    if found.dtype.kind == "U" or wanted.dtype.kind in "US":
        return bool((found.astype(str) == wanted.astype(str)).all())
    return bool(np.array_equal(found.astype(float), wanted.astype(float), equal_nan=True))


def _save_source(folder: Path) -> None:
    """Vectors of recordings beside them; what they say of their source lies in a file of its own, to be damaged."""
    _recordings(folder)
    for file in (folder / "data").iterdir():
        os.utime(file, (1, 1))
    out = folder / "whole.npz"
    embed_recordings(_moments, "a" * 64, out, folder / "data", CUT)
    source = json.dumps(read_vectors(out).source).replace(str(folder), "FOLDER")
    (folder / "source.json").write_text(source)
    out.unlink()


def _use_source(folder: Path) -> Any:
    """Write what was damaged into both forms, then look at a window's series and append what is new."""
    text = (folder / "source.json").read_bytes().decode("utf-8", "replace").replace("FOLDER", str(folder))
    out = folder / "v.npz"
    _write(out, {})
    with zipfile.ZipFile(out) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    np.save(folder / "said.npy", np.array(text))
    members[f"{SOURCE}.npy"] = (folder / "said.npy").read_bytes()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    known = read_vectors(out)
    series = series_of(known, None, {}, path=out)
    drawn = None if series is None else (series.window(3), series.surroundings(3))
    before = len(known)
    done = embed_recordings(_moments, "a" * 64, out, folder / "data", CUT, append=True)
    return drawn, before, done, read_vectors(out)


def judge_source(folder: Path, result: Any, sound: Any) -> str:
    drawn, before, done, after = result
    if len(after) != before + done.added or not np.isfinite(after.x).all():
        return f"{before} and {done.added} vectors are {len(after)} now, or some are no numbers"
    if drawn is not None and drawn[0] is not None and (drawn[0].ndim != 2 or not np.isfinite(drawn[0]).all()):
        return "the series of a window is no array of numbers"
    return ""


def _save_map(folder: Path) -> None:
    _write(folder / "v.npz", None)
    read_or_make(folder / "v.npz", read_vectors(folder / "v.npz"), 2, lambda sentence: None)
    kept = overview_file(folder / "v.npz", _vectors())
    kept.rename(folder / "map.npz")


def _read_map(folder: Path) -> Any:
    known = read_vectors(folder / "v.npz")
    place = overview_file(folder / "v.npz", known)
    place.write_bytes((folder / "map.npz").read_bytes())
    return read_or_make(folder / "v.npz", known, 2, lambda sentence: None)


def judge_map(folder: Path, result: Any, sound: Any) -> str:
    n = len(sound.points)
    if result.points.shape != (n, 2) or not np.isfinite(result.points).all() or result.cluster.shape != (n,):
        return "points or clusters that are none"
    if not 0 <= result.cluster.min() <= result.cluster.max() < result.n_clusters or len(result.title) > 1000:
        return "clusters that are none, or a title of thousands of characters"
    return "" if result.outlier is None or result.outlier.shape == (n,) else "outlier scores of other windows"


def _save_index(folder: Path) -> None:
    held = _vectors()
    known = {"recording": held.recording, "start": held.start, "end": held.end}
    EmbeddingIndex(held.x, **known).save(folder / "index")


def _read_index(folder: Path) -> np.ndarray:
    index = EmbeddingIndex.load(folder / "index")
    distances, rows = index.like("monday", 0.5, k=3)
    return np.concatenate([distances, rows])


def _save_labels(folder: Path) -> None:
    with LabelStore(folder / "labels.sqlite") as store:
        for start, label in ((0.0, "walk"), (0.25, "rest"), (0.5, "walk")):
            store.set([("monday", start, start + 0.5)], label, by="ann")
        store.set([("monday", 0.25, 0.75)], "run", by="bob")
        store.set(["an id"], 3)
        store.undo()
    with sqlite3.connect(folder / "labels.sqlite") as file:  # the same bytes every time
        file.execute("UPDATE changes SET at = '2026-11-16T12:00:00+00:00'")
    file.execute("PRAGMA journal_mode = DELETE")
    file.close()
    for left in folder.glob("labels.sqlite-*"):
        left.unlink()


def _read_labels(folder: Path) -> Any:
    with LabelStore(folder / "labels.sqlite", read_only=True) as store:
        return store.current(), [(change.key, change.new) for change in store.history()]


def judge_labels(folder: Path, result: Any, sound: Any) -> str:
    """The newest change of every key, by hand."""
    try:
        file = sqlite3.connect(f"file:{folder / 'labels.sqlite'}?immutable=1", uri=True)
        rows = file.execute("SELECT recording, start, end, new FROM changes ORDER BY number").fetchall()
        file.close()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise UnreadableError(str(error)) from error
    current, history = result
    changes = [(one if start is None and end is None else (one, start, end), new) for one, start, end, new in rows]
    newest = {key: new for key, new in dict(changes).items() if new is not None}
    return "" if newest == current and changes == history else f"labels are {current}, by hand {newest}"


def _save_head(folder: Path) -> None:
    held = _vectors()
    model = FewLabelClassifier().fit(held.x, np.arange(len(held)) % 3)
    Head.of(model).save(folder / "head.safetensors")


def _read_head(folder: Path) -> np.ndarray:
    return Head.load(folder / "head.safetensors").predict_proba(_vectors().x)


def _seal_head(folder: Path) -> None:
    """The hash put right, as a forger would."""
    path = folder / "head.safetensors"
    data, zeros = path.read_bytes(), OPEN.encode()
    at = data.find(MARK) + len(MARK)
    bare = data[:at] + zeros + data[at + len(zeros) :]
    if MARK + zeros in bare:
        path.write_bytes(sealed(bare, MARK))


def judge_head(folder: Path, result: np.ndarray, sound: np.ndarray) -> str:
    if result.ndim != 2 or len(result) != len(sound) or result.shape[1] < 2 or not np.isfinite(result).all():
        return f"probabilities of shape {result.shape} instead of {sound.shape}, finite: {np.isfinite(result).all()}"
    return "" if np.allclose(result.sum(axis=1), 1) and (result >= 0).all() else "probabilities that are none"


@cache
def _exported() -> bytes:
    import tempfile

    settings = {"dim": 4, "steps": 1, "prepare": {"scale": "dataset"}, "random_state": 1, "device": "cpu"}
    model = TimeSeriesEmbedder(preset="paper", recipe={"batch_size": 4}, **settings).fit(X)
    with tempfile.TemporaryDirectory() as place:
        return export_onnx(model, Path(place) / "model.onnx").path.read_bytes()


def _read_onnx(folder: Path) -> np.ndarray:
    return OnnxEmbedder(folder / "model.onnx", threads=1).transform(X)


def _save_about(folder: Path) -> None:
    """What an exported file says of itself, in a file of its own; the hash is given up, as its error says how."""
    import onnx

    model = onnx.load_from_string(_exported())
    (about,) = (entry.value for entry in model.metadata_props if entry.key == "dicot")
    (folder / "about.json").write_text(about)
    (folder / "bare.onnx").write_bytes(_exported())


def _read_about(folder: Path) -> np.ndarray:
    import onnx

    model = onnx.load(folder / "bare.onnx")
    text = (folder / "about.json").read_bytes().decode("utf-8", "replace").encode("utf-8", "replace").decode()
    onnx.helper.set_model_props(model, {"dicot": text, SEAL: CHANGED})
    onnx.save(model, folder / "model.onnx")
    return _read_onnx(folder)


def judge_about(folder: Path, result: np.ndarray, sound: np.ndarray) -> str:
    if result.shape != sound.shape or result.dtype != sound.dtype or not np.isfinite(result).all():
        return f"embeddings are {result.dtype} of shape {result.shape}"
    return ""


KINDS = [
    Kind("choices", _choices, {f"data/{FILE}": TEXT}, _read_toml, judge_choices),
    Kind("vectors-npz", _save_vectors("npz"), {"v.npz": ZIP}, lambda f: read_vectors(f / "v.npz"), judge_npz),
    Kind(
        "vectors-parquet",
        _save_vectors("parquet"),
        {"v.parquet": BINARY},
        lambda folder: read_vectors(folder / "v.parquet"),
        judge_parquet,
    ),
    Kind("vectors-source", _save_source, {"source.json": JSON}, _use_source, judge_source),
    Kind("explorer-map", _save_map, {"map.npz": ZIP}, _read_map, judge_map),
    Kind(
        "index",
        _save_index,
        {"index/manifest.json": JSON},
        _read_index,
        same_bits,
    ),
    Kind("labels", _save_labels, {"labels.sqlite": BINARY}, _read_labels, judge_labels),
    Kind("head", _save_head, {"head.safetensors": TENSORS}, _read_head, same_bits),
    Kind("head-forged", _save_head, {"head.safetensors": TENSORS}, _read_head, judge_head, seal=_seal_head),
    Kind("onnx", lambda f: _write_bytes(f, _exported()), {"model.onnx": BINARY}, _read_onnx, same_bits),
    Kind("onnx-about", _save_about, {"about.json": JSON}, _read_about, judge_about),
]


def _write_bytes(folder: Path, data: bytes) -> None:
    (folder / "model.onnx").write_bytes(data)
