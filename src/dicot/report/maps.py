"""Maps of embeddings in two dimensions, for looking at, not for measuring, and the file that they are drawn from."""

import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.manifold import TSNE
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.data.npyfile import load_npz
from dicot.errors import InputError, MissingDataError
from dicot.protocols.base import Features, Floats
from dicot.protocols.subsets import stratified_cap
from dicot.report.figures import map_panels
from dicot.report.parts import Part
from dicot.storage import write_atomic

Array = NDArray[Any]

LABELS, DATA_SET = "labels", "data_set"
TAKEN = (LABELS, DATA_SET, "file", "allow_pickle")  # the last two are np.savez's own
POINTS = 800  # per panel
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


def tsne(x: ArrayLike, labels: ArrayLike, *, seed: int, limit: int = MAX_POINTS) -> Projection:
    """Compute t-SNE of standardised embeddings (N, F), of at most `limit` cases with the classes in proportion.

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


def check_features_file(path: Path, contenders: Collection[str]) -> None:
    """Refuse what `write_features` cannot write, before any work is done."""
    if path.suffix != ".npz":
        raise InputError(f"{path}: a file of embeddings ends in .npz; got {path.suffix or 'no suffix'!r}.")
    if clash := sorted(set(TAKEN) & set(contenders)):
        raise InputError(f"{path}: no contender in it may be called {' or '.join(clash)}. Rename the model's folder.")


def write_features(path: Path, data_set: str, labels: Array, embeddings: Mapping[str, Array]) -> None:
    """Write one array (N, F) under each contender's name, `labels` (N,) and the name of the data set."""
    check_features_file(path, embeddings)
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {LABELS: labels, DATA_SET: np.array(data_set), **embeddings}
    np.savez(buffer, **arrays)
    write_atomic(path, buffer.getvalue())


def maps(path: Path) -> Part:
    """Map each contender of a file that `write_features` wrote; one made by hand need not name the data set."""
    if not path.is_file():
        raise MissingDataError(f"There is no file of embeddings at {path}. `dicot evaluate --features` writes one.")
    arrays = load_npz(path)
    labels, data_set = arrays.pop(LABELS, None), str(arrays.pop(DATA_SET, ""))
    if labels is None or not arrays:
        raise InputError(f"{path} must hold `{LABELS}` and one array of embeddings per contender; got {list(arrays)}.")
    flat = {name: tsne(x, labels, seed=0, limit=POINTS) for name, x in arrays.items()}
    panels = {name: (map_.points, labels[map_.rows]) for name, map_ in flat.items()}
    by_title: dict[str, list[str]] = {}
    for name, map_ in flat.items():
        by_title.setdefault(map_.title, []).append(name)
    text = "; ".join(f"{', '.join(names)}: {how}" for how, names in by_title.items())
    title = f"Maps of the embeddings{f' of {data_set}' if data_set else ''}"
    return Part(title, figures={"maps": partial(map_panels, panels)}, text=f"{text}.")
