"""Cases that were checked as a whole and become arrays of one shape piece by piece, when they are asked for."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, lookup
from dicot.core.settings import how_to_prepare
from dicot.data import cases as of_cases
from dicot.data.cases import Array, Cases, FloatArray, RawCases, Scale, name_cases, pieces
from dicot.data.offsets import WithoutOffsets, lossy_offsets, varies

LARGEST_VALUE = 1e15  # of what a network is given: it sums squares, which float32 must hold
LARGEST_UNSCALED_VALUE = 1e100  # the same for the statistics of a scale, in float64
_SWALLOWED = 1e-4  # share of a channel's range that rounding to float32 may take

Place = tuple[int, int]  # case, channel


@dataclass(frozen=True, eq=False)
class Conversion(Cases):
    """`x[rows]` is (B, C, length), C-contiguous and finite; nothing is copied where nothing has to change."""

    cases: RawCases | Cases  # as they came
    lengths: Array  # (N,) time steps of each without the padding at its end
    gaps: NDArray[np.bool_]  # (N,) whether values are missing in it
    index: Array  # positions of the cases that this is about, ascending
    length: int
    unequal: str = "error"
    missing: str = "error"
    scale: str | Scale | None = None  # "dataset" only until its statistics are known
    dtype: Any = np.float32  # of values that are not scaled; scaled ones are float32
    order: Sequence[int] | None = None  # of the channels
    y: Array | None = None  # (N,) labels of all cases; None: those that the cases have themselves
    title: str = ""  # the name of cases that have none themselves

    def __post_init__(self) -> None:
        n_channels = self.cases[0].shape[0] if isinstance(self.cases, list) else self.cases.shape[1]
        object.__setattr__(self, "shape", (len(self.index), n_channels, self.length))
        object.__setattr__(self, "name", self.cases.name if isinstance(self.cases, Cases) else self.title)

    def __getitem__(self, rows: slice | Array, /) -> FloatArray:
        index = self.index[rows]
        return self._finished(self._of_one_length(index), index)

    @property
    def may_lose(self) -> bool:
        """Whether the values have more digits than float32, in which a network computes."""
        kinds = {case.dtype for case in self.cases} if isinstance(self.cases, list) else {self.cases.dtype}
        return not all(np.can_cast(kind, np.float32) for kind in kinds)

    def count(self, is_so: Callable[[Array], Array]) -> Array:
        """Count the cases, channel by channel, of which something is so before they are scaled, (n, C, T) -> (n, C)."""
        counts = np.zeros(self.shape[1], np.intp)
        for rows in pieces(self.shape):
            counts += np.count_nonzero(is_so(self._of_one_length(self.index[rows])), axis=0)
        return counts

    @property
    def in_memory(self) -> bool:
        if isinstance(self.cases, list):
            return True
        return isinstance(self.cases, np.ndarray) and not of_cases.is_mapped(self.cases)

    @property
    def may_split(self) -> bool:
        """Whether there may be offsets which float32 could not hold beside the signal."""
        return isinstance(self.scale, Scale) or (self.scale is None and self.may_lose)

    def split(self, rows: slice | Array) -> WithoutOffsets:
        """Return the cases in these rows without the offsets that float32 could not have held beside the signal."""
        index = self.index[rows]
        block = self._of_one_length(index)
        offsets = np.zeros(block.shape[:2])
        exact = block
        if isinstance(self.scale, Scale):
            exact = self.scale.exact(block)
            offsets = np.where(varies(block), lossy_offsets(exact), 0.0)
        elif self.may_split:
            offsets = lossy_offsets(block)
        if not offsets.any():
            return WithoutOffsets(self._finished(block, index), offsets)

        values = (exact - offsets[..., None]).astype(np.float32)
        of_cases.release(block)
        self._refuse_scaled_beyond(values, index)
        return WithoutOffsets(values, offsets)

    def _finished(self, block: Array, index: Array) -> FloatArray:
        """Return cases of one length as a network is given them."""
        if self.scale is None:
            out = np.ascontiguousarray(block, self.dtype)
        else:
            out = self.scale(block) if isinstance(self.scale, Scale) else of_cases.scale_each_case(block)
            self._refuse_scaled_beyond(out, index)
        if of_cases.is_mapped(block):
            out = out.copy() if np.shares_memory(out, block) else out
            of_cases.release(block)
        return out

    def _refuse_scaled_beyond(self, out: FloatArray, index: Array) -> None:
        if self.scale is not None and not _within(out, LARGEST_VALUE):
            places = _places(~(np.abs(out) <= LARGEST_VALUE))
            _refuse_extreme([(int(index[row]), c) for row, c in places], LARGEST_VALUE, "after scaling ")

    def labels(self) -> Array | None:
        return None if self._all_labels is None else self._all_labels[self.index]

    @cached_property
    def _all_labels(self) -> Array | None:
        return self.cases.labels() if self.y is None and isinstance(self.cases, Cases) else self.y

    def whole(self, *, own: bool = False) -> FloatArray:
        """Return all of it as one array; the cases themselves where they are one, with `own` only writable ones."""
        x, changed = self.cases, self.scale is not None or self.order is not None or self.gaps.any()
        if isinstance(x, np.ndarray) and not changed and not (own and of_cases.is_mapped(x)):
            same = x.dtype == self.dtype and x.shape == self.shape and x.flags.c_contiguous
            if same and (self.lengths == self.length).all():
                return x
        out = np.empty(self.shape, self.dtype if self.scale is None else np.float32)
        for rows in pieces(self.shape):
            out[rows] = self[rows]
        return out

    def subset(self, rows: Array) -> "Conversion":
        """Return the cases at these positions, or where this mask is True."""
        return replace(self, index=self.index[rows], y=self._all_labels)

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value; of cases on disk by their own, and what is done to them."""
        if not isinstance(self.cases, Cases):
            return super().fingerprint()
        said = [self.cases.fingerprint(), repr(self.shape)]
        if isinstance(self.scale, Scale):
            said += [self.scale.mean.tobytes().hex(), self.scale.std.tobytes().hex()]
        else:
            said.append(str(self.scale))
        if len(self) < len(self.cases):
            said.append(hashlib.sha256(self.index.tobytes()).hexdigest())
        return hashlib.sha256(" ".join(said).encode()).hexdigest()[:16]

    def _of_one_length(self, index: Array) -> Array:
        lengths, change, fill = self.lengths[index], of_cases.UNEQUAL[self.unequal], of_cases.MISSING[self.missing]
        if isinstance(self.cases, list) or (lengths != lengths[0]).any():
            each = [self.cases[i][:, :n] for i, n in zip(index, lengths, strict=True)]
            filled = [fill(case) if self.gaps[i] else case for i, case in zip(index, each, strict=True)]
            return np.stack([change(case, self.length) for case in filled])
        together = bool((np.diff(index) == 1).all())
        block = self.cases[slice(index[0], index[-1] + 1) if together else index][:, :, : lengths[0]]
        if self.order is not None:
            block = block[:, list(self.order)]
        if self.gaps[index].any():
            block = block.copy()
            for row in np.flatnonzero(self.gaps[index]):
                block[row] = fill(block[row])
        return block if block.shape[2] == self.length else change(block, self.length)


