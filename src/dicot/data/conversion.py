"""Cases that were checked as a whole and become arrays of one shape piece by piece, when they are asked for."""

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, lookup
from dicot.data.cases import to_cases, true_length
from dicot.data.pieces import Collection, is_mapped, pieces, release
from dicot.data.policies import (
    MISSING,
    UNEQUAL,
    Array,
    Cases,
    FloatArray,
    Scale,
    check_missing,
    name_cases,
    scale_each_case,
    target_length,
)

if TYPE_CHECKING:
    from dicot.data.stored import CaseStore

LARGEST_VALUE = 1e15  # of what a network is given: it sums squares, which float32 must hold
LARGEST_UNSCALED_VALUE = 1e100  # the same for the statistics of a scale, in float64
SWALLOWED = 1e-4  # share of a channel's range that rounding to float32 may take

Place = tuple[int, int]  # case, channel


@dataclass(frozen=True, eq=False)
class Conversion:
    """`x[rows]` is (B, C, length), C-contiguous and finite; nothing is copied where nothing has to change."""

    cases: "Cases | CaseStore"  # as they came
    lengths: Array  # (N,) time steps of each without the padding at its end
    gaps: NDArray[np.bool_]  # (N,) whether values are missing in it
    index: Array  # positions of the cases that this is about, ascending
    length: int
    unequal: str = "error"
    missing: str = "error"
    scale: str | Scale | None = None  # "dataset" only until its statistics are known
    dtype: type[np.floating[Any]] = np.float32  # of values that are not scaled; scaled ones are float32

    @property
    def shape(self) -> tuple[int, int, int]:
        n_channels = self.cases[0].shape[0] if isinstance(self.cases, list) else self.cases.shape[1]
        return len(self.index), n_channels, self.length

    @property
    def ndim(self) -> int:
        return 3

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: slice | Array) -> FloatArray:
        index = self.index[rows]
        block = self._of_one_length(index)
        if self.scale is None:
            out = np.ascontiguousarray(block, self.dtype)
        else:
            out = self.scale(block) if isinstance(self.scale, Scale) else scale_each_case(block)
            refuse_large(out, LARGEST_VALUE, "after scaling ", index)
        if is_mapped(block):
            out = out.copy() if np.shares_memory(out, block) else out
            release(block)
        return out

    def whole(self, *, own: bool = False) -> FloatArray:
        """All of it as one array; the cases themselves where they are one already, with `own` only writable ones."""
        if self._is_whole() and not (own and is_mapped(self.cases)):
            assert isinstance(self.cases, np.ndarray)
            return self.cases
        out = np.empty(self.shape, self.dtype if self.scale is None else np.float32)
        for rows in pieces(self.shape):
            out[rows] = self[rows]
        return out

    def chosen(self, rows: Array) -> "Conversion":
        """The cases at these positions, or where this mask is True."""
        return replace(self, index=self.index[rows])

    def fingerprint(self) -> str:
        """16 hex digits that change with any value."""
        return fingerprint(self)

    def _is_whole(self) -> bool:
        cases = self.cases
        return (
            isinstance(cases, np.ndarray)
            and cases.dtype == self.dtype
            and cases.flags.c_contiguous
            and cases.shape == self.shape
            and self.scale is None
            and not self.gaps.any()
            and bool((self.lengths == self.length).all())
        )

    def _of_one_length(self, index: Array) -> Array:
        lengths, change, fill = self.lengths[index], UNEQUAL[self.unequal], MISSING[self.missing]
        if isinstance(self.cases, list) or (lengths != lengths[0]).any():
            each = [self.cases[i][:, :n] for i, n in zip(index, lengths, strict=True)]
            filled = [fill(case) if self.gaps[i] else case for i, case in zip(index, each, strict=True)]
            return np.stack([change(case, self.length) for case in filled])
        together = bool((np.diff(index) == 1).all())
        block = self.cases[slice(index[0], index[-1] + 1) if together else index][:, :, : lengths[0]]
        if self.gaps[index].any():
            block = block.copy()
            for row in np.flatnonzero(self.gaps[index]):
                block[row] = fill(block[row])
        return block if block.shape[2] == self.length else change(block, self.length)


def convert(
    X: Any,
    *,
    layout: str = "nct",
    unequal: str = "error",
    missing: str = "error",
    scale: str | Scale | None = None,
    length: int | None = None,
) -> Conversion:
    """Check whatever a user may pass as X by these policies (see check_collection); scale="dataset" is fitted to it."""
    cases = to_cases(X, layout)
    plain = survey(cases, missing, scale)
    short = np.flatnonzero(plain.lengths < [case.shape[1] for case in cases])
    if unequal == "error" and len(short):
        raise InputError(
            f"X contains NaN in all channels at the end of {name_cases(short)}, which marks a shorter case. "
            'Set unequal="pad", "crop" or "resample", or replace these values.'
        )
    return settle(plain, unequal, length)


def settle(cases: Conversion, unequal: str, length: int | None = None) -> Conversion:
    """Give surveyed cases one length, a type that can tell their values apart, and the statistics of their scale."""
    return at_length(cases, unequal, target_length(cases.lengths, unequal, length))


