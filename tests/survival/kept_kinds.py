"""What work leaves behind beside models and ledgers: vectors, an index, labels, a classifier, an ONNX file, maps."""

import csv
import io
import json
import math
import sqlite3
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dicot import FewLabelClassifier
from dicot.deployed import ABOUT, OnnxEmbedder
from dicot.explorer.kept import overview_file, read_or_make
from dicot.export import export_onnx
from dicot.heads import Head
from dicot.labels.store import LabelStore
from dicot.labels.windows import read_labels
from dicot.projection import Maps, read_maps, write_maps
from dicot.search import EmbeddingIndex
from dicot.vectors import Vectors, read_vectors, write_vectors
from tests.survival.array_kinds import parse_npz
from tests.survival.kind import Kind, UnreadableError
from tests.survival.ledger_kinds import change_row
from tests.survival.model_kinds import X as CASES
from tests.survival.model_kinds import _model, sane
from tests.survival.mutations import (
    BINARY,
    JSON,
    TENSORS,
    TEXT,
    ZIP,
    change_json,
    deep_json,
    huge_json_number,
    repeat_json_key,
)
from tests.survival.table_kinds import change_column

N = 12
VECTORS = np.random.default_rng(11).normal(size=(N, 6)).astype(np.float32)
PLACES = {
    "recording": np.array(["mon", "tue"] * (N // 2)),
    "start": np.arange(N) * 0.5,
    "end": np.arange(N) * 0.5 + 1.0,
    "group": np.arange(N) % 3,
    "y": np.array(["", "walk", "run"] * (N // 3)),
}
KEYS = [("mon", float(i), i + 1.5) for i in range(4)]


def _write(suffix: str) -> Any:
    def make(folder: Path) -> None:
        write_vectors(folder / f"v{suffix}", {"": {"X": VECTORS, **PLACES}}, {"kind": "recordings", "model": "abc"})

    return make


def _read(suffix: str) -> Any:
    return lambda folder: read_vectors(folder / f"v{suffix}", finite=True)


def _vectors_are(found: Vectors, wanted: Any) -> str:
    with np.errstate(over="ignore"):
        wanted = np.asarray(wanted, float).astype(np.float32)
    if found.x.dtype != np.float32 or found.x.ndim != 2 or not np.isfinite(found.x).all():
        return f"x is {found.x.dtype} {found.x.shape}, finite: {np.isfinite(found.x).all()}"
    for name, values in found.columns().items():
        if values.shape != (len(found),):
            return f"{name} has shape {values.shape} beside {len(found)} vectors"
    return "" if np.array_equal(found.x, wanted) else "the vectors are not those of the file"


def judge_npz(folder: Path, found: Vectors, sound: Any) -> str:
    """One of the arrays called X, or the parts one after the other, are what was read."""
    held = parse_npz(folder / "v.npz")
    parts = [held[name] for name in (("X",) if "X" in held else ("X_train", "X_test")) if name in held]
    if not parts or any(None in map(type, part) or part[0] is None for part in parts):
        raise UnreadableError("there are no vectors")
    whole = [np.concatenate([part[0] for part in parts])] if len(parts) > 1 else parts[0]
    complaints = [_vectors_are(found, one) for one in whole if one is not None]
    return "" if "" in complaints else complaints[0]


def judge_parquet(folder: Path, found: Vectors, sound: Any) -> str:
    try:
        table = pq.read_table(folder / "v.parquet", page_checksum_verification=True)
        rows = table.column("vector").to_pylist()
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise UnreadableError(str(error)) from error
    if any(row is None or None in row for row in rows) or len({len(row) for row in rows}) != 1:
        raise UnreadableError("rows are missing or of several lengths")
    return _vectors_are(found, rows)


def _index(folder: Path) -> None:
    about = {("label" if name == "y" else name): values for name, values in PLACES.items()}
    EmbeddingIndex(VECTORS, **about).save(folder / "index")


def _search(folder: Path) -> Any:
    index = EmbeddingIndex.load(folder / "index")
    return index.query(VECTORS[:3], 4), index.vectors(range(len(index)))


def judge_index(folder: Path, found: Any, sound: Any) -> str:
    (distances, rows), vectors = found
    same = np.array_equal(distances, sound[0][0]) and np.array_equal(rows, sound[0][1])
    return "" if same and np.array_equal(vectors, sound[1]) else "it is taken, and answers something else"


def _index_files() -> Mapping[str, Any]:
    """By names that depend on what is in them."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        _index(Path(place))
        names = sorted(path.name for path in (Path(place) / "index").iterdir())
    ways = {".json": JSON, ".npy": BINARY, ".npz": ZIP}
    return {f"index/{name}": ways[Path(name).suffix] for name in names}


def _labels(folder: Path) -> None:
    with LabelStore(folder / "labels.sqlite") as store:
        for i, key in enumerate(KEYS):
            store.set([key], ["walk", "run"][i % 2], by="ann")
        store.set(["id 7"], 3)
        store.remove([KEYS[0]])
        store.undo()
        store._db.execute("UPDATE changes SET at = '2026-01-02T03:04:05+00:00'")  # the same bytes every time


def _read_labels(folder: Path) -> Any:
    with LabelStore(folder / "labels.sqlite", read_only=True) as store:
        return store.current(), store.history(), store.can_undo()


def judge_labels(folder: Path, found: Any, sound: Any) -> str:
    """The newest row of a key wins, by SQL alone."""
    current, history, _ = found
    db = sqlite3.connect(f"file:{folder / 'labels.sqlite'}?mode=ro", uri=True)
    try:
        rows = db.execute('SELECT recording, start, "end", new FROM changes ORDER BY number').fetchall()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise UnreadableError(str(error)) from error
    finally:
        db.close()
    wanted: dict[Any, Any] = {}
    for recording, start, end, new in rows:
        key = recording if start is None and end is None else (recording, start, end)
        wanted[key] = new
        if isinstance(new, float) and not math.isfinite(new):
            raise UnreadableError("a label is infinite")
    wanted = {key: label for key, label in wanted.items() if label is not None}
    if len(history) != len(rows):
        return f"{len(history)} changes where the file has {len(rows)}"
    return "" if current == wanted else f"the labels are {current}, in the file {wanted}"


def _label_table(folder: Path) -> None:
    rows = [
        ["recording", "start", "end", "label", "by"],
        *([*key, "walk", "ann"] for key in KEYS),
        ["id 7", "", "", 3, ""],
    ]
    (folder / "labels.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))


def judge_label_table(folder: Path, found: Any, sound: Any) -> str:
    try:
        text = (folder / "labels.csv").read_bytes().decode("utf-8-sig")
        header, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except (ValueError, csv.Error) as error:
        raise UnreadableError(str(error)) from error
    wanted: dict[Any, str] = {}
    for row in rows:
        if len(row) != len(header):
            raise UnreadableError("rows of several lengths")
        cells = dict(zip(header, row, strict=True))
        times = tuple(cells[name] for name in ("start", "end"))
        if cells["label"] in ("", "-1"):
            continue
        try:
            key = cells["recording"] if times == ("", "") else (cells["recording"], *map(float, times))
        except ValueError as error:
            raise UnreadableError(str(error)) from error
        if not all(math.isfinite(time) for time in key[1:] if isinstance(time, float)):
            raise UnreadableError("a time is no number of seconds")
        if wanted.setdefault(key, cells["label"]) != cells["label"]:
            raise UnreadableError("one key has two labels")
    return "" if found == wanted else f"the labels are {found}, in the file {wanted}"


@cache
def _head() -> Head:
    y = np.array(["walk", "run", "sit"] * 8)
    x = np.random.default_rng(12).normal(size=(24, 6)) + 3 * (np.arange(24) % 3)[:, None]
    return Head.of(FewLabelClassifier(random_state=0).fit(x, y))


def forge_head(data: bytes, dice: Random) -> bytes:
    """Another value in what the file says of itself, with the length of the header put right."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    how = dice.choice([change_json, change_json, change_json, deep_json, huge_json_number, repeat_json_key])
    header["__metadata__"]["dicot"] = how(header["__metadata__"]["dicot"].encode(), dice).decode()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def judge_head(folder: Path, found: np.ndarray, sound: np.ndarray) -> str:
    """Other probabilities may come out of a forged file, but probabilities they must be."""
    if found.ndim != 2 or len(found) != len(sound) or not np.isfinite(found).all():
        return f"probabilities of shape {found.shape}, finite: {np.isfinite(found).all()}"
    return "" if np.allclose(found.sum(axis=1), 1) and (found >= 0).all() else "they are no probabilities"


def _onnx(folder: Path) -> None:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)  # it would print hundreds of lines on what is wrong with a file
    export_onnx(_model(), folder / "model.onnx")


def forge_onnx(data: bytes, dice: Random) -> bytes:
    """Another value in what the file says of itself, or another shape or name in its graph."""
    import onnx

    model = onnx.load_model_from_string(data)
    if dice.random() < 0.6:
        (entry,) = (one for one in model.metadata_props if one.key == ABOUT)
        how = dice.choice([change_json, change_json, change_json, deep_json, huge_json_number, repeat_json_key])
        entry.value = how(entry.value.encode(), dice).decode()
    elif dice.random() < 0.5:
        tensor = dice.choice(list(model.graph.initializer))
        at = dice.randrange(len(tensor.dims)) if len(tensor.dims) else 0
        if len(tensor.dims):
            tensor.dims[at] = dice.choice([0, -1, 1, 10**6, 2**40, tensor.dims[at] + 1])
    else:
        node = dice.choice(list(model.graph.node))
        if dice.random() < 0.5 and len(node.input):
            node.input[dice.randrange(len(node.input))] = dice.choice(["", "window", node.output[0], "nothing"])
        else:
            node.op_type = dice.choice(["Add", "Loop", "If", "MatMul", "Nothing", "Tile", "Expand"])
    return model.SerializeToString()


def _maps(folder: Path) -> None:
    points = {name: VECTORS[:, :2].copy() for name in ("dicot", "random")}
    titles = dict.fromkeys(points, "t-SNE of 12 cases")
    write_maps(folder / "maps.npz", Maps("Beef", "ab", 1, 0, np.arange(N) % 3, points, titles))


def judge_maps(folder: Path, found: Maps, sound: Maps) -> str:
    if found.labels.shape != (len(found.labels),) or found.titles.keys() != found.points.keys():
        return "labels or titles do not fit"
    good = all(p.shape == (len(found.labels), 2) and np.isfinite(p).all() for p in found.points.values())
    return "" if good else "points are not finite or not as many as labels"


def _explorer(folder: Path) -> None:
    read_or_make(folder / "v.npz", Vectors(VECTORS), 3, lambda said: None)


def judge_explorer(folder: Path, found: Any, sound: Any) -> str:
    held = [found.points, found.outlier] if found.outlier is not None else [found.points]
    if not all(np.isfinite(one).all() and len(one) == N for one in held) or found.cluster.shape != (N,):
        return "points, clusters or scores are not finite or not as many as windows"
    return "" if 0 <= found.cluster.min() <= found.cluster.max() < found.n_clusters else "clusters that are none"


MAP = overview_file(Path("v.npz"), Vectors(VECTORS)).name
TABLE = (*BINARY, *(change_column,) * 12)

KINDS = [
    Kind("vectors-npz", _write(".npz"), {"v.npz": ZIP}, _read(".npz"), judge_npz),
    Kind("vectors-parquet", _write(".parquet"), {"v.parquet": TABLE}, _read(".parquet"), judge_parquet),
    Kind("index", _index, _index_files(), _search, judge_index),
    Kind("labels", _labels, {"labels.sqlite": (*BINARY, *(change_row,) * 16)}, _read_labels, judge_labels),
    Kind(
        "labels-csv",
        _label_table,
        {"labels.csv": TEXT},
        lambda folder: read_labels(folder / "labels.csv"),
        judge_label_table,
    ),
    Kind(
        "head",
        lambda folder: _head().save(folder / "head.safetensors") and None,
        {"head.safetensors": (*TENSORS, *(forge_head,) * 10)},
        lambda folder: Head.load(folder / "head.safetensors").predict_proba(VECTORS),
        judge_head,
    ),
    Kind(
        "onnx",
        _onnx,
        {"model.onnx": (*BINARY, *(forge_onnx,) * 20)},
        lambda folder: OnnxEmbedder(folder / "model.onnx", threads=1).transform(CASES),
        sane,
        heavy=True,
    ),
    Kind("maps", _maps, {"maps.npz": ZIP}, lambda folder: read_maps(folder / "maps.npz"), judge_maps),
    Kind(
        "explorer-map",
        _explorer,
        {MAP: ZIP},
        lambda folder: read_or_make(folder / "v.npz", Vectors(VECTORS), 3, lambda said: None),
        judge_explorer,
    ),
]
