"""What all prepared sets share: settings, notes on the card, a folder that is written whole or not at all."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.datasets.large import LargeSet
from bench.paper.preparation import PreparedParts, Raw, each, prepare, raw_files
from dicot.core.errors import DicotError, InputError
from dicot.data import Windows
from dicot.data.datasets import check, load
from dicot.data.datasets.base import Sizes

TOY = LargeSet("toy", "https://a", "free", "nobody", "texts.", Sizes(3, 1, 1, 4, 2))


def read(raw, factor):
    """One window per file; the last file tests."""
    x = np.stack([np.loadtxt(path) for path in each(raw_files(raw, "*.txt", TOY.download))])
    rows = np.arange(len(x))
    every = Windows(x[:, None].astype(np.float32) * int(factor), rows % 2, rows, "toy")
    return PreparedParts(every.subset(slice(-1)), every.subset(slice(-1, None)), ("even", "odd"), 5, ("made up",))


READER = Raw(read, {"factor": ("1", "2")})


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DICOT_DATA", str(tmp_path))
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "raw").mkdir()
    for number in range(4):
        (tmp_path / "raw" / f"{number}.txt").write_text(f"{number} 1 2 3")
    return tmp_path / "raw"


def test_the_card_says_all(raw: Path) -> None:
    card = prepare(TOY, READER, raw, settings={"factor": "2"})
    sizes = (card.n_train, card.n_test, card.n_channels, card.n_times, card.n_classes, card.stride)
    assert sizes == (3, 1, 1, 4, 2, 5)
    assert (card.family, card.source, card.licence, card.citation) == ("large", "https://a", "free", "nobody")
    assert (card.labels, card.settings, card.notes) == (("even", "odd"), {"factor": "2"}, ("made up",))
    assert card.version and check("toy") == card
    assert load("toy").train.x[2].tolist() == [[4, 2, 4, 6]]


def test_a_group_in_both_parts_is_refused_unless_it_is_known(raw: Path) -> None:
    def one_person(*words, **settings):
        good = read(*words, **settings)
        train, test = (replace(part, group=np.zeros(len(part), int)) for part in (good.train, good.test))
        return replace(good, train=train, test=test)

    with pytest.raises(InputError, match="groups .*0.* are in both"):
        prepare(TOY, READER._replace(read=one_person), raw)
    card = prepare(TOY, READER._replace(read=one_person, shared_groups=True), raw)
    assert "Training and test windows come from the same groups." in card.notes


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("at", range(1, 8))
def test_a_run_that_dies_while_writing_leaves_the_old_set(
    raw: Path, monkeypatch: pytest.MonkeyPatch, at: int, error: BaseException
) -> None:
    """Ended at any of the six arrays or the card, the set is still the old one; the next run is not in its way."""
    before = prepare(TOY, READER, raw)
    calls, sync = 0, os.fsync

    def die(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise error
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", die)
        with pytest.raises((KeyboardInterrupt, DicotError)):
            prepare(TOY, READER, raw, settings={"factor": "2"})
    assert check("toy") == before
    after = prepare(TOY, READER, raw, settings={"factor": "2"})
    assert check("toy") == after != before
    assert [path.name for path in (raw.parent / "large").iterdir()] == ["toy"]
