"""The k nearest of many vectors, exactly, in bounded memory.

What is promised: the distance of a query and a row is computed in float64, by a formula that does not depend on other
rows. The answer is the k rows that come first by (distance, row). It does not depend on the size of blocks, on the
device, or on whether the rows came at once or were appended.

How: matrix products in float32 give each row a lower bound of its distance, the computed value less the most that
rounding can have added. The rows with the smallest lower bounds are kept, some more than k of them. If the worst of
these has a lower bound above k upper bounds, no other row can be among the k nearest, and float64 decides among those
kept. Where many rows are about as near as the k-th, so that this cannot be told, a second pass computes in float64
every row whose lower bound is not above the k-th upper bound.

The bound: both metrics are Euclidean distances of vectors v, of unit length for "cosine", scaled to at most 1 for
"euclidean". With a centre m that is subtracted from both, a = v - m, b = q - m and |v - q|^2 / 2 = |a|^2 / 2 - a b +
|b|^2 / 2, whose last term is the same for all rows. A sum of F products in float32 errs by at most g |a| |b| in any
order, where g = F u / (1 - F u) and u = 2^-24 (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).
The rounding of a, b and of the last steps adds a few u. The centre makes a and b small where all vectors share an
offset, and any centre gives the same answer.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.data.policies import Array
from dicot.store.search.rows import Floats, Rows, Whole, row_norms

if TYPE_CHECKING:
    import torch

MEMORY = 2**27  # bytes that a search takes beside the vectors and the answer
MOST_BLOCK = 8192  # rows of a block
MARGIN = 32  # rows that are kept beside 2 k
DENSE = 4  # times as many hits as rows to keep, from which they are selected before they are sorted
CENTRED = 4096  # rows that the centre is the median of
U = 2.0**-24  # half the distance from 1 to the next float32
TINY = 1e-30  # above anything that underflow can take from a sum of products of numbers up to 1
# Length of a query beside the longest row. Farther away, the rounding of float64 would count beside that of float32.
FARTHEST = 1e6
ALIKE = 4.0  # times as long: queries that are answered together
LAST = np.float32(np.finfo(np.float32).max)


class RowBlock(NamedTuple):
    """Rows as the matrix product takes them: lower bounds are `level - queries @ rows.T`."""

    rows: Array  # (B, F): a
    level: Array  # (B,): half of |a|^2, less the error
    error: Array  # (B,): the most by which rounding can change the result, for the longest of the queries


class Pairs(NamedTuple):
    """Rows that are left out for single queries, sorted by row."""

    query: Whole
    row: Whole

    def of(self, queries: Whole) -> "Pairs":
        """Return those of some queries, numbered as these are listed."""
        if not len(self.query):
            return self
        number = np.full(max(self.query.max(), queries.max()) + 1, -1)
        number[queries] = np.arange(len(queries))
        here = number[self.query] >= 0
        return Pairs(number[self.query[here]], self.row[here])


NO_PAIRS = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))


class Filter(NamedTuple):
    """Which rows may be an answer: `allowed` (N,) for all queries, without the `left_out` of single ones."""

    allowed: NDArray[np.bool_] | None = None
    left_out: Pairs = NO_PAIRS


class Queries(NamedTuple):
    """Queries that are answered together: as they came, as the matrix product takes them, and how long at most."""

    z: Floats  # (Q, F)
    b: Array  # (Q, F)
    longest: float


class Kept(NamedTuple):
    """Rows that may be among the nearest of a query, sorted by (query, lower bound)."""

    query: Whole
    row: Whole
    low: Array
    high: Array


@final
class Space:
    """Rows under a metric: what the matrix product gets, and distances in float64."""

    def __init__(self, rows: Rows, metric: str) -> None:
        self.rows, self.metric = rows, metric
        self._resident: tuple[tuple[torch.device, int], list[tuple[int, torch.Tensor, Array]]] | None = None
        with np.errstate(divide="ignore"):
            inverse = np.where(rows.norms > 0, 1 / rows.norms, 0.0)
        largest = rows.norms.max(initial=0.0)
        # A power of two: scaling by it does not round.
        self.scale = 1.0 if not largest else 2.0 ** -np.ceil(np.log2(largest))
        self.inverse = inverse.astype(np.float32) if metric == "cosine" else None
        some = np.arange(0, len(rows), max(1, len(rows) // CENTRED))
        self.centre, self.size = np.zeros(rows.n_features, np.float32), 0.0
        if len(some):
            shown = self._scaled(rows.take(some).astype(np.float64), rows.norms[some])
            self.centre = np.median(shown, axis=0).astype(np.float32)  # a few far rows do not move it
            self.size = float(np.median(row_norms(shown - self.centre)))

    def _scaled(self, x: Floats, norms: Floats) -> Floats:
        """Return x as the centre is subtracted from it; a vector of zeros has no direction and stays."""
        factors = np.where(norms > 0, norms, 1.0)[:, None] if self.metric == "cosine" else 1 / self.scale
        scaled: Floats = x / factors
        return scaled

    def block(self, start: int, values: Array, longest: float, memory: Array | None = None) -> RowBlock:
        """Return rows from `start` on for queries of at most this length, in the memory of an earlier block."""
        a, squares = self.centred(start, values, memory)
        return RowBlock(a, *self.levels(start, squares, longest))

    def centred(self, start: int, values: Array, memory: Array | None = None) -> tuple[Array, Array]:
        """Return a (B, F) and |a|^2 (B,) of the rows from `start` on."""
        n = len(values)
        a = np.empty(values.shape, np.float32) if memory is None else memory[:n]
        factor = np.float32(self.scale) if self.inverse is None else self.inverse[start : start + n, None]
        np.multiply(values, factor, out=a)
        a -= self.centre
        return a, np.einsum("ij,ij->i", a, a)

    def levels(self, start: int, squares: Array, longest: float) -> tuple[Array, Array]:
        """Return `level` and `error` of a block, see there."""
        f = self.rows.n_features
        gamma = (f + 2) * U / (1 - (f + 2) * U)
        # A unit vector is rounded before the centre is taken away; scaling by a power of two does not round.
        unit = 0.0 if self.inverse is None else 3 * U
        sum_of_products = (gamma + 8 * U) * np.sqrt(squares) * (longest + np.sqrt(squares))
        # 1.01 is for products of two errors.
        error = (1.01 * (sum_of_products + unit * (longest + 1)) + TINY).astype(np.float32)
        level = 0.5 * squares
        if self.inverse is not None:  # a vector of zeros is at distance 1, not 1/2, of a unit vector
            level += np.where(self.rows.norms[start : start + len(squares)] > 0, 0, 0.5).astype(np.float32)
        return level - error, error

    def on_device(self, device: "torch.device", size: int) -> "Iterator[tuple[int, torch.Tensor, Array]]":
        """Yield the first row of every block, a on the device, and |a|^2; kept there if half of its memory suffices."""
        from dicot.core.gpu.device import to_device
        from dicot.core.gpu.memory import free_bytes

        if self._resident is not None and self._resident[0] == (device, size):
            yield from self._resident[1]
            return
        kept: list[tuple[int, torch.Tensor, Array]] = []
        fits = 4 * len(self.rows) * self.rows.n_features <= free_bytes(device) // 2
        for start, values in self.rows.blocks(size):
            a, squares = self.centred(start, values)
            block = (start, to_device(a, device), squares)
            if fits:
                kept.append(block)
            yield block
        if fits:
            self._resident = ((device, size), kept)

    def queries(self, z: Floats) -> tuple[Array, Floats]:
        """Return queries (Q, F) as the matrix product takes them, b, and their lengths (Q,)."""
        b = self._scaled(z, row_norms(z)) - self.centre
        lengths = 1.001 * row_norms(b)
        if len(z) and lengths.max() > FARTHEST:
            raise InputError(
                f"Query {int(lengths.argmax())} is more than {FARTHEST:,.0f} times as long as any vector of the index. "
                "Embed and scale it as these were."
            )
        return b.astype(np.float32), lengths

    def distances(self, z: Floats, query: Whole, row: Whole, at_once: int) -> Floats:
        """Return the distances of pairs of a query and a row in float64, `at_once` at a time."""
        found = np.empty(len(row))
        unit = self._scaled(z, row_norms(z)) if self.metric == "cosine" else z
        for at in range(0, len(row), at_once):
            rows, norms = row[at : at + at_once], self.rows.norms[row[at : at + at_once]]
            x = self.rows.take(rows).astype(np.float64)
            if self.metric == "cosine":
                x = self._scaled(x, norms)
            squares = np.square(x - unit[query[at : at + at_once]]).sum(axis=1)
            found[at : at + at_once] = (
                np.where(norms > 0, squares / 2, 1.0) if self.inverse is not None else squares**0.5
            )
        return found


class BlockSizes(NamedTuple):
    """How many rows, queries and pairs are looked at together."""

    rows: int
    queries: int
    pairs: int


def sizes_within(memory: int, n_features: int) -> BlockSizes:
    """Divide the memory: a third each for rows, for lower bounds, and for vectors in float64."""
    third = memory // 3
    rows = min(MOST_BLOCK, max(1, third // (8 * n_features)))
    return BlockSizes(rows, max(1, third // (16 * rows)), max(1, third // (32 * n_features)))


def nearest(
    space: Space,
    z: Floats,
    k: int,
    keep: Filter = Filter(),  # noqa: B008 - immutable
    *,
    memory: int = MEMORY,
    device: "torch.device | None" = None,
) -> tuple[Floats, Whole]:
    """Return distances and rows (Q, k) of the nearest rows, the nearest first, of equal ones the smaller row first.

    Where fewer than k rows may be an answer, the rest is inf and -1. With a device, candidates are found there.
    """
    distances, rows = np.full((len(z), k), np.inf), np.full((len(z), k), -1, np.int64)
    sizes = sizes_within(memory, space.rows.n_features)
    if not len(space.rows):
        return distances, rows
    b, lengths = space.queries(z)
    for some in _together(lengths, space.size, sizes.queries):
        chosen = Queries(z[some], b[some], float(lengths[some].max()))
        narrowed = Filter(keep.allowed, keep.left_out.of(some))
        distances[some], rows[some] = _nearest(space, chosen, k, narrowed, sizes, device)
    return distances, rows


def _together(lengths: Floats, size: float, most: int) -> Iterator[Whole]:
    """Yield the numbers of queries that are answered together: their errors are counted by the longest of them."""
    order = np.argsort(lengths, kind="stable")
    at = 0
    while at < len(order):
        limit = ALIKE * max(float(lengths[order[at]]), size)
        stop = min(at + most, int(np.searchsorted(lengths[order], limit, side="right")))
        stop = max(stop, at + 1)
        yield order[at:stop]
        at = stop


def _nearest(
    space: Space, asked: Queries, k: int, keep: Filter, sizes: BlockSizes, device: "torch.device | None"
) -> tuple[Floats, Whole]:
    n, most = len(asked.z), 2 * k + MARGIN
    if device is None:
        kept = _candidates(space, asked, most, keep, sizes)
    else:
        kept = device_candidates(space, asked, most, keep, sizes, device)
    limit = _at_rank(kept.query, kept.low, most - 1, n)  # inf: all rows were kept
    by_high = np.lexsort((kept.high, kept.query))
    bound = _at_rank(kept.query[by_high], kept.high[by_high], k - 1, n)
    certain = np.isinf(limit) | (limit > bound)
    near = certain[kept.query] & (kept.low <= bound[kept.query])
    query, row = kept.query[near], kept.row[near]
    distances, rows = first_of(query, row, space.distances(asked.z, query, row, sizes.pairs), k, n)
    unsure = np.flatnonzero(~certain)
    if len(unsure):
        again = Queries(asked.z[unsure], asked.b[unsure], asked.longest)
        narrowed = Filter(keep.allowed, keep.left_out.of(unsure))
        distances[unsure], rows[unsure] = _second_pass(space, again, bound[unsure], k, narrowed, sizes)
    return distances, rows


def _lows(space: Space, asked: Queries, keep: Filter, sizes: BlockSizes) -> Iterator[tuple[int, RowBlock, Array]]:
    """Yield the first row of a block, the block, and the lower bounds (Q, B) of its rows; inf for those left out."""
    memory = np.empty((min(sizes.rows, len(space.rows)), space.rows.n_features), np.float32)
    for start, values in space.rows.blocks(sizes.rows):
        stop = start + len(values)
        if keep.allowed is not None and not keep.allowed[start:stop].any():
            continue
        block = space.block(start, values, asked.longest, memory)
        low = asked.b @ block.rows.T
        np.subtract(block.level, low, out=low)
        if keep.allowed is not None:
            low[:, ~keep.allowed[start:stop]] = np.inf
        first, last = np.searchsorted(keep.left_out.row, (start, stop))
        low[keep.left_out.query[first:last], keep.left_out.row[first:last] - start] = np.inf
        yield start, block, low


def _candidates(space: Space, asked: Queries, most: int, keep: Filter, sizes: BlockSizes) -> Kept:
    """Keep the `most` rows with the smallest lower bounds of every query."""
    none, empty = np.empty(0, np.int64), np.empty(0, np.float32)
    kept = Kept(none, none, empty, empty)
    limit = np.full(len(asked.z), LAST)
    for start, block, low in _lows(space, asked, keep, sizes):
        hits = low <= limit[:, None]
        if np.count_nonzero(hits) > DENSE * len(low) * most:
            column = np.argpartition(low, most - 1, axis=1)[:, :most].ravel()
            query = np.repeat(np.arange(len(low)), most)
            hit = hits[query, column]
            query, column = query[hit], column[hit]
        else:
            query, column = np.divmod(np.flatnonzero(hits), low.shape[1])  # faster than nonzero of a matrix
        here = low[query, column]
        high = here + 2 * block.error[column]
        joined = Kept(*map(np.concatenate, zip(kept, (query, start + column, here, high), strict=True)))
        order = np.lexsort((joined.low, joined.query))
        kept = Kept(*(values[order] for values in joined))
        rank = _ranks(kept.query)
        limit[kept.query[rank == most - 1]] = kept.low[rank == most - 1]
        kept = Kept(*(values[rank < most] for values in kept))
    return kept


def _second_pass(
    space: Space, asked: Queries, bound: Array, k: int, keep: Filter, sizes: BlockSizes
) -> tuple[Floats, Whole]:
    """Compute in float64 every row that is not surely farther than the k-th."""
    distances, rows = np.full((len(asked.z), k), np.inf), np.full((len(asked.z), k), -1, np.int64)
    highest = np.minimum(bound, LAST)
    for start, _, low in _lows(space, asked, keep, sizes):
        hits = low <= highest[:, None]
        for query in np.flatnonzero(hits.any(axis=1)):
            row = start + np.flatnonzero(hits[query])
            found = space.distances(asked.z, np.full(len(row), query), row, sizes.pairs)
            # Rows come in rising order, so that a stable sort puts the smaller of equal ones first.
            found, row = np.concatenate([distances[query], found]), np.concatenate([rows[query], row])
            order = np.argsort(found, kind="stable")[:k]
            distances[query], rows[query] = found[order], row[order]
    return distances, rows


def first_of(query: Whole, row: Whole, found: Floats, k: int, n_queries: int) -> tuple[Floats, Whole]:
    """Return the k first pairs of every query by (distance, row) as arrays (n_queries, k), filled with inf and -1."""
    distances, rows = np.full((n_queries, k), np.inf), np.full((n_queries, k), -1, np.int64)
    order = np.lexsort((row, found, query))
    rank = _ranks(query[order])
    order, rank = order[rank < k], rank[rank < k]
    distances[query[order], rank], rows[query[order], rank] = found[order], row[order]
    return distances, rows


def _ranks(query: Whole) -> Whole:
    """Number the entries of each query from 0; `query` is sorted."""
    return np.arange(len(query)) - np.searchsorted(query, query)


def _at_rank(query: Whole, values: Array, rank: int, n_queries: int) -> Array:
    """Return the value at this rank of every query, inf where it has fewer; entries are sorted by query."""
    found = np.full(n_queries, np.inf, np.float32)
    here = _ranks(query) == rank
    found[query[here]] = values[here]
    return found


def device_candidates(
    space: Space, asked: Queries, most: int, keep: Filter, sizes: BlockSizes, device: "torch.device"
) -> Kept:
    """Do what `_candidates` does by torch on a device, in float32 as IEEE has it."""
    import torch

    from dicot.core.gpu.device import float32_arithmetic, to_device

    with torch.inference_mode(), float32_arithmetic(device):
        queries = to_device(asked.b, device)
        low = queries.new_full((len(queries), most), torch.inf)
        high, row = low.clone(), torch.full_like(low, -1, dtype=torch.int64)
        for start, rows, squares in space.on_device(device, sizes.rows):
            stop = start + len(rows)
            if keep.allowed is not None and not keep.allowed[start:stop].any():
                continue
            level, error = (to_device(part, device) for part in space.levels(start, squares, asked.longest))
            lows = torch.addmm(level, queries, rows.T, alpha=-1)  # (Q, B)
            if keep.allowed is not None:
                lows[:, to_device(~keep.allowed[start:stop], device)] = torch.inf
            first, last = np.searchsorted(keep.left_out.row, (start, stop))
            if first < last:
                left = [part[first:last] for part in keep.left_out]
                lows[to_device(left[0], device), to_device(left[1] - start, device)] = torch.inf
            here, column = torch.topk(lows, min(most, stop - start), largest=False, sorted=False)
            highs = here + 2 * error[column]
            low, which = torch.topk(torch.cat([low, here], 1), most, largest=False)
            high = torch.cat([high, highs], 1).gather(1, which)
            row = torch.cat([row, start + column], 1).gather(1, which)
        lows_found, highs_found, rows_found = low.cpu().numpy(), high.cpu().numpy(), row.cpu().numpy()
    query, rank = np.nonzero(np.isfinite(lows_found))
    order = (query, rank)
    return Kept(query, rows_found[order], lows_found[order], highs_found[order])
