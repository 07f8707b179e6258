"""WISDM2: a phone's accelerometer in the pockets of volunteers, 20 Hz, six activities (Actitracker, version 2.0)."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.datasets.preparation import OnProgress, PreparedSet, Sizes, Workspace, raw_files
from dicot.data.datasets.prepared import PreparedParts
from dicot.data.datasets.tracks import cut_track
from dicot.data.policies import Array

LENGTH, STRIDE = 40, 20
TEST_USERS = 22
ACTIVITIES = ("Jogging", "LyingDown", "Sitting", "Stairs", "Standing", "Walking")
_CHUNK = 1 << 25  # bytes looked at together
_SPACE = r"[ \t\r]*"
_NUMBER = rf"{_SPACE}([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?){_SPACE}"
_REST = r"(?:[;,].*)?$"  # whatever may follow the sixth field
_RECORD = re.compile(
    rf"^(\d{{1,18}}),({'|'.join(ACTIVITIES)}),[^,\n]*,{_NUMBER},{_NUMBER},{_NUMBER}{_REST}".encode(), re.MULTILINE
)
_END = re.compile(rf"^(?:[^,\n]*,){{5}}{_SPACE}{_REST}".encode(), re.MULTILINE)


class Log(NamedTuple):
    """The file's records in order."""

    user: Array  # (T,)
    label: Array  # (T,) positions in ACTIVITIES
    x: Array  # (3, T)
    notes: tuple[str, ...]


def read_log(path: Path, on_progress: OnProgress) -> Log:
    """Read all records up to the first whose last field is empty, where the authors' reading ends as well.

    Lines that are not a record are left out and counted.
    """
    text = path.read_bytes()
    end = _END.search(text)
    body, rest = (text, b"") if end is None else (text[: end.start()], text[end.end() :])
    notes = []
    if n_rest := _n_lines(rest):
        line = body.count(b"\n") + 1
        notes.append(f"Reading ended at line {line}, whose last field is empty; {n_rest} more lines follow.")
    columns: list[tuple[Array, Array, Array]] = []
    n_lines = start = 0
    while start < len(body):
        stop = body.find(b"\n", start + _CHUNK) + 1 or len(body)
        n_lines += _n_lines(body[start:stop])
        if records := _RECORD.findall(body[start:stop]):
            columns.append(_columns(records))
        start = stop
        on_progress(0.8 * start / len(body), path.name)
    if not columns:
        raise InputError(f"{path} has no line user,activity,time,x,y,z; of {', '.join(ACTIVITIES)}.")
    user, label, x = (np.concatenate(column, axis=-1) for column in zip(*columns, strict=True))
    if stray := n_lines - len(user):
        notes.append(f"{stray} of {n_lines} lines are not records and were left out.")
    return Log(user, label, x, tuple(notes))


def _n_lines(text: bytes) -> int:
    return sum(1 for line in text.splitlines() if line.strip())


def _columns(records: list[tuple[bytes, ...]]) -> tuple[Array, Array, Array]:
    user, label, *axes = (np.array(column) for column in zip(*records, strict=True))
    codes = np.searchsorted(np.array(ACTIVITIES, dtype="S"), label)
    return user.astype(np.int64), codes, np.stack([axis.astype(np.float64) for axis in axes])


def prepare(raw: Path, workspace: Workspace) -> PreparedParts:
    """Split the users; each is scaled by its own statistics, test users too, as the paper's loader does."""
    log = read_log(raw_files(raw, "WISDM_at_v2.0_raw.txt", "the file of version 2.0")[0], workspace.on_progress)
    train, test = (_part(log, users, workspace) for users in split_users(log.user))
    return PreparedParts(train, test, ACTIVITIES, STRIDE, log.notes)


def split_users(user: Array) -> tuple[Array, Array]:
    """Return training and test users, in the order in which their rows are joined."""
    from sklearn.model_selection import train_test_split

    values, first = np.unique(user, return_index=True)
    in_order = values[np.argsort(first)]
    if len(in_order) <= TEST_USERS:
        raise InputError(f"Expected more than {TEST_USERS} users, of whom {TEST_USERS} test; got {len(in_order)}.")
    train, test = train_test_split(np.arange(len(in_order)), test_size=TEST_USERS, random_state=1)
    return in_order[train], in_order[test]


def _part(log: Log, users: Array, workspace: Workspace) -> Windows:
    """Join the users' recordings, then cut: windows cross users and activities unless borders=cut (D-49)."""
    by_user = np.argsort(log.user, kind="stable")
    known, starts = np.unique(log.user[by_user], return_index=True)
    blocks = dict(zip(known.tolist(), np.split(by_user, starts[1:]), strict=True))
    x = np.concatenate([_scaled(log.x[:, blocks[user]]) for user in users.tolist()], axis=1)
    at = np.concatenate([blocks[user] for user in users.tolist()])
    borders = workspace.settings["borders"]
    return cut_track(x, log.label[at], log.user[at], LENGTH, STRIDE, borders=borders, name=WISDM2.name)


def _scaled(x: Array) -> Array:
    """Scale (3, T) to mean 0 and standard deviation 1 per axis; an axis that never changes is only centred."""
    std = x.std(axis=1, keepdims=True)
    scaled: Array = (x - x.mean(axis=1, keepdims=True)) / np.where(std == 0, 1.0, std)
    return scaled


WISDM2 = PreparedSet(
    name="wisdm2",
    source="https://www.cis.fordham.edu/wisdm/dataset.php",
    licence="free for research with citation; see the source",
    citation="Lockhart et al., Design considerations for the WISDM smart phone-based sensor mining architecture, "
    "SensorKDD, 2011",
    download="WISDM_at_latest.tar.gz (Actitracker, version 2.0); unpacked it holds WISDM_at_v2.0_raw.txt.",
    read=prepare,
    expected=Sizes(134_614, 14_421, 3, LENGTH, len(ACTIVITIES)),
    settings={"borders": ("cross", "cut")},
    transfer_channels=(0, 1, 2),
)
