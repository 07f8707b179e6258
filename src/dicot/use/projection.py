"""Embeddings in two dimensions, for looking at, not for measuring."""

import io
import re
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.core.errors import need_extra
from dicot.data.cases import pieces

Floats = NDArray[np.float64]
MIN_CASES = 5
MAX_PERPLEXITY = 30.0
STEPS = 1000  # of t-SNE's descent
LANDMARKS = {"tsne": 20_000, "umap": 100_000}  # cases of `overview` that each way places: its time grows with them
MANY = 10_000  # with more cases, `overview` takes fewer steps: nearly as good, in half the time
FEWER_STEPS = {"tsne": (STEPS, 500), "umap": (500, 200)}  # those of UMAP are umap-learn's own
UMAP_NEIGHBOURS = 15
COMPONENTS = 50  # principal components that `overview` takes distances in
NEAREST = 3  # landmarks that place any other case

Progress = Callable[[int], None]  # is told how many steps are done


@dataclass(frozen=True, eq=False)
class Projection:
    """points (M, 2) of the cases `rows` (M,) of the input, and a title that says how they came about."""

    points: Floats
    rows: NDArray[np.intp]
    title: str


def _principal(x: Floats) -> Floats:
    """Compute the first two principal components; zeros where there are fewer."""
    u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    scores = (u * s)[:, :2]
    return np.pad(scores, ((0, 0), (0, 2 - scores.shape[1])))


def tsne(x: ArrayLike, *, seed: int, rows: NDArray[np.intp] | None = None) -> Projection:
    """Compute t-SNE of standardised embeddings (N, F), or of some of their rows.

    Falls back to principal components where t-SNE is not defined; the title says so.
    """
    cases = check_array(x, dtype=np.float64, input_name="x", estimator="tsne")
    rows = np.arange(len(cases)) if rows is None else rows
    points, title = _flattened(StandardScaler().fit_transform(cases[rows]), _counted(len(rows), len(cases)), seed)
    return Projection(points, rows, title)


def _counted(n: int, total: int) -> str:
    return f"{n} cases" if n == total else f"{n} of {total} cases"


def _flattened(
    z: Floats, shown: str, seed: int, steps: int = STEPS, on_step: Progress | None = None
) -> tuple[Floats, str]:
    """Return points (N, 2) of scaled cases, and how they came about."""
    if len(z) < MIN_CASES:
        return _principal(z), f"Principal components of {shown} (too few for t-SNE)"
    if z.shape[1] < 2:
        return _principal(z), f"The single feature of {shown} (too few features for t-SNE)"
    if not z.any():
        return _principal(z), f"{shown}, all embeddings identical (t-SNE not defined)"
    perplexity = min(MAX_PERPLEXITY, (len(z) - 1) / 3)
    model = TSNE(init="pca", perplexity=perplexity, max_iter=steps, random_state=seed, verbose=2 * bool(on_step))
    # Sums over threads in arbitrary order would make the map differ. It tells how far it is by printing alone.
    with threadpool_limits(1), redirect_stdout(_Heard(on_step)):
        points = model.fit_transform(z)
    return points.astype(np.float64), f"t-SNE of {shown}, perplexity {perplexity:.3g}"


class _Heard(io.TextIOBase):
    """Takes what scikit-learn or umap-learn prints, and hears how many steps are done."""

    def __init__(self, on_step: Progress | None) -> None:
        self.on_step = on_step

    def write(self, text: str) -> int:
        if self.on_step is not None and (done := re.search(r"Iteration (\d+)", text)):
            self.on_step(int(done[1]))
        return len(text)


def _by_umap(z: Floats, shown: str, seed: int, steps: int, on_step: Progress | None) -> tuple[Floats, str]:
    """Return points (N, 2) of scaled cases by UMAP, and how they came about."""
    neighbours = min(UMAP_NEIGHBOURS, len(z) - 1)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that tensorflow is not there, its own defaults and those of numba
        try:
            from umap import UMAP
        except ImportError as error:
            raise need_extra("umap-learn", "umap", "A map by UMAP") from error
        model = UMAP(
            n_neighbors=neighbours,
            n_epochs=steps,
            init="pca",  # as t-SNE's: no search for eigenvectors that may fail
            random_state=seed,
            n_jobs=1,  # with a seed it has one thread, and warns where others were asked for
            tqdm_kwds={"disable": on_step is None, "file": _Heard(on_step), "bar_format": "Iteration {n_fmt}"},
        )
        points = np.asarray(model.fit_transform(z.astype(np.float32)), np.float64)
    return points, f"UMAP of {shown}, {neighbours} neighbours"


