"""The vectors of a corpus are searched where they lie."""

import numpy as np
import pytest
from tests.commands import dicot
from tests.corpus.folders import WINDOW, write_recordings

from dicot.core.errors import ModelFileError
from dicot.store.build import build_corpus
from dicot.store.folder import Corpus, write_manifest, write_shard
from dicot.store.search import EmbeddingIndex
from dicot.store.shards import embed_corpus


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        ([["a"] * 6, ["long name"] * 6], ["a", "long name"]),
        ([[1] * 6, [2] * 6], [1, 2]),
        ([[1000001] * 6, ["b"] * 6], ["1000001", "b"]),
        ([[1.5] * 6, None], [1.5, np.nan]),
    ],
)
def test_all_shards_are_found_with_what_they_know(tmp_path, groups, wanted):
    dice, shards = np.random.default_rng(0), []
    for number, group in enumerate(groups):
        about = {"recording": np.array([f"r{number}"] * 6), "start": np.arange(6.0), "end": np.arange(6.0) + 2}
        about |= {} if group is None else {"group": np.array(group)}
        shards.append(write_shard(tmp_path, f"00000{number}-000", dice.normal(size=(6, 5)), about))
    write_manifest(tmp_path, "vectors", [5], shards, {})
    index = EmbeddingIndex.load(tmp_path, metric="euclidean")
    assert len(index) == 12 and index.group is not None
    np.testing.assert_array_equal(index.group, np.repeat(np.array(wanted), 6))
    assert index.row_at("r1", 3.5) == 8 and index.overlapping(8).tolist() == [7, 8, 9]
    distances, rows = index.query(index.vectors([8])[0], 3)
    assert rows[0] == 8 and distances[0] == 0


def test_a_folder_of_vectors_is_searched_and_drawn(tmp_path):
    class Model:
        def transform(self, windows):
            return windows.x.reshape(len(windows.x), -1)[:, ::4]

    build_corpus(write_recordings(tmp_path / "r"), tmp_path / "c", **WINDOW, channels=["x", "y"], shard_bytes=4000)
    embed_corpus(Model(), Corpus.open(tmp_path / "c"), tmp_path / "v", model_hash="m")
    said = dicot("search", tmp_path / "v", "--like", "r2@3", "-k", 2, "--plot", tmp_path / "p.html")
    assert "distance" in said and (tmp_path / "p.html").exists()
    assert "row" in dicot("search", tmp_path / "v", "--like", "0", "--metric", "euclidean")
    with pytest.raises(ModelFileError, match="holds windows"):
        EmbeddingIndex.load(tmp_path / "c")
