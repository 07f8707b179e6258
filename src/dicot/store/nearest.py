"""The k nearest of many vectors, exactly, in bounded memory, on the CPU or a GPU.

The distance of a query and a row is computed in float64 by one formula that looks at no other row. The answer is the k
rows that come first by (distance, row), so it depends neither on the device nor on how many rows are taken at once.

Matrix products only choose the candidates. |a - b|^2 = |a|^2 + |b|^2 - 2 a b is computed in float64, and rounding
changes it by a share of |a|^2 + |b|^2 that is known. Taking that share away gives a lower bound. Every row whose lower
bound is not above the k-th distance found so far is computed by the formula.
"""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, need_extra
from dicot.data.cases import Array, blocks, release

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
MEMORY = 2**27  # bytes that a search takes beside the vectors and the answer
MOST_ROWS = 8192  # of a block
MANY = 4  # times k candidates of each query: from here on a block keeps its own k nearest first
SCATTERED = 512  # rows that are read before a memory map is given back
LAST = np.finfo(np.float64).max
GRAPH_PIECE = 65_536  # rows that a graph takes at once
# usearch looks at 64 rows by itself. Recall counts for more than time, see docs/log.md.
EXPANSION_ADD, EXPANSION_SEARCH = 128, 512


def check_vectors(x: object, what: str, n_features: int | None = None) -> Array:
    """Return vectors (N, F) of float32, or an error that names the shape; `norms_of` looks at the values."""
    array = np.asanyarray(x)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1]:
        raise InputError(f"{what} must be numbers of shape (cases, features); got {array.dtype} {array.shape}.")
    if n_features is not None and array.shape[1] != n_features:
        raise InputError(
            f"{what} has vectors of {array.shape[1]} features, the index holds vectors of {n_features}. "
            "Embed both by the same model."
        )
    with np.errstate(over="ignore"):  # what becomes inf is refused with the others
        return array if array.dtype == np.float32 else array.astype(np.float32)


def norms_of(x: Array, what: str) -> Floats:
    """Return the lengths (N,) of the vectors; NaN and inf are refused."""
    norms = np.empty(len(x))
    for rows, block in blocks(x):
        norms[rows] = _lengths(block.astype(np.float64))
    if len(lost := np.flatnonzero(~np.isfinite(norms))):
        raise InputError(f"{what} holds NaN or inf in row {lost[0]}, {len(lost)} rows in all. Leave these rows out.")
    return norms


def _lengths(x: Floats) -> Floats:
    """Return the length of each row. Unlike a matrix product, this does not depend on the rows beside it."""
    lengths: Floats = np.sqrt(np.square(x).sum(axis=1))
    return lengths


@final
class Rows:
    """N vectors in arrays or memory maps, one after the other, and their lengths (N,)."""

    def __init__(self, parts: Sequence[Array], norms: Floats) -> None:
        self.parts = [part for part in parts if len(part)] or list(parts[:1])
        self.norms = norms
        self.starts = np.cumsum([0, *map(len, self.parts)])
        self._resident: tuple[Any, list[tuple[int, Any]]] | None = None  # blocks that stay on a GPU

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def n_features(self) -> int:
        return int(self.parts[0].shape[1])

    def blocks(self, size: int) -> Iterator[tuple[int, Array]]:
        """Yield the number of the first row and at most `size` rows, one block after the other."""
        for first, part in zip(self.starts, self.parts, strict=False):
            for at in range(0, len(part), size):
                block = part[at : at + size]
                yield int(first) + at, block
                release(block)

    def blocks_on(self, device: "torch.device", size: int) -> "Iterator[tuple[int, torch.Tensor]]":
        """Yield the same blocks on a GPU; they stay there where half of its free memory suffices."""
        from dicot.core.gpu.device import to_device
        from dicot.core.gpu.memory import free_bytes

        if self._resident is not None and self._resident[0] == (device, size):
            yield from self._resident[1]
            return
        fits = 4 * len(self) * self.n_features <= free_bytes(device) // 2
        kept = []
        for start, values in self.blocks(size):
            block = (start, to_device(values, device))
            if fits:
                kept.append(block)
            yield block
        if fits:
            self._resident = ((device, size), kept)

    def take(self, rows: Whole) -> Array:
        """Return copies of some rows."""
        taken = np.empty((len(rows), self.n_features), np.float32)
        part_of = np.searchsorted(self.starts, rows, side="right") - 1
        for number, part in enumerate(self.parts):
            here = np.flatnonzero(part_of == number)
            for at in range(0, len(here), SCATTERED):
                some = here[at : at + SCATTERED]
                taken[some] = part[rows[some] - self.starts[number]]
                release(part)
        return taken


