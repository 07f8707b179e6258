"""The blocked nearest neighbour beside all distances and beside scikit-learn."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import dicot.solvers.neighbours as neighbours_module
from dicot.errors import InputError
from dicot.solvers import nearest


def slow(references, queries):
    return np.array([((references - case) ** 2).sum(axis=1).argmin() for case in queries])


def gaussian(m, n, f, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, f)), rng.normal(size=(n, f))


@pytest.mark.parametrize(("m", "n", "f"), [(1, 3, 2), (5, 1, 1), (31, 40, 3), (5000, 700, 20), (2049, 513, 64)])
def test_equals_all_distances_and_scikit_learn(m, n, f):
    references, queries = gaussian(m, n, f)
    found = nearest(references, queries, device="cpu")
    assert found.dtype == np.int64
    assert found.tolist() == slow(references, queries).tolist()
    labels = np.arange(m) % 7
    assert labels[found].tolist() == KNeighborsClassifier(1).fit(references, labels).predict(queries).tolist()


@pytest.fixture
def counts(monkeypatch):
    """How many pairs were compared in float64, call by call."""
    seen, compare = [], neighbours_module._compare
    monkeypatch.setattr(neighbours_module, "_compare", lambda *a: (seen.append(len(a[2])), compare(*a)))
    return seen


def test_differences_below_float32_decide(counts):
    rng = np.random.default_rng(0)
    queries = rng.normal(size=(50, 30))
    # Around each query ten references whose squared distances differ in the eighth digit, in any order.
    order = np.array([rng.permutation(10) for _ in range(50)])
    lengths = 3 * (1 + 1e-8 * order)
    directions = rng.normal(size=(50, 10, 30))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    references = (queries[:, None] + lengths[:, :, None] * directions).reshape(500, 30)
    found = nearest(references, queries, device="cpu")
    assert found.tolist() == slow(references, queries).tolist()
    assert sum(counts) > 200, "float32 alone cannot tell them apart"


def test_of_equal_references_the_first_wins():
    references, queries = gaussian(300, 100, 8)
    repeated = np.concatenate([references, references[::-1], references])
    assert nearest(repeated, queries, device="cpu").tolist() == slow(references, queries).tolist()
    assert nearest(repeated, references, device="cpu").tolist() == list(range(300))


@pytest.mark.parametrize("decimals", [0, 1])
@pytest.mark.parametrize("f", [2, 8, 20, 150])
def test_of_equally_close_references_the_first_wins(f, decimals, monkeypatch):
    """Rounded values, as a sensor gives them, are full of ties; some of them lie in different blocks."""
    monkeypatch.setitem(neighbours_module.REFERENCES, "cpu", 256)
    references, queries = (part.round(decimals) for part in gaussian(2000, 300, f))
    if f > 20:  # so many features have ties only where most are alike
        references[:, 8:], queries[:, 8:] = 0.1, 0.3
    assert nearest(references, queries, device="cpu").tolist() == slow(references, queries).tolist()
    assert (
        nearest(references + 100, queries + 100, device="cpu").tolist()
        == slow(references + 100, queries + 100).tolist()
    )


@pytest.mark.parametrize("f", [1, 7, 8, 13, 128, 129, 300, 1001])
def test_rows_are_added_up_in_numpys_order(f):
    import torch

    values = np.random.default_rng(f).normal(size=(5, f)) ** 2
    assert neighbours_module._row_sums(torch.from_numpy(values)).tolist() == values.sum(axis=1).tolist()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("part", [0, 1])
def test_nan_and_infinity_are_refused(part, value):
    arrays = gaussian(10, 6, 2)
    arrays[part][4, 1] = value
    with pytest.raises(InputError, match="row 4"):
        nearest(*arrays, device="cpu")


def test_a_collapsed_encoder_costs_one_comparison_per_query(counts):
    assert nearest(np.zeros((5000, 4)), np.ones((300, 4)), device="cpu").tolist() == [0] * 300
    assert sum(counts) == 300


def test_a_crowd_at_one_place_is_told_apart_in_float64(counts):
    rng = np.random.default_rng(0)
    references = 1e-3 * rng.normal(size=(3000, 6)) + 100 * np.eye(6)[rng.integers(0, 2, 3000)]
    queries = references[::10] + 1e-9
    assert nearest(references, queries, device="cpu").tolist() == list(range(0, 3000, 10))
    assert sum(counts) < 16 * 2 * 300


@pytest.mark.parametrize("size", [1e-30, 1e20])
def test_the_unit_of_the_features_makes_no_difference(size):
    references, queries = gaussian(400, 50, 5)
    assert nearest(size * references, size * queries, device="cpu").tolist() == slow(references, queries).tolist()


def test_keys_that_collide_do_not_merge_rows(monkeypatch):
    references, queries = gaussian(200, 50, 5)
    monkeypatch.setattr(neighbours_module.np, "unique", lambda keys, **_: (0, np.array([0]), np.zeros(len(keys), int)))
    assert nearest(references, queries, device="cpu").tolist() == slow(references, queries).tolist()
