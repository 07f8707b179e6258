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

NEAR, SMALLEST = 3, 1e-300
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
    z, truth, members = StandardScale(x)(x[known]), numbers[known], None
    if groups is not None:
        members = np.unique(check_groups(groups, len(x), "groups")[known], return_inverse=True)[1]
        members = members if members.max() else None
    fold, scores = np.full(len(known), -1), np.full((len(known), len(classes)), -np.inf)
    for number, rows in enumerate(folds(truth, members, np.random.default_rng(0))):
        rest = np.setdiff1d(np.arange(len(known)), rows)
        seen = np.unique(truth[rest])
        rows = rows[np.isin(truth[rows], seen)]
        if len(seen) > 1 and len(rows):
            fold[rows] = number
            scores[np.ix_(rows, seen)] = _discriminants(z[rest], np.searchsorted(seen, truth[rest]), z[rows])
    judged = np.flatnonzero(fold >= 0)
    if not len(judged):
        raise InputError("No label could be checked. Label more of two classes, in two groups where there are any.")
    chances, right = _trusted(scores[judged], truth[judged])
    best = chances.argmax(axis=1)
    doubtful = np.flatnonzero((right < below) & (best != truth[judged]))
    doubtful = doubtful[np.argsort(right[doubtful], kind="stable")]
    chosen, near = judged[doubtful], dict[int, list[int]]()
    for number in np.unique(fold[chosen]):
        rest, asked = np.flatnonzero(fold != number), chosen[fold[chosen] == number]
        search = NearestNeighbors(n_neighbors=min(NEAR, len(rest)), algorithm="brute").fit(z[rest])
        near |= dict(zip(asked.tolist(), known[rest][search.kneighbors(z[asked])[1]].tolist(), strict=True))
    guess, certain, reasons = classes[best[doubtful]], chances.max(axis=1)[doubtful], [tuple(near[at]) for at in chosen]
    columns = known[chosen], classes[truth[chosen]], right[doubtful], guess, certain
    return [Doubt(*one) for one in zip(*(values.tolist() for values in columns), reasons, strict=True)]


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
        chances, wrong = softmax(scores / np.exp(settings[0]), axis=1), expit(settings[1])
        own = chances[np.arange(len(truth)), truth]
        right = (1 - wrong) * own
        return chances, right, right + wrong * (1 - own) / (scores.shape[1] - 1) + SMALLEST

    def loss(settings: Floats) -> float:
        return -float(np.log(parts(settings)[2]).mean())

    fits = [minimize(loss, (start, -3.0), method="Nelder-Mead") for start in (0.0, 2.0)]
    chances, right, either = parts(min(fits, key=lambda fit: float(fit.fun)).x)
    return chances, right / either
