"""probably_wrong: labels that a classifier of the others finds unlikely."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.covariance import ledoit_wolf
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

from dicot.core.errors import InputError
from dicot.data.labels import check_groups
from dicot.model.fewlabels import StandardScale, class_numbers
from dicot.use.labels.accuracy import folds

Floats = NDArray[Any]
Rows = NDArray[np.intp]

BELOW = 0.02  # the probability of a label that is in doubt
NEAR = 3


class Doubt(NamedTuple):
    """A label that is probably wrong."""

    row: int
    label: Any  # the one that was given
    given: float  # its probability, by a classifier that did not see it
    predicted: Any  # the label that this classifier takes for right
    probability: float  # of `predicted`
    near: tuple[int, ...]  # rows of the nearest windows with a label that the classifier did see, the nearest first


def probably_wrong(
    x: Any,
    y: Any,
    groups: Any = None,
    *,
    below: float = BELOW,
    random_state: int = 0,
    on_fit: Callable[[int, int], None] = lambda done, total: None,
) -> list[Doubt]:
    """Return the labels that are probably wrong, the least probable first.

    The labelled cases are dealt out to five folds, whole groups together where there are some, as honest_accuracy does.
    A linear discriminant classifier learns from the labels of four folds and gives probabilities for the fifth. One
    temperature makes all of them fit to the labels. A label is in doubt where it has a probability below `below` and
    another one has the largest. A class that has no label outside the fold is not judged.

    Parameters
    ----------
    x : (N, F) embeddings of all cases, with and without a label
    y : (N,) labels; -1, NaN, None and the empty string stand for an unknown one
    groups : (N,) whose case it is, such as a person or a recording, or None
    below : the probability of a given label that is in doubt
    random_state : draws the folds
    on_fit : is told how many classifiers are fitted, and of how many
    """
    x = check_array(x, dtype=(np.float32, np.float64), input_name="x", estimator="probably_wrong")
    classes, numbers = class_numbers(y, len(x))
    known = np.flatnonzero(numbers >= 0)
    z, truth, members = StandardScale(x)(x[known]), numbers[known], None
    if groups is not None:
        members = np.unique(check_groups(groups, len(x), "groups")[known], return_inverse=True)[1]
        members = members if members.max() else None
    fold, scores = np.full(len(known), -1), np.full((len(known), len(classes)), -np.inf)
    dealt = list(folds(truth, members, np.random.default_rng(random_state)))
    for number, rows in enumerate(dealt):
        on_fit(number, len(dealt))
        rest = np.setdiff1d(np.arange(len(known)), rows)
        seen = np.unique(truth[rest])
        rows = rows[np.isin(truth[rows], seen)]
        if len(seen) > 1 and len(rows):
            fold[rows] = number
            scores[np.ix_(rows, seen)] = _discriminants(z[rest], np.searchsorted(seen, truth[rest]), z[rows])
    judged = np.flatnonzero(fold >= 0)
    if not len(judged):
        raise InputError(
            "No label could be checked: each class needs labels in two folds. Label more cases, in two groups where "
            "there are groups."
        )
    chances = _calibrated(scores[judged], truth[judged])
    own, best = chances[np.arange(len(judged)), truth[judged]], chances.argmax(axis=1)
    doubtful = np.flatnonzero((own < below) & (best != truth[judged]))
    doubtful = doubtful[np.argsort(own[doubtful], kind="stable")]
    chosen, near = judged[doubtful], dict[int, list[int]]()
    for number in np.unique(fold[chosen]):
        rest, asked = np.flatnonzero(fold != number), chosen[fold[chosen] == number]
        search = NearestNeighbors(n_neighbors=min(NEAR, len(rest)), algorithm="brute").fit(z[rest])
        near |= dict(zip(asked.tolist(), known[rest][search.kneighbors(z[asked])[1]].tolist(), strict=True))
    columns = (
        known[chosen],
        classes[truth[chosen]],
        own[doubtful],
        classes[best[doubtful]],
        chances.max(axis=1)[doubtful],
    )
    said = zip(
        *(values.tolist() for values in columns), map(tuple, map(near.__getitem__, chosen.tolist())), strict=True
    )
    return [Doubt(*one) for one in said]


def _discriminants(z: Floats, numbers: Rows, asked: Floats) -> Floats:
    """Return the scores (n, K) of cases by linear discriminant analysis of z (L, F) with all classes of `numbers`."""
    counts = np.bincount(numbers)
    means = np.stack([z[numbers == number].mean(axis=0) for number in range(len(counts))])
    covariance, _ = ledoit_wolf(z - means[numbers], assume_centered=True)
    weights = np.linalg.lstsq(covariance, means.T, rcond=None)[0]  # a feature may be constant
    scores: Floats = asked @ weights - (means * weights.T).sum(axis=1) / 2 + np.log(counts / counts.sum())
    return scores


def _calibrated(scores: Floats, truth: Rows) -> Floats:
    """Return probabilities (n, K) at the temperature that fits best to the labels."""
    rows = np.arange(len(truth))

    def loss(logarithm: float) -> float:
        return -float(log_softmax(scores / np.exp(logarithm), axis=1)[rows, truth].mean())

    chances: Floats = softmax(scores / np.exp(minimize_scalar(loss, bounds=(-3, 6), method="bounded").x), axis=1)
    return chances
