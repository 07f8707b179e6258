"""EmbeddingOutlierDetector: which embeddings lie far from a reference part, at a known share of false alarms."""

from __future__ import annotations

import math
import warnings
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dicot.core.errors import CalibrationWarning, InputError, is_whole, lookup
from dicot.data.cases import pieces
from dicot.data.labels import check_groups

Floats = NDArray[Any]
Rows = NDArray[np.intp]

PARTS = 5  # that cases are dealt out to where each is compared with the rest
ROUNDING = 1e-9  # 0.29 * 100 is a little less than 29
PLACE = 0.9  # the quantile of its distances by which a group lies far out or not: alarms are decided there
KNOTS = 100  # distances at which p-values are computed where there are groups; between them they are interpolated
SMALLEST_SPREAD = 1e-9  # of groups
AT_ONCE = 1 << 19  # numbers of a reference that a single case is compared with directly
# "relative" with five neighbours was chosen on development sets, see docs/log.md.
DISTANCES = {"kth": None, "mean": None, "relative": None}


class EmbeddingOutlierDetector(OutlierMixin, BaseEstimator):
    """Find embeddings that lie far from those of normal cases, and hold the share of false alarms.

    X (N, F) holds embeddings of normal cases. One part of them is the reference, and a case is scored by its distance
    to its nearest neighbours there. The rest is held out for calibration: the p-value of a new case is the share of
    calibration cases, itself included, that lie at least as far out (split conformal). `predict` flags p <= alpha.

    A normal case that is exchangeable with the n calibration cases is flagged with a probability of at most `alpha`, on
    average over their draw; the share varies around this by about sqrt(alpha * (1 - alpha) / n).

    Cases of new people or machines are not exchangeable with others of known ones: pass `groups`, and whole groups are
    held out, two at least. A p-value then allows for how much these differ, by Student's t for so few: few groups that
    differ flag little, and one alone flags nothing. This is an approximation, no bound: in simulations at alpha = 0.05,
    1 to 5 % of normal cases of new groups were flagged, and up to 8 % where a few differ far more than the others.

    An encoder that was trained on the calibration cases makes them look more normal than new ones. Pass `held_out` to
    `fit` to calibrate with cases that the encoder has not seen.

    Parameters
    ----------
    n_neighbors : of a case in the reference part
    metric : "euclidean" or "cosine"
    distance : from the reference part: "kth", to the farthest of the neighbours; "mean", to all of them on average;
        "relative", the latter as a multiple of how far the neighbours lie from theirs (in other groups, where there are
        some); the time of `fit` then grows with the square of the reference's size
    standardise : give every feature mean 0 and deviation 1 over the reference part; constant ones are only shifted
    alpha : the share of false alarms that `predict` may raise
    calibration : the share of the cases (or of the groups, two at least) that is held out, or their number
    random_state : draws what is held out

    Attributes
    ----------
    reference_, calibration_ : the rows of X in the reference part, and those held out
    calibration_scores_ : the scores of the latter as `score_samples` gives them, in ascending order
    offset_ : where `decision_function` is 0, a score; -inf where too few cases are held out to flag any
    n_features_in_ : F
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        metric: str = "euclidean",
        distance: str = "relative",
        standardise: bool = True,
        alpha: float = 0.05,
        calibration: float = 0.3,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.distance = distance
        self.standardise = standardise
        self.alpha = alpha
        self.calibration = calibration
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, held_out: Any = None) -> EmbeddingOutlierDetector:
        """Learn from normal cases X (N, F); y is ignored.

        `groups` (N,) says which cases belong together, and these are held out together. `held_out` (N,) of booleans
        names the calibration cases; without it they are drawn.
        """
        lookup({"euclidean": None, "cosine": None}, self.metric, "metric")
        lookup(DISTANCES, self.distance, "distance")
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha must be a number between 0 and 1; got {self.alpha!r}.")
        X = validate_data(self, X, dtype=(np.float32, np.float64), ensure_min_samples=2)
        groups = None if groups is None else check_groups(groups, len(X), "groups")
        self.reference_, self.calibration_ = self._parts(len(X), groups, held_out)
        self._check_reference(len(X))
        self._reference = self._fit_scale(X[self.reference_])
        self._search = NearestNeighbors(n_neighbors=self.n_neighbors, algorithm="brute").fit(self._reference)
        self._around = np.ones(len(self._reference))
        if self.distance == "relative":
            members = None if groups is None else np.unique(groups[self.reference_], return_inverse=True)[1]
            self._around = self._own_distances(members)

        scores = self._scores(X, self.calibration_)
        self.calibration_scores_ = np.sort(scores)
        self._by_group = None if groups is None else _GroupedP(scores, groups[self.calibration_])
        self.offset_ = self._offset(None if groups is None else len(np.unique(groups)))
        return self

    def _check_reference(self, n_cases: int) -> None:
        least = self.n_neighbors
        if self.distance == "relative":  # a case of the reference is not its own neighbour
            least += 1
        if len(self.reference_) < least:
            raise InputError(
                f"The reference part has {len(self.reference_)} of the n_samples={n_cases} cases, and "
                f"n_neighbors={self.n_neighbors} needs {least}. Pass more cases, or lower n_neighbors= or calibration=."
            )

    def _fit_scale(self, reference: Floats) -> Floats:
        """Learn the scale of a copy of the reference part, and return it scaled, in place."""
        self._scaler = StandardScaler(with_mean=self.standardise, with_std=self.standardise)
        for rows in pieces(reference.shape):  # or the sums would be taken of a copy of all cases
            self._scaler.partial_fit(reference[rows])
        for rows in pieces(reference.shape):
            reference[rows] = self._scaled(reference[rows])
        return reference

    def _offset(self, n_groups: int | None) -> float:
        """Return the score below which p is at most alpha, and warn where nothing can be flagged."""
        n_held_out = len(self.calibration_)
        # p <= alpha is the same as: fewer than `allowed` calibration cases lie at least as far out.
        allowed = math.floor(self.alpha * (n_held_out + 1) + ROUNDING)
        if not allowed:
            needed = math.ceil(1 / self.alpha - 1 - ROUNDING)  # for the smallest p-value to be at most alpha
            _warn(
                f"{n_held_out} calibration case(s) cannot tell a share of alpha={self.alpha}: nothing will be "
                f"flagged. {needed} are needed: pass more cases, or raise calibration= or alpha=."
            )
            return -math.inf
        if self._by_group is None:
            return float(self.calibration_scores_[allowed - 1])
        if self._by_group.n_groups == 1:
            _warn(
                f"One group of the {n_groups} is held out, and cannot tell how groups differ: nothing will be "
                "flagged. 2 are needed: pass cases of more groups, or raise calibration=."
            )
        return self._by_group.offset(self.alpha)

    def score_samples(self, X: Any) -> Floats:
        """Return (N,) how normal each case is: its distance with a minus sign, so that higher is more normal."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=self._reference.dtype, reset=False)  # of two types the search needs a GiB
        return self._scores(X, np.arange(len(X)))

    def decision_function(self, X: Any) -> Floats:
        """Return (N,) `score_samples` less `offset_`: below 0 where `predict` flags a case."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Rows:
        """Return (N,) -1 for each case whose p-value is at most alpha, and 1 for the others."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def p_values(self, X: Any) -> Floats:
        """Return (N,) p-values; with n calibration cases the smallest possible one is 1 / (n + 1).

        They are conformal; with groups, they allow for how these differ as well. `scipy.stats.false_discovery_control`
        of them is at most f for the cases of a batch of which at most the share f is expected to be normal.
        """
        return self._p_of(self.score_samples(X))

    def _p_of(self, scores: Floats) -> Floats:
        if self._by_group is not None:
            return self._by_group(scores)
        farther = np.searchsorted(self.calibration_scores_, scores, side="right")
        return np.asarray((1 + farther) / (len(self.calibration_scores_) + 1))

    @property
    def fit_predict(self) -> NoReturn:
        """Not available: what was fitted on cannot be judged."""
        raise AttributeError("EmbeddingOutlierDetector has no fit_predict. Fit on normal cases and predict others.")

    def _parts(self, n_cases: int, groups: Any, held_out: Any) -> tuple[Rows, Rows]:
        """Return the rows of the reference part and those held out, each in ascending order."""
        if held_out is not None:
            return _given_parts(held_out, n_cases, groups)
        noun, splitter, n_units = "cases", ShuffleSplit, n_cases
        if groups is not None:
            noun, splitter, n_units = "groups", GroupShuffleSplit, len(np.unique(groups))
        n_held_out = self.calibration
        if not is_whole(n_held_out, 1):
            n_held_out = math.ceil(n_held_out * n_units)
            if groups is not None and n_held_out == 1 < n_units - 1:
                n_held_out = 2
        if n_held_out >= n_units:
            raise InputError(
                f"calibration={self.calibration} holds out {n_held_out} of {n_units} {noun}, and none is left for the "
                f"reference part. Pass more {noun} or lower calibration=."
            )
        split = splitter(1, test_size=n_held_out, random_state=check_random_state(self.random_state))
        reference, calibration = next(split.split(np.zeros((n_cases, 1)), groups=groups))
        return np.sort(reference), np.sort(calibration)

    def _scaled(self, X: Floats) -> Floats:
        """Return cases as distances are taken of them; for the cosine of length 1, or 0 where all features are 0."""
        if self.standardise:  # as the scaler itself does, whose checks take longer than the rest of a single case
            X = (X - self._scaler.mean_.astype(X.dtype)) / self._scaler.scale_.astype(X.dtype)
        return normalize(X) if self.metric == "cosine" else X

    def _near(self, z: Floats) -> Rows:
        """Return (N, k) the nearest cases of the reference; of a single case, as in a stream, without a search."""
        if len(z) > 1 or self._reference.size > AT_ONCE:
            return np.asarray(self._search.kneighbors(z, return_distance=False))
        difference = self._reference - z.astype(np.float64)
        squares = np.einsum("nf,nf->n", difference, difference)
        return np.argpartition(squares, self.n_neighbors - 1)[None, : self.n_neighbors]

    def _distances(self, z: Floats, near: Rows) -> Floats:
        """Return (N, k) distances of scaled cases to these cases of the reference, in ascending order.

        The search takes them from products, where two equal cases come out a little apart: here they do not.
        """
        squares = np.empty(near.shape)
        for column, rows in enumerate(near.T):
            difference = z.astype(np.float64) - self._reference[rows]
            squares[:, column] = np.einsum("nf,nf->n", difference, difference)
        return np.sort(squares / 2 if self.metric == "cosine" else np.sqrt(squares), axis=1)

    def _own_distances(self, groups: Rows | None) -> Floats:
        """Return (n,) the mean distance of every case of the reference to its neighbours there; never 0.

        With groups the neighbours are of other groups: a new case has none of its own there either, and windows that
        overlap, or that one person repeats, lie so near to each other that what is rare would seem far out.
        """
        n_cases = len(self._reference)
        if groups is not None and n_cases - np.bincount(groups).max() < self.n_neighbors:
            groups = None
        squares = np.einsum("nf,nf->n", self._reference, self._reference)
        distances = []
        for rows in pieces(self._reference.shape if groups is None else (n_cases, n_cases)):
            if groups is None:
                nearest = self._nearest_others(rows)
            else:
                apart = squares - 2 * self._reference[rows] @ self._reference.T
                apart[groups[rows, None] == groups] = np.inf
                nearest = np.argpartition(apart, self.n_neighbors - 1, axis=1)[:, : self.n_neighbors]
            distances.append(self._distances(self._reference[rows], nearest).mean(axis=1))
        means = np.concatenate(distances)
        smallest = 1e-9 * float(means.mean()) or 1.0  # 1 where all cases have equal ones
        return np.asarray(np.maximum(means, smallest))

    def _nearest_others(self, rows: slice) -> Rows:
        """Return the nearest cases of the reference to some of its own, without these themselves."""
        nearest = self._search.kneighbors(self._reference[rows], self.n_neighbors + 1, return_distance=False)
        is_itself = nearest == np.arange(rows.start, rows.stop)[:, None]
        # A case need not be found among others that equal it: then the last one is left out.
        is_itself[~is_itself.any(axis=1), -1] = True
        return np.asarray(nearest[~is_itself].reshape(len(nearest), -1))

    def _scores(self, X: Floats, rows: Rows) -> Floats:
        """Return the scores of these rows of X, the higher the more normal."""
        out = np.empty(len(rows))
        for part in pieces((len(rows), X.shape[1])):
            z = self._scaled(X[rows[part]])
            nearest = self._near(z)
            distances = self._distances(z, nearest)
            if self.distance == "kth":
                out[part] = -distances[:, -1]
            else:
                out[part] = -distances.mean(axis=1) / self._around[nearest].mean(axis=1)
        return out


