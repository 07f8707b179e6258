"""The set that comes with the library: there without extras, and the one that the results were made with."""

import csv
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from dicot.data.datasets import archive_files, card, check, fingerprint, load
from dicot.data.datasets.archive_files import read_archive

NAME = "ItalyPowerDemand"
RESULTS = Path(__file__).resolve().parents[2] / "results" / "ucr.csv"


@pytest.fixture
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing but this library."""
    monkeypatch.delenv("DICOT_DATA", raising=False)
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(archive_files, "find_spec", lambda name: None)
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


@pytest.mark.skipif(find_spec("aeon") is None, reason="aeon is not installed")
def test_the_values_are_those_of_aeons_copy() -> None:
    spec = find_spec("aeon")
    assert spec is not None and spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "datasets" / "data" / NAME
    theirs = read_archive(folder / f"{NAME}_TRAIN.ts")
    ours = read_archive(Path(archive_files.__file__).parent / f"{NAME}.npz")
    for (X, y), (Z, z) in zip(theirs, ours, strict=True):
        np.testing.assert_array_equal(np.stack(X)[:, 0].astype(np.float32), Z)
        np.testing.assert_array_equal(y.astype(int), z)
