"""The set that comes with the library: there without extras, and the one that the results were made with."""

import csv
from pathlib import Path

import numpy as np
import pytest

from dicot.data.datasets import archive, card, check, fingerprint, load

NAME = "ItalyPowerDemand"
RESULTS = Path(__file__).resolve().parents[2] / "results" / "ucr.csv"


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing but this library."""
    monkeypatch.delenv("DICOT_DATA", raising=False)
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(archive, "find_spec", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "aeon.datasets", None)
    return tmp_path


def test_it_is_there_without_extras(plain: Path) -> None:
    split = load(NAME)
    assert split.test is not None and split.test.y is not None
    assert (split.train.x.shape, split.test.x.shape, split.family) == ((67, 1, 24), (1029, 1, 24), "ucr")
    assert np.bincount(split.test.y).tolist() == [513, 516]
    facts = card(NAME)
    assert "timeseriesclassification.com" in facts.source and "Keogh" in facts.citation and facts.licence
    assert check(NAME).fingerprint == fingerprint(split)


def test_it_is_what_the_results_were_made_with(plain: Path) -> None:
    with RESULTS.open(newline="") as file:
        recorded = {row["source_data"] for row in csv.DictReader(file) if row["source"] == NAME}
    assert recorded == {fingerprint(load(NAME))}


def test_a_users_own_copy_comes_first(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = load(NAME)
    assert ours.test is not None and ours.test.y is not None and ours.train.y is not None
    (plain / "ucr").mkdir()
    arrays = {"X_train": ours.train.x + 1, "y_train": ours.train.y, "X_test": ours.test.x, "y_test": ours.test.y}
    np.savez(plain / "ucr" / f"{NAME}.npz", **arrays)  # type: ignore[arg-type]
    monkeypatch.setenv("DICOT_DATA", str(plain))
    np.testing.assert_array_equal(load(NAME).train.x, ours.train.x + 1)
