"""Statistics over data sets and seeds: average ranks, Friedman, Nemenyi, Wilcoxon with Holm, half widths."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import friedmanchisquare, rankdata, studentized_range, wilcoxon
from scipy.stats import t as student_t

from dicot.judge.report.frame import NOISE
from dicot.judge.report.stats import ALPHA

Floats = NDArray[np.float64]

NORMAL_95 = 1.96
FEW = 13  # data sets up to which scipy's p is exact too, where some gaps tie


def average_ranks(scores: ArrayLike) -> Floats:
    """(data sets, methods) -> (methods,): 1 is the highest score, ties share their mean rank."""
    ranks: Floats = rankdata(-np.asarray(scores, dtype=np.float64), axis=1).mean(axis=0)
    return ranks


def nemenyi(n_methods: int, n_sets: int) -> tuple[float, float]:
    """Give the quantile q and the critical difference of average ranks. Use it after a Friedman test."""
    q = float(studentized_range.ppf(1 - ALPHA, n_methods, np.inf)) / math.sqrt(2)
    return q, q * math.sqrt(n_methods * (n_methods + 1) / (6 * n_sets))


def friedman(scores: ArrayLike) -> tuple[float, float]:
    """Test the hypothesis that all methods rank alike: statistic and p-value."""
    result = friedmanchisquare(*np.asarray(scores, dtype=np.float64).T)
    return float(result.statistic), float(result.pvalue)


def half_widths(deviation: Any, n_runs: Any) -> tuple[Any, Any]:
    """Give the half widths of both 95 % intervals of a mean over runs, of numbers or columns of them.

    D-61: the paper uses 1.96 whatever the number of runs; Student's quantile (2.776 for five runs) fits few of them.
    """
    error = deviation / n_runs**0.5
    return NORMAL_95 * error, student_t.ppf(0.975, n_runs - 1) * error


def wilcoxon_pair(a: ArrayLike, b: ArrayLike) -> float:
    """Give the two-sided p of the signed-rank test over data sets. Ties are dropped; ties alone give 1."""
    gaps = np.round(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64), NOISE)
    gaps = gaps[gaps != 0]
    if len(gaps) == 0:
        return 1.0
    return _exact_signed_rank(gaps) if len(gaps) <= FEW else float(wilcoxon(gaps).pvalue)


def _exact_signed_rank(gaps: Floats) -> float:
    """Count all signs that as many gaps can have. scipy tries each one where gaps tie, which takes half a second."""
    ranks = (2 * rankdata(np.abs(gaps))).astype(np.int64)  # whole numbers, where ties share a half
    ways = np.zeros(ranks.sum() + 1)
    ways[0] = 1
    for rank in ranks:
        ways[rank:] = ways[rank:] + ways[:-rank]
    observed = ranks[gaps > 0].sum()
    tails = ways[: observed + 1].sum(), ways[observed:].sum()
    return float(min(1.0, 2 * min(tails) / ways.sum()))


def holm(p_values: ArrayLike) -> Floats:
    """Correct a family of p-values by Holm's step-down method, in their order."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    out = np.empty_like(p)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return out


def wilcoxon_holm(scores: ArrayLike) -> Floats:
    """(data sets, methods) -> (methods, methods): p of every pair, corrected for all pairs; 1 on the diagonal."""
    methods = np.asarray(scores, dtype=np.float64).T
    above = np.triu_indices(len(methods), 1)
    out = np.ones((len(methods), len(methods)))
    out[above] = holm([wilcoxon_pair(methods[i], methods[j]) for i, j in zip(*above, strict=True)])
    return np.minimum(out, out.T)


def cliques(ranks: ArrayLike, differs: ArrayLike) -> list[tuple[int, ...]]:
    """Find the longest runs of neighbouring ranks in which no two methods differ, best first, two methods or more."""
    order = np.argsort(np.asarray(ranks), kind="stable")
    apart = np.asarray(differs, dtype=bool)[np.ix_(order, order)]
    ends = [
        max(end for end in range(start + 1, len(order) + 1) if not apart[start:end, start:end].any())
        for start in range(len(order))
    ]
    # A run that ends no further than the one before lies inside it.
    longest = [start for start, end in enumerate(ends) if start == 0 or end > ends[start - 1]]
    return [tuple(order[start : ends[start]].tolist()) for start in longest if ends[start] - start > 1]


def friedman_text(scores: ArrayLike) -> str:
    """Say whether ranks differ at all, and how the bars of a critical-difference diagram are to be read."""
    table = np.asarray(scores, dtype=np.float64)
    reading = (
        "A bar joins neighbours in rank of which no two differ: blue by Nemenyi's critical difference, orange by "
        f"Wilcoxon signed-rank tests of all pairs with Holm's correction, both at {100 * ALPHA:g} %."
    )
    if table.shape[1] < 3 or len(table) < 2 or (table == table[:, :1]).all():
        return f"Too few methods or data sets for a Friedman test. {reading}"
    statistic, p = friedman(table)
    verdict = "differ" if p < ALPHA else "do not differ beyond chance, so the bars mean little"
    shown = f"p = {p:.2g}" if p >= 1e-300 else "p < 1e-300"
    return f"Friedman: chi-squared {statistic:.1f}, {shown}: the average ranks {verdict}. {reading}"
