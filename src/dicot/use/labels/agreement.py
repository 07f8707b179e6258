"""agreement: how far two people gave the same labels."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from dicot.core.errors import InputError
from dicot.data.labels import as_text, check_labels, labelled


@dataclass(frozen=True)
class Agreement:
    """How far two labellings agree; `str` gives it as one sentence."""

    both: int  # cases that have a label in both
    same: int  # those whose labels are equal
    kappa: float  # Cohen's; NaN where both used only one label, the same
    low: float  # the 95 % interval of kappa
    high: float
    disagreements: dict[tuple[str, str], int]  # (the first's label, the second's) -> how often, the most frequent first

    def __str__(self) -> str:
        share = f"{self.same} of {self.both} labels are equal ({100 * self.same / self.both:.1f} %)"
        if math.isnan(self.kappa):
            return f"{share}. Cohen's kappa is not known: there is only one label."
        return f"{share}, Cohen's kappa {self.kappa:.2f} (95 % interval {self.low:.2f} to {self.high:.2f})."


def agreement(first: Any, second: Any) -> Agreement:
    """Compare the labels (N,) that two people gave the same cases; NaN, None and the empty string stand for none.

    Cohen's kappa is 1 where all labels are equal and 0 where as many are as chance gives. Its interval is
    Wilson's for the share of equal labels, which has a width where all are equal. It takes cases for independent: of
    windows that overlap, or of one range, it is too narrow.
    """
    one = check_labels(first, len(first), "first")
    two = check_labels(second, len(one), "second")
    both = labelled(one) & labelled(two)
    if not both.any():
        raise InputError("There is no case that both labelled. If they labelled ranges, name the vectors (--vectors).")
    ones, twos = as_text(one[both]), as_text(two[both])
    n_cases, same = len(ones), int((ones == twos).sum())
    pairs = Counter((a, b) for a, b in zip(ones.tolist(), twos.tolist(), strict=True) if a != b)
    disagreements = dict(pairs.most_common())
    if len(np.unique([ones, twos])) == 1:  # chance alone gives the same labels
        return Agreement(n_cases, same, math.nan, math.nan, math.nan, disagreements)

    kappa = float(cohen_kappa_score(ones, twos))
    interval = binomtest(same, n_cases).proportion_ci(method="wilson")
    chance = _chance(ones, twos)
    low = max(-1.0, float(interval.low - chance) / (1 - chance))
    high = min(1.0, float(interval.high - chance) / (1 - chance))
    return Agreement(n_cases, same, kappa, low, high, disagreements)


def _chance(ones: NDArray[np.str_], twos: NDArray[np.str_]) -> float:
    """Return the share of equal labels that is expected where neither person looks at the cases."""
    table = confusion_matrix(ones, twos, normalize="all")
    return float(table.sum(axis=1) @ table.sum(axis=0))
