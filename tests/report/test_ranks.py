"""Ranks, tests and intervals against stored values and hand-made cases."""

from pathlib import Path

import numpy as np
import pytest

from dicot.errors import InputError
from dicot.report.ranks import average_ranks, friedman, interval, nemenyi

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "protocols.npz", allow_pickle=False)
CASES = range(int(GOLDEN["n_rank_cases"]))


@pytest.mark.parametrize("case", CASES)
def test_golden(case):
    g = {k: GOLDEN[f"r{case}_{k}"] for k in ("acc", "avg_rank", "q_05", "cd", "friedman_stat", "friedman_p", "runs")}
    np.testing.assert_allclose(average_ranks(g["acc"]), g["avg_rank"], atol=1e-12)
    n_sets, n_methods = g["acc"].shape
    assert nemenyi(n_methods, n_sets) == pytest.approx((float(g["q_05"]), float(g["cd"])), abs=1e-6)
    assert friedman(g["acc"]) == pytest.approx((float(g["friedman_stat"]), float(g["friedman_p"])), abs=1e-9)
    expected = float(GOLDEN[f"r{case}_ci_mean"]), float(GOLDEN[f"r{case}_ci_half"])
    assert interval(g["runs"]) == pytest.approx(expected, abs=1e-12)


def test_ties_share_their_mean_rank():
    assert average_ranks([[90, 80, 90, 70], [1, 1, 1, 1]]).tolist() == [2.0, 2.75, 2.0, 3.25]


@pytest.mark.parametrize(("n_methods", "q"), [(2, 1.960), (3, 2.344), (5, 2.728), (8, 3.031), (10, 3.164), (12, 3.268)])
def test_published_quantiles(n_methods, q):
    assert nemenyi(n_methods, 10)[0] == pytest.approx(q, abs=6e-4)


def test_published_critical_difference():
    assert nemenyi(10, 158)[1] == pytest.approx(1.078, abs=5e-4)


def test_the_t_quantile_widens_the_interval_of_five_runs():
    runs = [1.0, 2.0, 3.0, 4.0, 5.0]
    assert interval(runs)[0] == interval(runs, "t")[0] == 3.0
    assert interval(runs, "t")[1] / interval(runs)[1] == pytest.approx(2.776445 / 1.96, abs=1e-6)


def test_undefined_statistics_are_refused():
    with pytest.raises(InputError, match=r"\(data sets, methods\)"):
        average_ranks([1.0, 2.0])
    with pytest.raises(InputError, match="some are NaN"):
        average_ranks([[1.0, np.nan]])
    with pytest.raises(InputError, match="at least 2 methods"):
        nemenyi(1, 5)
    with pytest.raises(InputError, match="3 methods"):
        friedman([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(InputError, match="tie on every data set"):
        friedman(np.ones((4, 3)))
    with pytest.raises(InputError, match="at least 2 runs"):
        interval([1.0])
