"""Long recordings with labelled ranges, cut into overlapping windows: what segmentation and events are measured on.

HAPT is as it was recorded: two experiments of several minutes for each person, with unlabelled time in between. The
recordings of SisFall and WISDM hold one activity each: those of a person are put one after the other, in the order of
the publisher's files. Windows are cut across the joins.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from bench.datasets.cutting import runs
from bench.datasets.standins import HAPT, LETTERS, SISFALL, WISDM_2019
from benchmarks.timescores import Range
from dicot import TimeSeriesEmbedder
from dicot.data.npyfile import load_npz
from dicot.model.vector.levels import Levels

WINDOW, STRIDE = 2.56, 1.28  # seconds
FALL = "fall"
TEST = {  # subjects; those of the sets by these names
    "hapt": ("2", "4", "9", "10", "12", "13", "18", "20", "24"),
    "sisfall": ("SA07", "SA15", "SA23", "SE08"),
    "wisdm2019": ("1607", "1615", "1624", "1632", "1638"),
}


@dataclass(frozen=True, eq=False)
class Timelines:
    """The windows of some recordings in order, and the ranges that are labelled in them."""

    vectors: Any  # (N, F)
    levels: Any  # (N, 6 C): mean, largest, smallest, trend, deviation and roughness of every channel
    peak: Any  # (N,) the largest length of the acceleration
    recording: Any
    start: Any
    end: Any
    group: Any
    ranges: list[Range]

    def part(self, groups: Any, but: bool = False) -> "Timelines":
        """Return the windows and ranges of these groups, or of all others."""
        kept = np.isin(self.group, groups, invert=but)
        names = set(np.unique(self.recording[kept]))
        arrays: Any = {one.name: getattr(self, one.name)[kept] for one in fields(self) if one.name != "ranges"}
        return Timelines(**arrays, ranges=[one for one in self.ranges if one.recording in names])


def signals(name: str, joined: bool) -> Iterator[tuple[str, str, Any, Any, float]]:
    """Yield name, subject, values (C, T), labels (T,) and rate of each recording."""
    arrays = load_npz({"hapt": HAPT, "sisfall": SISFALL, "wisdm2019": WISDM_2019}[name].path())
    if name == "hapt":
        label, user = np.maximum(arrays["label"].astype(int), 0), arrays["user"]
        for rows in runs(arrays["experiment"], user):
            texts = np.array(["", *HAPT.labels])[label[rows]]
            who = str(user[rows.start])
            yield f"{arrays['experiment'][rows.start]}_{who}", who, arrays["X"][rows].T, texts, 50.0
    elif name == "sisfall":
        x, of = arrays["X"] * arrays["scale"], arrays["rec"].astype(int)
        activity, subject = arrays["rec_activity"][of], arrays["rec_subject"][of]
        for rows in runs(subject) if joined else runs(of):
            who = str(subject[rows.start])
            title = who if joined else str(arrays["rec_name"][of[rows.start]])
            yield title, who, x[rows].T, activity[rows], 50.0
    else:
        texts = np.array(WISDM_2019.labels)[np.searchsorted(LETTERS, arrays["activity"])]
        for rows in runs(arrays["subject"]):
            who = str(arrays["subject"][rows.start])
            yield who, who, arrays["X"][rows].T, texts[rows], 20.0


def timelines(name: str, joined: bool = True, cache: Path | None = None) -> Timelines:
    """Cut, embed by the encoder that comes with dicot, and return all recordings of a set."""
    model, found, ranges = TimeSeriesEmbedder.from_pretrained("dicot-base", device="cpu"), [], []
    kept = None if cache is None else cache / f"{name}-{joined}.npz"
    for title, who, x, labels, rate in signals(name, joined):
        for rows in runs(labels):
            ranges.append(Range(title, rows.start / rate, rows.stop / rate, str(labels[rows.start])))
        if kept is not None and kept.exists():
            continue
        width, step = round(WINDOW * rate), round(STRIDE * rate)
        cases = np.ascontiguousarray(
            sliding_window_view(x.astype(np.float32), width, axis=1)[:, ::step].transpose(1, 0, 2)
        )
        n = len(cases)
        levels = Levels(cases.shape[1])(torch.from_numpy(cases)).numpy()
        peak = np.sqrt(np.square(cases[:, :3]).sum(axis=1)).max(axis=1)
        start = np.arange(n) * step / rate
        names = [np.full(n, title), start, start + width / rate, np.full(n, who)]
        found.append([model.transform(cases), levels, peak, *names])
    keys = ("vectors", "levels", "peak", "recording", "start", "end", "group")
    if kept is not None and kept.exists():
        arrays = [np.load(kept)[key] for key in keys]
    else:
        arrays = [np.concatenate(column) for column in zip(*found, strict=True)]
        if kept is not None:
            kept.parent.mkdir(exist_ok=True, parents=True)
            np.savez(kept, **dict(zip(keys, arrays, strict=True)))
    own: Any = dict(zip(keys, arrays, strict=True))
    return Timelines(**own, ranges=[one for one in ranges if one.label])
