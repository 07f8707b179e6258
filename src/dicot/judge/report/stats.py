"""How sure a difference is: the noise of means over seeds, data sets and test cases, and intervals from it."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student_t

Noise = tuple[float, float]  # the variance of a mean, and its degrees of freedom

ALPHA = 0.05


def gap_interval(
    value: float, noise: Sequence[Noise], centre: float | None = None, comparisons: int = 1
) -> tuple[float, float]:
    """Give the 95 % interval of a difference that varies for several reasons; NaN where none is known.

    Each reason has the half width of its own t interval, and their squares add up. One quantile for the sum, with
    degrees of freedom by Satterthwaite's rule, would be too sure: two seeds that agree by luck would count for little,
    and 10 to 13 % of equal contenders be told apart. `comparisons` that were open to choice share the 5 % (Bonferroni).
    """
    if not noise:
        return math.nan, math.nan
    middle = value if centre is None else centre
    share = 1 - ALPHA / (2 * comparisons)
    half = math.sqrt(math.fsum(variance * float(student_t.ppf(share, df)) ** 2 for variance, df in noise))
    return middle - half, middle + half


def mean_noise(values: ArrayLike) -> Noise:
    """Give the noise of the mean of independent values."""
    runs = np.asarray(values, dtype=np.float64)
    return float(runs.var(ddof=1)) / len(runs), len(runs) - 1.0


def paired_noise(gaps: ArrayLike, groups: ArrayLike | None = None) -> tuple[float, float, float]:
    """Give centre, variance and degrees of freedom of the mean gap of two contenders over the same test cases.

    `gaps` (N,) lie from -1 to 1: right minus right, averaged over runs. Cases of one group vary together. Two cases are
    added, of which half are gaps in either direction: without them (Agresti and Min, 2005) a handful of gaps would pass
    for certainty, and none at all for proof that two contenders are equal.
    """
    values = np.asarray(gaps, dtype=np.float64)
    _, members = np.unique(np.arange(len(values)) if groups is None else np.asarray(groups), return_inverse=True)
    count = int(members.max()) + 1
    n = len(values) + 2
    centre = float(values.sum()) / n
    sums = np.bincount(members, values - centre, minlength=count)
    return centre, (count / (count - 1) * float(sums @ sums) + 1) / n**2, count - 1.0


def shares_noise(shares: Sequence[float], n: int) -> Noise:
    """Give the noise of the gap of two shares (0 to 1) of n cases, as if drawn independently.

    What is left to do where it is not known which cases were right: it overstates the noise of classifiers that are
    right about the same cases. One right and one wrong case are added to each (Agresti and Caffo, 2000).
    """
    adjusted = [(share * n + 1) / (n + 2) for share in shares]
    return math.fsum(p * (1 - p) for p in adjusted) / (n + 2), n - 1.0
