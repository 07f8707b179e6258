"""The exact nearest neighbour among many references, by blocks of matrix products."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dicot.gpu.device import resolve_device, to_device
from dicot.solvers.inputs import check_finite

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

QUERIES = {"cpu": 512, "cuda": 4096}  # rows and columns of a block of distances; they bound memory
REFERENCES = {"cpu": 2048, "cuda": 8192}
GROUP = 32  # references of a block that are told apart only where one of them may be the closest
PAIRS = 16384  # compared at a time
CROWD = 16  # candidates per query from which a product in float64 is cheaper than to compare them
LANES, LEAF = 8, 128  # in which numpy adds up a row, and how much of it at a time
FAR = 1e15  # a length whose square comes near the largest float32


def nearest(references: Floats, queries: Floats, *, device: str = "auto") -> Rows:
    """(N,) the row of `references` (M, F) closest to each of `queries` (N, F); of equally close ones the first.

    Distances from matrix products carry rounding errors, in float32 on a CPU and in float64 on a GPU. Every reference
    that could be the closest within a bound on these errors is compared anew by the squared differences in float64 of
    the values as they were given, added in numpy's order: the answer is that of
    `np.square(references - query).sum(axis=1).argmin()`, ties included.
    """
    check_finite("references", references)
    check_finite("queries", queries)
    place = resolve_device(device)
    first = _first_of_equal_rows(references)
    mean = to_device(references[first].mean(axis=0), place, torch.float64)  # errors grow with the distance from 0
    given = to_device(queries, place, torch.float64)
    x = given - mean
    length = x.norm(dim=1)
    best = torch.full_like(length, torch.inf)  # squared distance
    chosen = torch.zeros(len(x), dtype=torch.int64, device=place)
    rough = torch.float32 if place.type == "cpu" and float(length.max()) < FAR else torch.float64
    left = _left_factor(x, rough)
    for start in range(0, len(first), REFERENCES[place.type]):
        rows_of_block = first[start : start + REFERENCES[place.type]]
        originals = to_device(references[rows_of_block], place, torch.float64)
        block = originals - mean
        reach = float(block.norm(dim=1).max())
        right = _right_factor(block, rough if reach < FAR else torch.float64)
        for top in range(0, len(x), QUERIES[place.type]):
            part = slice(top, top + QUERIES[place.type])
            rows, columns = _candidates(left[part].to(right.dtype), right, length[part], best[part], reach)
            if right.dtype != torch.float64 and len(rows) > CROWD * len(x[part]):
                precise = _left_factor(x[part], torch.float64), _right_factor(block, torch.float64)
                rows, columns = _candidates(*precise, length[part], best[part], reach)
            # Not the centred values: their rounding would tell equally close references apart.
            _compare(given[part], originals, rows, columns, start, best[part], chosen[part])
    return np.asarray(first[chosen.cpu().numpy()], dtype=np.int64)


def _left_factor(x: Tensor, dtype: torch.dtype) -> Tensor:
    """(N, F + 1), to be multiplied by the right factor of a block."""
    return torch.cat([x, torch.ones_like(x[:, :1])], dim=1).to(dtype)


def _right_factor(block: Tensor, dtype: torch.dtype) -> Tensor:
    """(F + 1, M) so that the product is the squared distance from x to each row of the block, less |x|^2.

    M is filled up to a multiple of GROUP by references at infinity.
    """
    factor = torch.cat([-2 * block, block.square().sum(dim=1, keepdim=True)], dim=1)
    filler = factor.new_zeros(-len(block) % GROUP, factor.shape[1])
    filler[:, -1] = torch.inf
    return torch.cat([factor, filler]).to(dtype).T


def _candidates(left: Tensor, right: Tensor, length: Tensor, best: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    """Rows and columns of the pairs that may be closer than `best` and than all others of the block."""
    product = left @ right
    precision = torch.finfo(right.dtype)
    # Twice the worst case of a sum of products in any order, which covers the rounding of the factors too.
    error = (len(right) + 8) * (precision.eps * (length + reach) ** 2 + precision.tiny)
    # One pass over the whole product; what follows looks at few of its groups of columns.
    lowest = product.view(len(left), GROUP, -1).amin(dim=1)
    limit = torch.minimum(best - length**2 + error, lowest.amin(dim=1).double() + 2 * error)
    limit[best == 0] = -torch.inf  # a later reference cannot be closer
    limit = limit.to(right.dtype)
    rows, groups = (lowest <= limit[:, None]).nonzero(as_tuple=True)
    members = groups[:, None] + lowest.shape[1] * torch.arange(GROUP, device=right.device)
    close, which = (product[rows[:, None], members] <= limit[rows, None]).nonzero(as_tuple=True)
    return rows[close], members[close, which]


def _compare(x: Tensor, block: Tensor, rows: Tensor, columns: Tensor, start: int, best: Tensor, chosen: Tensor) -> None:
    """Write to `best` and `chosen` what the pairs improve."""
    exact = torch.cat(
        [
            _row_sums((x[some] - block[others]).square_())
            for some, others in zip(torch.split(rows, PAIRS), torch.split(columns, PAIRS), strict=True)
        ]
    )
    lowest = torch.full_like(best, torch.inf).scatter_reduce_(0, rows, exact, "amin")
    ties = exact == lowest[rows]
    leftmost = torch.full_like(chosen, len(block)).scatter_reduce_(0, rows[ties], columns[ties], "amin")
    closer = lowest < best
    best[closer] = lowest[closer]
    chosen[closer] = leftmost[closer] + start


def _row_sums(values: Tensor) -> Tensor:
    """(P,) sums of the rows of (P, F), added in numpy's order whatever the device and the number of rows.

    torch.sum promises no order. numpy adds fewer than 8 values one by one, up to 128 in 8 lanes, more by halves.
    """
    count = values.shape[1]
    if count > LEAF:
        half = count // 2 // LANES * LANES
        return _row_sums(values[:, :half]) + _row_sums(values[:, half:])
    in_lanes = count // LANES * LANES
    if not in_lanes:
        total, rest = values[:, 0], range(1, count)
    else:
        lanes = values[:, :LANES]
        for start in range(LANES, in_lanes, LANES):
            lanes = lanes + values[:, start : start + LANES]
        while lanes.shape[1] > 1:
            lanes = lanes[:, ::2] + lanes[:, 1::2]
        total, rest = lanes[:, 0], range(in_lanes, count)
    for column in rest:
        total = total + values[:, column]
    return total


def _first_of_equal_rows(x: Floats) -> Rows:
    """Ascending rows without exact repeats, which would all be candidates; a collapsed encoder gives nothing else."""
    mix = np.random.default_rng(0).integers(1, 2**63, x.shape[1], dtype=np.uint64) | np.uint64(1)
    keys = np.empty(len(x), np.uint64)
    for start in range(0, len(x), PAIRS):
        bits = (x[start : start + PAIRS] + 0.0).view(np.uint64)  # + 0.0: minus zero equals zero
        keys[start : start + PAIRS] = ((bits ^ (bits >> np.uint64(29))) * mix).sum(axis=1, dtype=np.uint64)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    original = first[inverse]
    repeats = np.flatnonzero(original != np.arange(len(x)))
    # Two different rows may have the same key, so look.
    really = np.concatenate(
        [(x[some] == x[original[some]]).all(axis=1) for some in np.array_split(repeats, len(repeats) // PAIRS + 1)]
    )
    return np.delete(np.arange(len(x)), repeats[really])
