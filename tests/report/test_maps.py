"""Maps of embeddings."""

import numpy as np
import pytest

from dicot.use.projection import tsne


def groups(n, f=6):
    y = np.arange(n) % 3
    return np.random.default_rng(0).normal(size=(n, f)) + 30 * np.eye(f)[y], y


def test_far_groups_stay_apart_and_the_map_repeats():
    x, y = groups(60)
    first, again = tsne(x, seed=3), tsne(x, seed=3)
    assert (first.points == again.points).all()
    assert first.points.shape == (60, 2)
    assert first.rows.tolist() == list(range(60))
    assert first.title == "t-SNE of 60 cases, perplexity 19.7"
    d = np.linalg.norm(first.points[:, None] - first.points[None], axis=2) + 1e9 * np.eye(60)
    assert (y[d.argmin(axis=1)] == y).all()


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
    p = tsne(x, seed=1)
    assert p.title == title
    assert p.points.shape == (len(x), 2)
    assert np.isfinite(p.points).all()
