"""What takes long and depends on the vectors alone, kept in a file beside them: map, clusters and outlier scores."""

import hashlib
import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import CalibrationWarning, InputError, OutputError
from dicot.core.progress import Bar
from dicot.core.storage import write_atomic
from dicot.data.npyfile import load_npz
from dicot.data.pieces import pieces, release
from dicot.data.policies import Array
from dicot.store.vectors import Vectors

FORMAT = "dicot explorer 1"
SEED = 0
REFERENCE = 10_000  # windows that outliers are told by; drawn where there are more
MOST_CLUSTERS = 10  # where no label tells how many there are: as many as colours that can be told apart

KEYS = {"tsne": ("points", "title"), "umap": ("umap_points", "umap_title")}  # of a map's arrays, by its kind

Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Overview:
    """All windows seen from far away."""

    points: NDArray[np.float32]  # (N, 2) between -1 and 1
    title: str  # how they came about
    cluster: NDArray[np.int32]  # (N,) from 0, the largest first
    n_clusters: int  # that were looked for
    outlier: NDArray[np.float32] | None  # (N,) the larger the odder; None where there are too few windows to tell


class Map(NamedTuple):
    """Where every window lies."""

    points: NDArray[np.float32]  # (N, 2) between -1 and 1
    title: str  # how they came about


@dataclass(frozen=True, eq=False)
class KeptOverviews:
    """What a file holds: maps by their kind, and what does not depend on a map."""

    maps: Mapping[str, Map]
    cluster: NDArray[np.int32]
    n_clusters: int
    outlier: NDArray[np.float32] | None

    def seen(self, kind: str) -> Overview:
        """Return what the explorer shows with a map of this kind."""
        return Overview(*self.maps[kind], self.cluster, self.n_clusters, self.outlier)


def overview_file(path: Path, known: Vectors) -> Path:
    """Name the file that is kept beside the vectors: it holds a hash of what it was made of."""
    digest = hashlib.sha256(f"{FORMAT} {known.x.shape}".encode())
    for rows in pieces((len(known), 1, known.x.shape[1])):
        digest.update(np.ascontiguousarray(known.x[rows], "<f4").tobytes())
        release(known.x[rows])
    if (together := known.held_together(3)) is not None:  # of which the outlier scores depend
        digest.update("\n".join(map(str, together[1].tolist())).encode())
    return path.with_name(f"{path.stem}.explorer-{digest.hexdigest()[:16]}.npz")


def read_or_make(path: Path, known: Vectors, n_classes: int, say: Say, kind: str = "tsne") -> Overview:
    """Read what an earlier start kept beside the vectors at `path`, or make it and keep it.

    `n_classes` of known labels say how many clusters to look for; with less than two, a rule does. `kind` is that of
    the map, "tsne" or "umap"; the file may hold both.
    """
    place = overview_file(path, known)
    count = n_clusters(len(known), n_classes)
    kept = _read(place, len(known)) if place.exists() else None
    maps = {} if kept is None else dict(kept.maps)
    if kept is not None and kept.n_clusters == count and kind in maps:
        say(f"Map: {maps[kind].title}; from {place}")
        return kept.seen(kind)
    if kind not in maps:
        say(f"Making the map of {len(known):,} windows, once; of 5,000 and more it takes some minutes.")
        maps[kind] = _map(known.x, kind)
        say(f"Map: {maps[kind].title}")
    outlier = outlier_scores(known) if kept is None else kept.outlier
    cluster = kept.cluster if kept is not None and kept.n_clusters == count else clusters(known.x, count)
    made = KeptOverviews(maps, cluster, count, outlier)
    try:
        _write(place, made)
        say(f"Wrote {place}: the next start reads it.")
    except OutputError as error:  # the folder may be read-only, and the map is there all the same
        say(f"Warning: the map is not kept, and will be made again at the next start. {error}")
    return made.seen(kind)


def n_clusters(n_windows: int, n_classes: int) -> int:
    """Return how many clusters to look for: as many as classes, or the root of half the windows, from 2 to 10."""
    wanted = n_classes if n_classes > 1 else min(MOST_CLUSTERS, max(2, round((n_windows / 2) ** 0.5)))
    return min(wanted, n_windows)