def look(
    X: Any,
    layout: str = "nct",
    missing: str = "error",
    scale: str | Scale | None = None,
    order: Sequence[int] | None = None,
) -> Conversion:
    """Check whatever a user may pass as X; what is `Cases` already was looked at when it was made."""
    check_policies(missing, scale)
    if not isinstance(X, Cases):
        return _survey(of_cases.to_cases(X, layout), missing, scale)
    if not (n := len(X)):
        raise InputError("X has 0 sample(s) (empty Windows) while a minimum of 1 is required: pass one.")
    # One value for all: there may be very many.
    lengths, gaps = np.broadcast_to(np.intp(X.n_times), n), np.broadcast_to(np.False_, n)
    cases = X if X.array is None else X.array
    return Conversion(cases, lengths, gaps, np.arange(n), X.n_times, missing=missing, scale=scale, order=order)


def convert(
    X: Any,
    *,
    layout: str = "nct",
    unequal: str = "error",
    missing: str = "error",
    scale: str | Scale | None = None,
    length: int | None = None,
    order: Sequence[int] | None = None,
) -> Conversion:
    """Make X cases of one length by these policies, with a type that can tell values apart."""
    plain = look(X, layout, missing, scale, order)
    if unequal == "error" and not isinstance(plain.cases, Cases):
        short = np.flatnonzero(plain.lengths < [case.shape[1] for case in plain.cases])
        if len(short):
            raise InputError(
                f"X contains NaN in all channels at the end of {name_cases(short)}, which marks a shorter case. "
                f"Pad, crop or resample: {how_to_prepare('unequal', 'pad')}. Or replace these values."
            )
    return at_length(plain, unequal, of_cases.target_length(plain.lengths, unequal, length))


