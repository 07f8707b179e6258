"""python -m benchmarks.search [--vectors 100000] [--features 256] [--like classes] [--device cuda]: speed of search.

Queries per second, 100 at once and one at a time, and recall@10 of EmbeddingIndex beside scikit-learn's brute
NearestNeighbors. Each way runs in a process of its own, on vectors mapped from a file: its peak memory counts the pages
of that file which it holds. Recall is counted against the rows that scikit-learn finds in float64. Build is the time
until the first query is answered. Then an index is saved, opened again and appended to.

--like says what the vectors are like. "classes": twenty overlapping Gaussian classes, correlated, whose variances fall
as a power, as those of an embedding do. "noise": white noise, which has no structure that a graph could use. A file
.npz with an array `x` of embeddings: each vector lies between one of these and another of the same neighbourhood (on
average a third of the way), with noise of a tenth of that distance. The queries are drawn in the same way and are not
among the vectors. Set OMP_NUM_THREADS=1 for one thread of BLAS; usearch takes all cores that there are. CPU
milliseconds are what a busy machine changes least.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import how_to_install
from dicot.store.search import EXPANSION_SEARCH, EmbeddingIndex

K = 10
PIECE = 50_000  # vectors that are drawn at once
NEIGHBOURS = 10  # among which a second embedding is drawn
TOGETHER = 100  # queries that are asked at once
HEADS = ("build s", "peak MB", "100 at once/s", "CPU ms", "one by one/s", "CPU ms", "recall@10")
Search = Callable[[np.ndarray], np.ndarray]  # queries (Q, F) -> rows (Q, K)
Draw = Callable[[np.random.Generator, int], np.ndarray]  # how many -> vectors (n, F)


class Way(NamedTuple):
    """A way to search, told to another process."""

    kind: str  # "scikit-learn", "index"
    metric: str
    device: str = "cpu"
    method: str = "exact"
    dtype: str = "f4"
    expansion: tuple[int, ...] = ()  # of usearch's search, beside its default


class Line(NamedTuple):
    """What one way came to."""

    name: str
    numbers: tuple[float, ...]
    rows: np.ndarray  # (Q, K)


def classes(f: int) -> Draw:
    """Draw as benchmarks.scoring does, piece by piece."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.normal(size=(f, f)))[0] * np.arange(1, f + 1) ** -0.75
    centres = 0.25 * rng.normal(size=(20, f))
    scale = 1 / np.sqrt(np.square(axes).sum(axis=1))

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        z = centres[rng.integers(0, len(centres), n)] + rng.normal(size=(n, f))
        drawn: np.ndarray = (z @ axes.T) * scale
        return drawn

    return draw


def noise(f: int) -> Draw:
    return lambda rng, n: rng.normal(size=(n, f))


def jittered(path: Path) -> Draw:
    """Draw between neighbours among real embeddings."""
    with np.load(path, allow_pickle=False) as file:
        x = file["x"].astype(np.float32)
    near = EmbeddingIndex(x, metric="euclidean").query(x, NEIGHBOURS + 1)[1][:, 1:]

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        one = rng.integers(0, len(x), n)
        way = x[near[one, rng.integers(0, NEIGHBOURS, n)]] - x[one]
        size = 0.1 * np.linalg.norm(way, axis=1, keepdims=True) / x.shape[1] ** 0.5
        drawn: np.ndarray = x[one] + rng.beta(1, 2, size=(n, 1)) * way + size * rng.normal(size=way.shape)
        return drawn

    return draw


def write_drawn(path: Path, draw: Draw, n: int, seed: int) -> None:
    """Write vectors (n, F) as .npy, piece by piece."""
    rng = np.random.default_rng(seed)
    out: Any = None
    for at in range(0, n, PIECE):
        some = draw(rng, min(PIECE, n - at)).astype(np.float32)
        if out is None:
            out = np.lib.format.open_memmap(path, "w+", np.float32, (n, some.shape[1]))  # type: ignore[no-untyped-call]
        out[at : at + len(some)] = some
    out.flush()


def cost(search: Search, z: np.ndarray, at_once: int) -> tuple[float, float]:
    """Queries per second, and CPU milliseconds of a query, `at_once` at a time; the first call is not counted."""
    search(z[:1])
    started, worked = time.perf_counter(), time.process_time()
    for at in range(0, len(z), at_once):
        search(z[at : at + at_once])
    return len(z) / (time.perf_counter() - started), 1000 * (time.process_time() - worked) / len(z)


def peak_megabytes() -> float:
    """Return the most memory that this process held, pages of mapped files among it; nan where Linux is not there."""
    status = Path("/proc/self/status")  # getrusage would count what the process held that started this one
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), float("nan"))


def measured(name: str, search: Search, built: float, z: np.ndarray, single: int) -> Line:
    rows = np.concatenate([search(z[at : at + TOGETHER]) for at in range(0, len(z), TOGETHER)])
    together, alone = cost(search, z, TOGETHER), cost(search, z[:single], 1)
    return Line(name, (built, peak_megabytes(), *together, *alone), rows)


