"""What else is kept: tables of labels, maps of a benchmark, and ONNX files that another program has changed."""

import csv
import io
import math
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from dicot.model.deployed import ABOUT, SEAL, OnnxEmbedder
from dicot.model.export import export_onnx
from dicot.use.labels.windows import read_labels
from dicot.use.projection import Maps, read_maps, write_maps
from tests.survival.kind import Kind, UnreadableError
from tests.survival.model_kinds import X as CASES
from tests.survival.model_kinds import _model, sane
from tests.survival.mutations import TEXT, ZIP, change_json, deep_json, huge_json_number, repeat_json_key

N = 12
VECTORS = np.random.default_rng(11).normal(size=(N, 6)).astype(np.float32)
KEYS = [("mon", float(i), i + 1.5) for i in range(4)]


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


def _onnx(folder: Path) -> None:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)  # it would print hundreds of lines on what is wrong with a file
    export_onnx(_model(), folder / "model.onnx")


def forge_onnx(data: bytes, dice: Random) -> bytes:
    """Another value in what the file says of itself, or another shape or name in its graph."""
    import onnx

    model = onnx.load_model_from_string(data)
    for entry in [one for one in model.metadata_props if one.key == SEAL]:
        model.metadata_props.remove(entry)  # as whoever changes it on purpose has to
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


KINDS = [
    Kind(
        "labels-csv",
        _label_table,
        {"labels.csv": TEXT},
        lambda folder: read_labels(folder / "labels.csv"),
        judge_label_table,
    ),
    Kind("maps", _maps, {"maps.npz": ZIP}, lambda folder: read_maps(folder / "maps.npz"), judge_maps),
    Kind(
        "onnx-forged",
        _onnx,
        {"model.onnx": (forge_onnx,)},
        lambda folder: OnnxEmbedder(folder / "model.onnx", threads=1).transform(CASES),
        sane,
        heavy=True,
    ),
]
