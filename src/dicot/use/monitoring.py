"""Has anything changed? New windows against a reference, by tests that count recordings or groups, not windows."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
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
Numbers = NDArray[np.intp]
Pair = tuple[Any, Any]  # of the reference and of the new windows

MOST = 3000  # windows whose distances to each other are taken; of more, some of each unit
REFERENCE = 10_000  # windows that distances to the reference are told by; drawn where there are more
FINEST = 100  # the smallest p-value is so many times smaller than the one that alarms
MOST_DRAWS, AT_ONCE = 9999, 500  # of permutations
VECTORS, CLASSES = "vectors", "classes"  # what the two tests ask: is the vectors' distribution another; the classes'


@dataclass(frozen=True)
class Drift:
    """How one part of the new windows, such as a week, differs from the reference."""

    part: str  # "" where all new windows are one
    windows: int
    units: tuple[int, int]  # recordings, or whatever belongs together, in the reference and here
    shift: float  # from 0, distributed as the reference, to 1, nothing in common: energy coefficient
    p: dict[str, float]  # by test
    adjusted: dict[str, float]  # the same by Holm's method, for all tests of a comparison
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
        """Return the parts that differ."""
        return [one for one in self.parts if min(one.adjusted.values()) <= self.alpha]


def compare(
    reference: Any,
    new: Any,
    *,
    units: Pair | None = None,
    strata: Pair | None = None,
    classes: Pair | None = None,
    parts: Any = None,
    reference_parts: Any = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> Comparison:
    """Compare new embeddings (N, F) with those of a reference (M, F), and say whether they are distributed otherwise.

    Windows of one recording resemble each other and overlap, so they are no independent evidence. `units` say which
    belong together, and whole units are exchanged between reference and new (a permutation test of the energy distance,
    each unit with the same weight). Where units of the new week are drawn as those of the reference were, an alarm
    comes with a probability of at most alpha, whatever the distribution, for all parts and tests of a call together.

    Parameters
    ----------
    units : which windows belong together, (M,) and (N,); by default each window is a unit
    strata : units are exchanged within these only, such as people who are in both, (M,) and (N,)
    classes : labels or predictions, (M,) and (N,): their shares are compared by a second test
    parts : (N,) compare each part of the new windows for itself, such as weeks
    reference_parts : (M,) and only with the same part of the reference, such as classes
    alpha : the share of false alarms to allow
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha must be a number between 0 and 1; got {alpha!r}.")
    old, x = (check_array(one, dtype=np.float32, input_name="X", estimator="compare") for one in (reference, new))
    sizes = len(old), len(x)
    part = np.zeros(sizes[1], np.intp) if parts is None else None
    names, part = (np.array([""]), part) if part is not None else np.unique(as_text(parts), return_inverse=True)
    within = np.full(sizes[0], -1)
    if reference_parts is not None:
        found = {name: number for number, name in enumerate(names.tolist())}
        within = np.array([found.get(name, -2) for name in as_text(reference_parts).tolist()])
    own = [np.arange(size) for size in sizes] if units is None else [_numbers(one) for one in units]
    side = np.repeat([0, 1], sizes)
    key = np.stack([side, np.concatenate([within, part]), np.concatenate(own)])
    unit = np.unique(key, axis=1, return_inverse=True)[1].reshape(-1)
    first = np.unique(unit, return_index=True)[1]
    of_unit = key[:, first]
    stratum = (
        np.zeros(len(first)) if strata is None else _numbers(np.concatenate([as_text(one) for one in strata]))[first]
    )
    apart = _distances(np.concatenate([old, x]), unit)
    held, shares = _shares(classes, unit)

    tests = [VECTORS, *[CLASSES] * (len(held) > 1)]
    draws = min(MOST_DRAWS, round(FINEST * len(tests) * len(names) / alpha) - 1)
    detector, distance, outlier_p = _outliers(old, x, own[0], alpha)
    found_parts: list[dict[str, Any]] = []
    for number, name in enumerate(names.tolist()):
        chosen = np.flatnonzero((of_unit[1] == number) | ((of_unit[0] == 0) & (of_unit[1] == -1)))
        is_new = of_unit[0, chosen] == 1
        if is_new.all():
            raise InputError(f"The reference has no window of {name!r}. Add some, or leave this part out.")
        kinds = stratum[chosen]
        apart_here, shares_here = apart[np.ix_(chosen, chosen)], shares[chosen]
        usual = np.maximum(shares_here.mean(axis=0), 1e-12)
        forms = {VECTORS: -apart_here, CLASSES: (shares_here / usual) @ shares_here.T}
        p = {test: _permuted(forms[test], is_new, kinds, draws, seed) for test in tests}
        across = apart_here[np.ix_(~is_new, is_new)].mean()
        rows = part == number
        found_parts.append(
            {
                "part": name,
                "windows": int(rows.sum()),
                "units": (int((~is_new).sum()), int(is_new.sum())),
                "shift": float(_quadratic(-apart_here, is_new[None])[0] / max(2 * across, 1e-12)),
                "p": p,
                "smallest": max(1 / _arrangements(is_new, kinds), 1 / (draws + 1)),
                "odd": float((outlier_p[rows] <= alpha).mean()),
                "shares": {
                    one: (float(before), float(now))
                    for one, before, now in zip(
                        held, shares_here[~is_new].mean(axis=0), shares_here[is_new].mean(axis=0), strict=True
                    )
                },
            }
        )
    adjusted = iter(_holm([value for one in found_parts for value in one["p"].values()]))
    done = tuple(Drift(**one, adjusted={test: next(adjusted) for test in one["p"]}) for one in found_parts)
    return Comparison(done, alpha, distance, outlier_p, -detector.calibration_scores_)


