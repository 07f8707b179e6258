"""HARTH: accelerometers on back and thigh of 22 people, 50 Hz, twelve activities."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dicot.core.errors import InputError, naming
from dicot.data.cases import Array
from dicot.data.datasets.base import cut, runs
from dicot.data.datasets.large import HARTH
from dicot.paper.preparation import OnProgress, PreparedParts, codes_of, each, raw_files

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


def read_subject(path: Path) -> tuple[Array, Array]:
    """Read one file as x (6, T) in g and labels (T,); time steps with a missing value are left out.

    Some files carry one more column, a row index, so columns are taken by their names.
    """
    with naming(path):
        table = pd.read_csv(path, skipinitialspace=True, float_precision="round_trip")
        if not isinstance(table.index, pd.RangeIndex):
            raise InputError("Its rows have more cells than the first line has names. Fetch it again.")
        if lost := [name for name in (*CHANNELS, "label") if name not in table]:
            raise InputError(f"There is no column {', '.join(lost)}; the first line names {list(table)}.")
        values = table[[*CHANNELS, "label"]].to_numpy(np.float64)
        values = values[~np.isnan(values).any(axis=1)]
        return values[:, :-1].T.astype(np.float32), codes_of(values[:, -1], list(ACTIVITIES))


def read(raw: Path, settings: Mapping[str, Any], on_progress: OnProgress) -> PreparedParts:
    """Cut windows inside each file, so that none crosses two people."""
    files = raw_files(raw, "S0[0-9][0-9].csv", HARTH.download)
    people = [path.stem for path in files]
    if len(set(people)) < len(people):
        raise InputError(f"{raw} holds some of {', '.join(sorted(set(people)))} twice. Remove the copies.")
    if not 0 < len(set(people) & set(TEST_SUBJECTS)) < len(people):
        raise InputError(f"{raw} must hold people of {TEST_SUBJECTS} for the test part and others to train on.")
    tracks = [read_subject(path) for path in each(files, on_progress)]
    x, label = (np.concatenate(columns, axis=-1) for columns in zip(*tracks, strict=True))
    group = np.repeat(people, [len(labels) for _, labels in tracks])
    windows = cut(x, label, group, LENGTH, STRIDE, inside=runs(group), name=HARTH.name)
    assert windows.group is not None
    in_test = np.isin(windows.group, TEST_SUBJECTS)
    return PreparedParts(windows.subset(~in_test), windows.subset(in_test), tuple(ACTIVITIES.values()), STRIDE)
