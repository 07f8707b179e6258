"""How far a case stays stationary around a time step, by the augmented Dickey-Fuller (ADF) test; the extra `adf`.

The tests run on the host, one by one: about 3 ms each for 20 time steps, 4 ms for 100 and 21 ms for 500.
"""

import math
import warnings
from typing import Any

import numpy as np

from dicot.errors import need_extra

WIDEST = 3  # half-widths tried: 1, 2 and 3 windows
LEVEL = 0.01  # of the test; also what a p-value of NaN counts as


def adf_epsilon(x: np.ndarray, t: int, width: int) -> int:
    """The first half-width (in windows) around t at which the case x (C, T) is no longer stationary; 3 if it stays so.

    Not stationary: the p-value, averaged over the channels, reaches 0.01. A test that fails (a constant channel, too
    few time steps) counts as not stationary, so that constant cases have epsilon 1.
    """
    for epsilon in range(1, WIDEST + 1):
        reach = epsilon * width
        if _drifts(x[:, max(0, t - reach) : t + reach]):
            return epsilon
    return WIDEST


def adf_table(x: Any, centres: np.ndarray, width: int) -> np.ndarray:
    """Cases (N, C, T) and centres (G,) -> epsilon (N, G), by at most 3 N G C tests."""
    cases = (x[row : row + 1][0] for row in range(len(x)))  # one at a time, wherever they are read from
    rows = [[adf_epsilon(case, int(t), width) for t in centres] for case in cases]
    return np.array(rows, dtype=np.int64).reshape(len(x), len(centres))


def _drifts(segment: np.ndarray) -> bool:
    """Whether the mean p-value over the channels of (C, L) reaches the level."""
    try:
        from statsmodels.tsa.stattools import adfuller
    except ImportError as error:
        raise need_extra("statsmodels", "adf", "adf=True (neighbourhoods by the Dickey-Fuller test)") from error
    total = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rank deficiency is a NaN below, and newer versions announce a new return type
        for channel in segment:
            try:
                p = float(adfuller(channel)[1])
            except Exception:  # the authors take any failure as a p-value of 0.6
                return True
            total += LEVEL if math.isnan(p) else p
            # p-values are never negative and a failure further on means True as well: the rest need not be tested.
            if total / len(segment) >= LEVEL:
                return True
    return False
