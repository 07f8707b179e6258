"""Tasks that may be killed at any moment. A new one is one entry of TASKS: kills and faults go over all of them."""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import dicot.__main__
from dicot.cli import main
from dicot.judge.bench.ledger import Ledger
from dicot.judge.evaluation import Contender, Job, JobData
from dicot.store.build import build_corpus
from dicot.store.corpus import Corpus
from dicot.store.folder import Store
from dicot.store.search import EmbeddingIndex
from dicot.store.vectors import read_vectors
from dicot.use.labels.store import LabelStore
from tests.conftest import make_waves
from tests.survival.processes import actors, children

Committed = set[Any]  # what a run has finished, in values that can be compared


@dataclass(frozen=True)
class Task:
    """A command that is simply run again after a kill. All of it happens in one folder."""

    name: str
    make: Callable[[Path], None]  # writes what the command needs into an empty folder
    run: Callable[[Path], None]  # the command, as a user would call it
    committed: Callable[[Path], Committed]  # what is finished: it may grow and never shrink
    final: Callable[[Path], Any]  # what it comes to, without anything that differs from run to run
    source: str = ""  # a file or folder that may vanish while it is read
    workers: Callable[[int], list[int]] | None = None  # its number -> processes that it has started: killed too
    needs: str = ""  # a package without which it is left out
    meets_faults: bool = True  # otherwise it is another one's program that would meet them


def command(*words: object) -> None:
    """`dicot WORDS`, with its exit code; processes that it starts find that program, and not the one that kills."""
    sys.argv, sys.modules["__main__"] = ["dicot", *map(str, words)], dicot.__main__
    main()