def run(way: Way, folder: Path, single: int) -> list[Line]:
    """Search in one way; called in a process of its own."""
    x, z = np.load(folder / "x.npy", mmap_mode="r"), np.load(folder / "z.npy")
    started = time.perf_counter()
    if way.kind == "scikit-learn":
        from sklearn.neighbors import NearestNeighbors

        model = NearestNeighbors(n_neighbors=K, algorithm="brute", metric=way.metric).fit(x.astype(way.dtype))
        model.kneighbors(z[:1].astype(way.dtype))

        def by_sklearn(some: np.ndarray) -> np.ndarray:
            return np.asarray(model.kneighbors(some.astype(way.dtype), return_distance=False))

        bits = 64 if way.dtype == "f8" else 32
        return [measured(f"scikit-learn, float{bits}", by_sklearn, time.perf_counter() - started, z, single)]
    index = EmbeddingIndex(x, metric=way.metric, device=way.device, method=way.method)

    def by_index(some: np.ndarray) -> np.ndarray:
        return index.query(some, K)[1]

    by_index(z[:1])
    built = time.perf_counter() - started
    if way.method != "usearch":
        name = "EmbeddingIndex" if way.device == "cpu" else f"EmbeddingIndex, {way.device}"
        return [measured(name, by_index, built, z, single)]
    lines = [measured(f"usearch, {EXPANSION_SEARCH} looked at", by_index, built, z, single)]
    for expansion in way.expansion:
        assert index._graph is not None
        index._graph.index.expansion_search = expansion
        lines.append(measured(f"usearch, {expansion} looked at", by_index, built, z, single))
    more, started = np.random.default_rng(3).permutation(len(x))[:1000], time.perf_counter()
    index.append(np.asarray(x[np.sort(more)]))
    by_index(z[:1])
    print(f"1,000 vectors appended to usearch's graph in {time.perf_counter() - started:.2f} s", flush=True)
    return lines


def folders(folder: Path, metric: str) -> str:
    """Say how long an index takes to be saved, opened and appended to; called in a process of its own."""
    x, z = np.load(folder / "x.npy", mmap_mode="r"), np.load(folder / "z.npy")
    times = []

    def timed(what: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        done = what()
        times.append(time.perf_counter() - started)
        return done

    index = EmbeddingIndex(x, metric=metric)
    timed(lambda: index.save(folder / "index"))
    index = timed(lambda: EmbeddingIndex.load(folder / "index"))
    timed(lambda: index.append(np.asarray(x[:1000])))
    timed(lambda: index.query(z[:1], K))
    told = "saved in {:.1f} s, opened and checked in {:.1f} s, 1,000 vectors appended in {:.2f} s, first query {:.2f} s"
    return told.format(*times) + f"; peak {peak_megabytes():.0f} MB"


def ways(options: argparse.Namespace) -> Iterator[Way]:
    yield Way("scikit-learn", options.metric, dtype="f8")
    yield Way("scikit-learn", options.metric)
    yield Way("index", options.metric)
    if options.device:
        yield Way("index", options.metric, device=options.device)
    if find_spec("usearch"):
        yield Way("index", options.metric, method="usearch", expansion=options.expansion)
    else:
        print(f"usearch is not installed, so its line is left out. {how_to_install('search')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=256, help="of vectors that are drawn; a file has its own")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--single", type=int, default=20, help="queries that are asked one at a time")
    parser.add_argument("--metric", default="cosine", choices=["cosine", "euclidean"])
    parser.add_argument("--like", default="classes", help="classes, noise, or a file .npz with embeddings as x")
    parser.add_argument("--device", help="a GPU to search on as well")
    parser.add_argument(
        "--expansion",
        type=lambda text: tuple(map(int, text.split(","))),
        default=(),
        help="how many rows usearch looks at, separated by commas, beside its default here",
    )
    options = parser.parse_args()
    drawn = {"classes": classes, "noise": noise}
    draw = drawn[options.like](options.features) if options.like in drawn else jittered(Path(options.like))
    context = multiprocessing.get_context("spawn")  # a process of its own has a peak of its own
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_drawn(folder / "x.npy", draw, options.vectors, 0)
        write_drawn(folder / "z.npy", draw, options.queries, 1)
        print(f"{options.vectors} vectors like {options.like}, {options.metric}, {options.queries} queries, k={K}")
        print(f"{'by':28}" + "".join(f"{head:>14}" for head in HEADS), flush=True)
        truth: np.ndarray | None = None
        for way in ways(options):
            with context.Pool(1) as pool:
                lines = pool.apply(run, (way, folder, options.single))
            for line in lines:
                truth = line.rows if truth is None else truth
                recall = np.mean([len(np.intersect1d(*pair)) / K for pair in zip(line.rows, truth, strict=True)])
                print(f"{line.name:28}" + "".join(f"{n:14.4g}" for n in (*line.numbers, recall)), flush=True)
        with context.Pool(1) as pool:
            print("As a folder: " + pool.apply(folders, (folder, options.metric)))


if __name__ == "__main__":
    main()
