"""Candidates by usearch's graph (HNSW), for very many vectors. It is an extra: pip install 'dicot[search]'."""

from importlib.util import find_spec
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.data.policies import Array
from dicot.store.search.rows import Rows, Whole

FROM = 200_000  # vectors, where "auto" uses it
PIECE = 65_536  # vectors that are added at once
SAMPLE = 4096  # rows that centre and step are found by
WITHIN = 0.99  # share of the rows whose numbers are all reached; in the others the largest are cut off
# The search looks at more than usearch's own 64: recall counts for more than time, see docs/log.md.
EXPANSION_ADD, EXPANSION_SEARCH = 128, 512


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


@final
class NeighbourGraph:
    """usearch's graph of all rows under their numbers, with a copy of them in whole numbers of eight bits.

    These take less memory and time than float32. Their rounding disturbs the order of near rows, so
    more candidates than needed are asked for, and exact distances decide. Rows of both metrics are placed as in
    exact.py: the Euclidean distance of unit vectors orders them as the cosine does.
    """

    def __init__(self, rows: Rows, metric: str) -> None:
        check_installed()
        from usearch.index import Index

        self.metric, self.size = metric, 0
        some = self._scaled(rows.take(np.arange(0, len(rows), max(1, len(rows) // SAMPLE))))
        self.centre: Array = np.median(some, axis=0)
        # usearch sums squares in 32 bits: twice the largest number, squared, F times.
        self.largest = min(127, int((2**31 / rows.n_features) ** 0.5 / 2))
        reach = float(np.quantile(np.abs(some - self.centre).max(axis=1), WITHIN))
        self.step = np.float32(reach / self.largest if reach > 0 else 1.0)
        self._index: Any = Index(
            ndim=rows.n_features,
            metric="l2sq",
            dtype="i8",
            expansion_add=EXPANSION_ADD,
            expansion_search=EXPANSION_SEARCH,
        )
        self.extend(rows)

    @property
    def expansion(self) -> int:
        """Give how many rows a search looks at before it answers: more find more, and take longer."""
        return int(self._index.expansion_search)

    @expansion.setter
    def expansion(self, rows: int) -> None:
        self._index.expansion_search = rows

    def _scaled(self, x: Array) -> Array:
        if self.metric != "cosine":
            return x
        lengths = np.sqrt(np.einsum("ij,ij->i", x, x))
        scaled: Array = x / np.where(lengths > 0, lengths, 1)[:, None]
        return scaled

    def _whole(self, x: Array) -> NDArray[np.int8]:
        steps = np.rint((self._scaled(x) - self.centre) / self.step)
        return np.clip(steps, -self.largest, self.largest).astype(np.int8)

    def extend(self, rows: Rows) -> None:
        """Add what `rows` holds beyond those that are there already."""
        for start, block in rows.blocks(PIECE):
            new = block[max(0, self.size - start) :]
            if len(new):
                self._index.add(np.arange(self.size, self.size + len(new), dtype=np.uint64), self._whole(new))
                self.size += len(new)

    def candidates(self, z: Array, count: int) -> tuple[Whole, Whole]:
        """Return pairs (query, row) of about the `count` nearest rows of every query."""
        found = self._index.search(self._whole(np.asarray(z, np.float32)), count)
        keys = np.atleast_2d(found.keys)
        counts = np.atleast_1d(found.counts if hasattr(found, "counts") else keys.shape[1])  # a single query has none
        query, rank = np.nonzero(np.arange(keys.shape[1]) < counts[:, None])
        return query, keys[query, rank].astype(np.int64)