def _map(x: Array, kind: str) -> Map:
    from dicot.use.projection import overview, overview_steps

    with Bar("Map", overview_steps(len(x), kind)) as bar:
        found = overview(x, kind=kind, seed=SEED, on_step=bar.update)
    low, high = found.points.min(axis=0), found.points.max(axis=0)
    points = (found.points - (low + high) / 2) / max(float((high - low).max()) / 2, 1e-12)
    return Map(points.astype(np.float32), found.title)


def clusters(x: Array, count: int) -> NDArray[np.int32]:
    """Return the cluster of each window by k-means in the components that the map is made of, the largest first."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from dicot.use.projection import LANDMARKS, drawn_rows, principal_components

    z = principal_components(x, seed=SEED)
    with threadpool_limits(1), warnings.catch_warnings():  # one thread: the same bytes on every run
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different windows than clusters: some stay empty
        model = KMeans(count, n_init=3, random_state=SEED).fit(z[drawn_rows(len(z), LANDMARKS, SEED)])
        found = model.predict(z)
    order = np.argsort(-np.bincount(found, minlength=count), kind="stable")
    rank = np.empty(count, np.int32)
    rank[order] = np.arange(count)
    ranked: NDArray[np.int32] = rank[found]
    return ranked


def outlier_scores(known: Vectors) -> NDArray[np.float32] | None:
    """Return the distance of each window to the others, as `dicot outliers` has it; None for too few windows.

    Of more than 10,000 windows, that many are drawn and compared with each other, and the rest is compared with these.
    """
    from threadpoolctl import threadpool_limits

    from dicot.use.outliers import EmbeddingOutlierDetector, compare_with_rest
    from dicot.use.projection import drawn_rows

    rows = drawn_rows(len(known), REFERENCE, SEED)
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


def _write(place: Path, made: KeptOverviews) -> None:
    facts: dict[str, Any] = {
        "format": np.array(FORMAT),
        "cluster": made.cluster,
        "n_clusters": np.array(made.n_clusters),
    }
    for kind, one in sorted(made.maps.items()):
        points, title = KEYS[kind]
        facts |= {points: one.points, title: np.array(one.title)}
    if made.outlier is not None:
        facts["outlier"] = made.outlier
    buffer = io.BytesIO()
    np.savez(buffer, **facts)
    write_atomic(place, buffer.getvalue())


def _read(place: Path, n: int) -> KeptOverviews:
    """Read what `_write` wrote, checked: the file lies where others may write."""
    again = f"Remove {place}: it is made again at the next start."
    try:
        arrays = load_npz(place)
    except InputError as error:
        raise InputError(f"{error} {again}") from error
    wanted: dict[str, tuple[str, tuple[int, ...]]] = {"cluster": ("i4", (n,)), "outlier": ("f4", (n,))}
    wanted |= {points: ("f4", (n, 2)) for points, _ in KEYS.values()}
    held = {kind: keys for kind, keys in KEYS.items() if arrays.keys() & set(keys)}
    needed = {"cluster", "n_clusters"}.union(*held.values())
    sound = str(arrays.get("format", "")) == FORMAT and bool(held) and needed <= arrays.keys()
    sound = sound and all(
        arrays[name].dtype == np.dtype(f"<{kind}") and arrays[name].shape == shape
        for name, (kind, shape) in wanted.items()
        if name in arrays
    )
    sound = sound and arrays["n_clusters"].shape == () and arrays["n_clusters"].dtype.kind == "i"
    sound = sound and all(_within(arrays[points]) for points, _ in held.values())
    sound = sound and ("outlier" not in arrays or bool(np.isfinite(arrays["outlier"]).all()))
    if not sound:
        raise InputError(f"{place} is no map that the explorer made of these vectors. {again}")
    count = int(arrays["n_clusters"])
    if not 0 <= arrays["cluster"].min(initial=0) <= arrays["cluster"].max(initial=0) < count:
        raise InputError(f"{place} names clusters that it does not have. {again}")
    maps = {kind: Map(arrays[points], str(arrays[title])) for kind, (points, title) in held.items()}
    return KeptOverviews(maps, arrays["cluster"], count, arrays.get("outlier"))


def _within(points: Array) -> bool:
    return bool(np.isfinite(points).all() and np.abs(points).max(initial=0) <= 1.001)
