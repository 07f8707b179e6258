"""python -m benchmarks.costs [--device cuda]: what a million windows cost to build, train on, embed and index.

Prints the rows of benchmarks/scaling.csv, which benchmarks.scaling reckons with. Windows are those of HARTH, 6 channels
x 500 time steps of float32, the encoder is the paper's (InceptionTime, 256 features). On a CPU a second is one of the
processor, with one thread, and holds on a machine that others use too; on a GPU it is one of the clock.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

C, T, F = 6, 500, 256
QUERIES = 100


def corpus_of(folder: Path, n_windows: int, **options: Any) -> Any:
    """A corpus of so many windows, from one recording in an .npz."""
    from dicot.store.build import build_corpus
    from dicot.store.folder import Corpus

    if not (folder / "r").exists():
        (folder / "r").mkdir(parents=True)
        x = np.random.default_rng(0).standard_normal((C, n_windows * T), dtype=np.float32)
        np.savez(folder / "r" / "a.npz", X=x, rate=50.0)
    build_corpus(folder / "r", folder / "c", T, "100%", overwrite=True, **options)
    return Corpus.open(folder / "c")


def least(work: Callable[[], Any], clock: Callable[[], float], repeats: int) -> float:
    """Seconds of the fastest of some repetitions; the first is not counted."""
    work()
    seconds = []
    for _ in range(repeats):
        started = clock()
        work()
        seconds.append(clock() - started)
    return min(seconds)


def step_seconds(corpus: Any, options: argparse.Namespace, clock: Callable[[], float]) -> float:
    """Seconds of a step of Di-COT from a corpus, the mean over steps, each the fastest of its repetitions."""
    import torch

    from dicot import pretrain
    from dicot.methods.dicot import DiCOT
    from dicot.nets.encoders import build_encoder
    from dicot.train import Recipe

    runs = []
    for _ in range(options.repeats):
        torch.manual_seed(0)
        method = DiCOT(build_encoder("inception_time", {"n_channels": C, "dim": F}))
        times: list[float] = []

        def note(step: object, times: list[float] = times) -> None:
            times.append(clock())

        recipe = Recipe(options.steps, options.batch_size, precision=options.precision)
        pretrain(method, corpus, recipe, seed=1, on_step=note, device=options.device, batches="streamed")
        runs.append(np.diff(times[len(times) // 4 :]))
    return float(np.min(runs, axis=0).mean())


def costs(folder: Path, options: argparse.Namespace) -> dict[str, tuple[float, str]]:
    """Name of a rate -> value and unit."""
    import torch

    from dicot import TimeSeriesEmbedder
    from dicot.store.embedding import embed_corpus
    from dicot.store.folder import Corpus, Store
    from dicot.store.search import EmbeddingIndex

    on_cpu = options.device == "cpu"
    if on_cpu:
        torch.set_num_threads(1)
    clock = time.process_time if on_cpu else time.perf_counter
    million = 1e6 / options.windows
    found: dict[str, tuple[float, str]] = {}
    if on_cpu:  # a GPU has no part in these
        large = least(lambda: corpus_of(folder / "large", options.windows), clock, options.repeats)
        found["build"] = (large * million, "s / million windows")
        many = corpus_of(folder / "many", 2048, shard_bytes=4 * C * T)
        found["open"] = (
            1e6 * least(lambda: Corpus.open(many.path), clock, options.repeats) / 2048,
            "s / million shards",
        )
        found["manifest"] = ((many.path / "manifest.json").stat().st_size / 2048, "bytes / shard")
        order = least(lambda: np.random.default_rng(0).permutation(4 * 10**6), clock, options.repeats)
        found["order"] = (order / 4, "s / million windows")
    small = corpus_of(folder / "small", options.embedded)
    step = step_seconds(small, options, clock)
    found["train"] = (1e6 * step / options.batch_size, "s / million windows")
    model = TimeSeriesEmbedder(
        "dicot",
        dim=F,
        steps=1,
        recipe={"batch_size": 4},
        features={"precision": options.precision},
        device=options.device,
        random_state=0,
        verbose=False,
    ).fit(small[:8])
    numbers = count()  # into a new folder each time: what is there would be left as it is
    embedding = least(
        lambda: embed_corpus(model, small, folder / f"v{next(numbers)}", model_hash="costs"), clock, options.repeats
    )
    found["embed"] = (1e6 * embedding / options.embedded, "s / million windows")
    size = Store(folder / "v0").bytes
    found["vectors"] = (size / options.embedded, "bytes / window")
    n = options.vectors
    x = np.random.default_rng(0).standard_normal((n, F), dtype=np.float32)
    if on_cpu:
        at = np.arange(n) * 1.0
        EmbeddingIndex(x, recording=np.full(n, "recording 000000"), start=at, end=at + 1).save(folder / "index")
        load = least(lambda: EmbeddingIndex.load(folder / "index"), clock, options.repeats)
        found["load"] = (1e6 * load / n, "s / million vectors")
    index = EmbeddingIndex(x, device=options.device)
    z = np.random.default_rng(1).standard_normal((QUERIES, F), dtype=np.float32)
    query = least(lambda: index.query(z, 10), clock, options.repeats)
    found["query"] = (1e6 * query / n / QUERIES, "s / query and million vectors")
    found["weights"] = (float(sum(p.numel() for p in model.encoder_.parameters())), "numbers")
    return found


def main() -> None:
    """Print one row for each rate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--windows", type=int, default=8192, help="that are built")
    parser.add_argument("--embedded", type=int, default=256, help="windows that are trained on and embedded")
    parser.add_argument("--vectors", type=int, default=65_536, help="that are joined and searched")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, (value, unit) in costs(Path(folder), options).items():
            print(f"{name},{options.device},{value:.6g},{unit}", flush=True)


if __name__ == "__main__":
    main()
