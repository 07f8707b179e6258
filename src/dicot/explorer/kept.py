"""What takes long and depends on the vectors alone, kept in a file beside them: map, clusters and outlier scores.

Windows that are appended later are placed into the map; those that were there stay exactly where they are.
"""

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.core.errors import CalibrationWarning, InputError, OutputError
from dicot.core.progress import Bar
from dicot.core.storage import atomic_file
from dicot.data.cases import Array, pieces, release
from dicot.data.labels import as_text
from dicot.data.npyfile import load_npz
from dicot.store.vectors import Vectors
from dicot.use import projection
from dicot.use.outliers import EmbeddingOutlierDetector, compare_with_rest

FORMAT = "dicot explorer 3"
SEED = 0
REFERENCE = 10_000  # windows that outliers are told by; drawn where there are more
MOST_CLUSTERS = 10  # where no label tells how many there are: as many as colours that can be told apart

MANY = 1 / 3  # of the windows, placed into a map that was made without them: then a new one is suggested

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Overview:
    """All windows seen from far away."""

    points: NDArray[np.float32]  # (N, 2) between -1 and 1
    title: str  # how they came about
    cluster: NDArray[np.int32]  # (N,) from 0, the largest first
    n_clusters: int  # that were looked for
    outlier: NDArray[np.float32] | None  # (N,) the larger the odder; None where there are too few windows to tell
    key: NDArray[np.uint64]  # (N,) tells windows apart
    own: NDArray[np.bool_]  # (N,) whether the map was made with a window, or it was placed later


