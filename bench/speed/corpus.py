"""Costs of a corpus: building, training, embedding and searching what is larger than memory.

Windows are those of HARTH, 6 channels x 500 time steps of float32, the encoder is the paper's (InceptionTime, 256
features). On a CPU a second is one of the processor, with one thread, and holds on a machine that others use too; on a
GPU it is one of the clock.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from bench.clock import shortest
from bench.options import Device, shape
from bench.tables import Row, markdown
from dicot import TimeSeriesEmbedder, pretrain
from dicot.methods.dicot import DiCOT
from dicot.nets.encoders import build_encoder
from dicot.store.build import build_corpus
from dicot.store.folder import Corpus, Store, write_manifest, write_shard
from dicot.store.search import EmbeddingIndex
from dicot.store.shards import embed_corpus
from dicot.train import Recipe, Step

C, T, F = 6, 500, 256
MANY = 2048  # shards of a window each
QUERIES = 100
PER_SHARD = 2**26 // (4 * F)  # vectors

Precision = Annotated[str, typer.Option(help="float32, or on a GPU tf32.")]
BatchSize = Annotated[int, typer.Option(help="Windows of a training step.")]
Steps = Annotated[int, typer.Option(help="Training steps.")]
Repeats = Annotated[int, typer.Option(help="Repetitions, of which the fastest counts.")]


def corpus_of(folder: Path, n_windows: int, n_times: int = T, **options: Any) -> Corpus:
    """A corpus of so many windows, from one recording in an .npz."""
    if not (folder / "r").exists():
        (folder / "r").mkdir(parents=True)
        x = np.random.default_rng(0).standard_normal((C, n_windows * n_times), dtype=np.float32)
        np.savez(folder / "r" / "a.npz", X=x, rate=50.0)
    build_corpus(folder / "r", folder / "c", n_times, "100%", overwrite=True, **options)
    return Corpus.open(folder / "c")


def step_seconds(
    train: Any,
    batches: str,
    recipe: Recipe,
    device: str,
    clock: Callable[[], float],
    dim: int = F,
) -> np.ndarray:
    """Seconds of each step of Di-COT; the first quarter is left out."""
    torch.manual_seed(0)
    method = DiCOT(build_encoder("inception_time", {"n_channels": C, "dim": dim}))
    times: list[float] = []

    def note(step: Step) -> None:
        times.append(clock())

    pretrain(method, train, recipe, seed=1, device=device, batches=batches, on_step=note)
    return np.diff(times[len(times) // 4 :])


def costs(
    device: Device = "cpu",
    precision: Precision = "float32",
    windows: Annotated[int, typer.Option(help="Windows that are built.")] = 8192,
    embedded: Annotated[int, typer.Option(help="Windows that are trained on and embedded.")] = 256,
    vectors: Annotated[int, typer.Option(help="Vectors that are searched.")] = 65_536,
    batch_size: BatchSize = 8,
    steps: Steps = 8,
) -> None:
    """What a million windows cost to build, train on, embed and search: the rates of `scaling`."""
    recipe = Recipe(steps, batch_size, precision=precision)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows: list[Row] = []
        if device == "cpu":  # a GPU has no part in building
            torch.set_num_threads(1)
            rows += building(folder, windows)
        small = corpus_of(folder / "small", embedded)
        rows += learning(folder, small, recipe, device)
        rows += searching(folder, vectors, device)
    typer.echo(markdown(rows))


def clock_of(device: str) -> Callable[[], float]:
    return time.process_time if device == "cpu" else time.perf_counter


def building(folder: Path, windows: int) -> Iterator[Row]:
    """Rates of cutting recordings into shards."""
    seconds = shortest(lambda: corpus_of(folder / "large", windows), time.process_time, repeats=2)
    yield {"rate": "build", "value": 1e6 / windows * seconds, "unit": "s / million windows"}
    many = corpus_of(folder / "many", MANY, shard_bytes=4 * C * T)
    manifest = (many.path / "manifest.json").stat().st_size
    yield {"rate": "manifest", "value": manifest / MANY, "unit": "bytes / shard"}


def learning(folder: Path, corpus: Corpus, recipe: Recipe, device: str) -> Iterator[Row]:
    """Rates of training on a corpus and of embedding it."""
    clock = clock_of(device)
    runs = [step_seconds(corpus, "streamed", recipe, device, clock) for _ in range(2)]
    step = float(np.min(runs, axis=0).mean())
    yield {"rate": "train", "value": 1e6 * step / recipe.batch_size, "unit": "s / million windows"}

    model = TimeSeriesEmbedder(
        "dicot",
        dim=F,
        steps=1,
        recipe={"batch_size": 4},
        features={"precision": recipe.precision},
        device=device,
        random_state=0,
        verbose=False,
    ).fit(corpus[:8])
    # Each time into a new folder: vectors that are there would be left as they are.
    numbers = count()

    def embed() -> None:
        embed_corpus(model, corpus, folder / f"v{next(numbers)}", model_hash="costs")

    seconds = shortest(embed, clock, repeats=2)
    yield {"rate": "embed", "value": 1e6 * seconds / len(corpus), "unit": "s / million windows"}
    yield {"rate": "vectors", "value": Store(folder / "v0").bytes / len(corpus), "unit": "bytes / window"}
    weights = sum(parameter.numel() for parameter in model.encoder_.parameters())
    yield {"rate": "weights", "value": weights, "unit": "numbers"}


def searching(folder: Path, n: int, device: str) -> Iterator[Row]:
    """Rates of opening an index and of asking it."""
    clock = clock_of(device)
    x = np.random.default_rng(0).standard_normal((n, F), dtype=np.float32)
    if device == "cpu":
        start = np.arange(n) * 1.0
        names = np.full(n, "recording 000000")
        EmbeddingIndex(x, recording=names, start=start, end=start + 1).save(folder / "index")
        seconds = shortest(lambda: EmbeddingIndex.load(folder / "index"), clock, repeats=2)
        yield {"rate": "load", "value": 1e6 * seconds / n, "unit": "s / million vectors"}
    index = EmbeddingIndex(x, device=device)
    z = np.random.default_rng(1).standard_normal((QUERIES, F), dtype=np.float32)
    seconds = shortest(lambda: index.query(z, 10), clock, repeats=2)
    yield {"rate": "query", "value": 1e6 * seconds / n / QUERIES, "unit": "s / query and million vectors"}


def corpus_rate(
    device: Device = "cpu",
    windows: Annotated[int, typer.Option(help="Windows of the corpus.")] = 2048,
    shapes: Annotated[str, typer.Option(help="time steps x batch x features, separated by commas.")] = "1024x16x4",
    steps: Steps = 200,
    repeats: Repeats = 3,
) -> None:
    """Training steps from a corpus beside those from memory, in turns in the same process."""
    rows: list[Row] = []
    for n_times, batch_size, dim in (shape(text, "x") for text in shapes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            corpus = corpus_of(Path(folder), windows, n_times)
            recipe = Recipe(steps, batch_size)
            from_memory, from_corpus = [], []
            for _ in range(repeats):
                from_memory.append(step_seconds(corpus[:], "device", recipe, device, time.perf_counter, dim))
                from_corpus.append(step_seconds(corpus, "streamed", recipe, device, time.perf_counter, dim))
        # The same step has the same work in every turn: its shortest time is the one that nothing else disturbed.
        memory_ms = 1e3 * float(np.min(from_memory, axis=0).mean())
        corpus_ms = 1e3 * float(np.min(from_corpus, axis=0).mean())
        title = f"({batch_size}, {C}, {n_times}), {dim} features"
        rows.append({"steps": title, "memory ms": memory_ms, "corpus ms": corpus_ms, "rate": memory_ms / corpus_ms})
    typer.echo(markdown(rows))


def large_index(
    folder: Annotated[Path, typer.Argument(help="Folder for the vectors, on a disk with room for them.")],
    vectors: Annotated[int, typer.Option(help="Vectors of the index.")] = 1_000_000,
    queries: Annotated[int, typer.Option(help="Queries that are asked at once.")] = 128,
) -> None:
    """Exact search among vectors that are read where they lie: seconds of one query and of many at once."""
    shards = []
    for number, first in enumerate(range(0, vectors, PER_SHARD)):
        n = min(PER_SHARD, vectors - first)
        x = np.random.default_rng(number).standard_normal((n, F), dtype=np.float32)
        start = np.arange(n, dtype=np.float64)
        columns = {"recording": np.full(n, f"recording {number:06d}"), "start": start, "end": start + 1}
        shards.append(write_shard(folder, f"{number:06d}", x, columns))
    write_manifest(folder, "vectors", [F], shards, {})

    z = np.random.default_rng(vectors).standard_normal((queries, F), dtype=np.float32)
    index = EmbeddingIndex.load(folder)
    one = shortest(lambda: index.query(z[:1], 10), time.perf_counter, repeats=1)
    many = shortest(lambda: index.query(z, 10), time.perf_counter, repeats=1)
    typer.echo(markdown([{"vectors": vectors, "one query s": one, "queries a second": queries / many}]))
