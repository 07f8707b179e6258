"""Is a printed average or average rank what the entries printed beside it give?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

import numpy as np
from scipy.stats import rankdata

RANK_STEP = 2  # decimals of a printed rank


class Verdict(StrEnum):
    """How a printed number relates to the one computed from the entries printed beside it."""

    exact = "holds as printed"
    rounding = "off, but within the rounding of its entries"
    ties = "off, but reached by breaking ties of rounded entries"
    wrong = "does not hold"


@dataclass(frozen=True)
class Check:
    """One printed number. `computed` is what its entries give; `row` is the row of docs/divergences.md about it."""

    table: str
    what: str
    printed: float
    computed: float
    verdict: Verdict
    row: str = ""


def _printed(value: float) -> Fraction:
    """The decimal number on paper, not the binary one nearest to it."""
    return Fraction(Decimal(repr(value)))


def check_average(table: str, what: str, entries: Sequence[float], printed: float, decimals: int) -> Check:
    """A mean of `entries`, all printed with `decimals`. A half may have been rounded either way."""
    half = Fraction(1, 2 * 10**decimals)
    mean = sum(map(_printed, entries), Fraction(0)) / len(entries)
    gap = abs(mean - _printed(printed))
    verdict = Verdict.exact if gap <= half else Verdict.rounding if gap <= 2 * half else Verdict.wrong
    return Check(table, what, printed, float(mean), verdict)


def check_ranks(
    table: str, what: str, rows: Mapping[str, Sequence[float]], printed: Mapping[str, float]
) -> list[Check]:
    """Average ranks of the named rows over their columns; where values tie, rounding may have hidden an order."""
    values = np.array([rows[name] for name in rows]).T  # (data sets, methods)
    mean, low, high = (rankdata(-values, axis=1, method=way).mean(axis=0) for way in ("average", "min", "max"))
    half = 0.5 * 10**-RANK_STEP + 1e-9
    out = []
    for i, name in enumerate(rows):
        given = printed[name]
        reached = low[i] - half <= given <= high[i] + half
        verdict = Verdict.exact if abs(mean[i] - given) <= half else Verdict.ties if reached else Verdict.wrong
        out.append(Check(table, f"{what}, {name}", given, float(mean[i]), verdict))
    return out
