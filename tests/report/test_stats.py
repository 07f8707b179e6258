"""Ranks, tests and intervals against stored values, enumeration, statsmodels, scikit-posthocs and hand-made cases."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import wilcoxon

from bench.report.stats import (
    average_ranks,
    cliques,
    friedman,
    half_widths,
    holm,
    nemenyi,
    wilcoxon_holm,
    wilcoxon_pair,
)

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "protocols.npz", allow_pickle=False)
CASES = range(int(GOLDEN["n_rank_cases"]))

RNG = np.random.default_rng(3)
ACCURACY = 70 + RNG.normal(0, 6, size=(40, 1)) + np.array([0, 0.3, 1.5, 4.0, 4.2]) + RNG.normal(0, 2, size=(40, 5))


@pytest.mark.parametrize("case", CASES)
def test_golden(case):
    g = {k: GOLDEN[f"r{case}_{k}"] for k in ("acc", "avg_rank", "q_05", "cd", "friedman_stat", "friedman_p", "runs")}
    np.testing.assert_allclose(average_ranks(g["acc"]), g["avg_rank"], atol=1e-12)
    n_sets, n_methods = g["acc"].shape
    assert nemenyi(n_methods, n_sets) == pytest.approx((float(g["q_05"]), float(g["cd"])), abs=1e-6)
    assert friedman(g["acc"]) == pytest.approx((float(g["friedman_stat"]), float(g["friedman_p"])), abs=1e-9)
    normal, _ = half_widths(g["runs"].std(ddof=1), len(g["runs"]))
    assert normal == pytest.approx(float(GOLDEN[f"r{case}_ci_half"]), abs=1e-12)


@pytest.mark.parametrize(("n_methods", "q"), [(2, 1.960), (3, 2.344), (5, 2.728), (8, 3.031), (10, 3.164), (12, 3.268)])
def test_published_quantiles(n_methods, q):
    assert nemenyi(n_methods, 10)[0] == pytest.approx(q, abs=6e-4)


def test_the_t_quantile_widens_the_interval_of_five_runs():
    normal, student = half_widths(1.5, 5)
    assert student / normal == pytest.approx(2.776445 / 1.96, abs=1e-6)


def test_ties_are_dropped_and_rounding_noise_is_a_tie():
    a, b = ACCURACY[:, 0], ACCURACY[:, 3]
    expected = wilcoxon(a, b).pvalue
    assert wilcoxon_pair(np.append(a, [100, 1 / 3]), np.append(b, [100, 1 / 3 + 1e-13])) == pytest.approx(expected)
    assert wilcoxon_pair(a, a + 1e-13) == 1.0


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


def test_holm_equals_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason="statsmodels is not installed")
    p = RNG.uniform(0, 0.2, size=30)
    np.testing.assert_allclose(holm(p), multitest.multipletests(p, method="holm")[1], atol=1e-12)


def test_pairs_equal_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs", reason="scikit-posthocs is not installed")
    groups = [column.tolist() for column in ACCURACY.T]
    np.testing.assert_allclose(
        wilcoxon_holm(ACCURACY), posthocs.posthoc_wilcoxon(groups, p_adjust="holm").to_numpy(), atol=1e-12
    )


def apart(n, *pairs):
    out = np.zeros((n, n), dtype=bool)
    for i, j in pairs:
        out[i, j] = out[j, i] = True
    return out


def test_cliques_are_the_longest_runs_without_a_difference():
    ranks = [1, 2, 3, 4]
    assert cliques(ranks, apart(4)) == [(0, 1, 2, 3)]
    assert cliques(ranks, apart(4, (0, 2), (0, 3), (1, 3))) == [(0, 1), (1, 2), (2, 3)]
    assert cliques(ranks, apart(4, (0, 3), (1, 3), (2, 3))) == [(0, 1, 2)]
    assert cliques(ranks, ~np.eye(4, dtype=bool)) == []


def test_a_signed_rank_test_of_few_gaps_is_scipys_with_and_without_ties():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 8):
        for gaps in (rng.normal(size=n), rng.integers(1, 4, n) * rng.choice((-1.0, 1.0), n)):
            assert wilcoxon_pair(gaps, np.zeros(n)) == pytest.approx(float(wilcoxon(gaps).pvalue))