def at_length(cases: Conversion, unequal: str, length: int) -> Conversion:
    """Do the same with this length, whatever the cases have: "pad" cuts longer ones, "crop" adds zeros to shorter."""
    fixed = replace(cases, unequal=unequal, length=length)
    bare = replace(fixed, scale=None)
    if swallows(bare):
        fixed, bare = replace(fixed, dtype=np.float64), replace(bare, dtype=np.float64)
    return replace(fixed, scale=Scale.fit(bare)) if fixed.scale == "dataset" else fixed


def survey(cases: Cases, missing: str, scale: str | Scale | None) -> Conversion:
    """Look at every value once: inf, what is too large and, by `missing`, NaN are refused with case and channel."""
    check_policies(missing, scale)
    lengths = np.array([case.shape[1] for case in cases])
    gaps = np.zeros(len(cases), bool)
    largest = LARGEST_VALUE if scale is None else LARGEST_UNSCALED_VALUE
    infinite: list[Place] = []
    extreme: list[Place] = []
    dead: list[Place] = []  # without any value
    for start, block in _looked_at(cases):
        if _within(block, largest):
            continue
        finite = np.nan_to_num(block.astype(np.float64, copy=False), posinf=0, neginf=0)
        infinite += _places(np.isinf(block), start)
        extreme += _places(np.abs(finite) > largest, start)
        for row in np.flatnonzero(np.isnan(block).any((1, 2))):
            lengths[start + row] = n = true_length(block[row])
            lost = np.isnan(block[row, :, :n])
            gaps[start + row] = lost.any()
            dead += [(start + int(row), int(channel)) for channel in np.flatnonzero(lost.all(axis=1))]
    if infinite:
        raise InputError(f"X contains inf in {_named(infinite)}. Remove or clip these values.")
    _refuse_extreme(extreme, largest)
    if not lengths.all():
        raise InputError(
            f"X contains nothing but NaN in {name_cases(np.flatnonzero(lengths == 0))}. Drop what has no values."
        )
    check_missing(np.flatnonzero(gaps), missing)
    if dead and missing == "interpolate":
        raise InputError(
            f'X has no value at all in {_named(dead)}, and missing="interpolate" has nothing to fill it in from. Leave '
            'out the case or the channel, or set missing="zero".'
        )
    return Conversion(cases, lengths, gaps, np.arange(len(cases)), int(lengths.max()), missing=missing, scale=scale)


def check_policies(missing: str, scale: str | Scale | None) -> None:
    """Refuse an unknown policy for missing values or scale."""
    lookup(MISSING, missing, "policy for missing values")
    if not (scale is None or isinstance(scale, Scale) or scale in ("dataset", "case")):
        raise InputError(f'scale must be None, "dataset", "case" or a Scale; got {scale!r}.')


def refuse_large(block: Array, largest: float, when: str, index: Array) -> None:
    """An error that names the first places beyond +-`largest`; the cases of the block are those at `index`."""
    if not _within(block, largest):
        places = [(int(index[row]), channel) for row, channel in _places(~(np.abs(block) <= largest))]
        _refuse_extreme(places, largest, when)


def fingerprint(x: Collection) -> str:
    """16 hex digits that change with any value of x (N, C, T)."""
    digest = hashlib.sha256(repr(tuple(x.shape)).encode())
    for rows in pieces(x.shape):
        block = x[rows]
        digest.update(np.ascontiguousarray(block).data)
        release(block)
    return digest.hexdigest()[:16]


def _refuse_extreme(places: list[Place], largest: float, when: str = "") -> None:
    if places:
        raise InputError(
            f"X contains values {when}beyond ±{largest:.0e} in {_named(places)}, more than a network can sum in "
            'float32. Remove or clip these values, or, if all are like that, set scale="dataset".'
        )


def _looked_at(cases: Cases) -> Any:
    """Pieces (B, C, T) with the position of their first case."""
    if isinstance(cases, list):
        yield from ((start, case[None]) for start, case in enumerate(cases))
        return
    for rows in pieces(cases.shape):
        block = cases[rows]
        yield rows.start, block
        release(block)


def _within(block: Array, largest: float) -> bool:
    """Whether no value is NaN, inf or beyond +-`largest`."""
    with np.errstate(invalid="ignore"):
        return -largest <= float(block.min()) and float(block.max()) <= largest


def _places(where: NDArray[np.bool_], start: int = 0) -> list[Place]:
    rows, channels = np.nonzero(where.any(axis=2))
    return [(start + int(row), int(channel)) for row, channel in zip(rows, channels, strict=True)]


def _named(places: list[Place]) -> str:
    """`case 3 (channel 0)`, or `cases 3, 5 and 9 (case 3 in channel 0)`."""
    cases = sorted({case for case, _ in places})
    first, channel = min(places)
    return f"{name_cases(cases)} ({f'case {first} in ' if len(cases) > 1 else ''}channel {channel})"


def swallows(x: Conversion) -> bool:
    """Whether float32 would lose what tells the values of a channel apart, as it does with whole numbers around 1e9."""
    kinds = {case.dtype for case in x.cases} if isinstance(x.cases, list) else {x.cases.dtype}
    if all(np.can_cast(kind, np.float32) for kind in kinds):
        return False
    low, high = np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf)
    exact = replace(x, dtype=np.float64)
    for rows in pieces(x.shape):
        block = exact[rows]
        low, high = np.minimum(low, block.min(axis=(0, 2))), np.maximum(high, block.max(axis=(0, 2)))
    rounding = np.maximum(-low, high) * float(np.finfo(np.float32).eps) / 2
    return bool((rounding > SWALLOWED * (high - low))[high > low].any())
