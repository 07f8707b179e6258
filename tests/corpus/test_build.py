"""From recordings to a corpus: the same windows as in memory, the same bytes whatever happens on the way."""

import os
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot
from tests.corpus.folders import WINDOW, killed, tree, write_recordings

from dicot.core.errors import InputError, OutputError
from dicot.core.storage import only_writer
from dicot.data import Windows
from dicot.store.build import build_corpus
from dicot.store.folder import Corpus


@pytest.fixture
def recordings(tmp_path) -> Path:
    return write_recordings(tmp_path / "recordings")


@pytest.mark.parametrize("options", [{}, {"label": "label"}, {"rate": 25.0}, {"channels": ["y"]}])
def test_windows_are_those_of_all_recordings_in_memory(recordings, tmp_path, options):
    options = {"channels": ["x", "y"], **options}
    build_corpus(recordings, tmp_path / "corpus", **WINDOW, **options, shard_bytes=1000)
    corpus, wanted = Corpus.open(tmp_path / "corpus", verify=True), Windows.from_folder(recordings, **WINDOW, **options)
    assert corpus.shape == wanted.x.shape and len(corpus.shards) > 8
    assert (corpus.channels, corpus.rate) == (wanted.channels, wanted.rate)
    np.testing.assert_array_equal(corpus[:], wanted.x)
    about = corpus.columns()
    for name, values in (("recording", wanted.recording), ("start", wanted.start), ("group", wanted.group)):
        np.testing.assert_array_equal(about[name], values)
    if "label" in options:
        np.testing.assert_array_equal(corpus.labels(), wanted.y)
    else:
        assert corpus.labels() is None


def test_any_number_of_processes_writes_the_same_bytes(recordings, tmp_path):
    for workers in (1, 2):
        done = build_corpus(recordings, tmp_path / str(workers), **WINDOW, channels=["x", "y"], workers=workers)
        assert done.workers == workers
    assert tree(tmp_path / "1") == tree(tmp_path / "2")


@pytest.mark.slow
def test_killed_in_the_middle_of_any_write_it_ends_with_the_same_bytes(recordings, tmp_path):
    code = """
from dicot.store.build import build_corpus
build_corpus(sys.argv[2], sys.argv[3], 32, 16, channels=["x", "y"], shard_bytes=4000)
"""
    build_corpus(recordings, tmp_path / "whole", 32, 16, channels=["x", "y"], shard_bytes=4000)
    # While the files are looked at, while a shard is written, beside it, and the manifest of what is finished.
    kills = [killed(n, code, recordings, tmp_path / "killed") for n in (3, 4, 9, 16)]
    assert all(kills)
    again = build_corpus(recordings, tmp_path / "killed", 32, 16, channels=["x", "y"], shard_bytes=4000)
    assert again.continued > 0
    assert tree(tmp_path / "killed") == tree(tmp_path / "whole")


def test_a_second_build_at_once_is_refused_and_a_later_one_has_nothing_to_do(recordings, tmp_path):
    out = tmp_path / "corpus"
    with only_writer(out, folder=True), pytest.raises(OutputError, match="written by another process"):
        build_corpus(recordings, out, **WINDOW, channels=["x", "y"])
    build_corpus(recordings, out, **WINDOW, channels=["x", "y"])
    before = tree(out)
    assert build_corpus(recordings, out, **WINDOW, channels=["x", "y"]).was_there
    with pytest.raises(InputError, match="its stride differ"):
        build_corpus(recordings, out, 32, 8, channels=["x", "y"])
    os.utime(recordings / "r0.npz", (1, 1))
    with pytest.raises(InputError, match="its files differ"):
        build_corpus(recordings, out, **WINDOW, channels=["x", "y"])
    assert tree(out) == before
    build_corpus(recordings, out, 32, 8, channels=["x", "y"], overwrite=True)
    assert Corpus.open(out, verify=True).stride == 8


