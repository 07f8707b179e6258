"""probably_wrong: labels that were flipped are found, and what is said of each holds."""

import os

import numpy as np
import pytest
from tests.commands import dicot

from dicot import load, probably_wrong
from dicot.core.errors import InputError
from dicot.store.vectors import read_vectors


def flipped(y, seed=1):
    """Return labels of which 5 % are another class, and which these are."""
    rng, classes = np.random.default_rng(seed), np.unique(y)
    flip = rng.random(len(y)) < 0.05
    numbers = np.searchsorted(classes, y) + flip * rng.integers(1, len(classes), size=len(y))
    return classes[numbers % len(classes)], flip


def test_flipped_labels_of_a_real_set_are_found():
    days = load("ItalyPowerDemand")
    x, truth = (np.concatenate([getattr(part, name) for part in (days.train, days.test)]) for name in "xy")
    given, flip = flipped(truth)
    doubts = probably_wrong(x[:, 0], given)
    rows = [doubt.row for doubt in doubts]
    assert flip[rows].mean() >= 0.7 and flip[rows].sum() >= 0.8 * flip.sum()
    assert [doubt.given for doubt in doubts] == sorted(doubt.given for doubt in doubts)
    for doubt in doubts:
        assert doubt.label == given[doubt.row] != doubt.predicted and doubt.given < 0.5 and doubt.row not in doubt.near
    assert np.mean([given[row] == doubt.predicted for doubt in doubts for row in doubt.near]) > 0.8, "a reason"


@pytest.mark.slow
@pytest.mark.skipif("DICOT_DATA" not in os.environ, reason="DICOT_DATA names no folder with HAPT and SisFall")
@pytest.mark.parametrize(("name", "precision", "recall"), [("hapt", 0.75, 0.8), ("sisfall", 0.9, 0.8)])
def test_flipped_labels_of_new_people_are_found(name, precision, recall, tmp_path):
    dicot("embed", name, "--out", tmp_path / "v.npz")
    known = read_vectors(tmp_path / "v.npz")
    given, flip = flipped(known.label)
    rows = [doubt.row for doubt in probably_wrong(known.x, given, known.group)]
    assert flip[rows].mean() >= precision and flip[rows].sum() >= recall * flip.sum()


def test_a_group_is_judged_by_the_others_and_a_class_without_others_is_not():
    rng, y = np.random.default_rng(0), np.repeat(["a", "b", ""], 40)
    x = rng.normal(size=(120, 3)) + 9 * (y == "b")[:, None]
    group = np.array([f"recording {row % 10}" for row in range(120)])
    y[(group == "recording 3") & (y == "a")], y[0] = "b", "once"
    doubts = probably_wrong(x, y, group)
    assert {doubt.row for doubt in doubts} == {3, 13, 23, 33} and {doubt.predicted for doubt in doubts} == {"a"}
    assert all(group[row] != "recording 3" and y[row] == "a" for doubt in doubts for row in doubt.near)
    assert probably_wrong(x, y, np.where(y == "", "x", "y")) == probably_wrong(x, y), "one group holds nothing out"
    with pytest.raises(InputError, match="No label could be checked"):
        probably_wrong(x, y, np.where(np.isin(y, ["a", "once"]), "one", "two"))
