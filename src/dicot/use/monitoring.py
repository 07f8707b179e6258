"""Has anything changed? New windows against a reference, by tests that count recordings or groups, not windows."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils import check_array

from dicot.core.errors import CalibrationWarning, InputError
from dicot.data.cases import Array
from dicot.data.labels import as_text
from dicot.use.outliers import EmbeddingOutlierDetector, distances_and_p
from dicot.use.projection import drawn_rows, principal_components

Floats = NDArray[np.float64]
Pair = tuple[Any, Any]  # of the reference and of the new windows

MOST = 2500  # windows whose distances to each other are taken, about; of more, some of each unit
REFERENCE = 10_000  # windows that outliers are told by; drawn where there are more
ARRANGEMENTS = 2  # of the units that must be able to raise an alarm before "no change" is said
FINEST = 100  # times below what alarms the smallest p-value lies
DRAWS = 9999  # exchanges at most
EXCHANGES_AT_ONCE = 500


@dataclass(frozen=True)
class Drift:
    """How one part of the new windows, such as a week, differs from the reference."""

    part: str  # "" where all new windows are one
    units: tuple[int, int]  # recordings, or whatever belongs together, in the reference and here
    shift: float  # from 0, distributed as the reference, to 1, nothing in common: root of the energy coefficient
    p: dict[str, float]  # by test: times the number of tests of the comparison (Bonferroni), 1 at most
    smallest: float  # p-value that can come out with so few units
    odd: float  # share of the windows with an outlier's p-value of at most alpha
    shares: dict[str, tuple[float, float]]  # of each class, in the reference and here


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found."""

    parts: tuple[Drift, ...]
    alpha: float
    distance: Floats  # (N,) of each new window to the reference, as `dicot outliers` has it
    outlier_p: Floats  # (N,)
    usual: Floats  # distances of reference windows that were held out

    def alarms(self) -> list[Drift]:
        """Return the parts that differ from the reference."""
        return [part for part in self.parts if self._has_alarm(part)]

    def undecided(self) -> list[Drift]:
        """Return the parts without an alarm whose units are so few that the absence of an alarm says nothing.

        Where fewer than two arrangements of the units could raise an alarm, only the largest difference that is
        possible would be found, or none at all.
        """
        decisive = self.alpha / ARRANGEMENTS * (1 + 1e-9)  # with equality, in spite of rounding, two are enough
        return [part for part in self.parts if part.smallest > decisive and not self._has_alarm(part)]

    def _has_alarm(self, part: Drift) -> bool:
        return min(part.p.values()) <= self.alpha


