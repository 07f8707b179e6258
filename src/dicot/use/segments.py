"""segment: the windows of recordings as stretches of one activity, by change points or by a classifier along time."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform
from scipy.special import softmax
from sklearn.utils import check_array

from dicot.core.errors import InputError
from dicot.data.cases import Array, pieces
from dicot.data.labels import check_groups
from dicot.model.fewlabels import StandardScale
from dicot.model.head import logarithm

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

DIGITS = 6  # of seconds
LEAST = 5.0  # seconds
# Chosen on the training subjects of HAPT and SisFall: see docs/segments.md.
PENALTY = 6.0  # of a change, in multiples of how much a window differs from a later one of the same stretch
ALIKE = 0.7  # distance of two stretches of one cluster, in the root of the same unit
ELSEWHERE = 2.6  # times as far apart two of them may lie in different groups, in the distance that is usual there
DIRECTIONS = 32  # principal components that changes are looked for in
DRAWN = 20_000  # windows that these components are found by
LONGEST = 1_000  # windows of a stretch while changes are looked for; longer ones are joined again by their cluster
CLUSTERED = 3_000  # of more stretches the longest make the clusters, and the others go to the nearest
GAP = 1.5  # usual steps between two windows; where more lie between them, a stretch ends
ROUNDS = 5  # in which the usual length of a stretch is estimated
TINY = 1e-9


class Timeline(NamedTuple):
    """Windows in the order of time, recording by recording."""

    order: Rows  # (N,) the rows of the windows
    recording: Array  # (N,), as the others in the order of time
    start: Floats
    end: Floats
    runs: list[slice]  # windows without a gap between them
    step: float  # between the starts of two windows
    width: float  # of a window

    @classmethod
    def of(cls, n: int, recording: Any, start: Any, end: Any) -> "Timeline":
        """Put windows in order; an error where times cannot be."""
        names = check_groups(np.zeros(n) if recording is None else recording, n, "recording", "windows")
        starts = np.asarray(check_groups(start, n, "start and end", "windows"), float)
        ends = np.asarray(check_groups(end, n, "start and end", "windows"), float)
        _, first_row, number = np.unique(names, return_index=True, return_inverse=True)
        order = np.lexsort((ends, starts, first_row[number]))
        names, starts, ends = names[order], starts[order], ends[order]

        is_same_recording = names[1:] == names[:-1]
        steps = np.diff(starts)
        _check_times(names, starts, ends, is_same_recording & (steps <= 0))
        width = float(np.median(ends - starts))
        step = float(np.median(steps[is_same_recording])) if is_same_recording.any() else width
        is_gap = steps > max(width, GAP * step) + TINY
        edges = [0, *(np.flatnonzero(~is_same_recording | is_gap) + 1).tolist(), n]
        runs = [slice(*pair) for pair in pairwise(edges)]
        return cls(order, names, starts, ends, runs, step, width)

    def windows(self, seconds: float) -> int:
        """Return how many windows a stretch of so many seconds has at least."""
        return max(1, math.ceil(seconds / self.step - TINY))


def _check_times(names: Array, starts: Floats, ends: Floats, is_repeated: NDArray[np.bool_]) -> None:
    """Refuse windows without a length, and two that start at one time; `is_repeated` (N - 1,) tells of the second."""
    is_bad = ~(starts < ends)
    is_bad[1:] |= is_repeated
    rows = np.flatnonzero(is_bad)
    if len(rows):
        first = rows[0]
        raise InputError(
            f"A window of {names[first]} lies from {starts[first]:g} to {ends[first]:g}, which is no time, or another "
            "starts there. Embed recordings once, with one window and stride."
        )


def segment(
    x: Any,
    recording: Any,
    start: Any,
    end: Any,
    *,
    levels: Any = None,
    groups: Any = None,
    least: float = LEAST,
    penalty: float = PENALTY,
    alike: float = ALIKE,
    clusters: int | None = None,
) -> pd.DataFrame:
    """Cut recordings into stretches where their embeddings change, and number stretches that are alike.

    The stretches have the least sum of squared distances to their means plus a penalty for each change, in multiples of
    how much neighbouring windows differ. Those with means near to each other get one number (average linkage), and are
    joined where they touch; cluster 1 lasts longest. What is near is wider between groups, where people or devices
    differ too: it is found by how far stretches of other groups usually are. A boundary lies in the middle between the
    centres of two windows.
    Returns a table with the columns recording, start, end, windows and cluster, in the order of time.

    Parameters
    ----------
    x : (N, F) embeddings of windows, in any order
    recording, start, end : (N,) where they lie; start and end in seconds; recording None where all are of one
    levels : (N, L) what `level_statistics` says of each window, to weigh as much as the embeddings; or None
    groups : (N,) whose the windows are; by default each recording is a group
    least : seconds that a stretch lasts at least; a recording that is shorter is one stretch
    penalty, alike : higher values give fewer stretches, and fewer clusters
    clusters : how many there are at most, where that is known; `alike` then does not matter
    """
    x = check_array(x, dtype=(np.float32, np.float64), input_name="x", estimator="segment")
    line = Timeline.of(len(x), recording, start, end)
    z = _directions(x, levels)[line.order]
    noise = _noise(z, line)
    shortest = line.windows(least)
    starts = []
    for run in line.runs:
        edges = change_points(z[run], shortest, penalty * noise)
        starts.append(edges[:-1] + run.start)
    all_starts = np.concatenate(starts)
    whose = line.recording if groups is None else check_groups(groups, len(x), "groups", "windows")[line.order]
    found = _clusters(z, all_starts, whose[all_starts], alike, math.sqrt(noise), clusters)
    table = _table(line, all_starts, found, "cluster")

    # Cluster 1 lasts longest.
    lasting = (table["end"] - table["start"]).groupby(table["cluster"], sort=False).sum()
    by_length = lasting.sort_values(ascending=False, kind="stable").index
    names = {name: number for number, name in enumerate(by_length, 1)}
    return table.assign(cluster=table["cluster"].map(names))


def segment_labels(
    probabilities: Any, classes: Sequence[Any], recording: Any, start: Any, end: Any, *, least: float = LEAST
) -> pd.DataFrame:
    """Cut recordings into stretches of one label by the probabilities (N, K) of their windows: Viterbi's best path.

    A path may change its label after `least` seconds. The chance to stay is estimated by the mean length of stretches.
    Returns a table with the columns recording, start, end, windows, label and its mean probability.
    """
    p = check_array(probabilities, dtype=np.float64, input_name="probabilities", estimator="segment_labels")
    if p.shape[1] != len(classes):
        raise InputError(f"probabilities must have one column for each of {len(classes)} classes; got {p.shape[1]}.")
    line = Timeline.of(len(p), recording, start, end)
    p = p[line.order]
    worth = logarithm(p)
    shortest = line.windows(least)
    mean_length = 4.0 * shortest  # of a stretch, in windows: a first guess
    paths: list[Rows] = []
    for _ in range(ROUNDS):
        # Of one change against staying; which label follows is not weighed.
        penalty = math.log(max(1.0, mean_length - 1))
        paths = [best_path(worth[run], shortest, penalty) for run in line.runs]
        n_stretches = sum(1 + np.count_nonzero(np.diff(path)) for path in paths)
        if len(p) / n_stretches == mean_length:
            break
        mean_length = len(p) / n_stretches
    return _labelled(line, p, np.concatenate(paths), classes)


def shortest_event(recording: Any, start: Any, end: Any) -> float:
    """Return how many seconds a predicted event lasts at least, where nobody says so: two windows, and LEAST at most.

    One window alone is too often a mistake of the classifier. Five seconds for all would swallow a fall or a cough that
    many windows show.
    """
    return min(LEAST, 2 * Timeline.of(len(start), recording, start, end).step)


def label_runs(probabilities: Any, classes: Sequence[Any], recording: Any, start: Any, end: Any) -> pd.DataFrame:
    """Join neighbouring windows of one most probable label, without smoothing; the table of `segment_labels`."""
    p, line = np.asarray(probabilities, np.float64), Timeline.of(len(probabilities), recording, start, end)
    p = p[line.order]
    return _labelled(line, p, p.argmax(axis=1), classes)


def _labelled(line: Timeline, p: Floats, path: Rows, classes: Sequence[Any]) -> pd.DataFrame:
    """Return stretches of windows, in the order of time, by the number of the label (N,) of each."""
    starts = np.unique(np.r_[[run.start for run in line.runs], np.flatnonzero(np.diff(path)) + 1])
    table = _table(line, starts, path[starts], "label")
    sums = np.add.reduceat(p[np.arange(len(p)), path], starts)
    return table.assign(label=np.asarray(classes)[path[starts]], probability=sums / table["windows"])


def agreed(one: Floats, other: Floats) -> Floats:
    """Return probabilities (N, K) that two classifiers agree on: the geometric mean of theirs."""
    return np.asarray(softmax((logarithm(one) + logarithm(other)) / 2, axis=1))


def change_points(z: Floats, shortest: int, penalty: float, longest: int = LONGEST) -> Rows:
    """Return the edges of the best stretches of z (n, d), 0 and n among them: the least squares plus penalties."""
    n = len(z)
    longest = max(longest, 2 * shortest)
    if n < 2 * shortest:
        return np.array([0, n])
    sums = np.concatenate([np.zeros((1, z.shape[1])), np.cumsum(z, axis=0)])
    lengths = np.einsum("nd,nd->n", sums, sums)
    counts = np.arange(n + 1, 0, -1, dtype=float)
    # Of the squared distances to a mean only the part that depends on the edges is added up.
    best = np.full(n + 1, np.inf)  # of the first windows up to here
    before = np.zeros(n + 1, np.intp)  # where the last stretch of this best begins
    best[0] = -penalty
    for stop in range(shortest, n + 1):
        low, high = max(0, stop - longest), stop - shortest + 1
        squared_sums = lengths[low:high] + lengths[stop] - 2 * (sums[low:high] @ sums[stop])
        totals = best[low:high] - squared_sums / counts[n + 1 - stop + low : n + 1 - stop + high]
        place = int(totals.argmin())
        best[stop] = totals[place] + penalty
        before[stop] = low + place
    edges = [n]
    while edges[-1]:
        edges.append(int(before[edges[-1]]))
    return np.array(edges[::-1])


def best_path(worth: Floats, shortest: int, penalty: float) -> Rows:
    """Return the class (n,) of each window: the best sum of worth (n, K) less a penalty for each change."""
    n, n_classes = worth.shape
    if n < 2 * shortest:
        return np.full(n, worth.sum(axis=0).argmax())
    sums = np.concatenate([np.zeros((1, n_classes)), np.cumsum(worth, axis=0)])
    best = np.zeros(n + 1)  # of the first windows up to here
    label = np.zeros(n + 1, np.intp)  # of the last stretch of this best, and where it begins
    before = np.zeros(n + 1, np.intp)
    ahead = np.full(n_classes, -np.inf)  # for each class: the best total without its own worth, and where it began
    since = np.zeros(n_classes, np.intp)
    for stop in range(shortest, n + 1):
        begun = stop - shortest
        if begun == 0 or begun >= shortest:
            change = penalty if begun else 0.0
            fresh = best[begun] - sums[begun] - change
            is_better = fresh > ahead
            ahead[is_better] = fresh[is_better]
            since[is_better] = begun
        totals = sums[stop] + ahead
        label[stop] = totals.argmax()
        best[stop] = totals[label[stop]]
        before[stop] = since[label[stop]]

    path = np.empty(n, np.intp)
    stop = n
    while stop:
        path[before[stop] : stop] = label[stop]
        stop = int(before[stop])
    return path


def _directions(x: Array, levels: Any) -> Floats:
    """Return the windows (N, d) in their main directions, every feature standardised first."""
    parts = [(StandardScale(part), part) for part in (x, levels) if part is not None]

    def scaled(rows: Any) -> Floats:
        return np.hstack([scale(part[rows]) for scale, part in parts])

    drawn = scaled(np.linspace(0, len(x) - 1, min(len(x), DRAWN)).astype(int))
    axes = np.linalg.eigh(drawn.T @ drawn)[1][:, ::-1][:, :DIRECTIONS]
    return np.concatenate([scaled(rows) @ axes for rows in pieces(x.shape)])


def _noise(z: Floats, line: Timeline) -> float:
    """Return half the median squared distance of a window to the next one that it shares no time with."""
    ahead = max(1, math.ceil(line.width / line.step - TINY))
    apart = [np.square(z[run][ahead:] - z[run][:-ahead]).sum(axis=1) for run in line.runs]
    all_apart = np.concatenate(apart)
    if not len(all_apart):
        return max(float(z.var(axis=0).sum()), TINY)
    return max(float(np.median(all_apart)) / 2, TINY)


def _clusters(z: Floats, starts: Rows, whose: Array, alike: float, noise: float, most: int | None) -> Rows:
    """Return the cluster of each stretch: means no farther apart, on average over both clusters; or at most so many."""
    counts = np.diff(starts, append=len(z))
    means = np.add.reduceat(z, starts, axis=0) / counts[:, None]
    if len(means) == 1:
        return np.ones(1, np.intp)
    longest = np.sort(np.argsort(-counts, kind="stable")[:CLUSTERED])
    if most is None:
        tree = linkage(_apart(means[longest], whose[longest], alike, noise), "average")
        cluster = fcluster(tree, 1, "distance")
    else:
        cluster = fcluster(linkage(means[longest], "ward"), most, "maxclust")
    if len(longest) == len(means):
        return np.asarray(cluster, np.intp)
    centres = np.stack([means[longest][cluster == number].mean(axis=0) for number in range(1, cluster.max() + 1)])
    return np.array([np.square(centres - mean).sum(axis=1).argmin() + 1 for mean in means], np.intp)


def _apart(means: Floats, whose: Array, alike: float, noise: float) -> Floats:
    """Return how far apart stretches are (as pdist does), in multiples of what two of one cluster may be.

    Within a group that is a share of the noise. Between groups it goes by how far the nearest few stretches of other
    groups are: the more groups there are, and the more stretches in each, the more of them have the same activity.
    """
    apart = squareform(pdist(means))
    is_same_group = whose[:, None] == whose
    n, n_groups = len(whose), len(np.unique(whose))
    nth = max(1, round(math.log(n_groups) * n / (n + n_groups)))
    elsewhere = np.where(is_same_group, np.inf, apart)
    usual = np.partition(elsewhere, nth - 1, axis=1)[:, nth - 1].clip(TINY, noise)
    between = ELSEWHERE * np.sqrt(usual[:, None] * usual)
    allowed = alike * np.where(is_same_group, noise, between)
    return np.asarray(squareform(apart / allowed, checks=False))


def _table(line: Timeline, starts: Rows, values: Rows, title: str) -> pd.DataFrame:
    """Return stretches as a table; neighbours of one value are joined where no gap is between them."""
    begins_run = np.isin(starts, [run.start for run in line.runs])
    is_change = np.r_[True, values[1:] != values[:-1]]
    is_kept = begins_run | is_change
    first = starts[is_kept]
    begins_run = begins_run[is_kept]
    stop = np.r_[first[1:], len(line.start)]
    ends_run = np.r_[begins_run[1:], True]

    between = (line.start[1:] + line.end[:-1]) / 2  # the centres of two windows of one width
    boundary = np.r_[0, between.round(DIGITS), 0]
    columns = {
        "recording": line.recording[first],
        "start": np.where(begins_run, line.start[first], boundary[first]),
        "end": np.where(ends_run, line.end[stop - 1], boundary[stop]),
        "windows": stop - first,
        title: values[is_kept],
    }
    return pd.DataFrame(columns)
