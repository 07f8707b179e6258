"""A prepared set on disk: read by memory map, and refused when it was changed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.datasets.large import CARD
from bench.paper.preparation import PreparedParts, write_prepared
from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.data.datasets import card, check, fingerprint, load, on_hand
from dicot.data.datasets.base import Card

LABELS = ("rest", "work")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DICOT_DATA", str(tmp_path))
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "large" / "toy"


def windows(n: int, who: str, seed: int = 0) -> Windows:
    x = np.random.default_rng(seed).normal(size=(n, 4, 6)).astype(np.float32)
    return Windows(x, np.arange(n) % 2, np.array([who] * n), "toy")


def write(folder: Path, prepared: PreparedParts | None = None) -> Card:
    prepared = prepared or PreparedParts(windows(5, "a"), windows(3, "b"), LABELS, 2)
    facts = Card("toy", "large", 5, 3, 4, 6, 2, "a source", "free", "nobody", labels=LABELS, transfer_channels=(1, 2))
    return write_prepared(folder, prepared, facts)


def test_what_is_written_is_loaded_by_name(folder: Path) -> None:
    written = write(folder)
    split = load("TOY")
    assert (split.name, split.family, split.train.name) == ("toy", "large", "toy")
    assert split.test is not None and split.test.group is not None
    np.testing.assert_array_equal(split.train.x, windows(5, "a").x)
    assert isinstance(split.train.x, np.memmap) and not split.train.x.flags.writeable
    assert split.test.y.tolist() == [0, 1, 0] and split.test.group.tolist() == ["b"] * 3  # type: ignore[union-attr]
    assert card("toy") == check("toy") == written
    assert written.fingerprint == fingerprint(split) and len(written.fingerprint) == 16
    assert written in on_hand().cards


def test_channels_and_scale(folder: Path) -> None:
    write(folder)
    split = load("toy", channels=[2, 0], scale="dataset")
    assert split.test is not None
    assert split.test.group.tolist() == ["b"] * 3  # type: ignore[union-attr]
    x = windows(5, "a").x[:, [2, 0]]
    np.testing.assert_allclose(split.train.x, (x - x.mean((0, 2))[:, None]) / x.std((0, 2))[:, None], atol=1e-5)
    assert np.array_equal(load("synthetic", channels=[1]).train.x[:, 0], load("synthetic").train.x[:, 1])
    with pytest.raises(InputError, match=r"0 to 3.*toy.*\[4\]"):
        load("toy", channels=[4])


def test_segments_are_mapped_and_part_of_the_fingerprint(folder: Path) -> None:
    plain = write(folder)
    segments = np.random.default_rng(1).normal(size=(5, 4, 9)).astype(np.float32)
    parts = PreparedParts(replace(windows(5, "a"), segments=segments), windows(3, "b"), LABELS, 2)
    facts = Card("toy", "large", 5, 3, 4, 6, 2, labels=LABELS, segment=9)
    written = write_prepared(folder, parts, facts)
    split = load("toy")
    np.testing.assert_array_equal(split.train.segments, segments)
    assert isinstance(split.train.segments, np.memmap) and split.test.segments is None  # type: ignore[union-attr]
    assert check("toy") == written and written.fingerprint != plain.fingerprint
    np.testing.assert_array_equal(load("toy", channels=[2, 0]).train.segments, segments[:, [2, 0]])
    (folder / "segments_train.npy").unlink()
    with pytest.raises(InputError, match=r"segments_train\.npy.*Prepare toy again"):
        load("toy")
    np.save(folder / "segments_train.npy", segments[:, :, :8])
    with pytest.raises(InputError, match=r"the card says \(5, 4, 9\)"):
        load("toy")


def test_changed_values_and_sizes_are_found(folder: Path) -> None:
    write(folder)
    x = np.load(folder / "X_test.npy")
    x[0, 0, 0] += 1
    np.save(folder / "X_test.npy", x)
    load("toy")  # sizes are right; values are not read
    with pytest.raises(InputError, match=r"fingerprint.*toy"):
        check("toy")
    np.save(folder / "X_test.npy", x[:2])
    with pytest.raises(InputError, match=r"X_test\.npy.*\(3, 4, 6\).*\(2, 4, 6\)"):
        load("toy")
    np.save(folder / "X_test.npy", x.astype(int))
    with pytest.raises(InputError, match="int64"):
        load("toy")
    (folder / "y_train.npy").unlink()
    with pytest.raises(InputError, match=r"y_train\.npy"):
        load("toy")
    (folder / CARD).write_text(json.dumps({"name": "toy", "colour": "red"}))
    with pytest.raises(InputError, match=r"card\.json.*colour"):
        card("toy")


@pytest.mark.parametrize("name", ["X_train", "y_test", "group_train"])
def test_a_header_that_announces_too_much(folder: Path, name: str) -> None:
    write(folder)
    path = folder / f"{name}.npy"
    # Of the same length, so that nothing else moves.
    raw = path.read_bytes()
    at = raw.index(b"(")
    path.write_bytes(raw[:at] + b"(9999999999, 4, 6), }".ljust(raw.index(b"\n") - at) + raw[raw.index(b"\n") :])
    with pytest.raises(InputError, match=rf"{name}\.npy.*toy"):
        load("toy")
