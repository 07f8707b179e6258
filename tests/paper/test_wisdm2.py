"""WISDM2 from a file of its publisher's form with all its oddities, beside a second way in plain loops."""

from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from bench.paper.raw.movement import WISDM2_ACTIVITIES as ACTIVITIES
from bench.paper.raw.movement import read_wisdm2, read_wisdm2_log

NAME = "WISDM_at_v2.0_raw.txt"
Row = tuple[int, str, float, float, float]


def line(row: Row) -> str:
    user, activity, *xyz = row
    return f"{user},{activity},1370520469556,{','.join(map(str, xyz))};"


def rows_of(users: list[int], n: int) -> list[Row]:
    rng = np.random.default_rng(3)
    return [
        (user, ACTIVITIES[(user + i // 30) % 6], *rng.normal(user % 7, 2, size=3).round(4).tolist())
        for user in users
        for i in range(n)
    ]


def write(folder: Path, lines: list[str]) -> Path:
    (folder / "home" / "share").mkdir(parents=True, exist_ok=True)
    path = folder / "home" / "share" / NAME
    path.write_text("\n".join(lines) + "\n")
    return path


def test_odd_lines(tmp_path: Path) -> None:
    good = rows_of([1, 2], 2)
    lines = [
        line(good[0]),
        "",  # blank
        line(good[1]).removesuffix(";") + " ;\r",
        "2,Walking,1370520469556,1.0,2.0",  # cut off
        line(good[2]) + line(good[3]),  # two in one line: the first counts
        "3,Flying,1370520469556,1,2,3;",  # no activity
        "3,Walking,1370520469556,1,two,3;",  # no number
        "3,Walking,1370520469556,1,\x1e2,3;",  # a control character, which Python's strip() drops and float() does not
        f"{2**64},Walking,1370520469556,1,2,3;",  # no user has such a number
        "4,Walking,1370520469556,-.5,+1.5e-1,2.;",
        "5,Walking,1370520469556,1,2,;",  # the last field is empty: here reading ends
        line(good[3]),
    ]
    path = write(tmp_path, lines)
    user, label, x, notes = read_wisdm2_log(path)
    assert user.tolist() == [1, 1, 2, 4]
    assert [ACTIVITIES[code] for code in label] == [*(row[1] for row in good[:3]), "Walking"]
    np.testing.assert_allclose(x.T, [*(row[2:] for row in good[:3]), (-0.5, 0.15, 2.0)])
    assert notes == (
        "Reading ended at line 11, whose last field is empty.",
        "5 of 9 lines are not records and were left out.",
    )
    assert list(ACTIVITIES) == sorted(ACTIVITIES)


def by_hand(rows: list[Row]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(windows, labels, users) of both parts: the paper's steps one after the other."""
    users = list(dict.fromkeys(row[0] for row in rows))
    out = []
    for numbers in train_test_split(range(len(users)), test_size=22, random_state=1):
        x, y, who = [], [], []
        for user in [users[number] for number in numbers]:
            own = [row for row in rows if row[0] == user]
            x.append(StandardScaler().fit_transform([row[2:] for row in own]))
            y += [ACTIVITIES.index(row[1]) for row in own]
            who += [user] * len(own)
        joined = np.concatenate(x)
        starts = range(0, len(joined) - 39, 20)
        out.append((
            np.stack([joined[s : s + 40].T for s in starts]),
            np.array([np.bincount(y[s : s + 40]).argmax() for s in starts]),
            np.array([np.bincount(who[s : s + 40]).argmax() for s in starts]),
        ))  # fmt: skip
    return out


def test_as_a_plain_loop(tmp_path: Path) -> None:
    users = [700 - 13 * number for number in range(25)]  # not sorted: the split goes by order of appearance
    rows = rows_of(users, 47)
    rows += rows_of(users[:3], 20)  # users come back later in the file
    write(tmp_path, [line(row) for row in rows])
    prepared = read_wisdm2(tmp_path)
    for part, (x, y, who) in zip((prepared.train, prepared.test), by_hand(rows), strict=True):
        np.testing.assert_allclose(part.x, x, atol=1e-5)
        assert part.y.tolist() == y.tolist()  # type: ignore[union-attr]
        assert part.group.tolist() == who.tolist()  # type: ignore[union-attr]
    assert not set(prepared.train.group) & set(prepared.test.group)  # type: ignore[arg-type]
    assert len(set(prepared.test.group)) == 22  # type: ignore[arg-type]
    assert prepared.notes == () and prepared.labels == ACTIVITIES
