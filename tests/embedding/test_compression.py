"""Compression: what it keeps, what it drops, and what a head makes of it."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from dicot.model.vector.compression import Compression


def vectors(n: int, n_features: int, seed: int = 0) -> np.ndarray:
    """Correlated features of very different size."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n, 10)) @ rng.normal(size=(10, n_features)) + 0.1 * rng.normal(size=(n, n_features))
    return (mixed * rng.uniform(0.01, 100, n_features) + rng.normal(size=n_features)).astype(np.float32)


def compress(compression: Compression, z: np.ndarray) -> np.ndarray:
    return compression(torch.from_numpy(z)).numpy()


def distances(z: np.ndarray) -> np.ndarray:
    return np.linalg.norm(z[:, None] - z[None], axis=2)


@pytest.mark.parametrize(
    ("n", "n_features", "n_components"), [(100, 30, 12), (20, 50, 8), (40, 40, 40), (25, 60, 2048)]
)
def test_distances_are_those_of_the_principal_components(n, n_features, n_components):
    z, other = vectors(n, n_features), vectors(15, n_features, seed=1)
    compression = Compression.fit(z, n_components)
    scaler = StandardScaler().fit(z)
    pca = PCA(compression.n_components, svd_solver="full").fit(scaler.transform(z).astype(np.float64))
    assert compression.n_components == min(n_components, n - 1, n_features)
    for x in (z, other):
        wanted, found = distances(pca.transform(scaler.transform(x))), distances(compress(compression, x))
        np.testing.assert_allclose(found, wanted * (found.sum() / wanted.sum()), rtol=2e-3, atol=2e-3)


def test_every_number_has_mean_zero_and_deviation_one():
    z = vectors(60, 40)
    found = compress(Compression.fit(z, 12), z)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(found.std(axis=0), 1, atol=1e-4)


def test_features_without_spread_play_no_part():
    z = vectors(30, 20)
    constant = np.full((30, 3), [0.0, 7.3, -1e4], np.float32)
    constant[::2, 1] = np.nextafter(np.float32(7.3), np.float32(8))  # as rounding would
    plain, more = Compression.fit(z, 8), Compression.fit(np.hstack([z, constant]), 8)
    found = compress(more, np.hstack([z, constant + 5]))
    np.testing.assert_allclose(found, compress(plain, z), atol=1e-4)


def test_parts_count_the_same_however_many_features_they_have():
    """Distances are those of a vector that holds one feature of each part."""
    one, other = np.random.default_rng(0).normal(size=(2, 50, 1))
    z = np.concatenate([one, other.repeat(100, axis=1), np.ones((50, 3))], axis=1).astype(np.float32)
    pair = np.concatenate([one / one.std(), other / other.std()], axis=1)
    expected = np.linalg.norm(pair[:, None] - pair, axis=2)
    for sizes, same in (((1, 103), True), ((1, 100, 3), True), (None, False)):
        parts = sizes and [(size, 1.0) for size in sizes]
        compressed = Compression.fit(z, 10, parts=parts)(torch.from_numpy(z)).numpy()
        distances = np.linalg.norm(compressed[:, None] - compressed, axis=2)
        scaled = distances * expected.mean() / distances.mean()
        assert np.allclose(scaled, expected, atol=1e-3) == same
