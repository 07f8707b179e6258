"""Stand-ins: cut from small files with the arrays of the real ones, and the real ones where they are."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.datasets.cutting import majority
from bench.datasets.standins import (
    HAPT,
    NIGHT,
    OTHER,
    STAND_INS,
    TEST_RECORDS,
    TRAIN_RECORDS,
    StandIn,
    arrhythmia_parts,
    hapt_parts,
    night_parts,
    rhythm_per_step,
    wisdm_parts,
)
from dicot.core.errors import InputError
from dicot.data import Split
from dicot.data.datasets import DATASETS, check, load, on_hand
from dicot.data.datasets.base import fingerprint


def hapt_rows(n: int = 300) -> dict[str, Any]:
    """Two experiments of each user, without a label at first, then of class 5, then of class 12."""
    users = np.repeat(np.arange(1, 31), 2 * n)
    label = np.tile(np.repeat([-1, 5, 12], [100, 80, n - 180]), 60)
    x = np.arange(60 * n * 6, dtype=np.float32).reshape(-1, 6)
    return {"X": x, "label": label, "user": users, "experiment": np.repeat(np.arange(60), n)}


def test_hapt() -> None:
    arrays = hapt_rows()
    train, test = hapt_parts(arrays)
    assert (train.x.shape, test.x.shape) == ((21 * 4, 6, 128), (9 * 4, 6, 128))
    assert sorted(set(test.group.tolist())) == [2, 4, 9, 10, 12, 13, 18, 20, 24]  # type: ignore[union-attr]
    # Windows begin at 0, 64 and 128: the first is mostly unlabelled, the last mostly class 12.
    assert train.y.tolist() == [4, 11] * 42  # type: ignore[union-attr]
    np.testing.assert_array_equal(train.x[0], arrays["X"][64:192].T)
    np.testing.assert_array_equal(train.x[2], arrays["X"][364:492].T)  # none crosses two experiments


def wisdm_rows() -> dict[str, Any]:
    """One recording of 500 rows of each of 22 subjects; every other one has another unit of time."""
    subjects = np.array([*range(1600, 1616), 1624, 1632, 1638, 1640, 1645, 1650])
    time = np.concatenate([(10**6 if i % 2 else 50) * np.arange(500) for i in range(22)])
    activity = np.repeat(["A", "S"] * 11, 500)
    x = np.arange(22 * 500 * 3, dtype=np.float32).reshape(-1, 3)
    return {"X": x, "activity": activity, "subject": np.repeat(subjects, 500), "timestamp": time}


def test_wisdm_windows_cross_no_gap() -> None:
    arrays = wisdm_rows()
    arrays["timestamp"][100:500] += 150 + 1  # more than three usual intervals
    arrays["timestamp"][700:1000] += 10**6  # two of them: no gap
    train, test = wisdm_parts(arrays)
    first, second = (train.x[train.group == subject] for subject in (1600, 1601))
    assert first[:, 0, 0].tolist() == [300, 900]  # rows 100 and 300: the 100 before the gap are too few
    assert second[:, 0, 0].tolist() == [1500, 2100]
    assert train.y[:4].tolist() == [0, 0, 17, 17]  # type: ignore[index]
    assert sorted(set(test.group.tolist())) == [1607, 1615, 1624, 1632, 1638]  # type: ignore[union-attr]
    np.testing.assert_array_equal(first[0], arrays["X"][100:300].T)


def test_night_is_split_in_time_with_a_gap() -> None:
    y = np.array([0] * 100 + [1, 2, 3, 4] * 25 + [0] * 100)
    x = np.arange(300, dtype=np.float32)[:, None, None] * np.ones((1, 1, 3000), np.float32)
    train, test = night_parts({"X": x, "y": y})
    epochs = np.arange(40, 260)
    assert train.x[:, 0, 0].tolist() == epochs[:132].tolist()
    assert test.x[:, 0, 5].tolist() == epochs[142:].tolist()
    np.testing.assert_array_equal(test.y, y[epochs[142:]])


def records() -> dict[str, Any]:
    """Per record 1 window of each of five rhythms, the last of no class, from sample 10 on; 4 beats between."""
    arrays: dict[str, Any] = {"gain": np.array([200.0]), "baseline": np.array([1024])}
    for number, record in enumerate(sorted(TRAIN_RECORDS + TEST_RECORDS)):
        starts = 10 + 2500 * np.arange(5)
        arrays[f"sig_{record}"] = (np.arange(12_600)[:, None] + [number, 0]).astype(np.int16)
        arrays[f"ann_sample_{record}"] = np.sort(np.concatenate([starts, starts[:4] + 100]))
        arrays[f"ann_symbol_{record}"] = np.array(["+", "N"] * 4 + ["+"])
        arrays[f"ann_aux_{record}"] = np.array(["(N", "", "(AFIB", "", "(NOD", "", "(AFL", "", "(T"])
    return arrays


def test_a_rhythm_lasts_until_the_next() -> None:
    first, labels = rhythm_per_step([2, 4, 5], ["(N", "(VT", "(AFIB"], 8)
    assert (first, labels.tolist()) == (2, [3, 3, OTHER, 0, 0, 0])
    first, labels = rhythm_per_step(np.array([0, 3, 9]), np.array(["(J", "(AFL", "(N"]), 5)  # one after the end
    assert (first, labels.tolist()) == (0, [2, 2, 2, 1, 1])
    for samples in ([], [8], [-1], [5, 3]):
        with pytest.raises(InputError, match="rhythms"):
            rhythm_per_step(samples, ["(N"] * len(samples), 8)
    labels = np.array([3, 3, 0, 0, OTHER, OTHER, OTHER, 2], dtype=np.int8)
    assert majority(labels, np.array([0, 1, 4]), 4).tolist() == [0, 0, OTHER]  # ties: the smallest


def test_arrhythmia() -> None:
    train, test = arrhythmia_parts(records())
    assert (train.x.shape, test.x.shape) == ((40, 2, 2500), (16, 2, 2500))
    assert train.y.tolist() == [3, 0, 2, 1] * 10  # type: ignore[union-attr]
    assert test.group.tolist() == ["100"] * 4 + ["201"] * 8 + ["203"] * 4  # type: ignore[union-attr]
    time = np.arange(2510, 5010)
    expected = np.stack([time + 1, time]) - 1024  # the second window of record 103, number 1
    np.testing.assert_allclose(train.x[1], expected / 200, rtol=1e-6)
    assert train.x.flags.c_contiguous


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """HAPT by the small rows, as if the card were theirs; its file is not written yet."""
    (tmp_path / "data" / "large").mkdir(parents=True)
    monkeypatch.setenv("DICOT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    mark = fingerprint(Split(*hapt_parts(hapt_rows())))
    fitting = replace(HAPT, fingerprint=mark)
    monkeypatch.setitem(DATASETS, "hapt", fitting)
    return fitting


def test_by_name(small: StandIn, tmp_path: Path) -> None:
    assert "hapt" not in [card.name for card in on_hand().cards]
    np.savez(tmp_path / "data" / "large" / small.file, **hapt_rows())
    split = load("HAPT")
    assert (split.name, split.family, len(split.train)) == ("hapt", "large", 84)
    assert split.train.group is not None
    assert "hapt" in [card.name for card in on_hand().cards]
    assert check("hapt") == small.card()
    assert load("hapt", channels=small.transfer_channels).train.n_channels == 3
    np.savez(tmp_path / "data" / "large" / small.file, **{**hapt_rows(), "label": np.ones(18000, int)})
    with pytest.raises(InputError, match=r"hapt_raw\.npz.*holds other recordings; it must hold X"):
        load("hapt")
    np.savez(tmp_path / "data" / "large" / small.file, **hapt_rows())
    scaled = load("hapt", scale="dataset")
    assert scaled.train.x.mean() == pytest.approx(0, abs=1e-3)
    assert scaled.train.group is not None
    with pytest.raises(InputError, match="'wisdm2019'"):
        load("wisdm2018")


@pytest.mark.parametrize("standin", STAND_INS, ids=lambda one: one.name)
def test_the_real_files(standin: StandIn) -> None:
    root = os.environ.get("DICOT_DATA")
    if root is None or not standin.is_here():
        pytest.skip(f"DICOT_DATA names no folder with large/{standin.file}")
    facts, split = standin.card(), standin.load()
    assert split.test is not None
    assert (len(split.train), len(split.test)) == (facts.n_train, facts.n_test)
    assert split.train.x.shape[1:] == split.test.x.shape[1:] == (facts.n_channels, facts.n_times)
    for part in (split.train, split.test):
        assert np.unique(part.y).tolist() == list(range(facts.n_classes))  # type: ignore[arg-type]
        assert part.x.flags.c_contiguous
    sizes = np.bincount(split.train.y)
    assert standin.class_sizes == tuple(sizes), "typed in, for notes below the paper's tables"
    assert standin.constant_accuracy == pytest.approx(100 * np.mean(split.test.y == sizes.argmax()), abs=0.005)
    if standin is not NIGHT:  # one person
        assert not set(split.train.group.tolist()) & set(split.test.group.tolist())  # type: ignore[union-attr]


def test_wisdm_time_that_goes_back_ends_a_recording() -> None:
    arrays = wisdm_rows()
    arrays["timestamp"][250:500] -= 10**6
    train, _ = wisdm_parts(arrays)
    assert train.x[train.group == 1600][:, 0, 0].tolist() == [0, 750]
