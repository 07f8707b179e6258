"""Several processes at one ledger, label store, vector file or corpus: nothing is lost, doubled or half there."""

import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.ledger import Ledger
from dicot.core.errors import OutputError
from dicot.judge.evaluation import Contender
from dicot.judge.evaluation.jobs import Job, JobData
from dicot.store.search import EmbeddingIndex
from dicot.use.labels.store import LabelStore
from tests.commands import dicot
from tests.survival.test_kills import SMALL, files_in, recordings

WRITERS, CALLS = 3, 6
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="processes are forked from a server"),
]


def at_once(work: Callable[..., None], *given: Any) -> None:
    """Run `work(number, ...)` in several processes that begin together."""
    context = multiprocessing.get_context("forkserver")
    ready = context.Barrier(WRITERS)
    processes = [context.Process(target=_together, args=(ready, work, number, *given)) for number in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)
    assert [process.exitcode for process in processes] == [0] * WRITERS


def _together(ready: Any, work: Callable[..., None], *given: Any) -> None:
    ready.wait()
    work(*given)


def record(number: int, path: Path) -> None:
    """Results of its own, and one that all of them record."""
    data = JobData("Beef")
    for call in range(CALLS):
        with Ledger(path) as ledger:
            for seed in (1 + number * CALLS + call, 0):
                job = Job("test", Contender("random", "random", {}, {}), data, data, "linear", seed)
                ledger.enrol([job])
                ledger.record([job.result({"accuracy": float(seed)}, None, source_data="a", target_data="b")])


def test_a_ledger(tmp_path: Path) -> None:
    at_once(record, tmp_path / "bench.sqlite")
    with Ledger(tmp_path / "bench.sqlite") as ledger:
        found = sorted((one.seed, one.values["accuracy"]) for one in ledger.results())
    assert found == [(seed, float(seed)) for seed in range(WRITERS * CALLS + 1)]


def label(number: int, path: Path) -> None:
    for call in range(CALLS):
        with LabelStore(path) as store:
            store.set([f"{number} {call}", "shared"], f"{number} {call}", by=str(number))


def test_a_label_store(tmp_path: Path) -> None:
    at_once(label, tmp_path / "labels.sqlite")
    with LabelStore(tmp_path / "labels.sqlite") as store:
        labels, history = store.current(), store.history()
    own = {f"{number} {call}": f"{number} {call}" for number in range(WRITERS) for call in range(CALLS)}
    shared = [change for change in history if change.key == "shared"]
    assert {key: value for key, value in labels.items() if key != "shared"} == own
    # Each change tells what was there just before it: no two of them began from the same state.
    assert [change.old for change in shared] == [None, *(change.new for change in shared[:-1])]


def run(number: int, words: list[object], refused: Path) -> None:
    """Run a command; where another process writes, it is refused with a sentence that says so."""
    try:
        dicot(*words)
    except OutputError as error:
        if "another process" not in str(error):
            raise
        (refused / str(number)).touch()


@pytest.mark.parametrize("kind", ["vectors", "corpus"])
def test_a_store(tmp_path: Path, kind: str) -> None:
    source = recordings(tmp_path / "recordings", 6)
    cut = ["--window", "20", "--label", "activity", "--out"]
    if kind == "vectors":
        dicot("pretrain", source, "--window", "20", *SMALL, "--steps", 1, "--out", tmp_path / "model")
        words = ["embed", tmp_path / "model", source, *cut]
    else:
        words = ["corpus", "build", source, *cut]
    name = "v.parquet" if kind == "vectors" else "corpus"
    for folder in ("alone", "refused", "shared"):
        (tmp_path / folder).mkdir()
    dicot(*words, tmp_path / "alone" / name)
    at_once(run, [*words, tmp_path / "shared" / name], tmp_path / "refused")
    assert len(list((tmp_path / "refused").iterdir())) < WRITERS, "nobody could write"
    assert files_in(tmp_path / "shared") == files_in(tmp_path / "alone")


def test_an_index_that_another_has_changed_is_not_saved_over(tmp_path: Path) -> None:
    place, x = tmp_path / "index", np.ones((3, 2), np.float32)
    EmbeddingIndex(x).save(place)
    mine, theirs = EmbeddingIndex.load(place), EmbeddingIndex.load(place)
    theirs.append(x)
    theirs.save(place)
    mine.append(x)
    with pytest.raises(OutputError, match="another process"):
        mine.save(place)
    assert len(EmbeddingIndex.load(place)) == 6
