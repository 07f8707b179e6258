"""Candidates by usearch's graph (HNSW), for very many vectors. It is an extra: pip install 'dicot[search]'."""

from importlib.util import find_spec
from typing import Any

import numpy as np

from dicot.data.policies import Array
from dicot.errors import InputError
from dicot.search.rows import Rows, Whole

FROM = 200_000  # vectors, where "auto" uses it
PIECE = 65_536  # vectors that are added at once
METRICS = {"cosine": "cos", "euclidean": "l2sq"}
# More than usearch's own 128 and 64: recall counts for more than the time to build.
EXPANSION_ADD, EXPANSION_SEARCH = 256, 256


def is_installed() -> bool:
    """Tell whether usearch can be imported."""
    return find_spec("usearch") is not None


def check_installed() -> None:
    """Refuse usearch by name where it is absent."""
    if not is_installed():
        raise InputError(
            "method='usearch' was asked for, and usearch is not installed. Run: pip install 'dicot[search]', or use "
            "method='exact'."
        )


def build_graph(rows: Rows, metric: str) -> Any:
    """Return usearch's index of all rows, under their numbers; it holds a copy of the vectors."""
    check_installed()
    from usearch.index import Index

    graph = Index(
        ndim=rows.n_features,
        metric=METRICS[metric],
        dtype="f32",
        expansion_add=EXPANSION_ADD,
        expansion_search=EXPANSION_SEARCH,
    )
    for start, block in rows.blocks(PIECE):
        graph.add(np.arange(start, start + len(block), dtype=np.uint64), np.ascontiguousarray(block))
    return graph


def candidates(graph: Any, z: Array, count: int) -> tuple[Whole, Whole]:
    """Return pairs (query, row) of about the `count` nearest rows of every query."""
    found = graph.search(np.ascontiguousarray(z, np.float32), count)
    keys = np.atleast_2d(found.keys)
    counts = np.atleast_1d(found.counts if hasattr(found, "counts") else keys.shape[1])  # a single query has none
    query, rank = np.nonzero(np.arange(keys.shape[1]) < counts[:, None])
    return query, keys[query, rank].astype(np.int64)
