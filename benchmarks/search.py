"""python -m benchmarks.search [--vectors 100000] [--features 256] [--queries 1000] [--metric cosine]: speed of search.

Queries per second and recall@10 of EmbeddingIndex beside scikit-learn's brute NearestNeighbors, all queries at once and
one at a time. Recall is counted against the rows that scikit-learn finds in float64. The vectors are correlated
Gaussian classes whose variances fall as a power, as those of an embedding do; the queries are not among them. Set
OMP_NUM_THREADS=1 for one thread. CPU milliseconds are what a busy machine changes least.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.neighbors import NearestNeighbors

from benchmarks.scoring import gaussian
from dicot.search import EmbeddingIndex, approximate

K = 10
Search = Callable[[np.ndarray], np.ndarray]  # queries (Q, F) -> rows (Q, K)


def by_sklearn(x: np.ndarray, metric: str) -> Search:
    model = NearestNeighbors(n_neighbors=K, algorithm="brute", metric=metric).fit(x)
    return lambda z: np.asarray(model.kneighbors(z.astype(x.dtype), return_distance=False))


def by_index(x: np.ndarray, metric: str, device: str = "cpu", method: str = "exact") -> Search:
    index = EmbeddingIndex(x, metric=metric, device=device, method=method)
    return lambda z: index.query(z, K)[1]


def cost(search: Search, z: np.ndarray, at_once: int) -> tuple[float, float]:
    """Queries per second, and CPU milliseconds of a query, `at_once` at a time; the first call is not counted."""
    search(z[:1])
    started, worked = time.perf_counter(), time.process_time()
    for at in range(0, len(z), at_once):
        search(z[at : at + at_once])
    return len(z) / (time.perf_counter() - started), 1000 * (time.process_time() - worked) / len(z)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--single", type=int, default=20, help="queries that are asked one at a time")
    parser.add_argument("--metric", default="cosine", choices=["cosine", "euclidean"])
    parser.add_argument("--device", help="a GPU to search on as well")
    options = parser.parse_args()
    data = gaussian(options.vectors, options.queries, options.features, 20)
    x, z = data.x.astype(np.float32), data.test.astype(np.float32)
    ways: dict[str, Callable[[], Search]] = {
        "scikit-learn, float64": lambda: by_sklearn(x.astype(np.float64), options.metric),
        "scikit-learn, float32": lambda: by_sklearn(x, options.metric),
        "EmbeddingIndex": lambda: by_index(x, options.metric),
    }
    if options.device:
        ways[f"EmbeddingIndex, {options.device}"] = lambda: by_index(x, options.metric, options.device)
    if approximate.is_installed():
        ways["EmbeddingIndex, usearch"] = lambda: by_index(x, options.metric, method="usearch")
    print(
        f"{options.vectors} vectors of {options.features} features, {options.metric}, {options.queries} queries, k={K}"
    )
    heads = ("build s", "queries/s", "CPU ms", "one by one/s", "CPU ms", "recall@10")
    print(f"{'by':28}" + "".join(f"{head:>14}" for head in heads), flush=True)
    truth: np.ndarray | None = None
    for name, build in ways.items():
        started = time.perf_counter()
        search = build()
        built = time.perf_counter() - started
        rows = search(z)
        truth = rows if truth is None else truth
        recall = np.mean([len(np.intersect1d(*pair)) / K for pair in zip(rows, truth, strict=True)])
        numbers = (built, *cost(search, z, len(z)), *cost(search, z[: options.single], 1), recall)
        print(f"{name:28}" + "".join(f"{number:14.4g}" for number in numbers), flush=True)


if __name__ == "__main__":
    main()
