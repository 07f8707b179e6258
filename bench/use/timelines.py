"""Long recordings with labelled ranges, cut into overlapping windows: what segmentation and events are measured on.

HAPT is as it was recorded: two experiments of several minutes for each person, with unlabelled time in between. The
recordings of SisFall and WISDM hold one activity each: those of a person are put one after the other, in the order of
the publisher's files. Windows are cut across the joins.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from bench.datasets.cutting import runs
from bench.datasets.standins import HAPT, LETTERS, SISFALL, WISDM_2019
from bench.use.scores import Range
from dicot import TimeSeriesEmbedder
from dicot.data.npyfile import load_npz
from dicot.model.vector.levels import Levels

WINDOW, STRIDE = 2.56, 1.28  # seconds
TEST = {  # subjects; those of the sets by these names
    "hapt": ("2", "4", "9", "10", "12", "13", "18", "20", "24"),
    "sisfall": ("SA07", "SA15", "SA23", "SE08"),
    "wisdm2019": ("1607", "1615", "1624", "1632", "1638"),
}


class Recording(NamedTuple):
    """A recording of one person."""

    name: str
    subject: str
    x: Any  # (C, T)
    labels: Any  # (T,), empty where nobody gave one
    rate: float


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

    def part(self, groups: Any, others: bool = False) -> "Timelines":
        """Return the windows and ranges of these groups, or of all others."""
        chosen = np.isin(self.group, groups, invert=others)
        names = set(np.unique(self.recording[chosen]))
        arrays: Any = {one.name: getattr(self, one.name)[chosen] for one in fields(self) if one.name != "ranges"}
        return Timelines(**arrays, ranges=[one for one in self.ranges if one.recording in names])

    def place(self, rows: Any = slice(None)) -> tuple[Any, Any, Any]:
        return self.recording[rows], self.start[rows], self.end[rows]

    def labels(self) -> Any:
        """The label in the middle of each window; empty where there is none."""
        labels = np.full(len(self.start), "", dtype="<U40")
        middle = (self.start + self.end) / 2
        for one in self.ranges:
            labels[(self.recording == one.recording) & (one.start <= middle) & (middle < one.end)] = one.label
        return labels


def recordings(name: str, joined: bool) -> Iterator[Recording]:
    """The recordings of a set; those of a person joined to one, or each of its own."""
    arrays = load_npz({"hapt": HAPT, "sisfall": SISFALL, "wisdm2019": WISDM_2019}[name].path())
    if name == "hapt":
        labels = np.array(["", *HAPT.labels])[np.maximum(arrays["label"].astype(int), 0)]
        for rows in runs(arrays["experiment"], arrays["user"]):
            subject = str(arrays["user"][rows.start])
            title = f"{arrays['experiment'][rows.start]}_{subject}"
            yield Recording(title, subject, arrays["X"][rows].T, labels[rows], 50.0)
    elif name == "sisfall":
        x, number = arrays["X"] * arrays["scale"], arrays["rec"].astype(int)
        activity, subjects = arrays["rec_activity"][number], arrays["rec_subject"][number]
        for rows in runs(subjects) if joined else runs(number):
            subject = str(subjects[rows.start])
            title = subject if joined else str(arrays["rec_name"][number[rows.start]])
            yield Recording(title, subject, x[rows].T, activity[rows], 50.0)
    else:
        labels = np.array(WISDM_2019.labels)[np.searchsorted(LETTERS, arrays["activity"])]
        for rows in runs(arrays["subject"]):
            subject = str(arrays["subject"][rows.start])
            yield Recording(subject, subject, arrays["X"][rows].T, labels[rows], 20.0)


def timelines(name: str, joined: bool = True) -> Timelines:
    """Cut all recordings of a set, and embed them by the encoder that comes with dicot."""
    model = TimeSeriesEmbedder.from_pretrained("dicot-base", device="cpu")
    parts: list[list[Any]] = []
    ranges: list[Range] = []
    for recording in recordings(name, joined):
        rate = recording.rate
        for rows in runs(recording.labels):
            label = str(recording.labels[rows.start])
            if label:
                ranges.append(Range(recording.name, rows.start / rate, rows.stop / rate, label))

        width, step = round(WINDOW * rate), round(STRIDE * rate)
        windows = sliding_window_view(recording.x.astype(np.float32), width, axis=1)[:, ::step]
        cases = np.ascontiguousarray(windows.transpose(1, 0, 2))  # (N, C, T)
        levels = Levels(cases.shape[1])(torch.from_numpy(cases)).numpy()
        peak = np.sqrt(np.square(cases[:, :3]).sum(axis=1)).max(axis=1)
        start = np.arange(len(cases)) * step / rate
        names, groups = np.full(len(cases), recording.name), np.full(len(cases), recording.subject)
        parts.append([model.transform(cases), levels, peak, names, start, start + width / rate, groups])
    names_of_columns = [one.name for one in fields(Timelines) if one.name != "ranges"]
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Timelines(**dict(zip(names_of_columns, columns, strict=True)), ranges=ranges)
