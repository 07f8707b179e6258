"""FewLabelClassifier: a classifier for the embeddings of many cases of which only a few have a label."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.core.errors import InputError
from dicot.data.cases import pieces
from dicot.data.labels import check_labels, labelled
from dicot.model.head import Head

Floats = NDArray[Any]
Rows = NDArray[np.intp]

# Chosen on development sets, see docs/log.md.
STRENGTHS = (10.0, 100.0, 1000.0)
USUAL_STRENGTH = 100.0  # where no label can be held out
USUAL_TEMPERATURE = 1.0  # where none can be measured; a measured one is drawn towards it
TEMPERATURE_TRUST = 0.3  # deviation of a temperature's logarithm before it is measured
FOLDS = 5
ROUNDS = 2
# Of the last fit: at scikit-learn's 1e-4 a change of the vectors by 1e-5 moves probabilities by 1e-2.
TOLERANCE = 1e-6
TRIAL_TOLERANCE = 1e-4  # of fits that only choose: they are many
MANY_LABELS = 100  # from which one round of folds is enough


@dataclass(eq=False, repr=False, kw_only=True)
class FewLabelClassifier(ClassifierMixin, BaseEstimator):
    """Classify embeddings of which a few have a label: logistic regression on features scaled by all cases.

    X (N, F) holds the embeddings of all cases and y (N,) the labels of some: -1, NaN, None and the empty string stand
    for an unknown label, so -1 cannot be a class. Features are standardised by the statistics of all cases and scaled
    to vectors of length 1 on average. Probabilities are calibrated by one temperature.

    The labelled cases, each held out once in each of two rounds of five folds (one round of 100 labels or more),
    choose the strength by their accuracy, of equals the one with the lower log-loss, and then the temperature. A class
    with one label is never held out. Where fewer than two classes have two labels nothing can be chosen: the strength
    is 100 and the temperature 1.

    Parameters
    ----------
    C : strength of the labels against the penalty of the logistic regression; None chooses among 10, 100 and 1,000
    spreading, n_neighbors, graph_cases : without effect, and deprecated: labels no longer spread over a graph
    random_state : draws the folds

    Attributes
    ----------
    classes_ : the labels in ascending order
    transduction_ : (N,) a label for every case of the fit, the given one where it is known
    label_distributions_ : (N, K) the probabilities of every case of the fit
    C_ : the strength that was chosen
    temperature_ : what logarithms of probabilities are divided by
    log_losses_ : of the held-out labelled cases, by strength; empty where none was held out
    coef_, intercept_ : (K, F) and (K,) of the logistic regression, for scaled features
    head_ : all that turns an embedding into probabilities; `head_.save(path)` keeps it as a file
    n_features_in_ : F
    """

    C: float | None = None
    spreading: str | None = None
    n_neighbors: int | None = None
    graph_cases: int | None = None
    random_state: int | np.random.RandomState | None = 0

    classes_: NDArray[Any] = field(init=False)
    transduction_: NDArray[Any] = field(init=False)
    label_distributions_: Floats = field(init=False)
    C_: float = field(init=False)
    temperature_: float = field(init=False)
    log_losses_: dict[float, float] = field(init=False)
    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)
    head_: Head = field(init=False)

    def fit(self, X: Any, y: Any) -> FewLabelClassifier:
        """Learn from all cases X (N, F) and the labels y (N,) of some of them."""
        self._warn_of_graph()
        X = validate_data(self, X, dtype=(np.float32, np.float64))
        self.classes_, numbers = class_numbers(y, len(X))
        known = np.flatnonzero(numbers >= 0)
        scale = StandardScale(X)
        cases = _LabelledCases(scale(X[known]), numbers[known])

        # Thousands of small products: on a busy machine a second thread makes each wait, ten times as long in all.
        with threadpool_limits(1):
            self._choose(cases, check_random_state(self.random_state))
            weights, self.intercept_ = cases.fit(np.arange(len(known)), self.C_, TOLERANCE)
        self.coef_ = weights @ cases.basis.T

        classes = tuple(self.classes_.tolist())
        self.head_ = Head(classes, scale.mean, scale.factor, self.coef_, self.intercept_, self.temperature_)
        self.label_distributions_ = self.predict_proba(X)
        self.label_distributions_[known] = np.eye(len(classes))[numbers[known]]
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return (N, K) probabilities in the order of `classes_`; a case's row does not depend on the other cases."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=(np.float32, np.float64), reset=False)
        return np.concatenate([self.head_.predict_proba(X[rows]) for rows in pieces(X.shape)])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return (N,) the most probable label of each case."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def _choose(self, cases: _LabelledCases, rng: np.random.RandomState) -> None:
        """Choose strength and temperature by the labelled cases, each held out in turn."""
        strengths = STRENGTHS if self.C is None else (self.C,)
        folds = list(_folds(cases.numbers, rng))
        if not folds:
            self.C_ = USUAL_STRENGTH if self.C is None else self.C
            self.temperature_ = USUAL_TEMPERATURE
            self.log_losses_ = {}
            return

        truth = np.concatenate([cases.numbers[test] for _, test in folds])
        n_labels = len(np.unique(np.concatenate([test for _, test in folds])))
        trials = {}
        for strength in strengths:
            trials[strength] = _Trial.of(cases.held_out_logs(folds, strength), truth, n_labels)
        self.C_ = min(strengths, key=lambda strength: (trials[strength].errors, trials[strength].log_loss))
        self.temperature_ = trials[self.C_].temperature
        self.log_losses_ = {strength: trial.log_loss for strength, trial in trials.items()}

    def _warn_of_graph(self) -> None:
        is_plain = self.spreading in (None, "none") and self.n_neighbors is None and self.graph_cases is None
        if not is_plain:
            warnings.warn(
                "FewLabelClassifier no longer spreads labels over a graph of neighbours: spreading, n_neighbors and "
                "graph_cases have no effect and will go. Leave them out.",
                FutureWarning,
                stacklevel=3,
            )


class StandardScale:
    """Standardise by the statistics of all cases, to vectors whose squared length is 1 on average over these."""

    def __init__(self, X: Floats) -> None:
        scaler = StandardScaler()
        for rows in pieces(X.shape):  # in pieces, or the sums would be taken of a copy of all cases
            scaler.partial_fit(X[rows])
        varying: NDArray[np.bool_] = scaler.var_ > 0
        self.mean = scaler.mean_
        # A feature that is constant stays out, whatever it is in new cases.
        self.factor = np.where(varying, 1 / scaler.scale_, 0.0) / math.sqrt(max(1, int(varying.sum())))

    def __call__(self, X: Floats) -> Floats:
        scaled: Floats = (X - self.mean) * self.factor  # float64
        return scaled


class _LabelledCases:
    """The labelled cases z (L, F) and the numbers (L,) of their classes, for fits of logistic regression.

    The weights of a fit lie in the span of the labelled cases, so it is solved there: L numbers per case instead of F.
    """

    def __init__(self, z: Floats, numbers: Rows) -> None:
        n_cases, n_features = z.shape
        self.basis: Floats = np.linalg.qr(z.T)[0] if n_cases < n_features else np.eye(n_features)
        self.reduced: Floats = z @ self.basis
        self.numbers = numbers

    def fit(self, rows: Rows, strength: float, tolerance: float) -> tuple[Floats, Floats]:
        """Return weights (K, L), in the basis, and intercepts (K,) by the labelled cases in these rows."""
        model = LogisticRegression(C=strength, tol=tolerance, max_iter=10_000)
        model.fit(self.reduced[rows], self.numbers[rows])
        weights, intercepts = model.coef_, model.intercept_
        if len(weights) == 1:  # two classes, whose scores differ by this one
            weights = np.concatenate([-weights, weights]) / 2
            intercepts = np.concatenate([-intercepts, intercepts]) / 2
        return weights, intercepts

    def held_out_logs(self, folds: list[tuple[Rows, Rows]], strength: float) -> Floats:
        """Return the logarithms of probabilities (n, K) of the held-out cases, fold after fold."""
        logs = []
        for train, test in folds:
            weights, intercepts = self.fit(train, strength, TRIAL_TOLERANCE)
            logs.append(log_softmax(self.reduced[test] @ weights.T + intercepts, axis=1))
        return np.concatenate(logs)


class _Trial(NamedTuple):
    """How one strength did on the held-out cases."""

    errors: int
    temperature: float
    log_loss: float  # at this temperature

    @classmethod
    def of(cls, logs: Floats, truth: Rows, n_labels: int) -> _Trial:
        """Measure by the temperature with the least log-loss, drawn towards the usual one where labels are few."""

        def log_loss(logarithm: float) -> float:
            tempered = log_softmax(logs / math.exp(logarithm), axis=1)
            return -float(tempered[np.arange(len(truth)), truth].mean())

        def cost(logarithm: float) -> float:
            away = (logarithm - math.log(USUAL_TEMPERATURE)) / TEMPERATURE_TRUST
            return log_loss(logarithm) * n_labels + away**2 / 2

        best = minimize_scalar(cost, bounds=(math.log(0.05), math.log(20)), method="bounded").x
        errors = np.count_nonzero(logs.argmax(axis=1) != truth)
        return cls(int(errors), math.exp(best), log_loss(best))


def _folds(numbers: Rows, rng: np.random.RandomState) -> Iterator[tuple[Rows, Rows]]:
    """Yield the labelled cases that remain and those that are held out; nothing unless two classes have two labels."""
    rows_of_class = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    divisible = [rows for rows in rows_of_class if len(rows) > 1]
    if len(divisible) < 2:
        return
    for _ in range(ROUNDS if len(numbers) < MANY_LABELS else 1):
        fold = np.full(len(numbers), -1)
        for rows in divisible:  # those of one class in different folds: some of each class remain
            fold[rng.permutation(rows)] = (np.arange(len(rows)) + rng.randint(FOLDS)) % FOLDS
        for number in np.unique(fold[fold >= 0]):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def class_numbers(y: Any, n_cases: int, least: int = 2) -> tuple[NDArray[Any], Rows]:
    """Return the classes, at least so many, and the number of each case's class (N,), -1 where its label is unknown."""
    if y is None:
        raise InputError("FewLabelClassifier requires y to be passed, but the target y is None.")
    if isinstance(y, list | tuple) and any(isinstance(v, str) for v in y):
        y = np.array(y, dtype=object)  # or numpy would write -1 and None among strings as text
    given = column_or_1d(y, warn=True)
    if given.dtype == object:  # scikit-learn's way for text: -1 among strings
        given = np.array([None if not isinstance(v, str) and v == -1 else v for v in given], dtype=object)
    assert_all_finite(given if given.dtype.kind == "f" else 0.0, allow_nan=True, input_name="y")
    labels = check_labels(given, n_cases, "y")
    known = labelled(labels)
    if labels.dtype.kind in "if":
        known &= labels != -1
    check_classification_targets(labels[known])
    classes, numbers = np.unique(labels[known], return_inverse=True)
    if len(classes) < least:
        only = f"{known.sum()} label(s) of 1 class: {str(classes[0])!r}" if len(classes) else "0 labels"
        raise InputError(f"A classifier needs labels of at least {least} classes; got {only}. Label more cases.")
    out = np.full(n_cases, -1, dtype=np.intp)
    out[known] = numbers
    return classes, out
