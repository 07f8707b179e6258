"""Tests over data sets against enumeration, statsmodels, scikit-posthocs and hand-made cases."""

import itertools

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from dicot.errors import InputError
from dicot.report.ranks import average_ranks, nemenyi
from dicot.report.significance import cliques, holm, nemenyi_differs, wilcoxon_holm, wilcoxon_pair

RNG = np.random.default_rng(3)
ACCURACY = 70 + RNG.normal(0, 6, size=(40, 1)) + np.array([0, 0.3, 1.5, 4.0, 4.2]) + RNG.normal(0, 2, size=(40, 5))


def enumerated(gaps):
    """The exact p by all sign patterns: the share of rank sums as far from the middle as the one seen."""
    ranks = rankdata(np.abs(gaps))
    signs = np.array(list(itertools.product((0, 1), repeat=len(gaps))))
    sums, middle = signs @ ranks, ranks.sum() / 2
    return np.mean(np.abs(sums - middle) >= abs(ranks[gaps > 0].sum() - middle) - 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_small_wilcoxon_equals_the_enumeration(seed):
    gaps = np.random.default_rng(seed).normal(0.4, 1, size=9)
    assert wilcoxon_pair(gaps, np.zeros(9)) == pytest.approx(enumerated(gaps), abs=1e-12)


def test_ties_are_dropped_and_rounding_noise_is_a_tie():
    a, b = ACCURACY[:, 0], ACCURACY[:, 3]
    expected = wilcoxon(a, b).pvalue
    assert wilcoxon_pair(np.append(a, [100, 1 / 3]), np.append(b, [100, 1 / 3 + 1e-13])) == pytest.approx(expected)
    assert wilcoxon_pair(a, a + 1e-13) == 1.0


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    with pytest.raises(InputError, match="from 0 to 1"):
        holm([0.5, 1.5])


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


def test_nemenyi_equals_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs", reason="scikit-posthocs is not installed")
    p = posthocs.posthoc_nemenyi_friedman(ACCURACY).to_numpy()
    assert np.array_equal(nemenyi_differs(average_ranks(ACCURACY), len(ACCURACY)), p < 0.05)


def test_the_matrix_is_symmetric_and_corrected_for_all_pairs():
    p = wilcoxon_holm(ACCURACY)
    assert np.array_equal(p, p.T) and (np.diag(p) == 1).all()
    smallest = min(wilcoxon(ACCURACY[:, i], ACCURACY[:, j]).pvalue for i, j in itertools.combinations(range(5), 2))
    assert p.min() == pytest.approx(10 * smallest)
    with pytest.raises(InputError, match="Drop incomplete rows"):
        wilcoxon_holm([[1.0, np.nan]])


def test_nemenyi_differs_beyond_the_critical_difference():
    width = nemenyi(3, 10)[1]
    differs = nemenyi_differs([1.0, 1.0 + 0.99 * width, 1.0 + 1.01 * width], 10)
    assert differs.tolist() == [[False, False, True], [False, False, False], [True, False, False]]


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


def test_cliques_follow_the_ranks_not_the_columns_and_do_not_bridge_a_difference():
    assert cliques([3.0, 1.0, 2.0], apart(3, (0, 1))) == [(1, 2), (2, 0)]
    assert cliques([1.0, 2.0, 3.0], apart(3, (0, 1))) == [(1, 2)]  # 0 and 2 do not differ, but 1 lies between
