"""Which methods differ over many data sets: pairwise Wilcoxon tests, Holm's correction, groups that do not differ."""

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import wilcoxon

from dicot.errors import InputError
from dicot.report.ranks import Floats, nemenyi

Truth = NDArray[np.bool_]

ALPHA = 0.05
NOISE = 9  # decimals kept: means of the same runs may differ in the last bit, and that is a tie


def wilcoxon_pair(a: ArrayLike, b: ArrayLike) -> float:
    """Two-sided p of the signed-rank test over data sets; ties are dropped, and nothing but ties gives 1."""
    gaps = np.round(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64), NOISE)
    return float(wilcoxon(gaps[gaps != 0]).pvalue) if gaps.any() else 1.0


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down correction of a family of p-values, in their order."""
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"Holm's correction needs a list of p-values from 0 to 1; got {p_values!r}.")
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    out = np.empty_like(p)
    out[order] = np.minimum(stepped, 1.0)
    return out


def wilcoxon_holm(accuracy: ArrayLike) -> Floats:
    """(data sets, methods) -> (methods, methods): p of every pair, corrected for all pairs; 1 on the diagonal."""
    table = np.asarray(accuracy, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise InputError("Wilcoxon tests need an accuracy of every method on every data set. Drop incomplete rows.")
    pairs = list(itertools.combinations(range(table.shape[1]), 2))
    out = np.ones((table.shape[1], table.shape[1]))
    for (i, j), p in zip(pairs, holm([wilcoxon_pair(table[:, i], table[:, j]) for i, j in pairs]), strict=True):
        out[i, j] = out[j, i] = p
    return out


def nemenyi_differs(ranks: ArrayLike, n_sets: int, alpha: float = ALPHA) -> Truth:
    """(methods, methods): whether two average ranks are further apart than the critical difference."""
    r = np.asarray(ranks, dtype=np.float64)
    differs: Truth = np.abs(r[:, None] - r[None, :]) > nemenyi(len(r), n_sets, alpha)[1]
    return differs


def cliques(ranks: ArrayLike, differs: ArrayLike) -> list[tuple[int, ...]]:
    """The longest runs of neighbouring ranks in which no two methods differ, best first; at least two methods each."""
    order = np.argsort(np.asarray(ranks), kind="stable")
    apart = np.asarray(differs, dtype=bool)[np.ix_(order, order)]
    found: list[tuple[int, ...]] = []
    reached = 0  # the end of the last run: a run that ends no further lies inside it
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not apart[start : end + 1, start : end + 1].any():
            end += 1
        if end - start > 1 and end > reached:
            found.append(tuple(order[start:end].tolist()))
            reached = end
    return found
