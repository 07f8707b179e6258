"""Has anything changed? New windows against a reference, by tests that count recordings or groups, not windows."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils import check_array

from dicot.core.errors import CalibrationWarning, InputError
from dicot.data.labels import as_text
from dicot.use.outliers import EmbeddingOutlierDetector, distances_and_p
from dicot.use.projection import drawn_rows, principal_components

Floats = NDArray[np.float64]
Pair = tuple[Any, Any]  # of the reference and of the new windows

MOST = 2500  # windows whose distances to each other are taken, about; of more, some of each unit
REFERENCE = 10_000  # windows that outliers are told by; drawn where there are more
ARRANGEMENTS = 2  # of the units that must be able to raise an alarm before "no change" is said
FINEST, DRAWS = 100, 9999  # the smallest p-value is so many times below what alarms; with so many exchanges at most


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
    (`test_classes`). Where new units come about as those of the reference did, an alarm has a probability of at most
    alpha, for all parts and tests of a call together. Each of the `parts` (N,), such as weeks, is compared with the
    whole reference, or with the same of its `reference_parts` (M,), such as classes.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be a number between 0 and 1; got {alpha!r}.")
    old, x = (check_array(one, dtype=np.float32, input_name="X", estimator="compare") for one in (reference, new))
    sides = [np.arange(len(one)) for one in (old, x)] if units is None else [as_text(np.asarray(one)) for one in units]
    kinds = None if classes is None else [as_text(np.asarray(one)) for one in classes]
    part = np.full(len(x), "") if parts is None else as_text(np.asarray(parts))
    names = [name for name in np.unique(part).tolist() if name or parts is None]  # "" is of no part
    n_tests = (1 + (kinds is not None and test_classes)) * len(names)
    draws = min(DRAWS, round(FINEST * n_tests / alpha) - 1)
    rows = drawn_rows(len(old), REFERENCE, seed)
    groups = sides[0][rows] if 2 < len(np.unique(sides[0][rows])) < len(rows) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # that few can be flagged: the tests decide
        detector = EmbeddingOutlierDetector(alpha=alpha).fit(old[rows], groups=groups)
    distance, outlier_p = distances_and_p(detector, x)
    found = []
    for name in names:
        here = np.flatnonzero(part == name)
        there = np.arange(len(old)) if reference_parts is None else np.flatnonzero(as_text(reference_parts) == name)
        if not len(there):
            raise InputError(f"The reference has no window of {name!r}. Add some, or leave this part out.")
        unit = [np.unique(side[rows], return_inverse=True)[1] for side, rows in zip(sides, (there, here), strict=True)]
        counts = int(unit[0].max()) + 1, int(unit[1].max()) + 1
        number = np.concatenate([unit[0], unit[1] + counts[0]])
        is_new = np.arange(sum(counts)) >= counts[0]
        apart = _distances(np.concatenate([old[there], x[here]]), number)
        forms, shares = {"vectors": -apart}, {}
        if kinds is not None:
            said = np.concatenate([kinds[0][there], kinds[1][here]])
            held = [one for one in np.unique(said).tolist() if one]
            share = np.stack([np.bincount(number, said == one) for one in held], axis=1) / np.bincount(number)[:, None]
            if test_classes:
                forms["classes"] = share / np.maximum(share.mean(axis=0), 1e-12) @ share.T
            before, now = share[~is_new].mean(axis=0), share[is_new].mean(axis=0)
            shares = {one: (float(before[i]), float(now[i])) for i, one in enumerate(held)}
        energy = float(_values(-apart, is_new[None])[0]) / max(2 * float(apart[is_new][:, ~is_new].mean()), 1e-12)
        p = {test: min(1.0, n_tests * _p(form, is_new, draws, seed)) for test, form in forms.items()}
        smallest = n_tests * max(1 / _arrangements(counts), 1 / (draws + 1))
        odd = float((outlier_p[here] <= alpha).mean())
        found.append(Drift(name, counts, math.sqrt(max(energy, 0)), p, smallest, odd, shares))
    return Comparison(tuple(found), alpha, distance, outlier_p, -detector.calibration_scores_)


def _arrangements(units: tuple[int, int]) -> int:
    """Count the ways to divide the units into reference and new that may differ in what the tests measure."""
    before, now = units
    ways = math.comb(before + now, now)
    # Sides of as many units may be exchanged as a whole, and the distance between them is the same.
    return ways // 2 if before == now else ways


def _distances(x: NDArray[np.float32], unit: NDArray[np.intp]) -> Floats:
    """Return (U, U) mean distances of windows of two units, in principal components that know no sides."""
    z, counts = principal_components(x).astype(np.float64), np.bincount(unit)
    place = np.arange(len(unit)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.argsort(unit, kind="stable")[place % math.ceil(len(unit) / MOST) == 0]
    held = np.bincount(unit[rows])
    starts = np.cumsum(held) - held
    between = np.add.reduceat(cdist(z[rows], z[rows]), starts, axis=1)
    means: Floats = np.add.reduceat(between, starts, axis=0) / np.outer(held, held)
    return means


def _values(form: Floats, is_new: NDArray[np.bool_]) -> Floats:
    """Return d' F d for each row of sides (B, U), d the weights of new units less those of the others."""
    weights = is_new / is_new.sum(axis=1, keepdims=True) - ~is_new / (~is_new).sum(axis=1, keepdims=True)
    values: Floats = np.einsum("bu,bu->b", weights @ form, weights)
    return values


def _p(form: Floats, is_new: NDArray[np.bool_], draws: int, seed: int) -> float:
    """Return the share of exchanges, none among them, that give a value as large as the one without."""
    given, rng, larger = _values(form, is_new[None])[0], np.random.default_rng(seed), 1
    for start in range(0, draws, 500):
        sides = rng.permuted(np.tile(is_new, (min(500, draws - start), 1)), axis=1)
        larger += int((_values(form, sides) >= given - 1e-9 * abs(given)).sum())
    return larger / (draws + 1)
