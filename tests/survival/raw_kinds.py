"""Publishers' raw files of large data sets: text with and without names, a log with strays, a MATLAB file."""

import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat, savemat

from dicot.data.datasets import harth, pamap2, skoda, wisdm2
from tests.survival.kind import Kind, UnreadableError
from tests.survival.mutations import BINARY, TEXT
from tests.survival.reference import csv_rows, lines_of, number, same_length

CHANNELS = ("back_x", "back_y", "back_z", "thigh_x", "thigh_y", "thigh_z")
LOG = re.compile(r"^(\d{1,18}),[A-Za-z]+,[^,\n]*,([^,;\n]+),([^,;\n]+),([^,;\n]+)", re.MULTILINE)


def _named(folder: Path) -> None:
    rng = np.random.default_rng(6)
    rows = [
        [f"2019-01-12 00:00:00.{20 * i:03d}", *(f"{v:.4f}" for v in rng.normal(size=6)), str((1, 6, 13)[i % 3])]
        for i in range(12)
    ]
    text = "\n".join(",".join(row) for row in [["timestamp", *CHANNELS, "label"], *rows])
    (folder / "S006.csv").write_text(text + "\n")


def judge_named(folder: Path, result: Any, sound: Any) -> str:
    if np.isinf(result["x"]).any():
        return ""  # refused when windows are made of it
    names, *rows = csv_rows(folder / "S006.csv", "replace")  # of the times nothing is read
    same_length([names, *rows])
    if any(names.count(name) != 1 for name in (*CHANNELS, "label")):
        raise UnreadableError(f"the columns are {names}")
    table = [[number(row[names.index(name)]) for name in (*CHANNELS, "label")] for row in rows]
    whole = [row for row in table if not any(map(math.isnan, row))]
    codes = list(harth.ACTIVITIES)
    if any(row[-1] not in codes for row in whole):
        raise UnreadableError("a label is none of the activities")
    wanted = np.array([row[:-1] for row in whole]).reshape(len(whole), 6).T
    return _same(result["x"], wanted) or _same(result["label"], np.array([codes.index(int(row[-1])) for row in whole]))


def _unnamed(folder: Path) -> None:
    table = np.random.default_rng(7).normal(10, 3, size=(6, 54))
    table[:, 0], table[:, 1] = 5.64 + 0.01 * np.arange(6), [0, 1, 1, 2, 2, 24]
    lines = [" ".join("NaN" if v < 2 and i > 1 else f"{v:.6g}" for i, v in enumerate(row)) for row in table]
    (folder / "subject101.dat").write_text("\n".join(lines) + "\n")


def judge_unnamed(folder: Path, result: Any, sound: Any) -> str:
    if np.isinf(result["x"]).any():
        return ""  # refused when windows are made of it
    rows = [line.split() for line in lines_of(folder / "subject101.dat", "")]
    same_length([range(54), *rows])
    activities = np.array([number(cells[1]) for cells in rows])
    if not np.isin(activities, [0, *pamap2.ACTIVITIES, *pamap2.OPTIONAL]).all():
        raise UnreadableError("an activity is not known")
    kept = [list(map(number, cells[2:])) for cells, activity in zip(rows, activities, strict=True) if activity]
    return _same(result["x"], np.array(kept).reshape(-1, 52).T) or _same(
        result["activity"], activities[activities != 0]
    )


def _log(folder: Path) -> None:
    rng = np.random.default_rng(8)
    lines = [
        f"{1 + i // 6},{wisdm2.ACTIVITIES[i % 6]},1370520469556,{','.join(f'{v:.3f}' for v in rng.normal(size=3))};"
        for i in range(12)
    ]
    (folder / "log.txt").write_text("\n".join(lines) + "\n")


def judge_log(folder: Path, result: Any, sound: Any) -> str:
    """Strays are left out, so that only what was taken can be held against the file."""
    if np.isinf(result.x).any():
        return ""  # refused when windows are made of it
    if not len(result.user) == len(result.label) == result.x.shape[1] or np.isnan(result.x).any():
        return "users, labels and values do not fit together, or are no numbers"
    held = LOG.findall((folder / "log.txt").read_bytes().decode("latin-1"))
    records = {(int(user), *map(number, xyz)) for user, *xyz in held if all(_is_plain(v) for v in xyz)}
    taken = {(int(user), *map(float, xyz)) for user, xyz in zip(result.user, result.x.T, strict=True)}
    return f"taken, but not in the file: {sorted(taken - records)[:2]}" if taken - records else ""


def _is_plain(text: str) -> bool:
    try:
        return math.isfinite(number(text))
    except UnreadableError:
        return False


def _matlab(folder: Path, *, compress: bool) -> None:
    values = np.random.default_rng(9).normal(size=(8, 71)) * 100
    values[:, 0] = [32, 48, 49, 50, 51, 52, 53, 54]
    savemat(folder / f"{skoda.VARIABLE}.mat", {skoda.VARIABLE: values}, do_compression=compress)


def judge_matlab(folder: Path, result: Any, sound: Any) -> str:
    x, label = result["x"], result["label"]
    if x.dtype != np.float32 or len(x) != 60 or x.shape[1] != len(label) or not np.isfinite(x).all():
        return f"x is {x.dtype} of shape {x.shape} for {len(label)} labels, finite: {np.isfinite(x).all()}"
    if not len(label) or label.min() < 0 or label.max() >= len(skoda.GESTURES):
        return "labels that are none"
    try:
        table = loadmat(folder / f"{skoda.VARIABLE}.mat")[skoda.VARIABLE].astype(float)
    except Exception as error:  # scipy has many
        raise UnreadableError(str(error)) from error
    codes = [list(skoda.GESTURES).index(code) for code in table[:, 0]]
    values = table[:, [column for column in range(1, 71) if column % 7 != 1]]  # the first of each seven is an id
    lengths = np.array([[math.hypot(*row)] for row in values])
    return _same(label, np.array(codes)) or _same(x, (values / np.where(lengths == 0, 1, lengths)).T)


def _same(found: np.ndarray, wanted: np.ndarray) -> str:
    agree = found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-6, atol=1e-37, equal_nan=True)
    return "" if agree else "the values are not those of the file"


KINDS = [
    Kind("raw-named", _named, {"S006.csv": TEXT}, lambda folder: harth.read_subject(folder / "S006.csv"), judge_named),
    Kind(
        "raw-unnamed",
        _unnamed,
        {"subject101.dat": TEXT},
        lambda folder: pamap2.read_recording(folder / "subject101.dat"),
        judge_unnamed,
    ),
    Kind(
        "raw-log",
        _log,
        {"log.txt": TEXT},
        lambda folder: wisdm2.read_log(folder / "log.txt", lambda share, note: None),
        judge_log,
    ),
    *(
        Kind(
            name,
            partial(_matlab, compress=compress),
            {f"{skoda.VARIABLE}.mat": BINARY},
            lambda folder: skoda.read_arm(folder / f"{skoda.VARIABLE}.mat"),
            judge_matlab,
        )
        for name, compress in (("raw-matlab", True), ("raw-matlab-plain", False))  # a checksum guards the compressed
    ),
]
