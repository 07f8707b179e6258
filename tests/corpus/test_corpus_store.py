"""A corpus on disk: rows in any order, and no damage that goes unnoticed."""

import numpy as np
import pytest
from tests.corpus.folders import WINDOW, write_recordings

from dicot.core.errors import InputError, ModelFileError
from dicot.store.build import build_corpus
from dicot.store.folder import Corpus


@pytest.fixture
def folder(tmp_path):
    build_corpus(
        write_recordings(tmp_path / "r"), tmp_path / "c", **WINDOW, channels=["x", "y"], label="label", shard_bytes=2000
    )
    return tmp_path / "c"


def test_rows_come_in_any_order_from_any_shard(folder):
    corpus = Corpus.open(folder)
    whole = np.concatenate([np.load(path) for path in sorted((folder / "shards").glob("*.npy"))])
    dice = np.random.default_rng(0)
    for rows in (dice.permutation(len(corpus)), dice.integers(0, len(corpus), 200), np.arange(7), np.array([5, 3, 7])):
        np.testing.assert_array_equal(corpus[rows], whole[rows])
    np.testing.assert_array_equal(corpus[10:60:7], whole[10:60:7])
    assert corpus[:5].dtype == np.float32 and corpus[:0].shape == (0, 2, 32)
    with pytest.raises(InputError, match="the rows 0 to"):
        corpus[np.array([0, len(corpus)])]


def test_a_shard_comes_as_windows(folder):
    corpus = Corpus.open(folder)
    windows = corpus.shard(2)
    np.testing.assert_array_equal(windows.x, corpus[corpus.store.starts[2] : corpus.store.starts[3]])
    assert windows.recording is not None and windows.y is not None
    assert set(windows.recording) == {"r0"} and windows.rate == 50 and windows.channels == ("x", "y")


def test_damage_is_noticed(folder):
    shard = folder / "shards" / "000001-001.npy"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-4] + bytes(4))  # one value
    Corpus.open(folder)
    with pytest.raises(ModelFileError, match=r"000001-001\.npy is missing, damaged or changed"):
        Corpus.open(folder, verify=True)
    shard.write_bytes(whole[:-4])
    with pytest.raises(ModelFileError, match=r"000001-001\.npy is .* of .* bytes"):
        Corpus.open(folder)
    shard.unlink()
    with pytest.raises(ModelFileError, match=r"000001-001\.npy is missing.*: 0 of"):
        Corpus.open(folder)


def test_the_fingerprint_changes_with_a_value_and_not_with_the_place(folder, tmp_path):
    first = Corpus.open(folder).fingerprint()
    folder.rename(tmp_path / "moved")
    assert Corpus.open(tmp_path / "moved").fingerprint() == first
    (tmp_path / "r" / "r0.npz").unlink()
    build_corpus(tmp_path / "r", tmp_path / "other", **WINDOW, channels=["x", "y"], label="label")
    assert Corpus.open(tmp_path / "other").fingerprint() != first
