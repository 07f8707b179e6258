"""agreement: how far two people gave the same labels."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

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
        said = f"{self.same} of {self.both} labels are equal ({100 * self.same / self.both:.1f} %)"
        if math.isnan(self.kappa):
            return f"{said}. Cohen's kappa is not known: there is only one label."
        return f"{said}, Cohen's kappa {self.kappa:.2f} (95 % interval {self.low:.2f} to {self.high:.2f})."


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
    pairs = as_text(one[both]).tolist(), as_text(two[both]).tolist()
    names = sorted({*pairs[0], *pairs[1]})
    table = np.zeros((len(names), len(names)))
    np.add.at(table, tuple(np.searchsorted(names, side) for side in pairs), 1.0)
    different = Counter((a, b) for a, b in zip(*pairs, strict=True) if a != b)
    counts = int(both.sum()), int(np.trace(table))
    return Agreement(*counts, *_kappa(table / table.sum(), counts[0]), dict(different.most_common()))


def _kappa(shares: Any, n: int) -> tuple[float, float, float]:
    """Return kappa of shares (K, K) of n cases, and its interval."""
    same, chance = float(np.trace(shares)), float(shares.sum(axis=1) @ shares.sum(axis=0))
    if chance > 1 - 1e-12:
        return math.nan, math.nan, math.nan
    spread = float(norm.ppf(0.975)) ** 2 / n
    centre = (same + spread / 2) / (1 + spread)
    half = math.sqrt(same * (1 - same) * spread + spread**2 / 4) / (1 + spread)
    kappa, low, high = ((share - chance) / (1 - chance) for share in (same, centre - half, centre + half))
    return kappa, max(-1.0, low), min(1.0, high)