def overview(
    x: Any, *, kind: str = "tsne", seed: int = 0, landmarks: int | None = None, on_step: Progress | None = None
) -> Projection:
    """Place every case of embeddings (N, F), however many, in two dimensions; memory beside x is bounded.

    Cases are standardised and reduced to at most 50 principal components. t-SNE places up to 20,000 cases or UMAP up to
    100,000, or `landmarks`, drawn where there are more, and each other case is put between the three of these that are
    nearest to it. UMAP needs umap-learn; fewer than five cases have no map but their principal components.
    """
    most = LANDMARKS[kind] if landmarks is None else landmarks
    z = principal_components(x, seed=seed, fitted=min(most, LANDMARKS["tsne"]))
    rows = drawn_rows(len(z), most, seed)
    shown = _counted(len(rows), len(z))
    chosen, steps = z[rows].astype(np.float64), overview_steps(len(rows), kind)
    if kind == "umap" and len(chosen) >= MIN_CASES and chosen.shape[1] > 1 and chosen.any():
        placed, title = _by_umap(chosen, shown, seed, steps, on_step)
    else:
        placed, title = _flattened(chosen, shown, seed, steps, on_step)
    points = np.empty((len(z), 2))
    points[rows] = placed
    others = np.setdiff1d(np.arange(len(z)), rows)
    if len(others):
        points[others] = place(z, rows, placed, others)[0]
        title += f"; the others lie between their {NEAREST} nearest of these"
    return Projection(points, np.arange(len(z)), title)


def place(
    z: NDArray[np.float32], rows: NDArray[np.intp], points: Any, others: NDArray[np.intp]
) -> tuple[Floats, NDArray[np.intp]]:
    """Put other rows of z (N, D) between the three that are nearest to them of `rows`, which lie at points (M, 2).

    Returned are their points, and which of `rows` is the nearest.
    """
    out, first = np.empty((len(others), 2)), np.empty(len(others), np.intp)
    search = NearestNeighbors(n_neighbors=min(NEAREST, len(rows)), algorithm="brute").fit(z[rows])
    with threadpool_limits(1):
        for part in pieces((len(others), 1, z.shape[1])):
            distances, near = search.kneighbors(z[others[part]])
            weights = 1 / np.maximum(np.square(distances), 1e-12)
            weights /= weights.sum(axis=1, keepdims=True)
            out[part], first[part] = np.einsum("nk,nkd->nd", weights, points[near]), near[:, 0]
    return out, first


def overview_steps(n: int, kind: str = "tsne") -> int:
    return FEWER_STEPS[kind][min(n, LANDMARKS[kind]) > MANY]


def drawn_rows(n: int, limit: int, seed: int) -> NDArray[np.intp]:
    """Return all n rows, or `limit` of them drawn, in order."""
    return np.arange(n) if n <= limit else np.sort(np.random.default_rng(seed).permutation(n)[:limit])


def principal_components(x: Any, *, seed: int = 0, fitted: int = LANDMARKS["tsne"]) -> NDArray[np.float32]:
    """Return at most 50 principal components of standardised embeddings (N, F), by at most `fitted` cases, drawn."""
    some = np.asarray(x[drawn_rows(len(x), fitted, seed)], np.float64)
    scaler = StandardScaler().fit(some)
    z = scaler.transform(some)
    count = min(COMPONENTS, *z.shape)
    out = np.empty((len(x), count), np.float32)
    with threadpool_limits(1):
        if len(z) < z.shape[1]:
            directions = np.linalg.svd(z, full_matrices=False)[2][:count].T
        else:
            directions = np.linalg.eigh(z.T @ z)[1][:, ::-1][:, :count]
        for rows in pieces((len(x), 1, x.shape[1])):
            out[rows] = scaler.transform(np.asarray(x[rows], np.float64)) @ directions
    return out