def test_a_damaged_file_is_named_and_left_out_on_request(recordings, tmp_path):
    (recordings / "r2.npz").write_bytes((recordings / "r2.npz").read_bytes()[:-50])
    (recordings / "r3.csv").write_text("t,x,y,label\n0,1,2,a\n1,walking,3,a\n")
    with pytest.raises(InputError, match=r"r2\.npz cannot be read.*skip_damaged=True"):
        build_corpus(recordings, tmp_path / "corpus", **WINDOW, channels=["x", "y"])
    for workers in (1, 2):
        done = build_corpus(
            recordings, tmp_path / "corpus", **WINDOW, channels=["x", "y"], skip_damaged=True, workers=workers
        )
        assert [Path(source.file).name for source in done.corpus.damaged] == ["r2.npz", "r3.csv"]
        assert "walking" in done.corpus.damaged[1].damaged
        assert set(Corpus.open(tmp_path / "corpus").shard(1).recording) == {"r1"}
    for file in ("r0.npz", "r1.csv"):
        (recordings / file).write_text("nothing")
    with pytest.raises(InputError, match=r"None of the 4 files can be used; the first: .*r0\.npz"):
        build_corpus(recordings, tmp_path / "other", **WINDOW, channels=["x", "y"], skip_damaged=True)
    assert not (tmp_path / "other" / "manifest.json").exists()


def test_values_that_float32_cannot_tell_apart_are_refused(tmp_path):
    np.savez(tmp_path / "b.npz", X=1e9 + np.random.default_rng(0).normal(size=(2, 100)))
    with pytest.raises(InputError, match=r"b\.npz: The values of recording 'b' differ by less than float32"):
        build_corpus(tmp_path / "b.npz", tmp_path / "other", **WINDOW)


def test_a_url_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"s3://bucket/ecg is a URL.*Copy them to a folder first"):
        build_corpus("s3://bucket/ecg", tmp_path / "corpus", **WINDOW)
    with pytest.raises(InputError, match="is a URL"):
        dicot("corpus", "build", "s3://bucket/ecg", "--window", "32", "--out", tmp_path / "corpus")


def test_a_number_is_one_class_in_all_shards(tmp_path):
    folder = tmp_path / "recordings"
    folder.mkdir()
    for name, cells in (("a", ["1"] * 64), ("b", ["", *["1.0"] * 63]), ("c", ["1000001"] * 64), ("d", ["sit"] * 64)):
        rows = [f"{t / 50:.2f},{t % 9},{cell}" for t, cell in enumerate(cells)]
        (folder / f"{name}.csv").write_text("\n".join(["t,x,label", *rows]))
    build_corpus(folder, tmp_path / "corpus", **WINDOW, label="label")
    labels = Corpus.open(tmp_path / "corpus").labels()
    assert list(dict.fromkeys(labels.tolist())) == ["1", "1000001", "sit"]


def test_names_are_paths_below_what_was_named(recordings, tmp_path):
    """Whatever other files there are; a corpus of the same files under other names is another one."""
    root = tmp_path / "all"
    for place in ("monday/am", "tuesday/am", "monday"):
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / "r.npz").write_bytes((recordings / "r0.npz").read_bytes())

    def names(*sources) -> list[str]:
        done = build_corpus(list(sources), tmp_path / "corpus", **WINDOW, channels=["x", "y"], overwrite=True)
        return [source.name for source in done.corpus.sources]

    assert names(f"{root}/monday/am") == ["r"]
    assert names(f"{root}/monday") == ["am/r", "r"]
    with pytest.raises(InputError, match="its files differ"):
        build_corpus([f"{root}/*/r.npz", f"{root}/monday/am"], tmp_path / "corpus", **WINDOW, channels=["x", "y"])
    assert names(str(root)) == names(f"{root}/**/*.npz") == ["monday/am/r", "monday/r", "tuesday/am/r"]
    assert names(f"{root}/tuesday/am/r.npz") == ["r"]
    with pytest.raises(InputError, match=r"monday/am/r\.npz and .*tuesday/am/r\.npz would be two .* called 'am/r'"):
        names(f"{root}/monday", f"{root}/tuesday")
