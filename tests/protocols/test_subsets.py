"""Counts per class, no repetition, fixed by the seed."""

import numpy as np
import pytest

from dicot.judge.protocols.base import fixed_per_class, stratified_cap, stratified_fraction, subset_seeds

Y = np.repeat([3, 1, 7], [250, 99, 1])  # not in ascending order on purpose


def counts(y, rows):
    assert len(set(rows.tolist())) == len(rows)
    assert (np.diff(rows) > 0).all()
    return dict(zip(*(v.tolist() for v in np.unique(y[rows], return_counts=True)), strict=True))


def test_fraction_rounds_down_but_keeps_every_class():
    assert counts(Y, stratified_fraction(Y, 0.02, 42)) == {1: 1, 3: 5, 7: 1}
    assert counts(Y, stratified_fraction(Y, 1.0, 42)) == {1: 99, 3: 250, 7: 1}


def test_fraction_follows_the_published_draw():
    rng = np.random.default_rng(42)
    expected = [rng.choice(np.flatnonzero(c == Y), n, replace=False) for c, n in ((1, 9), (3, 25), (7, 1))]
    assert stratified_fraction(Y, 0.1, 42).tolist() == sorted(np.concatenate(expected).tolist())


def test_fixed_count_takes_all_of_a_small_class():
    assert counts(Y, fixed_per_class(Y, 100, 42)) == {1: 99, 3: 100, 7: 1}


def test_subsets_depend_on_the_seed_alone():
    assert (fixed_per_class(Y, 5, 1) == fixed_per_class(Y, 5, 1)).all()
    assert (fixed_per_class(Y, 5, 1) != fixed_per_class(Y, 5, 2)).any()
    assert subset_seeds(42, 3, 10) == [42]
    assert len({*subset_seeds("run", 3, 10), *subset_seeds("run", 4, 10)}) == 20


def test_cap_is_exact_and_in_proportion():
    y = np.repeat([0, 1, 2], [600, 300, 100])
    assert counts(y, stratified_cap(y, 100)) == {0: 60, 1: 30, 2: 10}
    assert stratified_cap(y, 1000).tolist() == list(range(1000))


@pytest.mark.parametrize("limit", [4, 5, 50, 101, 102, 103])
def test_cap_keeps_classes_with_one_member(limit):
    y = np.array([0] * 100 + [1, 2, 3, 4][: 3 if limit == 4 else 4])
    got = counts(y, stratified_cap(y, limit))
    assert sum(got.values()) == limit
    assert set(got) == set(y.tolist())