class _GroupedP:
    """p-values by calibration cases of which those of one group lie farther out, or less far, together.

    The logarithm of a distance is where its group lies plus its own deviation from there. Where a new group lies is
    told by Student's t from where the held-out ones do; the p-value is the mean over the deviations, each group's with
    the same weight.
    """

    def __init__(self, scores: Floats, groups: NDArray[Any]) -> None:
        far = _logarithm(scores)
        names, members, counts = np.unique(groups, return_inverse=True, return_counts=True)
        self.n_groups, n_cases = len(names), len(far)
        if self.n_groups == 1:  # exchangeable with the new one: it lies farther out with a probability of a half
            self.knots = np.unique(far)
            shares = 1 - np.searchsorted(np.sort(far), self.knots) / n_cases
            self.p = (1 + shares) / 2
            return

        place_of_group = np.array([np.quantile(far[members == group], PLACE) for group in range(self.n_groups)])
        deviations = far - place_of_group[members]
        spread = float(place_of_group.std(ddof=1)) * math.sqrt(1 + 1 / self.n_groups)
        spread = max(spread, SMALLEST_SPREAD)
        degrees = self.n_groups - 1
        centre = place_of_group.mean()
        tail = np.logspace(0, -6, KNOTS)  # denser where p is small
        beyond = deviations.max() + spread * stdtrit(degrees, 1 - tail[KNOTS // 4 :])
        self.knots = centre + np.unique(np.concatenate([np.quantile(deviations, 1 - tail), beyond]))
        weights = 1 / (self.n_groups * counts[members])
        shares = np.array([weights @ stdtr(degrees, (centre + deviations - knot) / spread) for knot in self.knots])
        self.p = np.minimum.accumulate((1 + n_cases * shares) / (n_cases + 1))

    def __call__(self, scores: Floats) -> Floats:
        return np.asarray(np.exp(np.interp(_logarithm(scores), self.knots, np.log(self.p))))

    def offset(self, alpha: float) -> float:
        """Return the score from which on p is above alpha; -inf where it always is."""
        if self.p[-1] > alpha:
            return -math.inf
        with np.errstate(over="ignore"):
            return -float(np.exp(np.interp(-math.log(alpha), -np.log(self.p), self.knots)))


def _logarithm(scores: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(-scores, np.finfo(float).tiny)))


def distances_and_p(detector: EmbeddingOutlierDetector, X: Any) -> tuple[Floats, Floats]:
    """Return (N,) distances and (N,) p-values of cases by a fitted detector; neighbours are searched once."""
    scores = detector.score_samples(X)
    return -scores, detector._p_of(scores)


def compare_with_rest(
    detector: EmbeddingOutlierDetector, X: Any, groups: Any = None, normal: Any = None
) -> tuple[Floats, Floats]:
    """Return (N,) distances and (N,) p-values of cases of which nobody knows yet which are normal.

    The cases, or whole groups (N,), are dealt out to five parts. Each part is judged by a copy of the detector that is
    fitted to the other parts, so no case is its own neighbour. What is odd in the other parts is taken as normal there:
    where much is, p-values are too large. Distances of two parts are by two references: order cases by p first.
    Where some are known as normal, `normal` (N,) of booleans, only these are dealt out, and judge all others together.
    """
    X = check_array(X, dtype=(np.float32, np.float64), input_name="X", estimator="compare_with_rest")
    units = np.arange(len(X)) if groups is None else check_groups(groups, len(X), "groups")
    is_dealt = np.ones(len(X), bool) if normal is None else np.asarray(normal, bool)
    names, numbers = np.unique(units[is_dealt], return_inverse=True)
    if len(names) < 3:
        what = "cases" if groups is None else "groups"
        raise InputError(f"Comparing {what} with each other needs at least 3 of them; got {len(names)}. Pass more.")
    part = np.full(len(X), -1)
    order = check_random_state(detector.random_state).permutation(len(names))
    part[is_dealt] = (order % min(PARTS, len(names)))[numbers]
    distances = np.empty(len(X))
    p = np.empty(len(X))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        for number in np.unique(part).tolist():
            others = np.flatnonzero(is_dealt & (part != number))
            judged = np.flatnonzero(part == number)
            fitted = clone(detector).fit(X[others], groups=None if groups is None else units[others])
            distances[judged], p[judged] = distances_and_p(fitted, X[judged])
    for warning in {warning.category: warning for warning in reversed(caught)}.values():
        warnings.warn(warning.message, stacklevel=2)  # the parts say the same, up to a case or two
    return distances, p


def _given_parts(held_out: Any, n_cases: int, groups: Any) -> tuple[Rows, Rows]:
    held = np.asarray(held_out)
    if held.shape != (n_cases,) or held.dtype != bool or held.all() or not held.any():
        raise InputError(
            f"held_out must hold one boolean per case, shape ({n_cases},), and be True for some and False for others; "
            f"got {held.dtype} of shape {held.shape}, {np.count_nonzero(held)} of them True."
        )
    if groups is None:
        return np.flatnonzero(~held), np.flatnonzero(held)
    divided = np.intersect1d(groups[held], groups[~held])
    if len(divided):
        raise InputError(
            f"held_out takes some cases of {len(divided)} group(s), such as {divided[0]!s}. Hold out whole groups."
        )
    return np.flatnonzero(~held), np.flatnonzero(held)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, CalibrationWarning, stacklevel=4)  # where `fit` was called
