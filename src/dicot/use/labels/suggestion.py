"""suggest: which cases to label next, so that few labels say much."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.core.errors import InputError, is_whole
from dicot.model.fewlabels import FewLabelClassifier, StandardScale, class_numbers

Floats = NDArray[np.floating[Any]]
Rows = NDArray[np.intp]

# Chosen on development sets, see docs/log.md.
COVERED = 5  # labels per class that is known, after which uncertainty chooses
NEIGHBOURS = 20  # whose mean distance says how typical a case is
CANDIDATES = 5  # uncertain cases per suggestion, of which different ones are taken
CASES = 10_000  # that a call looks at


def suggest(x: Any, y: Any = None, k: int = 10, *, random_state: int = 0) -> Rows:
    """Return up to k rows of x to label next, the most useful first; never one that has a label.

    Coverage comes first: the standardised cases are cut into as many clusters as there are labels and suggestions, and
    the most typical case of the largest clusters without a label is suggested. Where five labels per class are known,
    of two classes or more, uncertainty chooses: of the cases in which the two most probable classes of a
    FewLabelClassifier are closest, those in the middle of k clusters. A class that no label has shown yet is found by
    coverage only.

    Of more than 10,000 cases a call looks at 10,000, labelled ones first (up to half of them) and others drawn, so its
    memory and all its time but one look at every value do not grow with N; time grows with labels and k. The same
    random_state gives the same rows.

    Labels chosen this way are no fair sample: say so to `honest_accuracy`.

    Parameters
    ----------
    x : (N, F) embeddings of all cases
    y : (N,) labels; -1, NaN, None and the empty string stand for an unknown one. None: there are no labels yet
    k : how many rows; fewer are returned where fewer have no label
    random_state : draws cases and the beginnings of the clusters
    """
    if not is_whole(k, 1):
        raise InputError(f"k must be a whole number of cases to label, 1 or more; got {k!r}.")
    x = check_array(x, dtype=(np.float32, np.float64), input_name="x", estimator="suggest")
    numbers = np.full(len(x), -1) if y is None else class_numbers(y, len(x), least=0)[1]
    known = np.flatnonzero(numbers >= 0)
    unknown = np.flatnonzero(numbers < 0)
    if not len(unknown):
        raise InputError(f"All {len(x)} cases have a label: there is nothing left to label. Add cases.")
    if k >= len(unknown):
        return unknown
    rng = np.random.RandomState(random_state)
    limit = max(CASES, 2 * k)
    rows = np.arange(len(x))
    if len(x) > limit:
        drawn_known = rng.permutation(known)[: limit // 2]
        drawn_unknown = rng.permutation(unknown)[: limit - len(drawn_known)]
        rows = np.sort(np.concatenate([drawn_known, drawn_unknown]))
    cases, numbers = x[rows], numbers[rows]
    z: Floats = StandardScale(cases)(cases)
    seen = np.unique(numbers[numbers >= 0])
    with threadpool_limits(1):  # sums over threads in arbitrary order would make the rows differ between runs
        if reason(len(known), len(seen)) == "coverage":
            chosen = typical(z, np.flatnonzero(numbers >= 0), k, rng)
        else:
            chosen = uncertain(cases, z, numbers, k, rng)
    return np.asarray(rows[chosen])


def reason(n_labels: int, n_classes: int) -> str:
    """Say by what `suggest` chooses with so many labels of so many classes: "coverage" or "uncertainty"."""
    return "coverage" if n_classes < 2 or n_labels < COVERED * n_classes else "uncertainty"


def typical(z: Floats, known: Rows, k: int, rng: np.random.RandomState) -> Rows:
    """Return k other rows of z (N, F) than the known ones: the most typical case of each large cluster without one.

    By typicality as in Hacohen, Dekel and Weinshall, Active learning on a budget (2022).
    """
    clusters = _clusters(z, min(len(known) + k, len(z)), rng)[0]
    sizes = np.bincount(clusters)
    n_labels = np.bincount(clusters[known], minlength=len(sizes))
    is_free = np.ones(len(z), dtype=bool)
    is_free[known] = False
    n_free = np.bincount(clusters[is_free], minlength=len(sizes))
    chosen = np.empty(k, dtype=np.intp)
    for place in range(k):
        order = np.where(n_free > 0, n_labels, len(z) + 1)
        best = int(np.lexsort((-sizes, order))[0])  # the fewest labels, of several the largest
        members = np.flatnonzero(clusters == best)
        candidates = members[is_free[members]]
        # The least mean distance to its nearest members of the cluster, itself among them.
        search = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(members)), algorithm="brute").fit(z[members])
        distances, _ = search.kneighbors(z[candidates])
        chosen[place] = candidates[distances.mean(axis=1).argmin()]
        is_free[chosen[place]] = False
        n_labels[best] += 1
        n_free[best] -= 1
    return chosen


def uncertain(cases: Floats, z: Floats, numbers: Rows, k: int, rng: np.random.RandomState) -> Rows:
    """Return k rows without a label (-1): uncertain ones, and different from each other."""
    model = FewLabelClassifier(random_state=rng.randint(2**31 - 1)).fit(cases, numbers)
    ordered = np.sort(model.label_distributions_, axis=1)
    margins = ordered[:, -1] - ordered[:, -2]
    unknown = np.flatnonzero(numbers < 0)
    candidates = unknown[np.argsort(margins[unknown], kind="stable")][: CANDIDATES * k]
    clusters, centres = _clusters(z[candidates], k, rng)
    away = np.square(z[candidates] - centres[clusters]).sum(axis=1)
    middles = []
    for cluster in np.unique(clusters):
        members = np.flatnonzero(clusters == cluster)
        middles.append(members[away[members].argmin()])
    others = np.setdiff1d(np.arange(len(candidates)), middles)  # in the order of their margins
    chosen = np.concatenate([np.sort(middles), others])[:k]
    return np.asarray(candidates[chosen])


def _clusters(z: Floats, count: int, rng: np.random.RandomState) -> tuple[Rows, Floats]:
    """Return the cluster of each row and the clusters' centres; some clusters may be empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different cases than clusters: some stay empty
        model = KMeans(count, n_init=3, random_state=rng.randint(2**31 - 1)).fit(z)
    return model.labels_.astype(np.intp), model.cluster_centers_
