"""WISDM2: a phone's accelerometer in the pockets of volunteers, 20 Hz, six activities (Actitracker, version 2.0)."""

import re
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.cases import Array
from dicot.data.datasets.base import cut, runs
from dicot.data.datasets.large import WISDM2
from dicot.paper.preparation import OnProgress, PreparedParts, raw_files

LENGTH, STRIDE = 40, 20
TEST_USERS = 22
ACTIVITIES = ("Jogging", "LyingDown", "Sitting", "Stairs", "Standing", "Walking")
SETTINGS = {"borders": ("cross", "cut")}
_NUMBER = r"[ \t]*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[ \t]*"
_RECORD = re.compile(rf"(\d{{1,18}}),({'|'.join(ACTIVITIES)}),[^,]*,{_NUMBER},{_NUMBER},{_NUMBER}(?:[;,]|\s*$)")
_END = re.compile(r"(?:[^,]*,){5}[ \t]*(?:[;,]|\s*$)")  # the sixth field is empty


class Log(NamedTuple):
    """The file's records in order."""

    user: Array  # (T,)
    label: Array  # (T,) positions in ACTIVITIES
    x: Array  # (3, T)
    notes: tuple[str, ...]


def read_log(path: Path) -> Log:
    """Read all records up to the first whose last field is empty, where the authors' reading ends as well.

    Lines that are not a record are left out and counted.
    """
    users, labels, values, stray, notes = array("q"), array("b"), array("d"), 0, []
    with path.open(encoding="latin-1") as lines:
        for number, line in enumerate(lines, 1):
            if (found := _RECORD.match(line)) is not None:
                users.append(int(found[1]))
                labels.append(ACTIVITIES.index(found[2]))
                values.extend(map(float, found.group(3, 4, 5)))
            elif _END.match(line):
                notes.append(f"Reading ended at line {number}, whose last field is empty.")
                break
            else:
                stray += bool(line.strip())
    if not users:
        raise InputError(f"{path} has no line user,activity,time,x,y,z; of {', '.join(ACTIVITIES)}.")
    if stray:
        notes.append(f"{stray} of {len(users) + stray} lines are not records and were left out.")
    x = np.array(values).reshape(-1, 3).T
    return Log(np.array(users), np.array(labels, dtype=np.int64), x, tuple(notes))


def read(raw: Path, settings: Mapping[str, Any], on_progress: OnProgress) -> PreparedParts:
    """Split the users; each is scaled by its own statistics, test users too, as the paper's loader does."""
    log = read_log(raw_files(raw, "WISDM_at_v2.0_raw.txt", WISDM2.download)[0])
    on_progress(0.8, "windows")
    values, first = np.unique(log.user, return_index=True)
    in_order = values[np.argsort(first)]
    if len(in_order) <= TEST_USERS:
        raise InputError(f"Expected more than {TEST_USERS} users, of whom {TEST_USERS} test; got {len(in_order)}.")
    train, test = (
        _part(log, in_order[users], settings["borders"])
        for users in train_test_split(np.arange(len(in_order)), test_size=TEST_USERS, random_state=1)
    )
    return PreparedParts(train, test, ACTIVITIES, STRIDE, log.notes)


def _part(log: Log, users: Array, borders: str) -> Windows:
    """Join the users' recordings, then cut: windows cross users and activities unless borders=cut (D-49)."""
    rows = [np.flatnonzero(log.user == user) for user in users]
    at = np.concatenate(rows)
    x = np.concatenate([_scaled(log.x[:, own]) for own in rows], axis=1)
    label, user = log.label[at], log.user[at]
    inside = runs(label, user) if borders == "cut" else None
    return cut(x, label, user, LENGTH, STRIDE, inside=inside, name=WISDM2.name)


def _scaled(x: Array) -> Array:
    """Scale (3, T) to mean 0 and standard deviation 1 per axis; an axis that never changes is only centred."""
    std = x.std(axis=1, keepdims=True)
    scaled: Array = (x - x.mean(axis=1, keepdims=True)) / np.where(std == 0, 1.0, std)
    return scaled
