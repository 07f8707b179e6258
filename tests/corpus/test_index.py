"""An index joined from the vectors of many files: the same answers as of all vectors in memory."""

from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot
from tests.corpus.folders import WINDOW, killed, write_recordings

from dicot.core.errors import InputError
from dicot.store.corpus import Corpus
from dicot.store.corpus.build import build_corpus
from dicot.store.corpus.embedding import embed_corpus
from dicot.store.search import EmbeddingIndex
from dicot.store.search.joining import join_index
from dicot.store.vectors import write_vectors

pytest.importorskip("pyarrow")


def write_files(folder: Path, groups: list[list[object] | None]) -> list[Path]:
    """Write files of six vectors each, with these groups."""
    dice = np.random.default_rng(0)
    files = []
    for number, group in enumerate(groups):
        x = dice.normal(size=(6, 5)).astype(np.float32)
        about = {"recording": np.array([f"r{number}"] * 6), "start": np.arange(6.0), "end": np.arange(6.0) + 2}
        about |= {} if group is None else {"group": np.array(group)}
        files.append(folder / f"{number}.parquet")
        write_vectors(files[-1], {"": {"X": x, **about}})
    return files


@pytest.mark.parametrize(
    ("groups", "wanted"),
    [
        ([["a"] * 6, ["long name"] * 6], ["a", "long name"]),
        ([[1] * 6, [2] * 6], [1, 2]),
        ([[1] * 6, ["b"] * 6], ["1", "b"]),
        ([[1000001] * 6, ["b"] * 6], ["1000001", "b"]),
        ([[1.5] * 6, None], [1.5, np.nan]),
    ],
)
def test_all_files_are_found_with_what_they_know(tmp_path, groups, wanted):
    files = write_files(tmp_path, groups)
    index = EmbeddingIndex.load(join_index(files, tmp_path / "index", metric="euclidean", source="x"))
    assert len(index) == 12 and index.metric == "euclidean"
    assert index.group is not None and index.recording is not None
    np.testing.assert_array_equal(index.group, np.repeat(np.array(wanted), 6))
    assert index.row_at("r1", 3.5) == 8 and index.overlapping(8).tolist() == [7, 8, 9]
    distances, rows = index.query(index.vectors([8])[0], 3)
    assert rows[0] == 8 and distances[0] == 0
    assert [path.name for path in (tmp_path / "index").glob(".*")] == []


def test_files_that_do_not_fit_are_refused(tmp_path):
    files = write_files(tmp_path, [None])
    write_vectors(tmp_path / "other.parquet", {"": {"X": np.ones((2, 3), np.float32)}})
    with pytest.raises(InputError, match=r"one length; got \[3, 5\]"):
        join_index([*files, tmp_path / "other.parquet"], tmp_path / "index")
    with pytest.raises(InputError, match="An index of 6 vectors takes about .* may be taken"):
        join_index(files, tmp_path / "index", memory=10**8)
    files[0].write_bytes(files[0].read_bytes()[:-20])
    with pytest.raises(InputError, match=r"0\.parquet cannot be read"):
        join_index(files, tmp_path / "index")
    assert not (tmp_path / "index" / "index.json").exists()


@pytest.mark.slow
def test_a_killed_join_leaves_the_index_that_was_there(tmp_path):
    files = write_files(tmp_path, [["a"] * 6, ["b"] * 6])
    join_index(files[:1], tmp_path / "index")
    code = """
from pathlib import Path
from dicot.store.search.joining import join_index
join_index([Path(word) for word in sys.argv[3:]], sys.argv[2])
"""
    for n in (1, 2, 3):
        assert killed(n, code, tmp_path / "index", *files)
        assert len(EmbeddingIndex.load(tmp_path / "index")) == 6
    join_index(files, tmp_path / "index")
    assert len(EmbeddingIndex.load(tmp_path / "index")) == 12
    assert len(list((tmp_path / "index").iterdir())) == 3  # nothing is left of the others


def test_a_folder_of_vectors_is_searched_and_drawn(tmp_path):
    class Model:
        def transform(self, windows):
            return windows.x.reshape(len(windows.x), -1)[:, ::4]

    build_corpus(write_recordings(tmp_path / "r"), tmp_path / "c", **WINDOW, channels=["x", "y"], shard_bytes=4000)
    embed_corpus(Model(), Corpus.open(tmp_path / "c"), tmp_path / "v", model_hash="m")
    said = dicot("search", tmp_path / "v", "--like", "r2@3", "-k", 2, "--plot", tmp_path / "p.html")
    assert "an index of 110 vectors" in said and (tmp_path / "p.html").exists()
    again = dicot("search", tmp_path / "v", "--like", "r2@3", "-k", 2)
    assert "an index of" not in again and again.splitlines()[-3:] == said.splitlines()[-4:-1]
    assert "euclidean" not in again and "an index of" in dicot(
        "search", tmp_path / "v", "--like", "0", "--metric", "euclidean"
    )