def _keys(known: Vectors) -> NDArray[np.uint64]:
    """Return a number for each window by its vector, its place and what it belongs together with."""
    columns = list(known.places()) if known.placed else []
    together = known.held_together(3)  # the outlier scores depend on it
    if together is not None:
        columns.append(as_text(together[1]))
    texts = [""] * len(known)
    if columns:
        texts = [repr(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    keys = np.empty(len(known), np.uint64)
    for rows in pieces((len(known), 1, known.x.shape[1])):
        for row, values in enumerate(known.x[rows], rows.start):
            content = np.ascontiguousarray(values, "<f4").tobytes() + texts[row].encode()
            digest = hashlib.blake2b(content, digest_size=8).digest()
            keys[row] = int.from_bytes(digest, "little")
        release(known.x[rows])
    return keys


def read_or_make(path: Path, known: Vectors, n_classes: int, say: Say, kind: str = "tsne") -> Overview:
    """Read what an earlier start kept beside the vectors at `path`, or make it and keep it: "tsne" or "umap"."""
    place = path.with_name(f"{path.stem}.explorer-{kind}.npz")
    keys = _keys(known)
    count = n_clusters(len(known), n_classes)
    overview = _read(place)
    is_same = overview is not None and np.array_equal(overview.key, keys)
    if overview is not None and not is_same:
        overview = _grown(overview, known, keys)
    if overview is None:
        overview = _make(known, keys, count, say, kind)
    else:
        _say_what_was_read(overview, place, say)
        has_other_clusters = n_classes > 1 and overview.n_clusters != count
        if has_other_clusters:
            overview = replace(overview, cluster=clusters(known.x, count), n_clusters=count)
        elif is_same:
            return overview
    _keep(overview, place, say)
    return overview


def _make(known: Vectors, keys: NDArray[np.uint64], count: int, say: Say, kind: str) -> Overview:
    say(f"Making the map of {len(known):,} windows. This is done once: the map is kept beside the vectors.")
    points, title = _map(known.x, kind)
    say(f"Map: {title}")
    own = np.ones(len(known), bool)
    return Overview(points, title, clusters(known.x, count), count, outlier_scores(known), keys, own)


def _say_what_was_read(overview: Overview, place: Path, say: Say) -> None:
    n_later = int(np.count_nonzero(~overview.own))
    appended = ""
    if n_later:
        appended = f"; {n_later} window(s) that were appended are placed between the nearest others"
    say(f"Map: {overview.title}{appended}; from {place}")
    if n_later > MANY * len(overview.own):
        say(f"Warning: New kinds of windows may not stand apart. To make the map anew, remove {place}.")


def _keep(overview: Overview, place: Path, say: Say) -> None:
    arrays = {name: value for name, value in vars(overview).items() if value is not None}
    facts: dict[str, Any] = {"format": np.array(FORMAT), **arrays}
    try:
        with atomic_file(place) as file:
            np.savez(file, **facts)
        say(f"Wrote {place}: the next start reads it.")
    except OutputError as error:  # the folder may be read-only, and the map is there all the same
        say(f"Warning: the map is not kept, and will be made again at the next start. {error}")


def _grown(old: Overview, known: Vectors, keys: NDArray[np.uint64]) -> Overview | None:
    """Place windows that are new into the map of the others; None where less than half of its windows are there.

    Points and clusters of the others stay. A new window lies between the three nearest that the map was made with, in
    the cluster of the nearest. Outlier scores are computed anew: each compares a window with all others.
    """
    old_rows = {key: row for row, key in enumerate(old.key.tolist())}
    rows = np.array([old_rows.get(key, -1) for key in keys.tolist()])
    present, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
    own = np.zeros(len(known), bool)
    own[present] = old.own[rows[present]]
    marks = np.flatnonzero(own)
    if 2 * len(present) < len(old.key) or len(marks) < projection.MIN_CASES:
        return None
    points = np.empty((len(known), 2), np.float32)
    cluster = np.empty(len(known), np.int32)
    points[present] = old.points[rows[present]]
    cluster[present] = old.cluster[rows[present]]
    if len(new):
        z = projection.principal_components(known.x, seed=SEED)
        points[new], nearest = projection.place(z, marks, points[marks], new)
        cluster[new] = cluster[marks[nearest]]
    return replace(old, points=points, cluster=cluster, outlier=outlier_scores(known), key=keys, own=own)


def n_clusters(n_windows: int, n_classes: int) -> int:
    """Return how many clusters to look for: as many as classes, or the root of half the windows, from 2 to 10."""
    wanted = n_classes if n_classes > 1 else min(MOST_CLUSTERS, max(2, round((n_windows / 2) ** 0.5)))
    return min(wanted, n_windows)


def _map(x: Array, kind: str) -> tuple[NDArray[np.float32], str]:
    with Bar("Map", projection.overview_steps(len(x), kind)) as bar:
        found = projection.overview(x, kind=kind, seed=SEED, on_step=bar.update)
    low, high = found.points.min(axis=0), found.points.max(axis=0)
    points = (found.points - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12)
    return points.astype(np.float32), found.title


def clusters(x: Array, count: int) -> NDArray[np.int32]:
    """Return the cluster of each window by k-means in the components that the map is made of, the largest first."""
    z = projection.principal_components(x, seed=SEED)
    drawn = projection.drawn_rows(len(z), projection.LANDMARKS["tsne"], SEED)
    with threadpool_limits(1), warnings.catch_warnings():  # one thread: the same bytes on every run
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different windows than clusters: some stay empty
        found = KMeans(count, n_init=3, random_state=SEED).fit(z[drawn]).predict(z)
    order = np.argsort(-np.bincount(found, minlength=count), kind="stable")
    return np.asarray(np.argsort(order)[found], np.int32)


def outlier_scores(known: Vectors) -> NDArray[np.float32] | None:
    """Return the distance of each window to the others, or to 10,000 that are drawn; None for too few windows."""
    rows = projection.drawn_rows(len(known), REFERENCE, SEED)
    together = known.held_together(3)
    groups = None if together is None else together[1][rows]
    out = np.empty(len(known), np.float32)
    detector = EmbeddingOutlierDetector()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # about p-values, which are not used
        try:
            out[rows] = compare_with_rest(detector, known.x[rows], groups)[0]
            others = np.setdiff1d(np.arange(len(known)), rows)
            if len(others):
                detector.fit(known.x[rows], groups=groups)
                out[others] = -detector.score_samples(known.x[others])
        except InputError:  # too few windows, or groups of them, to compare
            return None
    return out


def _read(place: Path) -> Overview | None:
    """Read what was kept; None where there is no such file, or another one: it is made again then."""
    try:
        arrays = load_npz(place)
        if str(arrays.pop("format")) != FORMAT:
            return None
        facts: dict[str, Any] = {name: arrays.pop(name).item() for name in ("title", "n_clusters")}
        overview = Overview(**{"outlier": None, **arrays, **facts})
        return overview if _is_sound(overview) else None
    except (OSError, InputError, KeyError, TypeError, ValueError):
        return None


def _is_sound(overview: Overview) -> bool:
    """Tell whether the parts of a file fit together."""
    n = len(overview.points)
    columns = [overview.cluster, overview.outlier, overview.key, overview.own]
    has_shapes = all(column.shape == (n,) for column in columns if column is not None)
    has_clusters = 0 <= overview.cluster.min() <= overview.cluster.max() < overview.n_clusters
    is_on_map = overview.points.shape == (n, 2) and bool(np.abs(overview.points).max() <= 1.001)  # NaN is not
    return has_shapes and bool(has_clusters) and is_on_map and overview.own.dtype == bool
