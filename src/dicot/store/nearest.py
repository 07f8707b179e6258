"""The k nearest of many vectors, exactly, in bounded memory, on the CPU or a GPU.

The distance of a query and a row is computed in float64 by one formula that looks at no other row. The answer is the k
rows that come first by (distance, row), so it depends neither on the device nor on how many rows are taken at once.

Matrix products in float32 only choose the candidates: |a - b|^2 = |a|^2 + |b|^2 - 2 a b. Rounding changes that by a
known share of |a|^2 + |b|^2, so every row that could be among the k nearest gets a second look in float64.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.data.cases import Array, blocks, release

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]

MEMORY = 2**27  # bytes that a search takes beside the vectors and the answer
MOST_ROWS = 8192  # of a block
MANY = 4  # times k candidates of each query: from here on a block keeps its own k nearest first
SCATTERED = 512  # rows that are read before a memory map is given back
# Lengths between which products of float32 neither overflow nor lose digits; others are multiplied in float64.
SHORTEST, LONGEST = 1e-15, 1e15


class Pairs(NamedTuple):
    """Queries and rows that belong together, sorted by row."""

    query: Whole
    row: Whole


NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))


def norms_of(x: Array, what: str) -> Floats:
    """Return the lengths (N,) of the vectors; NaN and inf are refused."""
    norms = np.empty(len(x))
    for rows, block in blocks(x):
        norms[rows] = _lengths(block.astype(np.float64))
    bad_rows = np.flatnonzero(~np.isfinite(norms))
    if len(bad_rows):
        raise InputError(
            f"{what} holds NaN or inf in row {bad_rows[0]}, {len(bad_rows)} rows in all. Leave these rows out."
        )
    return norms


def _lengths(x: Floats) -> Floats:
    """Return the length of each row. Unlike a matrix product, this does not depend on the rows beside it."""
    lengths: Floats = np.sqrt(np.square(x).sum(axis=1))
    return lengths


@final
class Rows:
    """N vectors in arrays or memory maps, one after the other, with their lengths (N,) and what is near to what."""

    def __init__(self, parts: Sequence[Array], metric: str, what: str = "x", norms: Floats | None = None) -> None:
        self.parts = [part for part in parts if len(part)] or list(parts[:1])
        self.metric = metric
        self._is_cosine = metric == "cosine"
        self.norms = np.concatenate([norms_of(part, what) for part in parts]) if norms is None else norms
        self.starts = np.cumsum([0, *map(len, self.parts)])
        self.n_features = int(self.parts[0].shape[1])
        self._resident: tuple[Any, list[tuple[int, Any]]] | None = None  # blocks that stay on a GPU

    def __len__(self) -> int:
        return int(self.starts[-1])

    def with_more(self, part: Array, what: str) -> "Rows":
        """Return these vectors, which are not copied, and more behind them."""
        norms = np.concatenate([self.norms, norms_of(part, what)])
        return Rows([*self.parts, part], self.metric, norms=norms)

    def take(self, rows: Whole) -> Array:
        """Return copies of some rows."""
        taken = np.empty((len(rows), self.n_features), np.float32)
        part_of_row = np.searchsorted(self.starts, rows, side="right") - 1
        for number, part in enumerate(self.parts):
            places = np.flatnonzero(part_of_row == number)
            for first in range(0, len(places), SCATTERED):
                some = places[first : first + SCATTERED]
                taken[some] = part[rows[some] - self.starts[number]]
                release(part)
        return taken

    def nearest(
        self,
        z: Floats,
        k: int,
        allowed: Mask | None = None,
        left_out: Pairs = NO_PAIRS,
        memory: int = MEMORY,
        device: "torch.device | None" = None,
    ) -> tuple[Floats, Whole]:
        """Return distances and rows (Q, k) of the nearest rows, the nearest first, of equal ones the smaller row first.

        Where fewer than k rows are `allowed` (N,) and not left out of a query, the rest is inf and -1. Candidates are
        found by numpy, or by torch on a device.
        """
        distances = np.full((len(z), k), np.inf)
        rows = np.full((len(z), k), -1, np.int64)
        block_size = min(MOST_ROWS, max(1, memory // (48 * self.n_features)))
        queries_at_once = max(1, memory // (96 * block_size))
        for first in range(0, len(z), queries_at_once):
            part = slice(first, first + queries_at_once)
            is_here = (left_out.query >= part.start) & (left_out.query < part.stop)
            left_out_here = Pairs(left_out.query[is_here] - first, left_out.row[is_here])
            looks = self._first_looks(z[part], left_out_here, device)
            for start, block in self._blocks(block_size, device):
                excluded = None if allowed is None else ~allowed[start : start + len(block)]
                if excluded is not None and excluded.all():
                    continue
                query, row = looks.candidates(start, block, excluded, distances[part])
                exact = self.distances(z[part], query, row, memory)
                known = np.nonzero(rows[part] >= 0)
                distances[part], rows[part] = first_of(
                    np.concatenate([known[0], query]),
                    np.concatenate([rows[part][known], row]),
                    np.concatenate([distances[part][known], exact]),
                    k,
                    len(z[part]),
                )
        return distances, rows

    def distances(self, z: Floats, query: Whole, row: Whole, memory: int) -> Floats:
        """Return the distances of pairs of a query of z (Q, F) and a row."""
        directions = self._scaled(z, _lengths(z))
        distances = np.empty(len(row))
        pairs_at_once = max(1, memory // (96 * self.n_features))
        for first in range(0, len(row), pairs_at_once):
            some = slice(first, first + pairs_at_once)
            norms = self.norms[row[some]]
            x = self._scaled(self.take(row[some]).astype(np.float64), norms)
            squares = np.square(x - directions[query[some]]).sum(axis=1)
            if self._is_cosine:
                distances[some] = np.where(norms > 0, squares / 2, 1.0)
            else:
                distances[some] = np.sqrt(squares)
        return distances

    def _scaled(self, x: Floats, lengths: Floats) -> Floats:
        """Return unit vectors for the cosine; a vector of zeros has no direction and stays."""
        if not self._is_cosine:
            return x
        units: Floats = x / np.where(lengths > 0, lengths, 1.0)[:, None]
        return units

    def _first_looks(self, z: Floats, left_out: Pairs, device: "torch.device | None") -> "_FirstLooks":
        lengths = _lengths(z)
        sizes = np.concatenate([self.norms, lengths])
        sizes = sizes[sizes > 0]
        is_usual = sizes.min(initial=1.0) >= SHORTEST and sizes.max(initial=1.0) <= LONGEST
        is_single = is_usual and device is None
        return _FirstLooks(self._scaled(z, lengths), self.norms, self._is_cosine, is_single, left_out, device)

    def _blocks(self, size: int, device: "torch.device | None") -> Iterator[tuple[int, Any]]:
        """Yield the number of the first row and at most `size` rows; on a GPU they stay if half its memory suffices."""
        if device is None:
            for first, part in zip(self.starts, self.parts, strict=False):
                for at in range(0, len(part), size):
                    block = part[at : at + size]
                    yield int(first) + at, block
                    release(block)
            return

        from dicot.core.device import free_bytes, to_device

        if self._resident is not None and self._resident[0] == (device, size):
            yield from self._resident[1]
            return
        fits = 4 * len(self) * self.n_features <= free_bytes(device) // 2
        resident = []
        for start, values in self._blocks(size, None):
            on_device = (start, to_device(values, device))
            if fits:
                resident.append(on_device)
            yield on_device
        if fits:
            self._resident = ((device, size), resident)


@final
class _FirstLooks:
    """Queries (Q, F) that are compared with one block of rows after the other by matrix products.

    `is_single` says that float32 suffices for the products; on a device they are always of float64.
    """

    def __init__(
        self,
        queries: Floats,
        norms: Floats,
        is_cosine: bool,
        is_single: bool,
        left_out: Pairs,
        device: "torch.device | None",
    ) -> None:
        self._norms, self._is_cosine, self._left_out, self._device = norms, is_cosine, left_out, device
        self._dtype: type[np.float32 | np.float64] = np.float32 if is_single else np.float64
        # What rounding can change of a squared distance, as a share of |a|^2 + |b|^2, several times over.
        self._share = 2 * (queries.shape[1] + 16) * float(np.finfo(self._dtype).eps)
        self._queries = self._put(queries.astype(self._dtype))
        self._squares = self._put(np.square(queries).sum(axis=1)[:, None])

    def candidates(self, start: int, block: Any, excluded: Mask | None, best: Floats) -> tuple[Whole, Whole]:
        """Return pairs of a query and a row of the block that may be among the k nearest.

        `best` (Q, k) are the distances of the k nearest rows of earlier blocks, in ascending order.
        """
        n_queries, k = best.shape
        sizes = self._sizes(start, len(block))  # |a|^2 + |b|^2, (Q, B)
        lower = self._squared_distances(start, block, sizes) - self._share * sizes
        if excluded is not None:
            lower[:, self._put(excluded)] = np.inf
        first, last = np.searchsorted(self._left_out.row, (start, start + len(block)))
        of_block = slice(first, last)
        lower[self._put(self._left_out.query[of_block]), self._put(self._left_out.row[of_block] - start)] = np.inf

        limits = 2 * best[:, -1:] if self._is_cosine else np.square(best[:, -1:])
        limits = np.minimum(limits, np.finfo(np.float64).max)  # what is left out is at inf
        is_candidate = lower <= self._put(limits)
        if is_candidate.sum() > MANY * k * n_queries and k < len(block):
            upper = lower + 2 * self._share * sizes
            is_candidate &= lower <= self._kth_smallest(upper, k)
        if self._device is not None:
            is_candidate = is_candidate.cpu().numpy()
        query, column = np.divmod(np.flatnonzero(is_candidate), len(block))  # faster than nonzero of a matrix
        return query, start + column

    def _sizes(self, start: int, count: int) -> Any:
        norms = self._norms[start : start + count]
        # A vector of zeros is at distance 1 of a unit vector, and 1 + 1 over 2 is that.
        squares = np.ones_like(norms) if self._is_cosine else np.square(norms)
        return self._squares + self._put(squares)

    def _squared_distances(self, start: int, block: Any, sizes: Any) -> Any:
        """Return (Q, B) squared distances but for rounding; for the cosine those of unit vectors."""
        values = block.astype(self._dtype, copy=False) if self._device is None else block.double()
        products = self._queries @ values.T
        if self._is_cosine:
            norms = self._norms[start : start + len(block)]
            products = products / self._put(np.where(norms > 0, norms, 1.0))
        return sizes - 2 * products

    def _kth_smallest(self, values: Any, k: int) -> Any:
        """Return (Q, 1) the k-th smallest value of each query."""
        if self._device is None:
            return np.partition(values, k - 1, axis=1)[:, k - 1 : k]
        return values.kthvalue(k, dim=1, keepdim=True).values

    def _put(self, array: Any) -> Any:
        if self._device is None:
            return array
        import torch

        return torch.as_tensor(array, device=self._device)


def first_of(query: Whole, row: Whole, distances: Floats, k: int, n_queries: int) -> tuple[Floats, Whole]:
    """Return the k first pairs of every query by (distance, row) as arrays (n_queries, k), filled with inf and -1."""
    best_distances = np.full((n_queries, k), np.inf)
    best_rows = np.full((n_queries, k), -1, np.int64)
    order = np.lexsort((row, distances, query))
    rank = np.arange(len(query)) - np.searchsorted(query[order], query[order])
    is_best = rank < k
    order, rank = order[is_best], rank[is_best]
    best_distances[query[order], rank] = distances[order]
    best_rows[query[order], rank] = row[order]
    return best_distances, best_rows
