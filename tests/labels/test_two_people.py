"""agreement: Cohen's kappa of two people, with an interval that holds it."""

import math

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from dicot import agreement
from dicot.core.errors import InputError


def test_kappa_is_that_of_scikit_learn_over_what_both_labelled():
    rng = np.random.default_rng(0)
    one, two = (np.array(["a", "b", "c", ""])[rng.integers(4, size=300)] for _ in range(2))
    two[:150] = one[:150]
    found, both = agreement(one, two), (one != "") & (two != "")
    assert (found.both, found.same) == (both.sum(), (one == two)[both].sum())
    assert (
        found.kappa == pytest.approx(cohen_kappa_score(one[both], two[both])) and found.low < found.kappa < found.high
    )
    assert sum(found.disagreements.values()) == found.both - found.same
    assert list(found.disagreements.values()) == sorted(found.disagreements.values(), reverse=True)
    assert math.isnan(agreement(["a", "a"], ["a", "a"]).kappa) and agreement([1, None], ["1", "2"]).both == 1
    with pytest.raises(InputError, match="no case that both labelled"):
        agreement(["a", ""], ["", "a"])


def test_the_interval_holds_kappa_in_95_percent_also_where_few_differ():
    rng, held = np.random.default_rng(0), 0
    for _ in range(300):
        pairs = rng.choice(4, size=40, p=[0.5, 0.02, 0.02, 0.46])
        found = agreement(pairs // 2, pairs % 2)
        held += found.low <= (0.96 - 0.5008) / (1 - 0.5008) <= found.high
    assert 0.92 <= held / 300 <= 0.99
