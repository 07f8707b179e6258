"""Data sets by name, from folders that the tests write themselves."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError, WindowLengthWarning
from dicot.data.datasets import DATASETS, archive, load, on_hand
from dicot.data.datasets.archive import ArchiveSet
from dicot.judge.evaluation import contender, evaluate
from dicot.judge.protocols import Probe

NAN = np.nan
SETS = ("GunPoint", "CharacterTrajectories", "Coffee", "Meat", "Wine", "Yoga", "Libras", "ERing", "NATOPS", "PLAID")
TS = "@problemName T\n@univariate true\n@equalLength {}\n@classLabel true {}\n@data\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty DICOT_DATA folder; nothing else of this machine can be seen."""
    for folder in ("data/ucr", "data/uea", "cache"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setenv("DICOT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(archive, "find_spec", lambda name: None)
    monkeypatch.setattr(archive, "SHIPPED", tmp_path / "shipped")
    for name in SETS:
        official = DATASETS.registered(name)
        assert isinstance(official, ArchiveSet)
        monkeypatch.setitem(DATASETS, name, replace(official, sizes=None))  # theirs are smaller
    return tmp_path / "data"


def save(path: Path, **changes: object) -> None:
    parts: dict[str, object] = {
        "X_train": np.array([[1, 2, NAN], [3, NAN, NAN]], dtype=np.float32),
        "y_train": np.array([7, 3]),
        "X_test": np.array([[4, 5, 6, NAN]], dtype=np.float32),
        "y_test": np.array([7]),
    }
    np.savez(path, **{**parts, **changes})  # type: ignore[arg-type]


def write_ts(folder: Path, name: str, equal: str, classes: str, train: str, test: str) -> None:
    (folder / name).mkdir()
    (folder / name / f"{name}_TRAIN.ts").write_text(TS.format(equal, classes) + train)
    (folder / name / f"{name}_TEST.ts").write_text(TS.format(equal, classes) + test)


def test_archive_setting(data: Path) -> None:
    save(data / "ucr" / "GunPoint.npz")
    split = load("gunpoint")
    assert (split.name, split.family, split.train.name) == ("GunPoint", "ucr", "GunPoint")
    assert split.test is not None
    # Zeros at the end, up to the longest case of both parts: 3 observed time steps in the test part.
    assert split.train.x.tolist() == [[[1, 2, 0]], [[3, 0, 0]]]
    assert split.test.x.tolist() == [[[4, 5, 6]]]
    assert split.train.y.tolist() == [1, 0]  # type: ignore[union-attr]
    assert split.test.y.tolist() == [1]  # type: ignore[union-attr]
    assert load("GunPoint", unequal="crop").train.x.shape == (2, 1, 1)
    with pytest.warns(WindowLengthWarning, match="cut off"):  # who asks for it gets the length of the training part
        assert load("GunPoint", unequal="pad").train.x.shape == (2, 1, 2)


def test_a_channel_that_ends_early_goes_on_with_zeros(data: Path) -> None:
    x = np.array([[[1, 2, 3, NAN], [4, NAN, NAN, NAN]]])
    save(data / "uea" / "CharacterTrajectories.npz", X_train=x, y_train=np.array([7]), X_test=x)
    assert load("CharacterTrajectories").train.x.tolist() == [[[1, 2, 3], [4, 0, 0]]]
    x[0, 0, 1] = NAN  # inside a channel it stays a missing value
    save(data / "uea" / "CharacterTrajectories.npz", X_train=x, y_train=np.array([7]), X_test=x)
    with pytest.raises(InputError, match="NaN in case 0"):
        load("CharacterTrajectories")


def test_the_order_of_places(data: Path) -> None:
    write_ts(data.parent / "cache", "Coffee", "true", "1 2", "1,2:1\n3,4:2\n", "5,6:2\n")
    assert load("Coffee").train.n_times == 2
    save(data / "ucr" / "Coffee.npz")
    assert load("Coffee").train.n_times == 3


def test_download_into_the_cache(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        @staticmethod
        def load_classification(name: str, extract_path: str, **_: object) -> None:
            write_ts(Path(extract_path), name, "true", "1 2", "1,2:1\n3,4:2\n", "5,6:2\n")

    monkeypatch.setitem(__import__("sys").modules, "aeon.datasets", Fake)
    assert len(load("ERING").train) == 2
    assert sorted(p.name for p in (data.parent / "cache").iterdir()) == ["ERing"]
    assert [c.name for c in on_hand().cards] == ["ERing", "synthetic"]


def test_paths(data: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", X=np.ones((2, 3)))
    assert load(tmp_path / "mine.npz").train.x.shape == (2, 1, 3)
    assert load(str(tmp_path / "mine.npz"), unequal="pad", length=5).train.x.shape == (2, 1, 5)
    with pytest.raises(InputError, match=r"other\.npz"):
        load("other.npz")


def test_synthetic_is_fixed_and_balanced() -> None:
    split = load("synthetic")
    assert split.test is not None
    assert (split.train.x.shape, split.test.x.shape, split.family) == ((90, 2, 64), (90, 2, 64), None)
    for part in (split.train, split.test):
        assert part.y is not None
        assert np.bincount(part.y).tolist() == [30, 30, 30]
    assert load("Synthetic").train.fingerprint() == split.train.fingerprint()
    assert split.train.fingerprint() != split.test.fingerprint()
    assert load("synthetic", scale="case").train.x.std() == pytest.approx(1, abs=1e-4)


def test_synthetic_tells_encoders_apart() -> None:
    split = load("synthetic")
    everyone = [contender(name) for name in ("random", "calibrated", "raw-flat")]
    results = evaluate(split, everyone, [Probe("linear")], [1, 2], controls=False, device="cpu").results
    means = {one.name: np.mean([r.values["accuracy"] for r in results if r.contender == one.name]) for one in everyone}
    assert 50 < means["random"] < 85
    assert means["random"] + 5 < means["calibrated"] < 95
    assert means["raw-flat"] < 50


@pytest.mark.skipif(importlib.util.find_spec("aeon") is None, reason="aeon is not installed")
def test_sets_shipped_with_aeon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DICOT_DATA", raising=False)
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path))
    cards = {c.name: c for c in on_hand().cards}
    for name in ("ItalyPowerDemand", "JapaneseVowels"):
        split, card = load(name), cards[name]
        assert split.test is not None
        assert (len(split.train), len(split.test), split.train.n_channels) == (
            card.n_train,
            card.n_test,
            card.n_channels,
        )
        assert len(np.unique(split.train.y)) == card.n_classes  # type: ignore[arg-type]
        assert card.n_times in (None, split.train.n_times)
        assert split.family == card.family
    assert load("JapaneseVowels").train.n_times == 29
    with pytest.raises(InputError, match="Covid3Month"):
        load("Covid3Month")
