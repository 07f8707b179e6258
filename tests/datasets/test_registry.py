"""DATASETS: names in any capitalisation, sets that only a folder knows, and a new set by one class and one line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest

from bench.datasets import transfer_channels
from dicot.core.errors import InputError
from dicot.data import Split, Windows
from dicot.data.datasets import (
    DATASETS,
    Card,
    DataSet,
    archive,
    card,
    check,
    family_of,
    fingerprint,
    is_path,
    load,
    on_hand,
    spelled,
)
from dicot.data.datasets.base import shaped
from dicot.data.datasets.names import UCR, UEA


@final
class Toy(DataSet):
    """Twelve rising and twelve falling lines."""

    name = "ToyLines"
    transfer_channels = (1, 0, 1)

    def is_here(self) -> bool:
        return True

    def card(self) -> Card:
        return Card(self.name, None, 12, 12, 2, 16, 2, "made up", "free", "nobody")

    def load(self, *, channels: Sequence[int] | None = None, **policies: Any) -> Split:
        rng = np.random.default_rng(0)
        y = np.arange(24) % 2
        x = (2 * y - 1)[:, None, None] * np.linspace(0, 1, 16) + 0.1 * rng.normal(size=(24, 2, 16))
        every = Windows(x.astype(np.float32), y, name=self.name)
        return shaped(
            Split(every.subset(slice(12)), every.subset(slice(12, None)), name=self.name), channels, **policies
        )


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> DataSet:
    dataset = Toy()
    monkeypatch.setitem(DATASETS, "toylines", dataset)
    return dataset


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty DICOT_DATA folder; nothing else of this machine can be seen."""
    (tmp_path / "data" / "ucr").mkdir(parents=True)
    monkeypatch.setenv("DICOT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(archive, "find_spec", lambda name: None)
    return tmp_path / "data"


def test_the_library_knows_a_new_set(toy: DataSet) -> None:
    assert DATASETS["TOYLINES"] is toy and "ToyLines" in list(DATASETS)
    split = load("toylines", channels=[1], scale="case")
    assert (split.train.x.shape, len(split.test or ())) == ((12, 1, 16), 12)
    assert card("toylines") == toy.card() and toy.card() in on_hand().cards
    assert check("toylines").fingerprint == fingerprint(load("toylines"))
    assert (family_of("toylines"), spelled("toyLINES"), transfer_channels("toylines")) == (None, "ToyLines", (1, 0, 1))
    with pytest.raises(InputError, match="'ToyLines'"):
        load("toyline")


def test_sets_that_only_a_folder_knows(folder: Path) -> None:
    x, y = np.zeros((4, 6), np.float32), np.arange(4) % 2
    np.savez(folder / "ucr" / "MyOwn.npz", X_train=x, y_train=y, X_test=x, y_test=y)
    assert DATASETS["myown"].name == "MyOwn" and "MYOWN" in DATASETS and "MyOwn" in list(DATASETS)
    assert len(DATASETS) == len(list(DATASETS)) == len(DATASETS.values())
    assert load("MYOWN").train.y is not None
    # What jobs are known by must not depend on the files of a machine.
    assert DATASETS.registered("MyOwn") is None and spelled("myown") == "myown" and family_of("MyOwn") is None


def test_every_registered_set() -> None:
    for name in (*UCR, *UEA, "harth", "ecg-full", "hapt", "synthetic"):
        registered = DATASETS.registered(name.upper())
        assert registered is not None and registered.name == name
        assert not is_path(name)
        assert registered.transfer_channels == () or len(registered.transfer_channels) == 3
        assert registered.family in (None, "ucr", "uea", "large")
    assert [family_of(name) for name in ("GunPoint", "Libras", "harth", "hapt", "synthetic", "mine.npz")] == [
        "ucr",
        "uea",
        "large",
        "large",
        None,
        None,
    ]
    assert transfer_channels("harth") == (3, 4, 5) and transfer_channels("GunPoint") == ()
