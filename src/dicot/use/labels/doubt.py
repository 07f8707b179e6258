"""probably_wrong: labels that a classifier of the others finds unlikely."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.covariance import ledoit_wolf
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

from dicot.core.errors import InputError
from dicot.data.labels import check_groups
from dicot.model.fewlabels import StandardScale, class_numbers
from dicot.use.labels.accuracy import folds

Floats = NDArray[Any]
Rows = NDArray[np.intp]

NEAR = 3  # windows that are shown beside a doubtful one
SMALLEST = 1e-300
ENOUGH = 10  # labels of a usual class; with three, nine of ten that are listed are right


class Doubt(NamedTuple):
    """A label that is probably wrong."""

    row: int
    label: Any  # the one that was given
    given: float  # the probability that it is right, by a classifier that did not see it
    predicted: Any  # the label that this classifier takes for right
    probability: float  # of `predicted`
    near: tuple[int, ...]  # rows of the nearest windows with a label that the classifier did see, the nearest first


def probably_wrong(x: Any, y: Any, groups: Any = None, *, below: float = 0.5) -> list[Doubt]:
    """Return the labels that are probably wrong, the least probable first.

    The labelled cases are dealt out to five folds, whole groups together where there are some, as honest_accuracy does.
    Linear discriminants learn from the labels of four folds and give probabilities for the fifth. What share of the
    labels is wrong is estimated from all of them, as if a wrong one were any other label. Together they say how
    probable it is that a given label is right. It is listed where that is less than `below`. A class that has no label
    outside the fold is not judged.

    Parameters
    ----------
    x : (N, F) embeddings of all cases, with and without a label
    y : (N,) labels; -1, NaN, None and the empty string stand for an unknown one
    groups : (N,) whose case it is, such as a person or a recording, or None
    """
    x = check_array(x, dtype=(np.float32, np.float64), input_name="x", estimator="probably_wrong")
    classes, numbers = class_numbers(y, len(x))
    known = np.flatnonzero(numbers >= 0)
    z, truth = StandardScale(x)(x[known]), numbers[known]
    members = None
    if groups is not None:
        members = np.unique(check_groups(groups, len(x), "groups")[known], return_inverse=True)[1]
        if members.max() == 0:
            members = None

    fold, scores = _held_out_scores(z, truth, members, len(classes))
    judged = np.flatnonzero(fold >= 0)
    if not len(judged):
        raise InputError("No label could be checked. Label more of two classes, in two groups where there are any.")
    chances, right = _trusted(scores[judged], truth[judged])
    best = chances.argmax(axis=1)
    doubtful = np.flatnonzero((right < below) & (best != truth[judged]))
    doubtful = doubtful[np.argsort(right[doubtful], kind="stable")]

    nearest = _nearest_seen(z, fold, judged[doubtful])
    doubts = []
    for place in doubtful.tolist():
        case = int(judged[place])
        doubt = Doubt(
            row=int(known[case]),
            label=classes[truth[case]].item(),
            given=float(right[place]),
            predicted=classes[best[place]].item(),
            probability=float(chances[place].max()),
            near=tuple(known[nearest[case]].tolist()),
        )
        doubts.append(doubt)
    return doubts


def _held_out_scores(z: Floats, truth: Rows, members: Rows | None, n_classes: int) -> tuple[Rows, Floats]:
    """Return the fold (L,) that each case was held out in, -1 for none, and its scores (L, K) by the others."""
    fold = np.full(len(z), -1)
    scores = np.full((len(z), n_classes), -np.inf)
    for number, held_out in enumerate(folds(truth, members, np.random.default_rng(0))):
        others = np.setdiff1d(np.arange(len(z)), held_out)
        seen = np.unique(truth[others])
        asked = held_out[np.isin(truth[held_out], seen)]
        if len(seen) > 1 and len(asked):
            fold[asked] = number
            scores[np.ix_(asked, seen)] = _discriminants(z[others], np.searchsorted(seen, truth[others]), z[asked])
    return fold, scores


def _nearest_seen(z: Floats, fold: Rows, asked: Rows) -> dict[int, Rows]:
    """Return for each of the cases asked the nearest ones that were not held out with it."""
    nearest: dict[int, Rows] = {}
    for number in np.unique(fold[asked]):
        seen = np.flatnonzero(fold != number)
        of_fold = asked[fold[asked] == number]
        search = NearestNeighbors(n_neighbors=min(NEAR, len(seen)), algorithm="brute").fit(z[seen])
        neighbours = search.kneighbors(z[of_fold], return_distance=False)
        nearest |= dict(zip(of_fold.tolist(), seen[neighbours], strict=True))
    return nearest


def too_few(given: NDArray[np.str_]) -> str:
    """Say that texts (N,), "" for no label, are too few labels to doubt one of them; nothing where they are enough."""
    usual = int(np.median(np.unique(given[given != ""], return_counts=True)[1]))
    what = f"{usual} labels per class are" if usual > 1 else "1 label per class is"
    return f"{what} too few to doubt one; {ENOUGH} are needed." if usual < ENOUGH else ""


def _discriminants(z: Floats, numbers: Rows, asked: Floats) -> Floats:
    """Return the scores (n, K) of cases by linear discriminant analysis of z (L, F) with all classes of `numbers`."""
    counts = np.bincount(numbers)
    means = np.stack([z[numbers == number].mean(axis=0) for number in range(len(counts))])
    covariance, _ = ledoit_wolf(z - means[numbers], assume_centered=True)
    weights = np.linalg.lstsq(covariance, means.T, rcond=None)[0]  # a feature may be constant
    scores: Floats = asked @ weights - (means * weights.T).sum(axis=1) / 2 + np.log(counts / counts.sum())
    return scores


def _trusted(scores: Floats, truth: Rows) -> tuple[Floats, Floats]:
    """Return the probabilities of all labels (n, K), and that the given one is right (n,).

    A temperature and the share of wrong labels are those that make the given labels most likely.
    """

    def parts(settings: Floats) -> tuple[Floats, Floats, Floats]:
        temperature, wrong = np.exp(settings[0]), expit(settings[1])
        chances = softmax(scores / temperature, axis=1)
        of_given = chances[np.arange(len(truth)), truth]
        right = (1 - wrong) * of_given
        either = right + wrong * (1 - of_given) / (scores.shape[1] - 1) + SMALLEST
        return chances, right, either

    def loss(settings: Floats) -> float:
        return -float(np.log(parts(settings)[2]).mean())

    fits = [minimize(loss, (start, -3.0), method="Nelder-Mead") for start in (0.0, 2.0)]
    chances, right, either = parts(min(fits, key=lambda fit: float(fit.fun)).x)
    return chances, right / either