def files_in(folder: Path) -> dict[str, str]:
    """Every file below a folder, and a hash of it: nothing may be lost, and nothing left behind."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_relative_to(folder / "in"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


# --- pretrain ---------------------------------------------------------------------------------------------------------

STEPS = 24


def _data(folder: Path) -> None:
    waves = make_waves()
    (folder / "in").mkdir()
    np.savez(folder / "in" / "waves.npz", X=waves.x, y=waves.y)


def _pretrain_words(folder: Path) -> list[object]:
    small = ["--method", "dicot", "--encoder", "fcn", "--dim", 8, "--steps", STEPS, "--batch-size", 4]
    words = ["pretrain", folder / "in" / "waves.npz", *small, "--device", "cpu", "--checkpoint-seconds", 0]
    return [*words, "--out", folder / "model"]


def _pretrain(folder: Path) -> None:
    command(*_pretrain_words(folder))


def _pretrain_by_two(folder: Path) -> None:
    command(*_pretrain_words(folder), "--nproc", 2)


def _pretrain_by_torchrun(folder: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "2"]
    # A port that is free, of its own: the last one may not have let go of it.
    alone = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    os.execv(sys.executable, [*launcher, *alone, "-m", "dicot", *map(str, _pretrain_words(folder))])


def _trained(folder: Path) -> Committed:
    """The steps that are kept, by the checkpoint or by the model."""
    if (folder / "model" / "config.json").exists():
        from dicot import TimeSeriesEmbedder

        TimeSeriesEmbedder.from_pretrained(folder / "model", device="cpu")  # whole, or an error
        return set(range(STEPS))
    checkpoint = folder / "model" / "checkpoint.safetensors"
    if not checkpoint.exists():
        return set()
    from safetensors import safe_open

    with safe_open(checkpoint, "numpy") as file:
        return set(range(len(file.get_tensor("history.loss"))))


def _model(folder: Path) -> Any:
    held = files_in(folder)
    held.pop("model/config.json")
    config = json.loads((folder / "model" / "config.json").read_text())
    config.pop("sha256")
    return held, _without_seconds(config)


def _without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_seconds(one) for name, one in value.items() if "seconds" not in name}
    return value


# --- embed ------------------------------------------------------------------------------------------------------------

RECORDINGS = 6
CUT = ["--window", "1s", "--label", "activity"]


@cache
def _fitted() -> Any:
    from dicot import TimeSeriesEmbedder  # not before: most tasks can do without torch

    settings = {"preset": "paper", "encoder": "fcn", "dim": 8, "steps": 1, "device": "cpu"}
    model = TimeSeriesEmbedder(**settings, recipe={"batch_size": 4}, random_state=0, verbose=False)
    return model.fit(np.random.default_rng(0).normal(size=(8, 2, 20)).astype(np.float32))


def _recording(path: Path, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(100 + 10 * seed, 2))
    rows = [f"{i / 20:.2f},{x:.4f},{y:.4f},{'walk' if i % 60 < 30 else ''}" for i, (x, y) in enumerate(values)]
    path.write_text("time,x,y,activity\n" + "\n".join(rows) + "\n")
    os.utime(path, (10**9, 10**9))  # what is made of it says when it was changed


def _recordings(folder: Path) -> None:
    (folder / "in" / "recordings").mkdir(parents=True)
    for number in range(RECORDINGS):
        _recording(folder / "in" / "recordings" / f"{number}.csv", number)


def _recordings_and_model(folder: Path) -> None:
    _recordings(folder)
    _fitted().save_pretrained(folder / "in" / "model")


def _embed(folder: Path) -> None:
    command("embed", folder / "in" / "model", folder / "in" / "recordings", *CUT, "--out", folder / "out" / "v.parquet")


def _half(folder: Path) -> None:
    """Vectors of half of the recordings, and then all of these."""
    _recordings_and_model(folder)
    recordings = folder / "in" / "recordings"
    later = sorted(recordings.iterdir())[RECORDINGS // 2 :]
    for path in later:
        path.rename(folder / "in" / path.name)
    from tests.survival.processes import Run

    assert Run(_embed, folder).end().code == 0
    for path in later:
        (folder / "in" / path.name).rename(path)


def _append(folder: Path) -> None:
    words = ["embed", folder / "in" / "model", folder / "in" / "recordings", *CUT, "--append"]
    command(*words, "--out", folder / "out" / "v.parquet")


def _embedded(folder: Path) -> Committed:
    """The rows of the output, and every finished part until it is in there."""
    out = folder / "out" / "v.parquet"
    rows: Committed = set()
    if out.exists():
        held = read_vectors(out)
        assert held.recording is not None and held.start is not None
        pairs = list(zip(held.recording.tolist(), held.start.tolist(), strict=True))
        assert len(set(pairs)) == len(pairs), "a window is there twice"
        rows = set(pairs)
    parts = {path.stem for path in (folder / "out" / ".v.parquet.parts" / ".unfinished").glob("0*.json")}
    whole = len({name for name, _ in rows}) == RECORDINGS
    return rows | ({f"{number:06d}" for number in range(RECORDINGS)} if whole else parts)


# --- corpus -----------------------------------------------------------------------------------------------------------


def _build(folder: Path) -> None:
    words = ["corpus", "build", folder / "in" / "recordings", *CUT, "--workers", 2, "--memory", "4GB"]
    command(*words, "--out", folder / "corpus")


def _built(folder: Path) -> Committed:
    """The sources that were looked at or cut, with what was noted of each, or all of them in a whole corpus."""
    if (folder / "corpus" / "manifest.json").exists():
        Corpus.open(folder / "corpus", verify=True)
        return {f"{stage}-{number:06d}" for stage in ("look", "cut") for number in range(RECORDINGS)}
    return {path.stem for path in (folder / "corpus" / ".unfinished").glob("*-??????.json")}


def _corpus(folder: Path) -> None:
    _recordings_and_model(folder)
    build_corpus(folder / "in" / "recordings", folder / "in" / "corpus", "1s", label="activity")


def _embed_corpus(*more: object) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        words = ["corpus", "embed", folder / "in" / "corpus", "--model", folder / "in" / "model", "--device", "cpu"]
        command(*words, "--out", folder / "vectors", *more)

    return run


def _embed_on_ray(folder: Path) -> None:
    os.environ["RAY_TMPDIR"] = str(folder.parent / "ray")  # what a killed cluster leaves is removed in the end
    _embed_corpus("--ray", "local", "--actors", 2)(folder)


def _embedded_shards(folder: Path) -> Committed:
    """The shards whose vectors are there."""
    if (folder / "vectors" / "manifest.json").exists():
        return {shard.name for shard in Store(folder / "vectors", verify=True).shards}
    return {path.stem for path in (folder / "vectors" / ".unfinished").glob("0*.json")}


# --- bench ------------------------------------------------------------------------------------------------------------


def _split(folder: Path) -> None:
    waves = make_waves()
    (folder / "in").mkdir()
    x, y = waves.x, waves.y
    np.savez(folder / "in" / "waves.npz", X_train=x[::2], y_train=y[::2], X_test=x[1::2], y_test=y[1::2])


def _bench(workers: int) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        words = [
            "bench",
            "large",
            "--sets",
            folder / "in" / "waves.npz",
            "--only",
            "dicot",
            "--protocols",
            "linear,knn_5",
        ]
        words += ["--seeds", "1,2", "--steps", 4, "--device", "cpu", "--workers", workers, "--retry-failed"]
        command(*words, "--ledger", folder / "bench.sqlite")

    return run


def _scores(folder: Path) -> dict[Any, float]:
    path = folder / "bench.sqlite"
    if not path.exists() or not path.stat().st_size:
        return {}
    with Ledger(path) as ledger:
        rows = [row for result in ledger.results() for row in result.tidy() if not result.error]
    values = {(row["key"], row["draw"], row["metric"]): row["value"] for row in rows}
    assert len(values) == len(rows), "a value is there twice"
    return values


def _bench_end(folder: Path) -> Any:
    left = {name for name in files_in(folder) if not name.startswith("bench.sqlite")}
    return sorted(_scores(folder).items()), left


# --- ledger, labels and index, by calls of the library ----------------------------------------------------------------

CALLS = 60


def _acknowledge(folder: Path, number: int) -> None:
    """Say that a call has returned, in a file that no kill of this process can take back."""
    with suppress(OSError):  # where the disk is full, it is said of the other calls
        handle = os.open(folder / "in" / "acknowledged", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(handle, f"{number}\n".encode())
        os.close(handle)


def _acknowledged(folder: Path) -> set[int]:
    path = folder / "in" / "acknowledged"
    return set(map(int, path.read_text().split())) if path.exists() else set()


def _nothing(folder: Path) -> None:
    (folder / "in").mkdir()


def _job(number: int) -> Job:
    data = JobData("Beef")
    return Job("test", Contender("random", "random", {}, {}), data, data, "linear", number)


def _record(folder: Path) -> None:
    with Ledger(folder / "bench.sqlite") as ledger:
        done = {result.seed for result in ledger.results()}
        for number in sorted(set(range(CALLS)) - done):
            ledger.record([_job(number).result({"accuracy": 50.0 + number}, None, source_data="a", target_data="b")])
            _acknowledge(folder, number)


def _recorded(folder: Path) -> Committed:
    held = {value for _, value in _scores(folder).items()}
    assert {50.0 + number for number in _acknowledged(folder)} <= held, "what a call had confirmed is lost"
    return held


def _recorded_end(folder: Path) -> Any:
    return sorted(_scores(folder).items()), _names(folder)


def _names(folder: Path) -> list[str]:
    """The files without those that SQLite keeps beside its own while somebody has it open."""
    return sorted(name for name in files_in(folder) if not name.endswith(("-wal", "-shm")))


def _label(folder: Path) -> None:
    with LabelStore(folder / "labels.sqlite") as store:
        for number in range(len(store.current()) // 3, CALLS):
            store.set([(f"call {number}", float(i), i + 1.0) for i in range(3)], f"label {number}", by="ann")
            _acknowledge(folder, number)


def _labelled(folder: Path) -> Committed:
    if not (folder / "labels.sqlite").exists():
        return set()
    with LabelStore(folder / "labels.sqlite") as store:
        labels, history = store.current(), store.history()
    assert len(history) == len(labels), "a label was given twice"
    calls = {int(str(label).split()[1]) for label in labels.values()}
    assert len(labels) == 3 * len(calls), "half of a call is there"
    assert _acknowledged(folder) <= calls, "what a call had confirmed is lost"
    return set(labels.items())


def _labelled_end(folder: Path) -> Any:
    with LabelStore(folder / "labels.sqlite") as store:
        changes = [(change.key, change.old, change.new, change.by, change.action) for change in store.history()]
    return changes, _names(folder)


CHUNK = 50


def _chunk(number: int) -> dict[str, Any]:
    x = np.random.default_rng(number).normal(size=(CHUNK, 16)).astype(np.float32)
    start = np.arange(CHUNK) * 1.0
    return {"x": x, "recording": np.full(CHUNK, f"r{number:03d}"), "start": start, "end": start + 1}


def _index(folder: Path) -> None:
    place = folder / "index"
    if not (place / "manifest.json").exists():
        EmbeddingIndex(**_chunk(0)).save(place)
        _acknowledge(folder, 0)
    index = EmbeddingIndex.load(place)
    if len(index) == CHUNK * (CALLS // 3):
        index.save(place)  # killed behind the last save: what that one left is removed by the next
    for number in range(len(index) // CHUNK, CALLS // 3):
        index.append(**_chunk(number))
        index.save(place)
        _acknowledge(folder, number)


def _indexed(folder: Path) -> Committed:
    if not (folder / "index" / "manifest.json").exists():
        return set()
    index = EmbeddingIndex.load(folder / "index")
    chunks = len(index) // CHUNK
    assert len(index) % CHUNK == 0, "half of a chunk is there"
    assert _acknowledged(folder) <= set(range(chunks)), "what a call had confirmed is lost"
    return {(row, vector.tobytes()) for row, vector in enumerate(index.vectors(range(len(index))))}


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("pretrain", _data, _pretrain, _trained, _model, source="in/waves.npz"),
        Task("embed", _recordings_and_model, _embed, _embedded, files_in, source="in/recordings"),
        Task("append", _half, _append, _embedded, files_in, source="in/recordings"),
        Task("ranks", _data, _pretrain_by_two, _trained, _model, source="in/waves.npz", workers=children),
        Task("torchrun", _data, _pretrain_by_torchrun, _trained, _model, workers=children, meets_faults=False),
        Task("build", _recordings, _build, _built, files_in, source="in/recordings", workers=children),
        Task("shards", _corpus, _embed_corpus(), _embedded_shards, files_in, source="in/corpus"),
        Task(
            "ray", _corpus, _embed_on_ray, _embedded_shards, files_in, workers=actors, needs="ray", meets_faults=False
        ),
        Task("bench", _split, _bench(1), lambda f: set(_scores(f).items()), _bench_end),
        Task("workers", _split, _bench(2), lambda f: set(_scores(f).items()), _bench_end, workers=children),
        Task("ledger", _nothing, _record, _recorded, _recorded_end),
        Task("labels", _nothing, _label, _labelled, _labelled_end),
        Task("index", _nothing, _index, _indexed, files_in),
    )
}


def at_hand(names: Iterable[str]) -> list[Task]:
    """The tasks of these names that can be run here; others are named on the screen."""
    tasks = [TASKS[name] for name in names]
    missing = [task for task in tasks if task.needs and find_spec(task.needs) is None]
    for task in missing:
        print(f"Left out, because {task.needs} is not installed: {task.name}")
    return [task for task in tasks if task not in missing]
