"""Statistics over data sets and seeds: average ranks, Friedman, Nemenyi, confidence intervals."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import friedmanchisquare, rankdata, studentized_range
from scipy.stats import t as student_t

from dicot.errors import InputError

Floats = NDArray[np.float64]

NORMAL_95 = 1.96


def _table(accuracy: ArrayLike) -> Floats:
    table = np.asarray(accuracy, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise InputError(f"Accuracies must have shape (data sets, methods); got {table.shape}.")
    if not np.isfinite(table).all():
        raise InputError("Ranks need an accuracy for every method on every data set; some are NaN. Drop those rows.")
    return table


def average_ranks(accuracy: ArrayLike) -> Floats:
    """(data sets, methods) -> (methods,): 1 is the highest accuracy, ties share their mean rank."""
    ranks: Floats = rankdata(-_table(accuracy), axis=1).mean(axis=0)
    return ranks


def nemenyi(n_methods: int, n_sets: int, alpha: float = 0.05) -> tuple[float, float]:
    """The quantile q and the critical difference of average ranks. Use it after a Friedman test."""
    if n_methods < 2 or n_sets < 1:
        raise InputError(f"Nemenyi needs at least 2 methods and 1 data set; got {n_methods} and {n_sets}.")
    q = float(studentized_range.ppf(1 - alpha, n_methods, np.inf)) / math.sqrt(2)
    return q, q * math.sqrt(n_methods * (n_methods + 1) / (6 * n_sets))


def friedman(accuracy: ArrayLike) -> tuple[float, float]:
    """Statistic and p-value of the hypothesis that all methods rank alike."""
    table = _table(accuracy)
    if table.shape[1] < 3 or table.shape[0] < 2:
        raise InputError(f"A Friedman test needs at least 2 data sets and 3 methods; got {table.shape}.")
    if (table == table[:, :1]).all():
        raise InputError("All methods tie on every data set, so the Friedman statistic is not defined.")
    result = friedmanchisquare(*table.T)
    return float(result.statistic), float(result.pvalue)


def interval(runs: ArrayLike, quantile: Literal["normal", "t"] = "normal") -> tuple[float, float]:
    """Mean and half width of the 95 % confidence interval over runs.

    D-61: the paper uses 1.96 whatever the number of runs; "t" uses Student's quantile (2.776 for five runs).
    """
    values = np.asarray(runs, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise InputError(f"An interval needs at least 2 runs; got an array of shape {values.shape}.")
    factor = NORMAL_95 if quantile == "normal" else float(student_t.ppf(0.975, len(values) - 1))
    return float(values.mean()), factor * float(values.std(ddof=1)) / math.sqrt(len(values))
