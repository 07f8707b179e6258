"""WISDM of 2019: the accelerometer of a phone in the pocket, 20 Hz, 18 activities of three minutes each."""

from collections.abc import Mapping

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows, split_groups
from dicot.data.datasets.base import Card
from dicot.data.datasets.prepared import FAMILY, PreparedParts
from dicot.data.datasets.standin import StandIn
from dicot.data.datasets.tracks import runs
from dicot.data.policies import Array

LENGTH = 200  # the publisher's windows: 10 s, side by side
TEST_SUBJECTS = (1607, 1615, 1624, 1632, 1638)  # every fourth of the 22, in the order of their numbers
GAP = 3.0  # usual intervals between two rows; a longer one ends a recording
ACTIVITIES = {
    "A": "walking",
    "B": "jogging",
    "C": "stairs",
    "D": "sitting",
    "E": "standing",
    "F": "typing",
    "G": "brushing teeth",
    "H": "eating soup",
    "I": "eating chips",
    "J": "eating pasta",
    "K": "drinking",
    "L": "eating a sandwich",
    "M": "kicking a ball",
    "O": "playing catch",
    "P": "dribbling",
    "Q": "writing",
    "R": "clapping",
    "S": "folding clothes",
}


def cut(arrays: Mapping[str, Array]) -> PreparedParts:
    """Cut windows inside each recording: one subject, one activity, no gap in time."""
    letters = np.array(list(ACTIVITIES))
    unknown = np.setdiff1d(arrays["activity"], letters)
    if len(unknown):
        raise InputError(f"activity must hold the letters {', '.join(letters)}; got {unknown[:5].tolist()}.")
    subject, activity = arrays["subject"].astype(np.int64), np.searchsorted(letters, arrays["activity"])
    recording = np.cumsum(_jumps(subject, activity, arrays["timestamp"]))
    tracks = [rows for rows in runs(subject, activity, recording) if rows.stop - rows.start >= LENGTH]
    windows = Windows.from_array(
        [arrays["X"][rows] for rows in tracks],
        window=LENGTH,
        stride=LENGTH,
        y=[activity[rows.start] for rows in tracks],
        group=[subject[rows.start] for rows in tracks],
        layout="ntc",
        name=WISDM_2019.name,
    )
    return PreparedParts(*split_groups(windows, TEST_SUBJECTS), tuple(ACTIVITIES.values()), LENGTH)


def _jumps(subject: Array, activity: Array, time: Array) -> Array:
    """Tell where time goes back before a row, or on by more than GAP usual intervals, in whatever unit of time."""
    step = np.diff(time, prepend=time[:1])
    jumps = step < 0
    for rows in runs(subject, activity):
        inner = slice(rows.start + 1, rows.stop)
        if step[inner].size:
            jumps[inner] |= step[inner] > GAP * np.median(step[inner])
    return jumps


WISDM_2019 = StandIn(
    Card(
        name="wisdm2019",
        family=FAMILY,
        n_train=5272,
        n_test=1614,
        n_channels=3,
        n_times=LENGTH,
        n_classes=len(ACTIVITIES),
        source="https://archive.ics.uci.edu/dataset/507",
        licence="CC BY 4.0",
        citation="Weiss, Yoneda and Hayajneh, Smartphone and smartwatch-based biometrics using activities of daily "
        "living, IEEE Access 7, 2019",
        fingerprint="7d01fcfdbb08f270",
        labels=tuple(ACTIVITIES.values()),
        stride=LENGTH,
        transfer_channels=(0, 1, 2),
        notes=(
            "22 of the publisher's 51 subjects.",
            "Not resampled: subject 1607 (test) was recorded at 25 Hz, jogging and brushing teeth of 1626 at 50 Hz.",
        ),
    ),
    file="wisdm2019_phone_accel.npz",
    arrays=("X", "activity", "subject", "timestamp"),
    content="X (rows, 3), activity (letters A to S), subject and timestamp (rows,) from its folder raw/phone/accel",
    cut=cut,
    stands_in_for="wisdm2",
    class_sizes=(290, 302, 292, 293, 292, 292, 319, 292, 292, 292, 292, 288, 293, 275, 292, 292, 292, 292),
)
