"""Embeddings in two dimensions, for looking at, not for measuring, and the file that such maps are kept in."""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.manifold import TSNE
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.data.npyfile import load_npz
from dicot.errors import InputError
from dicot.protocols.base import Features, Floats, Labels
from dicot.protocols.subsets import stratified_cap
from dicot.storage import write_atomic

FACTS = ("labels", "data_set", "fingerprint", "seed", "steps", "titles")  # of a file; any other array is a map
TAKEN = ("file", "allow_pickle")  # np.savez's own words
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
    """Compute the first two principal components; zeros where there are fewer."""
    u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    scores = (u * s)[:, :2]
    return np.pad(scores, ((0, 0), (0, 2 - scores.shape[1])))


def tsne(x: ArrayLike, labels: ArrayLike, *, seed: int, limit: int | None = MAX_POINTS) -> Projection:
    """Compute t-SNE of standardised embeddings (N, F), of at most `limit` cases with the classes in proportion.

    Without a limit every case is shown. Falls back to principal components where t-SNE is not defined; the
    title says so.
    """
    data = Features(np.asarray(x), np.asarray(labels))
    rows = np.arange(len(data.y)) if limit is None else stratified_cap(data.y, limit, seed)
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


@dataclass(frozen=True, eq=False)
class Maps:
    """Every test case of a data set in two dimensions, by contender, and what these maps depend on."""

    data_set: str
    fingerprint: str  # of the data
    seed: int
    steps: int  # of every training in a trial; 0: as many as the recipe says
    labels: Labels  # (N,)
    points: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)  # (N, 2)
    titles: Mapping[str, str] = field(default_factory=dict)  # how the points came about


def check_map_names(path: Path, names: Iterable[str]) -> None:
    """Refuse a contender whose map `write_maps` could not write, before any work is done."""
    if clash := sorted({*FACTS, *TAKEN} & set(names)):
        raise InputError(f"{path}: no contender of a map may be called {' or '.join(clash)}. Rename it.")


def write_maps(path: Path, maps: Maps) -> None:
    """Write the maps whole or not at all: one array (N, 2) under each contender's name, and the facts beside them."""
    check_map_names(path, maps.points)
    buffer = io.BytesIO()
    facts = (maps.labels, maps.data_set, maps.fingerprint, maps.seed, maps.steps, [maps.titles[n] for n in maps.points])
    arrays: dict[str, Any] = {**dict(zip(FACTS, map(np.array, facts), strict=True)), **maps.points}
    np.savez_compressed(buffer, **arrays)
    write_atomic(path, buffer.getvalue())


def read_maps(path: Path) -> Maps:
    """Read what `write_maps` wrote, checked."""
    arrays = load_npz(path)
    if absent := [name for name in FACTS if name not in arrays]:
        raise InputError(f"{path} is no file of maps: {', '.join(absent)} is missing. `dicot paper --run` writes one.")
    labels, data_set, mark, seed, steps, titles = (arrays.pop(name) for name in FACTS)
    whole = [
        fact.shape == () and fact.dtype.kind == kind
        for fact, kind in zip((data_set, mark, seed, steps), "UUii", strict=True)
    ]
    shapes = {(*labels.shape, 2)} | {points.shape for points in arrays.values()}
    plain = all(points.dtype == np.float32 and np.isfinite(points).all() for points in arrays.values())
    if not all(whole) or labels.ndim != 1 or len(shapes) > 1 or titles.shape != (len(arrays),) or not plain:
        raise InputError(f"{path} is damaged: its maps and labels do not fit together. Remove it and make it again.")
    return Maps(
        str(data_set),
        str(mark),
        int(seed),
        int(steps),
        labels,
        arrays,
        dict(zip(arrays, map(str, titles), strict=True)),
    )
