"""The k nearest of many vectors, exactly, in bounded memory, on the CPU or a GPU.

The distance of a query and a row is computed in float64 by one formula that looks at no other row. The answer is the k
rows that come first by (distance, row), so it depends neither on the device nor on how many rows are taken at once.

Matrix products only choose the candidates. |a - b|^2 = |a|^2 + |b|^2 - 2 a b is computed in float64, and rounding
changes it by a share of |a|^2 + |b|^2 that is known. Taking that share away gives a lower bound. Every row whose lower
bound is not above the k-th distance found so far is computed by the formula.
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
MEMORY = 2**27  # bytes that a search takes beside the vectors and the answer
MOST_ROWS = 8192  # of a block
MANY = 4  # times k candidates of each query: from here on a block keeps its own k nearest first
SCATTERED = 512  # rows that are read before a memory map is given back
LAST = np.finfo(np.float64).max


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


class Pairs(NamedTuple):
    """Queries and rows that belong together, sorted by row."""

    query: Whole
    row: Whole


NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))


@final
class Rows:
    """N vectors in arrays or memory maps, one after the other, with their lengths (N,) and what is near to what."""

    def __init__(self, parts: Sequence[Array], metric: str, what: str = "x", norms: Floats | None = None) -> None:
        self.parts = [part for part in parts if len(part)] or list(parts[:1])
        self.metric, self._is_cosine = metric, metric == "cosine"
        self.norms = np.concatenate([norms_of(part, what) for part in parts]) if norms is None else norms
        self.starts = np.cumsum([0, *map(len, self.parts)])
        self.n_features = int(self.parts[0].shape[1])
        # What rounding can change of a distance, as a share of |a|^2 + |b|^2, several times over.
        self._share = (self.n_features + 16) * 2.0**-50
        self._resident: tuple[Any, list[tuple[int, Any]]] | None = None  # blocks that stay on a GPU

    def __len__(self) -> int:
        return int(self.starts[-1])

    def with_more(self, part: Array, what: str) -> "Rows":
        """Return these vectors, which are not copied, and more behind them."""
        return Rows([*self.parts, part], self.metric, norms=np.concatenate([self.norms, norms_of(part, what)]))

    def blocks(self, size: int, device: "torch.device | None" = None) -> Iterator[tuple[int, Any]]:
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
        kept = []
        for start, values in self.blocks(size):
            there = (start, to_device(values, device))
            if fits:
                kept.append(there)
            yield there
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

    def nearest(
        self,
        z: Floats,
        k: int,
        allowed: NDArray[np.bool_] | None = None,
        left_out: Pairs = NO_PAIRS,
        memory: int = MEMORY,
        device: "torch.device | None" = None,
    ) -> tuple[Floats, Whole]:
        """Return distances and rows (Q, k) of the nearest rows, the nearest first, of equal ones the smaller row first.

        Where fewer than k rows are `allowed` (N,) and not left out of a query, the rest is inf and -1. Candidates are
        found by numpy, or by torch on a device.
        """
        distances, found = np.full((len(z), k), np.inf), np.full((len(z), k), -1, np.int64)
        size = min(MOST_ROWS, max(1, memory // (48 * self.n_features)))
        at_once = max(1, memory // (96 * size))
        for at in range(0, len(z), at_once):
            some = slice(at, at + at_once)
            mine = (left_out.query >= at) & (left_out.query < at + at_once)
            not_these = Pairs(left_out.query[mine] - at, left_out.row[mine])
            best = distances[some], found[some]
            for query, row in self._candidates(z[some], best, allowed, not_these, size, device):
                far = self.distances(z[some], query, row, memory)
                old = np.nonzero(best[1] >= 0)
                joined = np.r_[old[0], query], np.r_[best[1][old], row], np.r_[best[0][old], far]
                best[0][:], best[1][:] = first_of(*joined, k, len(best[0]))
        return distances, found

    def _scaled(self, x: Floats, lengths: Floats) -> Floats:
        """Return unit vectors for the cosine; a vector of zeros has no direction and stays."""
        return x / (lengths + (lengths == 0))[:, None] if self._is_cosine else x

    def distances(self, z: Floats, query: Whole, row: Whole, memory: int) -> Floats:
        """Return the distances of pairs of a query of z (Q, F) and a row."""
        z, found, at_once = self._scaled(z, _lengths(z)), np.empty(len(row)), max(1, memory // (96 * self.n_features))
        for at in range(0, len(row), at_once):
            some = slice(at, at + at_once)
            norms = self.norms[row[some]]
            x = self._scaled(self.take(row[some]).astype(np.float64), norms)
            squares = np.square(x - z[query[some]]).sum(axis=1)
            found[some] = np.where(norms > 0, squares / 2, 1.0) if self._is_cosine else squares**0.5
        return found

    def _candidates(
        self,
        z: Floats,
        best: tuple[Floats, Whole],
        allowed: NDArray[np.bool_] | None,
        left_out: Pairs,
        size: int,
        device: "torch.device | None",
    ) -> Iterator[tuple[Whole, Whole]]:
        """Yield pairs of a query and a row that may be among the k nearest, given the `best` (Q, k) found so far."""

        def put(array: Array) -> Any:
            if device is None:
                return array
            import torch

            return torch.as_tensor(array, device=device)

        k = best[0].shape[1]
        scaled = self._scaled(z, _lengths(z))
        queries, query_squares = put(scaled), put(np.square(scaled).sum(axis=1))
        for start, values in self.blocks(size, device):
            here = slice(start, start + len(values))
            if allowed is not None and not allowed[here].any():
                continue
            norms = self.norms[here]
            # A vector of zeros is at distance 1 of a unit vector, and 1 + 1 over 2 is that.
            squares = put(np.ones_like(norms) if self._is_cosine else norms**2)
            sizes = squares + query_squares[:, None]  # (Q, B)
            low = queries @ (values.astype(np.float64) if device is None else values.double()).T
            low *= -2 / put(norms + (norms == 0)) if self._is_cosine else -2
            low += (1 - self._share) * sizes
            if allowed is not None:
                low[:, put(~allowed[here])] = np.inf
            first, last = np.searchsorted(left_out.row, (here.start, here.stop))
            low[put(left_out.query[first:last]), put(left_out.row[first:last] - start)] = np.inf
            limit = best[0][:, -1]
            hits = low <= put(np.minimum(2 * limit if self._is_cosine else limit**2, LAST))[:, None]
            if hits.sum() > MANY * k * len(best[0]) and k < len(values):
                sizes *= 2 * self._share
                sizes += low
                if device is None:
                    hits &= low <= np.partition(sizes, k - 1, axis=1)[:, k - 1 : k]
                else:
                    hits &= low <= sizes.kthvalue(k, dim=1, keepdim=True).values
            if device is None:  # faster than nonzero of a matrix
                query, column = np.divmod(np.flatnonzero(hits), hits.shape[1])
            else:
                query, column = (found.cpu().numpy() for found in hits.nonzero(as_tuple=True))
            if len(query):
                yield query, start + column


def first_of(query: Whole, row: Whole, found: Floats, k: int, n_queries: int) -> tuple[Floats, Whole]:
    """Return the k first pairs of every query by (distance, row) as arrays (n_queries, k), filled with inf and -1."""
    distances, rows = np.full((n_queries, k), np.inf), np.full((n_queries, k), -1, np.int64)
    order = np.lexsort((row, found, query))
    rank = np.arange(len(query)) - np.searchsorted(query[order], query[order])
    order, rank = order[rank < k], rank[rank < k]
    distances[query[order], rank], rows[query[order], rank] = found[order], row[order]
    return distances, rows
