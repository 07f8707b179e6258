"""HAPT: accelerometer and gyroscope of a phone at the waist of 30 people, 50 Hz, postures and changes between them."""

from collections.abc import Mapping

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows, split_groups
from dicot.data.datasets.base import Card
from dicot.data.datasets.prepared import FAMILY, PreparedParts
from dicot.data.datasets.standin import StandIn
from dicot.data.datasets.tracks import runs
from dicot.data.policies import Array

# The publisher's windows: 2.56 s, each sharing half of its values with the next.
LENGTH, STRIDE = 128, 64
TEST_USERS = (2, 4, 9, 10, 12, 13, 18, 20, 24)  # of the publisher's split
POSTURES = (
    "walking",
    "walking upstairs",
    "walking downstairs",
    "sitting",
    "standing",
    "laying",
    "stand to sit",
    "sit to stand",
    "sit to lie",
    "lie to sit",
    "stand to lie",
    "lie to stand",
)


def cut(arrays: Mapping[str, Array]) -> PreparedParts:
    """Cut windows inside each experiment; those that are mostly without a label are dropped."""
    user = arrays["user"].astype(np.int64)
    label = np.maximum(arrays["label"].astype(np.int64), 0)  # 1 to 12; none is 0 or -1
    if label.max() > len(POSTURES):
        raise InputError(f"label must be 1 to {len(POSTURES)}, or 0 or -1 for none; got {label.max()}.")
    tracks = [rows for rows in runs(arrays["experiment"], user) if rows.stop - rows.start >= LENGTH]
    windows = Windows.from_array(
        [arrays["X"][rows] for rows in tracks],
        window=LENGTH,
        stride=STRIDE,
        y=[label[rows] for rows in tracks],
        group=[user[rows.start] for rows in tracks],
        layout="ntc",
        name=HAPT.name,
    )
    assert windows.y is not None
    known = windows.y > 0
    labelled = windows.subset(known)
    coded = Windows(labelled.x, windows.y[known] - 1, labelled.group, labelled.name)
    return PreparedParts(*split_groups(coded, TEST_USERS), POSTURES, STRIDE)


HAPT = StandIn(
    Card(
        name="hapt",
        family=FAMILY,
        n_train=9031,
        n_test=3713,
        n_channels=6,
        n_times=LENGTH,
        n_classes=len(POSTURES),
        source="https://archive.ics.uci.edu/dataset/341",
        licence="CC BY 4.0",
        citation="Reyes-Ortiz et al., Transition-aware human activity recognition using smartphones, Neurocomputing "
        "171, 2016",
        fingerprint="4ecf037d29775f2b",
        labels=POSTURES,
        stride=STRIDE,
        transfer_channels=(0, 1, 2),  # accelerometer
    ),
    file="hapt_raw.npz",
    arrays=("X", "label", "user", "experiment"),
    content="X (rows, 6: accelerometer, gyroscope), label (1 to 12, 0 or -1 for none), user and experiment (rows,) "
    "from its folder RawData",
    cut=cut,
    stands_in_for="harth",
    class_sizes=(1362, 1268, 1174, 1420, 1553, 1546, 107, 86, 134, 119, 147, 115),
)
