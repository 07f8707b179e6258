"""Archive sets in every form and place, and their sizes compared with the published ones."""

import os
from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError, MissingDataError
from dicot.data import Split
from dicot.data.datasets import DATASETS, archive, card, check, load, on_hand
from dicot.data.datasets.archive import ArchiveSet
from dicot.data.datasets.base import Sizes
from dicot.data.datasets.names import OFFICIAL

TS = "@problemName T\n@univariate true\n@equalLength true\n@classLabel true 1 2\n@data\n"
ARFF = "@relation T\n@attribute a numeric\n@attribute b numeric\n@attribute target {1,2}\n@data\n"
FORMS = {
    ".ts": (TS + "1,2:2\n3,4:1\n", TS + "5,6:1\n"),
    ".tsv": ("2\t1\t2\n1\t3\t4\n", "1\t5\t6\n"),
    ".arff": (ARFF + "1,2,2\n3,4,1\n", ARFF + "5,6,1\n"),
}
TWO = Sizes(2, 1, 1, 2, 2)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty DICOT_DATA folder; Coffee is a set of three cases, and nothing else of this machine can be seen."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("DICOT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(archive, "find_spec", lambda name: None)
    monkeypatch.setattr(archive, "SHIPPED", tmp_path / "shipped")
    monkeypatch.setitem(DATASETS, "Coffee", ArchiveSet("Coffee", "ucr", TWO))
    monkeypatch.setitem(__import__("sys").modules, "aeon.datasets", None)
    return tmp_path / "data"


def write(folder: Path, suffix: str, name: str = "Coffee") -> None:
    (folder / name).mkdir(parents=True, exist_ok=True)
    for part, text in zip(("TRAIN", "TEST"), FORMS[suffix], strict=True):
        (folder / name / f"{name}_{part}{suffix}").write_text(text)


def values(split: Split) -> tuple[list[object], ...]:
    assert split.test is not None and split.train.y is not None and split.test.y is not None
    return split.train.x.tolist(), split.train.y.tolist(), split.test.x.tolist(), split.test.y.tolist()


@pytest.mark.parametrize("suffix", FORMS)
@pytest.mark.parametrize("place", ["data", "data/ucr", "data/uea", "cache"])
def test_every_form_in_every_place(data: Path, suffix: str, place: str) -> None:
    write(data.parent / place, suffix)
    split = load("coffee")
    assert values(split) == ([[[1, 2]], [[3, 4]]], [1, 0], [[[5, 6]]], [0])
    assert split.family == "ucr"
    facts = card("Coffee")
    assert (facts.n_train, facts.n_test, facts.n_channels, facts.n_times, facts.n_classes) == TWO
    assert facts in on_hand().cards and facts.citation.startswith("Dau et al.")
    assert check("coffee").fingerprint and not facts.fingerprint


def test_a_set_needs_both_parts_and_its_own_folder(data: Path) -> None:
    write(data, ".tsv")
    (data / "Coffee" / "Coffee_TEST.tsv").unlink()
    (data / "Coffee" / "CoffeeDimension1_TRAIN.arff").write_text(FORMS[".arff"][0])
    (data / "Coffee" / "CoffeeDimension1_TEST.arff").write_text(FORMS[".arff"][1])
    assert [one.name for one in on_hand().cards] == ["synthetic"]
    with pytest.raises(MissingDataError, match="Coffee") as caught:
        load("Coffee")
    for word in (
        "DICOT_DATA",
        "Coffee_TRAIN",
        ".tsv",
        ".arff",
        "timeseriesclassification.com",
        "dicot list datasets Coffee --check",
    ):
        assert word in str(caught.value)
    with pytest.raises(MissingDataError, match="Coffee_TRAIN"):
        card("coffee")
    with pytest.raises(InputError, match="'Coffee'"):
        card("Cofee")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (TWO._replace(n_train=28), "2 training cases instead of 28"),
        (TWO._replace(n_test=28, n_channels=2), "1 test cases instead of 28, 1 channels instead of 2"),
        (TWO._replace(n_times=286), "2 time steps instead of 286"),
        (TWO._replace(n_classes=3), "2 classes instead of 3"),
    ],
)
def test_other_sizes_are_refused(data: Path, monkeypatch: pytest.MonkeyPatch, wanted: Sizes, message: str) -> None:
    write(data, ".ts")
    monkeypatch.setitem(DATASETS, "Coffee", ArchiveSet("Coffee", "ucr", wanted))
    with pytest.raises(InputError, match=f"Coffee.*{message}"):
        load("Coffee")
    monkeypatch.setitem(DATASETS, "Coffee", ArchiveSet("Coffee", "ucr"))
    load("Coffee")


@pytest.mark.skipif("DICOT_DATA" not in os.environ, reason="DICOT_DATA names no folder with archive sets")
def test_real_sets_have_the_official_sizes() -> None:
    sets = [one for one in on_hand().cards if one.name in OFFICIAL]
    if not sets:
        pytest.skip("DICOT_DATA holds no archive set")
    for one in sets:
        split = load(one.name, missing="zero")  # raises where a size is not the official one
        assert split.test is not None and np.isfinite(split.train.x).all()
        assert (len(split.train), len(split.test), split.train.n_channels) == (one.n_train, one.n_test, one.n_channels)
