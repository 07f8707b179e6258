"""PAMAP2: heart rate and three inertial units on nine people, 100 Hz, twelve activities; the paper's arrays of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dicot.core.errors import InputError, MissingDataError, naming
from dicot.data import Windows
from dicot.data.cases import Array
from dicot.data.datasets.base import Sizes, cut, differences, runs
from dicot.data.datasets.large import CONVERT_PAMAP2, PAMAP2, PAMAP2_PAPER
from dicot.data.npyfile import load_npz
from dicot.paper.preparation import OnProgress, PreparedParts, codes_of, each, raw_files

LENGTH, STRIDE = 100, 50
COLUMNS = 54  # time stamp, activity, then 52 channels
TEST_SUBJECTS = (8, 9)
# The loader of the paper keeps activities of six and more people. In the publisher's files these are the twelve below;
# fixed here, so that a missing file cannot shift the labels.
ACTIVITIES = {
    1: "lying",
    2: "sitting",
    3: "standing",
    4: "walking",
    5: "running",
    6: "cycling",
    7: "Nordic walking",
    12: "ascending stairs",
    13: "descending stairs",
    16: "vacuum cleaning",
    17: "ironing",
    24: "rope jumping",
}
OPTIONAL = {
    9: "watching TV",
    10: "computer work",
    11: "car driving",
    18: "folding laundry",
    19: "house cleaning",
    20: "playing soccer",
}
EVERY = dict(sorted((ACTIVITIES | OPTIONAL).items()))
SETTINGS = {"scaling": ("test", "train"), "borders": ("cross", "cut")}


def read_recording(path: Path) -> tuple[Array, Array]:
    """Read one .dat file as x (52, T), NaN where a sensor gave nothing, and activity (T,); activity 0 is left out."""
    with naming(path):
        table = pd.read_csv(path, sep=r"\s+", header=None, float_precision="round_trip").to_numpy(np.float64)
        if table.shape[1] != COLUMNS:
            raise InputError(f"Expected {COLUMNS} columns; got {table.shape[1]}.")
        codes_of(table[:, 1], [0, *EVERY])
        known = table[table[:, 1] != 0]
        return known[:, 2:].T.astype(np.float32), known[:, 1].astype(np.int64)


def read(raw: Path, settings: Mapping[str, Any], on_progress: OnProgress) -> PreparedParts:
    """Join all files, fill gaps, drop optional activities, split people, scale and cut.

    Files are joined in the order of their paths; the paper's loader takes them as the file system lists them (D-94).
    """
    files = raw_files(raw, "subject10[1-9].dat", PAMAP2.download)
    recordings = [read_recording(path) for path in each(files, on_progress)]
    x, activity = (np.concatenate(columns, axis=-1) for columns in zip(*recordings, strict=True))
    subject = np.repeat([int(path.stem[-1]) for path in files], [len(own) for _, own in recordings])
    fill_gaps(x)
    known = np.isin(activity, list(ACTIVITIES))
    x, label, subject = x[:, known], codes_of(activity[known], list(ACTIVITIES)), subject[known]
    in_test = np.isin(subject, TEST_SUBJECTS)
    if in_test.all() or not in_test.any():
        raise InputError(f"{raw} must hold subjects of {TEST_SUBJECTS} for the test part and others to train on.")
    seen = x[:, in_test if settings["scaling"] == "test" else ~in_test]  # the paper scales by the test part (D-48)
    low, high = seen.min(axis=1, keepdims=True), seen.max(axis=1, keepdims=True)
    x = (x - low) / np.where(high == low, 1, high - low)
    parts = []
    for some in (~in_test, in_test):
        track = x[:, some], label[some], subject[some]
        inside = runs(*track[1:]) if settings["borders"] == "cut" else None
        parts.append(cut(*track, LENGTH, STRIDE, inside=inside, name=PAMAP2.name))
    return PreparedParts(parts[0], parts[1], tuple(ACTIVITIES.values()), STRIDE)


def fill_gaps(x: Array) -> None:
    """Fill gaps in place by straight lines along the joined recordings; before a channel's first value by its mean."""
    at = np.arange(x.shape[1])
    for channel in x:
        gap = np.isnan(channel)
        if gap.all():
            raise InputError("A sensor has no value in any file. Check the raw files.")
        if gap.any():
            first = int(np.argmin(gap))
            channel[gap] = np.interp(at[gap], at[~gap], channel[~gap])
            channel[:first] = channel[first:].mean(dtype=np.float64)


def read_arrays(raw: Path, settings: Mapping[str, Any], on_progress: OnProgress) -> PreparedParts:
    """Read the windows that Series2Vec's authors share, which no published script makes, as CONVERT_PAMAP2 wrote them.

    Training windows are those of train_data, or where these are too few those of train_data and val_data, as in
    Series2Vec's own loader. Other sizes than the paper's are refused.
    """
    assert PAMAP2_PAPER.sizes is not None
    return paper_arrays(raw, PAMAP2_PAPER.sizes)


def paper_arrays(raw: Path, sizes: Sizes) -> PreparedParts:
    """Read arrays that must have these sizes."""
    found = sorted(path for path in raw.rglob("PAMAP2*.npz") if path.is_file())
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "no PAMAP2.npz"
        raise MissingDataError(
            f"{raw} holds {names}; it must hold one. To make it of PAMAP2.npy, which is pickled, run where you trust "
            f"that file, in its folder: {CONVERT_PAMAP2}"
        )
    with naming(found[0]):
        arrays = load_npz(found[0])
        if absent := [name for name in ("train_data", "train_label", "test_data", "test_label") if name not in arrays]:
            raise InputError(f"There is no {' and no '.join(absent)}. Convert the file again: {CONVERT_PAMAP2}")
        joined = len(arrays["train_data"]) != sizes.n_train and {"val_data", "val_label"} <= set(arrays)
        for what in ("data", "label") if joined else ():
            arrays[f"train_{what}"] = np.concatenate([arrays[f"train_{what}"], arrays[f"val_{what}"]])
        both = [arrays[f"{part}_label"] for part in ("train", "test")]
        known = np.unique(np.concatenate(both))
        if known.dtype.kind not in "iuf" or (known % 1 != 0).any():
            raise InputError(f"Labels must be whole numbers; got {known[:3].tolist()}.")
        parts = []
        # The arrays do not say whose window is whose.
        for part, group in (("train", "subjects 1 to 7"), ("test", "subjects 8 and 9")):
            x, label = arrays[f"{part}_data"], arrays[f"{part}_label"]
            if x.shape[1:] == (sizes.n_times, sizes.n_channels):
                x = x.transpose(0, 2, 1)  # time before channels
            if x.ndim != 3 or label.shape != x.shape[:1]:
                raise InputError(f"Expected windows (N, C, T) with a label each; got {x.shape} and {label.shape}.")
            x = np.ascontiguousarray(x, dtype=np.float32)
            parts.append(Windows(x, np.searchsorted(known, label), np.full(len(x), group), PAMAP2_PAPER.name))
        notes = ["The file does not say whose window is whose: each part is one group."]
        notes += ["Training windows are train_data and val_data."] if joined else []
        made = PreparedParts(parts[0], parts[1], tuple(EVERY.values())[: len(known)], notes=tuple(notes))
        if wrong := differences(made.sizes, sizes):
            raise InputError(f"It holds {', '.join(wrong)}: it is not the file that the paper used.")
    return made