def compare(
    reference: Any,
    new: Any,
    *,
    units: Pair | None = None,
    classes: Pair | None = None,
    test_classes: bool = True,
    parts: Any = None,
    reference_parts: Any = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> Comparison:
    """Compare new embeddings (N, F) with those of a reference (M, F), and say whether they are distributed otherwise.

    Windows of one recording are no independent evidence. So whole `units` (by default windows) are exchanged between
    reference and new, and the energy distance, in which each unit weighs the same, is compared with that of other
    exchanges; so are the shares of `classes`, unless a classifier that was trained with the reference predicted them
    (`test_classes`). If nothing has changed, the probability of any alarm is at most alpha, over all parts and tests of
    a call together. Each of the `parts` (N,), such as weeks, is compared with the
    whole reference, or with the same of its `reference_parts` (M,), such as classes.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be a number between 0 and 1; got {alpha!r}.")
    old = check_array(reference, dtype=np.float32, input_name="X", estimator="compare")
    x = check_array(new, dtype=np.float32, input_name="X", estimator="compare")
    units_of_old, units_of_new = (np.arange(len(old)), np.arange(len(x))) if units is None else map(_texts, units)
    classes_of_old, classes_of_new = (None, None) if classes is None else map(_texts, classes)
    part_of_new = np.full(len(x), "") if parts is None else _texts(parts)
    part_of_old = None if reference_parts is None else _texts(reference_parts)
    part_names = [name for name in np.unique(part_of_new).tolist() if name or parts is None]

    n_tests = len(part_names) * (2 if classes is not None and test_classes else 1)
    tests = _Tests(n_tests, min(DRAWS, round(FINEST * n_tests / alpha) - 1), seed, test_classes)
    detector = _outlier_detector(old, units_of_old, alpha, seed)
    distance, outlier_p = distances_and_p(detector, x)

    drifts = []
    for name in part_names:
        rows_of_new = np.flatnonzero(part_of_new == name)
        rows_of_old = np.arange(len(old)) if part_of_old is None else np.flatnonzero(part_of_old == name)
        if not len(rows_of_old):
            raise InputError(f"The reference has no window of {name!r}. Add some, or leave this part out.")
        sides = _Sides.of(old[rows_of_old], x[rows_of_new], units_of_old[rows_of_old], units_of_new[rows_of_new])
        kinds = None
        if classes_of_old is not None and classes_of_new is not None:
            kinds = np.concatenate([classes_of_old[rows_of_old], classes_of_new[rows_of_new]])
        odd = float((outlier_p[rows_of_new] <= alpha).mean())
        drifts.append(tests.drift(name, sides, kinds, odd))
    return Comparison(tuple(drifts), alpha, distance, outlier_p, -detector.calibration_scores_)


def _texts(values: Any) -> Array:
    texts: Array = as_text(np.asarray(values))
    return texts


def _outlier_detector(old: NDArray[np.float32], units: Array, alpha: float, seed: int) -> EmbeddingOutlierDetector:
    """Fit a detector to the reference; whole units are held out where there are several windows in each."""
    rows = drawn_rows(len(old), REFERENCE, seed)
    n_units = len(np.unique(units[rows]))
    groups = units[rows] if 2 < n_units < len(rows) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # that few can be flagged: the tests decide
        return EmbeddingOutlierDetector(alpha=alpha).fit(old[rows], groups=groups)


class _Sides(NamedTuple):
    """Windows of the reference, and behind them new ones, by the units that a test exchanges."""

    x: NDArray[np.float32]  # (N, F)
    unit: NDArray[np.intp]  # (N,) numbers, those of the reference first
    counts: tuple[int, int]  # of units in the reference, and of new ones

    @classmethod
    def of(cls, old: NDArray[np.float32], new: NDArray[np.float32], units_of_old: Array, units_of_new: Array) -> _Sides:
        names_of_old, number_of_old = np.unique(units_of_old, return_inverse=True)
        names_of_new, number_of_new = np.unique(units_of_new, return_inverse=True)
        unit = np.concatenate([number_of_old, number_of_new + len(names_of_old)])
        return cls(np.concatenate([old, new]), unit, (len(names_of_old), len(names_of_new)))

    @property
    def is_new(self) -> NDArray[np.bool_]:
        """Which units (U,) are new."""
        return np.arange(sum(self.counts)) >= self.counts[0]


class _Tests(NamedTuple):
    """What all tests of a comparison have in common."""

    n_tests: int
    draws: int  # exchanges of units
    seed: int
    test_classes: bool

    def drift(self, name: str, sides: _Sides, kinds: Array | None, odd: float) -> Drift:
        """Compare the new windows of one part with the reference; `kinds` (N,) are the classes of all, "" for none."""
        is_new = sides.is_new
        apart = _distances(sides.x, sides.unit)
        p = {"vectors": self._p(-apart, is_new)}
        shares: dict[str, tuple[float, float]] = {}
        if kinds is not None:
            share, shares = _class_shares(kinds, sides)
            if self.test_classes:
                p["classes"] = self._p(share / np.maximum(share.mean(axis=0), 1e-12) @ share.T, is_new)

        between = 2 * float(apart[is_new][:, ~is_new].mean())
        energy = float(_values(-apart, is_new[None])[0]) / max(between, 1e-12)
        smallest = self.n_tests * max(1 / _arrangements(sides.counts), 1 / (self.draws + 1))
        return Drift(name, sides.counts, math.sqrt(max(energy, 0)), p, smallest, odd, shares)

    def _p(self, form: Floats, is_new: NDArray[np.bool_]) -> float:
        """Return the share of exchanges, none among them, that give a value as large as the one without.

        It is multiplied by the number of tests. The exchanges are those that scipy's permutation_test would count,
        drawn here so that thousands are judged by one product.
        """
        rng = np.random.default_rng(self.seed)
        observed = _values(form, is_new[None])[0]
        as_large = 1
        for first in range(0, self.draws, EXCHANGES_AT_ONCE):
            count = min(EXCHANGES_AT_ONCE, self.draws - first)
            exchanges = rng.permuted(np.tile(is_new, (count, 1)), axis=1)
            as_large += int((_values(form, exchanges) >= observed - 1e-9 * abs(observed)).sum())
        return min(1.0, self.n_tests * (as_large / (self.draws + 1)))


def _class_shares(kinds: Array, sides: _Sides) -> tuple[Floats, dict[str, tuple[float, float]]]:
    """Return the share (U, K) of each class in each unit, and by class its mean over old and over new units."""
    names = [name for name in np.unique(kinds).tolist() if name]
    windows = np.bincount(sides.unit)
    share = np.stack([np.bincount(sides.unit, kinds == name) for name in names], axis=1) / windows[:, None]
    before = share[~sides.is_new].mean(axis=0)
    now = share[sides.is_new].mean(axis=0)
    return share, {name: (float(before[i]), float(now[i])) for i, name in enumerate(names)}


def _arrangements(units: tuple[int, int]) -> int:
    """Count the ways to divide the units into reference and new that may differ in what the tests measure."""
    before, now = units
    ways = math.comb(before + now, now)
    # Sides of as many units may be exchanged as a whole, and the distance between them is the same.
    return ways // 2 if before == now else ways


def _distances(x: NDArray[np.float32], unit: NDArray[np.intp]) -> Floats:
    """Return (U, U) mean distances of windows of two units, in principal components that know no sides."""
    z = principal_components(x).astype(np.float64)
    windows = np.bincount(unit)
    place_in_unit = np.arange(len(unit)) - np.repeat(np.cumsum(windows) - windows, windows)
    every = math.ceil(len(unit) / MOST)
    rows = np.argsort(unit, kind="stable")[place_in_unit % every == 0]
    drawn = np.bincount(unit[rows])
    starts = np.cumsum(drawn) - drawn
    sums = np.add.reduceat(cdist(z[rows], z[rows]), starts, axis=1)
    means: Floats = np.add.reduceat(sums, starts, axis=0) / np.outer(drawn, drawn)
    return means


def _values(form: Floats, is_new: NDArray[np.bool_]) -> Floats:
    """Return d' F d for each row of sides (B, U), d the weights of new units less those of the others."""
    new_weights = is_new / is_new.sum(axis=1, keepdims=True)
    old_weights = ~is_new / (~is_new).sum(axis=1, keepdims=True)
    weights = new_weights - old_weights
    values: Floats = np.einsum("bu,bu->b", weights @ form, weights)
    return values
