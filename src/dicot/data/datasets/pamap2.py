"""PAMAP2: heart rate and three inertial units on nine people, 100 Hz, twelve activities."""

from pathlib import Path

import numpy as np

from dicot.core.errors import InputError
from dicot.data.datasets.preparation import PreparedSet, Sizes, Workspace, raw_files, read_each
from dicot.data.datasets.prepared import PreparedParts
from dicot.data.datasets.tracks import cut_track
from dicot.data.naming import naming
from dicot.data.policies import Array

NAME = "pamap2"
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


def read_recording(path: Path) -> dict[str, Array]:
    """Read one .dat file as x (52, T), NaN where a sensor gave nothing, and activity (T,); activity 0 is left out."""
    with naming(path):
        table = np.loadtxt(path, ndmin=2, comments=None)
        if table.shape[1] != COLUMNS:
            raise InputError(f"Expected {COLUMNS} columns; got {table.shape[1]}.")
        known = [0, *ACTIVITIES, *OPTIONAL]
        unknown = np.setdiff1d(table[:, 1], known)
        if len(unknown):
            raise InputError(f"Unknown activities {unknown[:5].tolist()}; known are {sorted(known)}.")
        activity = table[:, 1].astype(np.int64)
        return {"x": table[activity != 0, 2:].T.astype(np.float32), "activity": activity[activity != 0]}


def prepare(raw: Path, workspace: Workspace) -> PreparedParts:
    """Join all files, fill gaps, drop optional activities, split people, scale and cut.

    Files are joined in the order of their paths; the paper's loader takes them as the file system lists them (D-94).
    """
    files = raw_files(raw, "subject10[1-9].dat", "subject101.dat to subject109.dat in Protocol and Optional")
    recordings = list(read_each(files, read_recording, workspace, until=0.8))
    x = np.concatenate([one["x"] for one in recordings], axis=1)
    activity = np.concatenate([one["activity"] for one in recordings])
    subject = np.repeat([int(path.stem[-1]) for path in files], [len(one["activity"]) for one in recordings])
    del recordings
    fill_gaps(x)
    known = np.isin(activity, list(ACTIVITIES))
    x, label, subject = x[:, known], np.searchsorted(list(ACTIVITIES), activity[known]), subject[known]
    in_test = np.isin(subject, TEST_SUBJECTS)
    if in_test.all() or not in_test.any():
        raise InputError(f"{raw} must hold subjects of {TEST_SUBJECTS} for the test part and others to train on.")
    scale(x, in_test, workspace.settings["scaling"])
    workspace.on_progress(0.9, "windows")
    train, test = (
        cut_track(
            x[:, some], label[some], subject[some], LENGTH, STRIDE, borders=workspace.settings["borders"], name=NAME
        )
        for some in (~in_test, in_test)
    )
    return PreparedParts(train, test, tuple(ACTIVITIES.values()), STRIDE)


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


def scale(x: Array, in_test: Array, by: str) -> None:
    """Scale channels in place to 0 .. 1 over the test part as the paper's loader does (D-48), or the training part."""
    seen = in_test if by == "test" else ~in_test
    for channel in x:
        low, high = channel[seen].min(), channel[seen].max()
        channel -= low
        channel /= (high - low) or 1.0


PAMAP2 = PreparedSet(
    name=NAME,
    source="https://archive.ics.uci.edu/dataset/231/pamap2+physical+activity+monitoring",
    licence="CC BY 4.0",
    citation="Reiss and Stricker, Introducing a new benchmarked dataset for activity monitoring, ISWC, 2012",
    download="PAMAP2_Dataset.zip; unpacked it holds Protocol and Optional with files subject10N.dat.",
    read=prepare,
    # From the published numbers of rows per person. The paper's own are those of series2vec.py (D-95).
    expected=Sizes(33_486, 5_368, 52, LENGTH, 12),
    paper=Sizes(51_192, 11_590, 52, LENGTH, 18),
    settings={"scaling": ("test", "train"), "borders": ("cross", "cut")},
    transfer_channels=(2, 3, 4),  # accelerometer of the hand, 16 g
    paper_transfer_channels=(4, 5, 6),  # its z beside x and y of another one (D-50)
)