def at_length(cases: Conversion, unequal: str, length: int) -> Conversion:
    """Give cases this length, whatever they have: "pad" cuts longer ones, "crop" adds zeros to shorter ones."""
    fixed = replace(cases, unequal=unequal, length=length)
    bare = replace(fixed, scale=None)
    if swallows(bare):
        fixed, bare = replace(fixed, dtype=np.float64), replace(bare, dtype=np.float64)
    return replace(fixed, scale=Scale.fit(bare)) if fixed.scale == "dataset" else fixed


def _survey(cases: RawCases, missing: str, scale: str | Scale | None) -> Conversion:
    """Look at every value once: inf, what is too large and, by `missing`, NaN are refused with case and channel."""
    lengths = np.array([case.shape[1] for case in cases])
    gaps = np.zeros(len(cases), bool)
    largest = LARGEST_VALUE if scale is None else LARGEST_UNSCALED_VALUE
    extreme: list[Place] = []
    dead: list[Place] = []  # without any value
    for start, block in (
        enumerate(case[None] for case in cases)
        if isinstance(cases, list)
        else ((rows.start, block) for rows, block in of_cases.blocks(cases))
    ):
        if _within(block, largest):
            continue
        extreme += _places(np.abs(block.astype(np.float64, copy=False)) > largest, start)
        for row in np.flatnonzero(np.isnan(block).any((1, 2))):
            lengths[start + row] = n = of_cases.true_length(block[row])
            lost = np.isnan(block[row, :, :n])
            gaps[start + row] = lost.any()
            dead += [(start + int(row), int(channel)) for channel in np.flatnonzero(lost.all(axis=1))]
    _refuse_extreme(extreme, largest)
    if not lengths.all():
        raise InputError(
            f"X contains nothing but NaN in {name_cases(np.flatnonzero(lengths == 0))}. Drop what has no values."
        )
    if missing == "error" and gaps.any():
        raise InputError(
            f"X contains NaN in {name_cases(np.flatnonzero(gaps))}. "
            f"Interpolate them, or take zeros: {how_to_prepare('missing', 'interpolate')}. Or remove them."
        )
    if dead and missing == "interpolate":
        raise of_cases.no_value("X", _named(dead))
    return Conversion(cases, lengths, gaps, np.arange(len(cases)), int(lengths.max()), missing=missing, scale=scale)


def check_policies(missing: str, scale: str | Scale | None) -> None:
    lookup(of_cases.MISSING, missing, "policy for missing values")
    if not (scale is None or isinstance(scale, Scale) or scale in ("dataset", "case")):
        raise InputError(f'scale must be None, "dataset", "case" or a Scale; got {scale!r}.')


def _refuse_extreme(places: list[Place], largest: float, when: str = "") -> None:
    if places:
        raise InputError(
            f"X contains inf or values {when}beyond ±{largest:.0e} in {_named(places)}, more than a network can sum "
            "in float32. Remove or clip these values, or, if all are like that, scale them: "
            f"{how_to_prepare('scale', 'dataset')}."
        )


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
    """Tell whether float32 would lose what tells the values of a channel apart, in one case or over all of them."""
    if not x.may_lose:
        return False
    low, high = np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf)
    exact = replace(x, dtype=np.float64)
    for rows in pieces(x.shape):
        block = exact[rows]
        if lossy_offsets(block).any():
            return True
        low, high = np.minimum(low, block.min(axis=(0, 2))), np.maximum(high, block.max(axis=(0, 2)))
    return is_swallowed(low, high)


def is_swallowed(low: Array, high: Array) -> bool:
    """Tell the same by the least and the greatest value of each channel; it is so of whole numbers around 1e9."""
    rounding = np.maximum(np.abs(low), np.abs(high)) * float(np.finfo(np.float32).eps) / 2
    return bool(((high > low) & (rounding > _SWALLOWED * (high - low))).any())
