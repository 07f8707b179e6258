"""The vectors of a corpus: those of its windows, with the same bytes however often it was killed."""

import numpy as np
import pytest
from tests.commands import dicot
from tests.corpus.folders import WINDOW, killed, tree, write_recordings

from dicot.core.errors import InputError, OutputError
from dicot.core.storage import only_writer
from dicot.store.build import build_corpus
from dicot.store.folder import UNFINISHED, Corpus, Store
from dicot.store.shards import embed_corpus
from dicot.store.vectors import read_vectors

MODEL = """
import numpy as np
class Model:
    def transform(self, windows):
        return np.concatenate([windows.x.mean(axis=2), windows.x.std(axis=2)], axis=1)
"""
exec(MODEL)  # the same text goes to other processes
Model = globals()["Model"]


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    recordings = write_recordings(tmp_path / "r")
    build_corpus(recordings, tmp_path / "c", **WINDOW, channels=["x", "y"], label="label", shard_bytes=4000)
    return Corpus.open(tmp_path / "c")


def test_vectors_are_those_of_the_windows_and_know_their_place(corpus, tmp_path):
    done = embed_corpus(Model(), corpus, tmp_path / "v", model_hash="m")
    held = read_vectors(tmp_path / "v")
    assert len(done.shards) == len(corpus.shards) > 4 and done.shape == (len(corpus), 4)
    np.testing.assert_array_equal(held.x[:, :2], corpus[:].mean(axis=2))
    for name, values in corpus.columns().items():
        np.testing.assert_array_equal(getattr(held, name), values)
    assert held.source is not None and list(held.source.recordings) == ["r0", "r1", "r2", "r3"]


@pytest.mark.slow
def test_killed_in_the_middle_of_any_write_it_ends_with_the_same_bytes(corpus, tmp_path):
    code = f"""
{MODEL}
from dicot.store.folder import Corpus
from dicot.store.shards import embed_corpus
embed_corpus(Model(), Corpus.open(sys.argv[2]), sys.argv[3], model_hash="m")
"""
    embed_corpus(Model(), corpus, tmp_path / "whole", model_hash="m")
    kills = [killed(n, code, tmp_path / "c", tmp_path / "killed") for n in (2, 5, 8)]
    assert all(kills) and not (tmp_path / "killed" / "manifest.json").exists()
    finished = list((tmp_path / "killed" / UNFINISHED).glob("0*.json"))
    assert 0 < len(finished) < len(corpus.shards)
    embed_corpus(Model(), corpus, tmp_path / "killed", model_hash="m")
    assert tree(tmp_path / "killed") == tree(tmp_path / "whole")


def test_two_at_once_and_another_model_are_refused(corpus, tmp_path):
    out = tmp_path / "v"
    with only_writer(out, folder=True), pytest.raises(OutputError, match="written by another process"):
        embed_corpus(Model(), corpus, out, model_hash="m")
    embed_corpus(Model(), corpus, out, model_hash="m")
    before = tree(out)
    assert embed_corpus(Model(), corpus, out, model_hash="m").shape[0] == len(corpus)  # nothing to do
    with pytest.raises(InputError, match="its model differ"):
        embed_corpus(Model(), corpus, out, model_hash="other")
    assert tree(out) == before
    embed_corpus(Model(), corpus, out, model_hash="other", overwrite=True)
    assert Store(out).about["model"] == "other"


def test_from_the_command_line(corpus, tmp_path):
    model = tmp_path / "m"
    small = ["--method", "random", "--set", "dim=8", "--device", "cpu"]
    said = dicot("pretrain", corpus.path, *small, "--out", model)
    assert f"{len(corpus)} cases, 2 channel(s), 32 time steps" in said
    with pytest.raises(InputError, match="is a corpus, whose windows are cut already. Leave out window"):
        dicot("pretrain", corpus.path, "--window", "32", "--out", model, "--device", "cpu")
    words = ["embed", model, corpus.path, "--device", "cpu"]
    said = dicot(*words, "--out", tmp_path / "v")
    assert f"{len(corpus)} windows -> 8 features" in said
    dicot("embed", model, corpus.path, "--out", tmp_path / "one.parquet", "--device", "cpu")
    one = read_vectors(tmp_path / "one.parquet")
    np.testing.assert_allclose(one.x, read_vectors(tmp_path / "v").x, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(one.recording, corpus.columns()["recording"])
    with pytest.raises(InputError, match="The setting memory is gone. .* lower batch_size"):
        dicot(*words, "--out", tmp_path / "w", "--set", "memory=300MB")
