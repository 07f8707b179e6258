"""Maps in two dimensions: repeatable, bounded, honest about their kind."""

import numpy as np
import pytest

from dicot.errors import InputError
from dicot.report.projection import tsne


def groups(n, f=6):
    y = np.arange(n) % 3
    return np.random.default_rng(0).normal(size=(n, f)) + 30 * np.eye(f)[y], y


def test_far_groups_stay_apart_and_the_map_repeats():
    x, y = groups(60)
    first, again = tsne(x, y, seed=3), tsne(x, y, seed=3)
    assert (first.points == again.points).all()
    assert first.points.shape == (60, 2)
    assert first.rows.tolist() == list(range(60))
    assert first.title == "t-SNE of 60 cases, perplexity 19.7"
    d = np.linalg.norm(first.points[:, None] - first.points[None], axis=2) + 1e9 * np.eye(60)
    assert (y[d.argmin(axis=1)] == y).all()


def test_many_cases_are_thinned_with_the_classes_in_proportion():
    x, y = groups(90)
    p = tsne(x, y, seed=1, limit=30)
    assert np.bincount(y[p.rows]).tolist() == [10, 10, 10]
    assert p.title.startswith("t-SNE of 30 of 90 cases")


@pytest.mark.parametrize(
    ("x", "title"),
    [
        (groups(4)[0], "Principal components of 4 cases (too few for t-SNE)"),
        (groups(1)[0], "Principal components of 1 cases (too few for t-SNE)"),
        (np.arange(8.0)[:, None], "The single feature of 8 cases (too few features for t-SNE)"),
        (np.ones((8, 3)), "8 cases, all embeddings identical (t-SNE not defined)"),
    ],
)
def test_where_tsne_is_not_defined_the_title_says_what_is_shown(x, title):
    p = tsne(x, np.zeros(len(x), int), seed=1)
    assert p.title == title
    assert p.points.shape == (len(x), 2)
    assert np.isfinite(p.points).all()


def test_five_cases_are_enough():
    p = tsne(groups(5)[0], groups(5)[1], seed=1)
    assert p.title.startswith("t-SNE of 5 cases")
    assert np.isfinite(p.points).all()


def test_broken_embeddings_are_refused():
    with pytest.raises(InputError, match="finite"):
        tsne(np.full((6, 2), np.nan), np.zeros(6, int), seed=1)
