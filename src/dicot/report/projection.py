"""Embeddings in two dimensions, for looking at, not for measuring."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.manifold import TSNE
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.protocols.base import Features
from dicot.protocols.subsets import stratified_cap

Floats = NDArray[np.float64]

MAX_POINTS = 2000
MIN_CASES = 5
MAX_PERPLEXITY = 30.0


@dataclass(frozen=True, eq=False)
class Projection:
    """points (M, 2) of the cases `rows` (M,) of the input, and a title that says how they came about."""

    points: Floats
    rows: NDArray[np.intp]
    title: str


def _principal(x: Floats) -> Floats:
    """The first two principal components; zeros where there are fewer."""
    u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    scores = (u * s)[:, :2]
    return np.pad(scores, ((0, 0), (0, 2 - scores.shape[1])))


def tsne(x: ArrayLike, labels: ArrayLike, *, seed: int, limit: int = MAX_POINTS) -> Projection:
    """t-SNE of standardised embeddings (N, F), of at most `limit` cases with the classes in proportion.

    Falls back to principal components where t-SNE is not defined; the title says so.
    """
    data = Features(np.asarray(x), np.asarray(labels))
    rows = stratified_cap(data.y, limit, seed)
    shown = f"{len(rows)} cases" if len(rows) == len(data.y) else f"{len(rows)} of {len(data.y)} cases"
    z: Floats = StandardScaler().fit_transform(data.x[rows])
    if len(rows) < MIN_CASES:
        return Projection(_principal(z), rows, f"Principal components of {shown} (too few for t-SNE)")
    if z.shape[1] < 2:
        return Projection(_principal(z), rows, f"The single feature of {shown} (too few features for t-SNE)")
    if not z.any():
        return Projection(_principal(z), rows, f"{shown}, all embeddings identical (t-SNE not defined)")
    perplexity = min(MAX_PERPLEXITY, (len(rows) - 1) / 3)
    with threadpool_limits(1):  # sums over threads in arbitrary order would make the map differ between runs
        points = TSNE(init="pca", perplexity=perplexity, random_state=seed).fit_transform(z)
    return Projection(points.astype(np.float64), rows, f"t-SNE of {shown}, perplexity {perplexity:.3g}")