def _numbers(values: Any) -> Numbers:
    return np.unique(as_text(np.asarray(values)), return_inverse=True)[1]


def _distances(x: NDArray[np.float32], unit: Numbers) -> Floats:
    """Return (U, U) mean distances of the windows of two units, in principal components that know no sides."""
    z, counts = principal_components(x).astype(np.float64), np.bincount(unit)
    order = np.argsort(unit, kind="stable")
    most, place = max(1, MOST // len(counts)), np.arange(len(unit)) - np.repeat(np.cumsum(counts) - counts, counts)
    step = np.maximum(1, counts / most)[unit[order]]
    rows = order[np.floor(place / step) > np.floor((place - 1) / step)]  # evenly over the windows of each unit
    held = np.bincount(unit[rows])
    starts = np.cumsum(held) - held
    blocks = [
        np.add.reduceat(cdist(z[part], z[rows]), starts, axis=1) for part in np.array_split(rows, 10) if len(part)
    ]
    total: Floats = np.add.reduceat(np.concatenate(blocks), starts, axis=0) / np.outer(held, held)
    return total


def _shares(classes: Pair | None, unit: Numbers) -> tuple[list[str], Floats]:
    """Return the classes and their shares (U, K) in each unit; windows of no class do not count."""
    if classes is None:
        return [], np.empty((unit.max() + 1, 0))
    texts = np.concatenate([as_text(np.asarray(one)) for one in classes])
    names = [name for name in np.unique(texts).tolist() if name]
    counts = np.stack([np.bincount(unit, texts == name, unit.max() + 1) for name in names], axis=1)
    return names, counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def _quadratic(form: Floats, is_new: NDArray[np.bool_]) -> Floats:
    """Return d' F d for rows of sides (B, U), d the weights of the new units less those of the others."""
    weights = is_new / is_new.sum(axis=1, keepdims=True) - ~is_new / (~is_new).sum(axis=1, keepdims=True)
    values: Floats = np.einsum("bu,bu->b", weights @ form, weights)
    return values


def _arrangements(is_new: NDArray[np.bool_], strata: Any) -> int:
    own = (is_new[strata == one] for one in np.unique(strata))
    return math.prod(math.comb(len(sides), int(sides.sum())) for sides in own)


def _permuted(form: Floats, is_new: NDArray[np.bool_], strata: Any, draws: int, seed: int) -> float:
    """Return the share of arrangements, the given one among them, with a value as large as that of the given one."""
    given = _quadratic(form, is_new[None])[0]
    least, n, farther = given - 1e-9 * abs(given), 0, 0
    for sides in _sides(is_new, strata, draws, seed):
        farther += int((_quadratic(form, sides) >= least).sum())
        n += len(sides)
    return farther / n


def _sides(is_new: NDArray[np.bool_], strata: Any, draws: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Yield arrangements (B, U): all where they are few, otherwise the given one and others drawn."""
    if len(np.unique(strata)) == 1 and _arrangements(is_new, strata) <= draws:
        every = np.array(list(combinations(range(len(is_new)), int(is_new.sum()))))
        sides = np.zeros((len(every), len(is_new)), bool)
        np.put_along_axis(sides, every, True, axis=1)
        yield sides
        return
    yield is_new[None]
    rng, grouped = np.random.default_rng(seed), np.argsort(strata, kind="stable")
    for start in range(0, draws, AT_ONCE):
        count = min(AT_ONCE, draws - start)
        sides = np.empty((count, len(is_new)), bool)
        order = np.argsort(rng.random((count, len(is_new))) + np.unique(strata, return_inverse=True)[1], axis=1)
        np.put_along_axis(sides, order, np.broadcast_to(is_new[grouped], sides.shape), axis=1)
        yield sides


def _holm(p: list[float]) -> list[float]:
    """Return p-values of which the smallest is at most alpha with a probability of alpha, if nothing has changed."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(np.array(p)[order] * (len(p) - np.arange(len(p))))
    out = np.empty(len(p))
    out[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in out]


def _outliers(
    reference: NDArray[np.float32], new: NDArray[np.float32], unit: Numbers, alpha: float
) -> tuple[EmbeddingOutlierDetector, Floats, Floats]:
    rows = drawn_rows(len(reference), REFERENCE, 0)
    groups = unit[rows] if 2 < len(np.unique(unit[rows])) < len(rows) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # that few can be flagged: the tests decide
        detector = EmbeddingOutlierDetector(alpha=alpha).fit(reference[rows], groups=groups)
        return detector, *distances_and_p(detector, new)
