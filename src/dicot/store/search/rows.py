"""Vectors (N, F) of float32 in one array or several, which may be memory maps: an index grows without a copy."""

from collections.abc import Iterator, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.data.pieces import pieces, release
from dicot.data.policies import Array

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
# Sizes of vectors between which squares and products of float32 neither overflow nor vanish.
SMALLEST, LARGEST = 1e-15, 1e15
SCATTERED = 512  # rows that are read before a map is given back: with each of them the system maps 64 KB around it
MOST_FEATURES = 2**16  # up to here a sum in float32 is known to three digits at worst, see exact.py


def check_vectors(x: object, what: str, n_features: int | None = None) -> Array:
    """Return vectors (N, F) of float32, or an error that names the shape; values are looked at by `norms_of`."""
    array = np.asanyarray(x)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1]:
        raise InputError(f"{what} must be numbers of shape (cases, features); got {array.dtype} {array.shape}.")
    if n_features is not None and array.shape[1] != n_features:
        raise InputError(
            f"{what} has vectors of {array.shape[1]} features, the index holds vectors of {n_features}. "
            "Embed both by the same model."
        )
    if array.shape[1] > MOST_FEATURES:
        raise InputError(f"{what} has {array.shape[1]} features; at most {MOST_FEATURES} can be searched. Compress it.")
    with np.errstate(over="ignore"):  # what becomes inf is refused with the others
        return array if array.dtype == np.float32 else array.astype(np.float32)


def norms_of(x: Array, what: str) -> Floats:
    """Return the lengths (N,) of the vectors; NaN, inf and sizes that float32 cannot square are refused."""
    norms = np.empty(len(x))
    for rows in pieces((len(x), 1, x.shape[1])):
        norms[rows] = row_norms(x[rows].astype(np.float64))
        release(x[rows])
    lost = np.flatnonzero(~np.isfinite(norms))
    if len(lost):
        raise InputError(f"{what} holds NaN or inf in row {lost[0]}, {len(lost)} rows in all. Leave these rows out.")
    sizes = np.flatnonzero((norms > LARGEST) | ((norms < SMALLEST) & (norms > 0)))
    if len(sizes):
        raise InputError(
            f"{what} has a vector of length {norms[sizes[0]]:.3g} in row {sizes[0]}; those between {SMALLEST:g} and "
            f"{LARGEST:g}, or 0, can be searched. Rescale the vectors."
        )
    return norms


def row_norms(x: Floats) -> Floats:
    """Return the length of each row, which does not depend on the rows beside it, as that by BLAS may."""
    with np.errstate(over="ignore"):
        norms: Floats = np.sqrt(np.square(x).sum(axis=1))
    return norms


@final
class Rows:
    """N vectors in parts, one after the other, and their lengths (N,)."""

    def __init__(self, parts: Sequence[Array], norms: Floats) -> None:
        self.parts = [part for part in parts if len(part)] or list(parts[:1])
        self.norms = norms
        self.starts = np.cumsum([0, *map(len, self.parts)])

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
