"""HARTH: accelerometers on back and thigh of 22 people, 50 Hz, twelve activities."""

import csv
import io
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.datasets.preparation import PreparedSet, Sizes, Workspace, raw_files, read_each
from dicot.data.datasets.prepared import PreparedParts
from dicot.data.datasets.tracks import join
from dicot.data.naming import naming
from dicot.data.policies import Array

LENGTH, STRIDE = 500, 250
CHANNELS = ("back_x", "back_y", "back_z", "thigh_x", "thigh_y", "thigh_z")
# Twelve labels exist, not the eighteen of the paper (D-44). One map for both parts (D-45).
ACTIVITIES = {
    1: "walking",
    2: "running",
    3: "shuffling",
    4: "stairs up",
    5: "stairs down",
    6: "standing",
    7: "sitting",
    8: "lying",
    13: "cycling sitting",
    14: "cycling standing",
    130: "cycling sitting, not moving",
    140: "cycling standing, not moving",
}
TEST_SUBJECTS = ("S026", "S027", "S028", "S029")  # the last four of the 22 files sorted by name


def read_subject(path: Path) -> dict[str, Array]:
    """Read one file as x (6, T) in g and label (T,); time steps with a missing value are left out.

    Some files carry one more column, a row index, so columns are taken by their names.
    """
    with naming(path):
        text = path.read_bytes()
        header, _, body = text.partition(b"\n")
        names = [name.strip() for name in next(csv.reader([header.decode("utf-8-sig")]))]
        lost = [name for name in (*CHANNELS, "label") if name not in names]
        if lost:
            raise InputError(f"There is no column {', '.join(lost)}; the first line names {names}.")
        _check_widths(body, len(names))
        wanted = [names.index(name) for name in (*CHANNELS, "label")]
        table = np.loadtxt(io.BytesIO(_name_gaps(body)), delimiter=",", usecols=wanted, ndmin=2, comments=None)
        table = table[~np.isnan(table).any(axis=1)]
        codes = np.array(list(ACTIVITIES))
        unknown = np.setdiff1d(table[:, -1], codes)
        if len(unknown):
            raise InputError(f"Unknown labels {unknown[:5].tolist()}; known are {codes.tolist()}.")
        return {"x": table[:, :-1].T.astype(np.float32), "label": np.searchsorted(codes, table[:, -1])}


def _check_widths(body: bytes, n_columns: int) -> None:
    """Refuse a row with a cell too many, which would give its values to the wrong channels."""
    for number, line in enumerate(body.split(b"\n"), 2):
        if line.count(b",") != n_columns - 1 and line.strip():
            raise InputError(
                f"Line {number} has {line.count(b',') + 1} cells; the first line names {n_columns}. Fetch it again."
            )


def _name_gaps(body: bytes) -> bytes:
    """Write nan into empty cells."""
    body = body.replace(b"\r\n", b"\n")
    for _ in range(2):  # twice, because two gaps in a row share a comma
        body = body.replace(b",,", b",nan,")
    return body.replace(b",\n", b",nan\n")


def prepare(raw: Path, workspace: Workspace) -> PreparedParts:
    """Cut windows inside each file, so that none crosses two people."""
    files = raw_files(raw, "S0[0-9][0-9].csv", "S006.csv to S029.csv")
    people = [path.stem for path in files]
    if len(set(people)) < len(people):
        raise InputError(f"{raw} holds some of {', '.join(sorted(set(people)))} twice. Remove the copies.")
    in_test = [person in TEST_SUBJECTS for person in people]
    if all(in_test) or not any(in_test):
        raise InputError(f"{raw} must hold people of {TEST_SUBJECTS} for the test part and others to train on.")
    parts: tuple[list[Windows], list[Windows]] = ([], [])
    for number, subject in enumerate(read_each(files, read_subject, workspace)):
        windows = Windows.from_array(
            subject["x"], subject["label"], group=people[number], window=LENGTH, stride=STRIDE, name=HARTH.name
        )
        parts[in_test[number]].append(windows)
    train, test = (join(part, HARTH.name) for part in parts)
    return PreparedParts(train, test, tuple(ACTIVITIES.values()), STRIDE)


HARTH = PreparedSet(
    name="harth",
    source="https://archive.ics.uci.edu/dataset/779/harth",
    licence="CC BY 4.0",
    citation="Logacjov et al., HARTH: A human activity recognition dataset for machine learning, Sensors 21(23), 2021",
    download="harth.zip; unpacked it holds the 22 files S006.csv to S029.csv.",
    read=prepare,
    expected=Sizes(23_025, 2_784, 6, LENGTH, 12),
    paper=Sizes(23_025, 2_785, 6, LENGTH, 18),  # D-44, D-64
    transfer_channels=(3, 4, 5),  # thigh
)
