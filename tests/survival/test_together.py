"""Several processes at one ledger, label store, index or corpus: nothing is lost, doubled or ever half there."""

import multiprocessing
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import DicotError, InputError, OutputError
from dicot.judge.bench.ledger import Ledger
from dicot.judge.evaluation import Contender, Job, JobData
from dicot.store.build import build_corpus
from dicot.store.corpus import Corpus
from dicot.store.embedding import embed_corpus
from dicot.store.folder import Store
from dicot.store.search import EmbeddingIndex
from dicot.use.labels.store import LabelStore
from tests.corpus.folders import WINDOW, tree, write_recordings

WRITERS, CALLS, CHUNK = 4, 8, 5
PATIENCE = 300  # seconds, on a machine that is busy with other things
LOADED = [
    "dicot.judge.bench.ledger",
    "dicot.store.build",
    "dicot.store.embedding",
    "dicot.judge.evaluation",
]
LOADED += ["dicot.use.labels.store", "dicot.store.search", "numpy", "tests.corpus.folders"]
pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="processes are forked from a server"),
    pytest.mark.slow,
]


def at_once(work: Callable[..., None], path: Path, *more: Any) -> None:
    """Run `work(path, number, ...)` in several processes that begin together."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    ready = context.Barrier(WRITERS)
    processes = [context.Process(target=_together, args=(ready, work, path, i, *more)) for i in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(2 * PATIENCE)
    assert [process.exitcode for process in processes] == [0] * WRITERS


def _together(ready: Any, work: Callable[..., None], *given: Any) -> None:
    ready.wait()
    work(*given)


def job(number: int) -> Job:
    data = JobData("Beef")
    return Job("test", Contender("random", "random", {}, {}), data, data, "linear", number)


def record(path: Path, number: int) -> None:
    """Results of its own, and one that all of them record."""
    for call in range(CALLS):
        with Ledger(path) as ledger:
            own = 1 + number * CALLS + call
            ledger.enrol([job(own)])
            for seed in (own, 0):
                ledger.record([job(seed).result({"accuracy": float(seed)}, None, source_data="a", target_data="b")])
            assert own in {result.seed for result in ledger.results()}


def test_a_ledger(tmp_path: Path) -> None:
    path = tmp_path / "bench.sqlite"
    at_once(record, path)
    with Ledger(path) as ledger:
        results = ledger.results()
    assert sorted((one.seed, one.values["accuracy"]) for one in results) == [
        (seed, float(seed)) for seed in range(WRITERS * CALLS + 1)
    ]


def label(path: Path, number: int) -> None:
    """Labels of its own, and one that all of them give."""
    for call in range(CALLS):
        with LabelStore(path) as store:
            store.set([f"{number} {call}", "shared"], f"{number} {call}", by=str(number))


def test_a_label_store(tmp_path: Path) -> None:
    path = tmp_path / "labels.sqlite"
    at_once(label, path)
    with LabelStore(path) as store:
        labels, history = store.current(), store.history()
    own = {f"{number} {call}": f"{number} {call}" for number in range(WRITERS) for call in range(CALLS)}
    shared = [change for change in history if change.key == "shared"]
    assert {key: value for key, value in labels.items() if key != "shared"} == own
    assert len(history) == 2 * len(own) and {change.new for change in shared} == set(own.values())
    # Each change tells what was there just before it: no two of them began from the same state.
    assert [change.old for change in shared] == [None, *(change.new for change in shared[:-1])]


def append(place: Path, number: int) -> None:
    """Load, add some vectors, save; where another was quicker, once more."""
    dice = random.Random(number)
    for call in range(CALLS):
        until = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < until, "another one is always quicker"
            index = EmbeddingIndex.load(place)
            index.append(np.full((CHUNK, 3), 1.0 + number * CALLS + call, np.float32), group=[number] * CHUNK)
            try:
                index.save(place)
                break
            except OutputError:
                time.sleep(dice.uniform(0, 0.02))


def test_an_index_that_all_append_to(tmp_path: Path) -> None:
    place = tmp_path / "index"
    EmbeddingIndex(np.zeros((1, 3), np.float32) + 0.5, group=[-1], metric="euclidean").save(place)
    at_once(append, place)
    index = EmbeddingIndex.load(place)
    held = index.vectors(range(len(index)))[1:, 0].astype(int)
    np.testing.assert_array_equal(np.bincount(held, minlength=WRITERS * CALLS + 1)[1:], CHUNK)
    assert sorted(path.name for path in place.iterdir()) == ["manifest.json", "shards"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"], "a lock was left behind"


def replace(place: Path, number: int) -> None:
    """Save an index of its own again and again, and load whichever is there: always a whole one."""
    for call in range(CALLS):
        own = EmbeddingIndex(np.full((CHUNK + number, 3), 1.0 + number, np.float32), group=[number] * (CHUNK + number))
        with suppress(OutputError):
            own.save(place)
        found = EmbeddingIndex.load(place)
        who = int(found.group[0])
        assert (found.vectors(range(len(found))) == 1.0 + who).all() and len(found) == CHUNK + who, call
        assert (found.group == who).all()


def test_an_index_that_all_replace(tmp_path: Path) -> None:
    place = tmp_path / "index"
    EmbeddingIndex(np.ones((CHUNK, 3), np.float32), group=[0] * CHUNK).save(place)
    at_once(replace, place)
    EmbeddingIndex.load(place)


def test_an_index_that_another_has_changed_is_not_saved_over(tmp_path: Path) -> None:
    place, x = tmp_path / "index", np.ones((3, 2), np.float32)
    EmbeddingIndex(x).save(place)
    mine, theirs = EmbeddingIndex.load(place), EmbeddingIndex.load(place)
    theirs.append(x)
    theirs.save(place)
    theirs.append(x)
    theirs.save(place)  # its own save is no change by another
    mine.append(x)
    with pytest.raises(DicotError, match="another process"):
        mine.save(place)
    assert len(EmbeddingIndex.load(place)) == 9
    mine.save(tmp_path / "elsewhere")
    EmbeddingIndex(x).save(place)  # made anew, it takes the place of what is there
    assert len(EmbeddingIndex.load(place)) == 3


def until_it_is_there(work: Callable[[], Any], number: int) -> Any:
    """What `work` returns; where another process is at it, it is begun again."""
    dice, given_up = random.Random(number), time.monotonic() + PATIENCE
    while True:
        try:
            return work()
        except OutputError as error:
            if "another process" not in str(error) or time.monotonic() > given_up:
                raise
            time.sleep(dice.uniform(0, 0.02))


def build(folder: Path, number: int) -> None:
    """Build a corpus that all of them build, beside one of them that wants another in its place."""
    length = WINDOW["window"] + (number == 0)
    try:
        until_it_is_there(lambda: build_corpus(folder / "r", folder / "c", length, shard_bytes=4000), number)
    except InputError as error:  # others were first
        if not any(words in str(error) for words in ("its window differ",)):
            raise
        (folder / f"refused-{number}").touch()
        return
    assert Corpus.open(folder / "c", verify=True).shape[2] == length


def test_a_corpus(tmp_path: Path) -> None:
    write_recordings(tmp_path / "r", 6)
    at_once(build, tmp_path)
    held = Corpus.open(tmp_path / "c")
    length = held.shape[2]
    alone = build_corpus(tmp_path / "r", tmp_path / "alone", length, shard_bytes=4000)
    assert len(held) == len(alone.corpus) and tree(tmp_path / "c") == tree(tmp_path / "alone")
    others = range(1, WRITERS) if length > WINDOW["window"] else [0]
    assert sorted(path.name for path in tmp_path.glob("refused-*")) == [f"refused-{number}" for number in others]


class Means:
    """A model of which each process has another one, and says so by its number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def transform(self, windows: Any, /) -> Any:
        return windows.x.mean(axis=2) + self.number


def embed(folder: Path, number: int) -> None:
    """Embed a corpus by a model that two of them have; the others have another one."""
    model = number % 2

    def work() -> Any:
        return embed_corpus(Means(model), Corpus.open(folder / "c"), folder / "v", model_hash=f"model {model}")

    try:
        assert until_it_is_there(work, number).about["model"] == f"model {model}"
    except InputError as error:
        if "its model differ" not in str(error):
            raise
        (folder / f"refused-{number}").touch()


def test_the_vectors_of_a_corpus(tmp_path: Path) -> None:
    write_recordings(tmp_path / "r", 6)
    build_corpus(tmp_path / "r", tmp_path / "c", **WINDOW, shard_bytes=4000)
    at_once(embed, tmp_path)
    held = Store(tmp_path / "v", verify=True)
    model = int(held.about["model"].split()[1])
    embed_corpus(Means(model), Corpus.open(tmp_path / "c"), tmp_path / "alone", model_hash=held.about["model"])
    assert tree(tmp_path / "v") == tree(tmp_path / "alone")
    assert sorted(path.name for path in tmp_path.glob("refused-*")) == [
        f"refused-{number}" for number in range(WRITERS) if number % 2 != model
    ]