class Pairs(NamedTuple):
    """Queries and rows that belong together, sorted by row."""

    query: Whole
    row: Whole


NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))


def nearest(
    rows: Rows,
    metric: str,
    z: Floats,
    k: int,
    *,
    allowed: NDArray[np.bool_] | None = None,
    left_out: Pairs = NO_PAIRS,
    memory: int = MEMORY,
    device: "torch.device | None" = None,
) -> tuple[Floats, Whole]:
    """Return distances and rows (Q, k) of the nearest rows, the nearest first, of equal ones the smaller row first.

    Where fewer than k rows may be an answer, the rest is inf and -1.

    Parameters
    ----------
    z : queries (Q, F)
    allowed : which rows may be an answer (N,)
    left_out : rows that are no answer of single queries
    memory : bytes to take at most
    device : where candidates are found; None means by numpy
    """
    distances, found = np.full((len(z), k), np.inf), np.full((len(z), k), -1, np.int64)
    third, f = memory // 3, rows.n_features
    size = min(MOST_ROWS, max(1, third // (16 * f)))
    queries_at_once, pairs_at_once = max(1, third // (32 * size)), max(1, third // (32 * f))
    for at in range(0, len(z), queries_at_once):
        some = slice(at, at + queries_at_once)
        mine = (left_out.query >= at) & (left_out.query < at + queries_at_once)
        asked = _Asked(rows, metric, z[some], k, allowed, Pairs(left_out.query[mine] - at, left_out.row[mine]))
        best = distances[some], found[some]
        for query, row in asked.candidates(size, best, device):
            far = asked.distances(query, row, pairs_at_once)
            old = np.nonzero(best[1] >= 0)
            joined = np.r_[old[0], query], np.r_[best[1][old], row], np.r_[best[0][old], far]
            best[0][:], best[1][:] = first_of(*joined, k, len(best[0]))
    return distances, found


def distances_of(rows: Rows, metric: str, z: Floats, query: Whole, row: Whole, memory: int) -> Floats:
    """Return the distances of pairs of a query and a row."""
    return _Asked(rows, metric, z, 1).distances(query, row, max(1, memory // (96 * rows.n_features)))


def first_of(query: Whole, row: Whole, found: Floats, k: int, n_queries: int) -> tuple[Floats, Whole]:
    """Return the k first pairs of every query by (distance, row) as arrays (n_queries, k), filled with inf and -1."""
    distances, rows = np.full((n_queries, k), np.inf), np.full((n_queries, k), -1, np.int64)
    order = np.lexsort((row, found, query))
    rank = np.arange(len(query)) - np.searchsorted(query[order], query[order])
    order, rank = order[rank < k], rank[rank < k]
    distances[query[order], rank], rows[query[order], rank] = found[order], row[order]
    return distances, rows


@final
class _Asked:
    """Queries (Q, F) that are answered together."""

    def __init__(
        self,
        rows: Rows,
        metric: str,
        z: Floats,
        k: int,
        allowed: NDArray[np.bool_] | None = None,
        left_out: Pairs = NO_PAIRS,
    ) -> None:
        self.rows, self.is_cosine, self.k, self.allowed, self.left_out = rows, metric == "cosine", k, allowed, left_out
        self.z = self._scaled(z, _lengths(z)[:, None])
        # What rounding can change of a distance, as a share of |a|^2 + |b|^2, several times over.
        self.share = (rows.n_features + 16) * 2.0**-50

    def _scaled(self, x: Any, lengths: Any) -> Any:
        """Return unit vectors for the cosine; a vector of zeros has no direction and stays."""
        return x / (lengths + (lengths == 0)) if self.is_cosine else x

    def distances(self, query: Whole, row: Whole, at_once: int) -> Floats:
        """Return the distances of pairs of a query and a row, `at_once` at a time."""
        found = np.empty(len(row))
        for at in range(0, len(row), at_once):
            some = slice(at, at + at_once)
            norms = self.rows.norms[row[some]]
            x = self._scaled(self.rows.take(row[some]).astype(np.float64), norms[:, None])
            squares = np.square(x - self.z[query[some]]).sum(axis=1)
            found[some] = np.where(norms > 0, squares / 2, 1.0) if self.is_cosine else squares**0.5
        return found

    def candidates(
        self, size: int, best: tuple[Floats, Whole], device: "torch.device | None"
    ) -> Iterator[tuple[Whole, Whole]]:
        """Yield pairs of a query and a row that may be among the k nearest, given the `best` (Q, k) found so far."""

        def put(array: Array) -> Any:
            if device is None:
                return array
            import torch

            return torch.as_tensor(array, device=device)

        z, z_squares = put(self.z), put(np.square(self.z).sum(axis=1))
        blocks = self.rows.blocks(size) if device is None else self.rows.blocks_on(device, size)
        for start, values in blocks:
            here = slice(start, start + len(values))
            if self.allowed is not None and not self.allowed[here].any():
                continue
            norms = self.rows.norms[here]
            # A vector of zeros is at distance 1 of a unit vector, and 1 + 1 over 2 is that.
            squares = put(np.ones_like(norms) if self.is_cosine else norms**2)
            sizes = squares + z_squares[:, None]  # (Q, B)
            low = z @ (values.astype(np.float64) if isinstance(values, np.ndarray) else values.double()).T
            low *= -2 / put(norms + (norms == 0)) if self.is_cosine else -2
            low += (1 - self.share) * sizes
            if self.allowed is not None:
                low[:, put(~self.allowed[here])] = np.inf
            first, last = np.searchsorted(self.left_out.row, (here.start, here.stop))
            low[put(self.left_out.query[first:last]), put(self.left_out.row[first:last] - start)] = np.inf
            limit = best[0][:, -1]
            limit = put(np.minimum(2 * limit if self.is_cosine else limit**2, LAST))[:, None]
            hits = low <= limit
            if hits.sum() > MANY * self.k * len(best[0]) and self.k < len(values):
                sizes *= 2 * self.share
                sizes += low
                if device is None:
                    hits &= low <= np.partition(sizes, self.k - 1, axis=1)[:, self.k - 1 : self.k]
                else:
                    hits &= low <= sizes.kthvalue(self.k, dim=1, keepdim=True).values
            if device is None:  # faster than nonzero of a matrix
                query, column = np.divmod(np.flatnonzero(hits), hits.shape[1])
            else:
                query, column = (found.cpu().numpy() for found in hits.nonzero(as_tuple=True))
            if len(query):
                yield query, start + column


def has_usearch() -> bool:
    """Tell whether usearch can be imported."""
    return find_spec("usearch") is not None


@final
class NeighbourGraph:
    """usearch's approximate graph (HNSW) of all rows under their numbers, an extra: pip install 'dicot[search]'."""

    def __init__(self, rows: Rows, metric: str) -> None:
        try:
            from usearch.index import Index
        except ImportError as error:
            raise need_extra("usearch", "search", "method='usearch'") from error
        self.size = 0
        self.index: Any = Index(
            ndim=rows.n_features,
            metric="cos" if metric == "cosine" else "l2sq",
            dtype="f32",
            expansion_add=EXPANSION_ADD,
            expansion_search=EXPANSION_SEARCH,
        )
        self.extend(rows)

    def extend(self, rows: Rows) -> None:
        """Add what `rows` holds beyond those that are there already."""
        for start, block in rows.blocks(GRAPH_PIECE):
            new = block[max(0, self.size - start) :]
            if len(new):
                self.index.add(np.arange(self.size, self.size + len(new), dtype=np.uint64), np.asarray(new))
                self.size += len(new)

    def candidates(self, z: Array, count: int) -> Pairs:
        """Return pairs of a query and a row: about the `count` nearest rows of every query."""
        found = self.index.search(np.asarray(z, np.float32), count)
        keys = np.atleast_2d(found.keys)
        counts = np.atleast_1d(found.counts if hasattr(found, "counts") else keys.shape[1])  # a single query has none
        query, rank = np.nonzero(np.arange(keys.shape[1]) < counts[:, None])
        return Pairs(query, keys[query, rank].astype(np.int64))
