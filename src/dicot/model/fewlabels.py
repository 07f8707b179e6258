"""FewLabelClassifier: a classifier for the embeddings of many cases of which only a few have a label.

What turns an embedding into probabilities, its `Head`, can be kept as one .safetensors file, never pickle. The cases of
the fit are in it only where labels spread over the neighbour graph, as places in that graph.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from dicot.core.errors import InputError, ModelFileError, brief, lookup
from dicot.core.storage import OPEN, check_format, check_hash, check_writable, format_of, with_hash, write_atomic
from dicot.data.cases import Array, pieces
from dicot.data.labels import check_labels, labelled

Floats = NDArray[Any]
Rows = NDArray[np.intp]

AUTO = ("none", "guesses")  # what held-out labels choose from: with several labels per class "labels" won too seldom
WITHOUT_CHOICE = "labels"  # of "auto", where too few labels are known to hold some out, and there are cases enough
USUAL_TEMPERATURE = 1.0  # of probabilities, where none can be measured; a measured one is drawn towards it
TEMPERATURE_TRUST = 0.3  # deviation of a temperature's logarithm before it is measured
FOLDS, REPEATS = 5, 2
MANY_LABELS = 1_000  # from which one round of folds is enough: a fit of each takes seconds
GRAPH_CASES = 10_000  # in the graph at most
COLUMNS = 64  # that are spread over the graph at once
GRAPH_FEATURES = 128  # principal components that distances are taken in

FORMAT, FORMAT_VERSION = "dicot-head", 1
SUFFIX = ".safetensors"
# Of the hash, inside the only entry of the metadata: safetensors writes several in any order, another one each time.
MARK = rb"\"sha256\": \""
# How far a probability moves along the graph, and how much the logistic regression's guess of an unlabelled case
# weighs beside a label. Chosen on development sets, see docs/log.md.
SPREADINGS: dict[str, tuple[float, float]] = {"none": (0.0, 1.0), "guesses": (0.5, 1.0), "labels": (0.8, 0.02)}
SMALLEST = 1e-12  # probability
REGRESSION, NEIGHBOURS = ("mean", "factor", "coef", "intercept"), ("places", "settled", "directions")


@dataclass(eq=False, repr=False, kw_only=True)
class FewLabelClassifier(ClassifierMixin, BaseEstimator):
    """Classify embeddings by a few labels and all cases: logistic regression, and spreading over the neighbour graph.

    X (N, F) holds the embeddings of all cases and y (N,) the labels of some: -1, NaN, None and the empty string stand
    for an unknown label, so -1 cannot be a class. Features are standardised by the statistics of all cases and scaled
    to vectors of length 1 on average. Probabilities are calibrated by one temperature.

    The labelled cases, each held out once in each of two rounds of five folds (one round of 1,000 labels or more),
    choose the temperature and, for "auto", between "none" and "guesses" by their log-loss. A class with one label is
    never held out. Where fewer than two classes have two labels nothing can be: then the temperature is 1, and "auto"
    means "labels", or "none" where there are so few cases that a neighbourhood, n_neighbors cases and their middle,
    would be larger than a class.

    Parameters
    ----------
    C : strength of the labels against the penalty of the logistic regression
    spreading : "none"; "guesses", the logistic regression's probabilities are averaged over neighbours; "labels", the
        labels wander far over the graph, and guesses count where none arrives; or "auto"
    n_neighbors : of a case in the graph, by distance in at most 128 principal components
    graph_cases : in the graph at most, labelled ones first and others drawn; time grows with its square, and a case
        outside the graph takes part through its nearest ones in it
    random_state : draws the folds and the cases of the graph

    Attributes
    ----------
    classes_ : the labels in ascending order
    transduction_ : (N,) a label for every case of the fit, the given one where it is known
    label_distributions_ : (N, K) the probabilities of every case of the fit
    spreading_ : what was chosen
    temperature_ : what logarithms of probabilities are divided by
    log_losses_ : of the held-out labelled cases, by spreading; empty where none was held out
    coef_, intercept_ : (K, F) and (K,) of the logistic regression, for scaled features
    head_ : all that turns an embedding into probabilities; `head_.save(path)` keeps it as a file
    n_features_in_ : F
    """

    C: float = 30.0
    spreading: str = "auto"
    n_neighbors: int = 5
    graph_cases: int = GRAPH_CASES
    random_state: int | np.random.RandomState | None = 0

    classes_: NDArray[Any] = field(init=False)
    transduction_: NDArray[Any] = field(init=False)
    label_distributions_: Floats = field(init=False)
    spreading_: str = field(init=False)
    temperature_: float = field(init=False)
    log_losses_: dict[str, float] = field(init=False)
    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)
    head_: Head = field(init=False)

    def fit(self, X: Any, y: Any) -> FewLabelClassifier:
        """Learn from all cases X (N, F) and the labels y (N,) of some of them."""
        lookup(dict.fromkeys([*SPREADINGS, "auto"]), self.spreading, "spreading")
        return self._fit(_Cases(validate_data(self, X, dtype=(np.float32, np.float64))), y)

    def _fit(self, cases: _Cases, y: Any) -> FewLabelClassifier:
        """Fit to cases that may have been prepared for another labelling before."""
        X, scale, neighbours = cases.X, cases.scale, None
        self.n_features_in_ = X.shape[1]
        self.classes_, numbers = class_numbers(y, len(X))
        known, rng = np.flatnonzero(numbers >= 0), check_random_state(self.random_state)
        regression = _Regression(scale(X[known]), numbers[known], self.C)
        self.coef_, self.intercept_ = regression.fit(np.arange(len(known)))
        graph = None
        if self.spreading != "none" and len(X) > 2:
            rows = _graph_rows(known, len(X), self.graph_cases, rng)
            graph = cases.graph(rows, numbers, self.n_neighbors, rng)
        self._choose(len(X), graph, regression, known, rng)
        scores = None if graph is None else graph.scaled @ self.coef_.T + self.intercept_
        if graph is not None and self.spreading_ != "none":
            settled = graph.settle(softmax(scores, axis=1), graph.numbers, self.spreading_)
            neighbours = Neighbours(graph.places, settled, graph.directions, graph.count, self.spreading_)
        classes, regressed = tuple(self.classes_.tolist()), (self.coef_, self.intercept_)
        self.head_ = Head(classes, scale.mean, scale.factor, *regressed, self.temperature_, neighbours)
        self.label_distributions_ = self._fitted_probabilities(X, numbers, graph, scores)
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

    def _fitted_probabilities(self, X: Floats, numbers: Rows, graph: _Graph | None, scores: Floats | None) -> Floats:
        """Give the cases of the fit their place in the graph where they have one, and a known label for certain.

        `scores` (n, K) are the logistic regression's for the cases of the graph.
        """
        probabilities = np.eye(len(self.classes_))[numbers]
        others = numbers < 0
        if graph is not None and scores is not None:
            logs = log_softmax(scores, axis=1)
            if self.head_.neighbours is not None:
                logs = logarithm(self.head_.neighbours.settled)
            inside = others[graph.rows]
            rows = graph.rows[inside]
            probabilities[rows] = tempered(logs[inside], self.temperature_)
            others[rows] = False
        remaining = np.flatnonzero(others)
        for part in pieces((len(remaining), X.shape[1])):
            probabilities[remaining[part]] = self.head_.predict_proba(X[remaining[part]])
        return probabilities

    def _choose(
        self,
        n_cases: int,
        graph: _Graph | None,
        regression: _Regression,
        known: Rows,
        rng: np.random.RandomState,
    ) -> None:
        """Choose spreading and temperature by the labelled cases, each held out in turn."""
        heads = AUTO if self.spreading == "auto" else (self.spreading,)
        heads = ("none",) if graph is None else heads
        place = np.full(n_cases, -1)
        if graph is not None:
            place[graph.rows] = np.arange(len(graph.rows))
        may_leave = np.ones(len(known), dtype=bool) if graph is None else place[known] >= 0

        trials: list[_Trial] = []
        for train, test in _folds(regression.numbers, may_leave, rng):
            trials.append(_Trial(test, *regression.fit_reduced(train)))
        if not trials:
            enough = n_cases >= (self.n_neighbors + 1) * len(self.classes_)
            self.spreading_ = heads[0] if len(heads) == 1 else WITHOUT_CHOICE if enough else "none"
            self.temperature_, self.log_losses_ = USUAL_TEMPERATURE, {}
            return

        truth = regression.numbers[np.concatenate([trial.test for trial in trials])]
        measured: dict[str, tuple[float, float]] = {}
        for head in heads:
            if graph is None or head == "none":
                logs = [log_softmax(trial.scores(regression.reduced[trial.test]), axis=1) for trial in trials]
            else:
                guessed = graph.scaled @ regression.basis
                logs = graph.held_out(trials, guessed, place[known], head)
            measured[head] = _temperature(np.concatenate(logs), truth)
        self.log_losses_ = {head: loss for head, (_, loss) in measured.items()}
        self.spreading_ = min(self.log_losses_, key=self.log_losses_.__getitem__)
        self.temperature_ = measured[self.spreading_][0]


class _Trial(NamedTuple):
    """A logistic regression fitted without some of the labelled cases."""

    test: Rows  # which of the labelled cases were held out
    weights: Floats  # (K, L)
    intercepts: Floats  # (K,)

    def scores(self, reduced: Floats) -> Floats:
        """Return (n, K) scores of cases in the basis (n, L) of the labelled ones."""
        scores: Floats = reduced @ self.weights.T + self.intercepts
        return scores


@final
class Relabelled:
    """Fits a FewLabelClassifier to one labelling of the same cases X (N, F) after the other, with one graph for all."""

    def __init__(self, X: Floats) -> None:
        self._cases = _Cases(X)

    def fit(self, y: Any) -> FewLabelClassifier:
        """Return a new classifier of these labels (N,)."""
        return FewLabelClassifier()._fit(self._cases, y)


class _Cases:
    """All cases X (N, F) with what of them does not depend on labels, so that it is made once for many labellings."""

    def __init__(self, X: Floats) -> None:
        self.X, self.scale = X, StandardScale(X)
        self._graph: _Graph | None = None  # of all cases

    def graph(self, rows: Rows, numbers: Rows, n_neighbors: int, rng: np.random.RandomState) -> _Graph:
        """Return the graph of these cases, with the numbers of the classes (N,) of all."""
        if len(rows) < len(self.X):  # which cases are in it depends on the labels
            return _Graph(self.scale(self.X[rows]), rows, numbers[rows], n_neighbors, rng)
        if self._graph is not None:
            return self._graph.relabelled(numbers, rng)
        self._graph = _Graph(self.scale(self.X), rows, numbers, n_neighbors, rng)
        return self._graph


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


@cache
def _threads() -> ThreadpoolController:
    """Look for the libraries that make threads, once: each look takes milliseconds, and a choice needs hundreds."""
    return ThreadpoolController()


class _Regression:
    """Multinomial logistic regression on the labelled cases z (L, F), or on some of them.

    Its weights lie in the span of the labelled cases, so it is solved there: L numbers per case instead of F.
    """

    def __init__(self, z: Floats, numbers: Rows, C: float) -> None:
        n_cases, n_features = z.shape
        self.basis: Floats = np.linalg.qr(z.T)[0] if n_cases < n_features else np.eye(n_features)
        self.reduced: Floats = z @ self.basis
        self.numbers, self.C = numbers, C

    def fit_reduced(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return weights (K, L) and intercepts (K,) by the labelled cases in these rows."""
        # Thousands of small products: on a busy machine a second thread makes each wait, ten times as long in all.
        with _threads().limit(limits=1):
            model = LogisticRegression(C=self.C, max_iter=10_000).fit(self.reduced[rows], self.numbers[rows])
        weights, intercepts = model.coef_, model.intercept_
        if len(weights) == 1:  # two classes, whose scores differ by this one
            weights, intercepts = np.concatenate([-weights, weights]) / 2, np.concatenate([-intercepts, intercepts]) / 2
        return weights, intercepts

    def fit(self, rows: Rows) -> tuple[Floats, Floats]:
        """Return weights (K, F) and intercepts (K,)."""
        weights, intercepts = self.fit_reduced(rows)
        return weights @ self.basis.T, intercepts


class _Graph:
    """The nearest neighbours of some cases z (n, F) among each other; an edge counts in both directions."""

    def __init__(self, z: Floats, rows: Rows, numbers: Rows, n_neighbors: int, rng: np.random.RandomState) -> None:
        self.scaled, self.rows, self.numbers = z, rows, numbers
        self.directions: Floats | None = None
        if min(z.shape) > GRAPH_FEATURES:
            pca = PCA(GRAPH_FEATURES, svd_solver="randomized", random_state=rng.randint(2**31 - 1)).fit(z)
            self.directions = pca.components_.T  # the centre is nearly 0 and moves no distance
        self.places, self.count = z if self.directions is None else z @ self.directions, min(n_neighbors, len(z) - 1)
        edges = NearestNeighbors(n_neighbors=self.count, algorithm="brute").fit(self.places).kneighbors_graph()
        edges = edges.maximum(edges.T)
        self.steps = sparse.diags(1 / edges.sum(axis=1).A1) @ edges  # each row is a mean over neighbours

    def relabelled(self, numbers: Rows, rng: np.random.RandomState) -> _Graph:
        """Return the graph of the same cases with other labels, and draw as making it anew would."""
        if self.directions is not None:
            rng.randint(2**31 - 1)
        graph = copy(self)
        graph.numbers = numbers[self.rows]
        return graph

    def settle(self, guesses: Floats, numbers: Rows, spreading: str) -> Floats:
        """Spread labels (-1: unknown) and guesses (n, K) until they rest.

        A case has (1 - reach) of what it brings in, its label or its guess, and reach times the mean of its neighbours.
        """
        return self._spread(_source(guesses, numbers, spreading), spreading)

    def held_out(self, trials: Sequence[_Trial], guessed: Floats, places: Rows, spreading: str) -> list[Floats]:
        """Return for each trial the logarithms of probabilities (n, K) of the cases that it held out.

        `guessed` (n, L) are the cases of the graph in the basis of the labelled ones, which lie at `places` (L,).
        """
        out: list[Floats] = []
        n_classes = len(trials[0].intercepts)
        together = max(1, COLUMNS // n_classes)
        for first in range(0, len(trials), together):
            part = trials[first : first + together]
            sources = []
            for trial in part:
                seen = self.numbers.copy()
                seen[places[trial.test]] = -1
                sources.append(_source(softmax(trial.scores(guessed), axis=1), seen, spreading))
            # Many columns at once take a third of the time: most of it goes into finding the neighbours in memory.
            settled = self._spread(np.hstack(sources), spreading)
            for trial, columns in zip(part, np.split(settled, len(part), axis=1), strict=True):
                out.append(logarithm(columns[places[trial.test]]))
        return out

    def _spread(self, source: Floats, spreading: str) -> Floats:
        reach, _ = SPREADINGS[spreading]
        settled = source
        for _ in range(math.ceil(math.log(1e-6) / math.log(reach))):  # what is left out is a millionth
            settled = reach * (self.steps @ settled) + (1 - reach) * source
        return settled


def _source(guesses: Floats, numbers: Rows, spreading: str) -> Floats:
    """Return (n, K) what each case brings in: its label, or its guess where it has none (-1)."""
    _, weight = SPREADINGS[spreading]
    source = weight * guesses
    known = np.flatnonzero(numbers >= 0)
    source[known] = np.eye(guesses.shape[1])[numbers[known]]
    return source


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


def _graph_rows(known: Rows, n_cases: int, limit: int, rng: np.random.RandomState) -> Rows:
    """Return the cases of the graph in order: all, or the labelled ones and others drawn."""
    if n_cases <= limit:
        return np.arange(n_cases)
    unknown = np.setdiff1d(np.arange(n_cases), known)
    drawn: Rows = np.concatenate([rng.permutation(known), rng.permutation(unknown)])[:limit]
    return np.sort(drawn)


def _folds(numbers: Rows, may_leave: NDArray[np.bool_], rng: np.random.RandomState) -> Iterator[tuple[Rows, Rows]]:
    """Yield the labelled cases that remain and those that are held out; nothing unless two classes have two labels."""
    members = [np.flatnonzero((numbers == c) & may_leave) for c in np.unique(numbers)]
    if sum(len(rows) > 1 for rows in members) < 2:
        return
    for _ in range(REPEATS if len(numbers) < MANY_LABELS else 1):
        fold = np.full(len(numbers), -1)
        for rows in members:
            if len(rows) > 1:  # of one class, in different folds: some of each class remain
                fold[rng.permutation(rows)] = (np.arange(len(rows)) + rng.randint(FOLDS)) % FOLDS
        for f in np.unique(fold[fold >= 0]):
            yield np.flatnonzero(fold != f), np.flatnonzero(fold == f)


def _temperature(logs: Floats, truth: Rows) -> tuple[float, float]:
    """Return the temperature with the least log-loss of held-out cases, drawn towards the usual one; and that loss."""
    rows = np.arange(len(truth))

    def loss(logarithm: float) -> float:
        return -float(log_softmax(logs / math.exp(logarithm), axis=1)[rows, truth].mean())

    def cost(logarithm: float) -> float:
        away = (logarithm - math.log(USUAL_TEMPERATURE)) / TEMPERATURE_TRUST
        return loss(logarithm) * len(truth) / REPEATS + away**2 / 2

    best = minimize_scalar(cost, bounds=(math.log(0.05), math.log(20)), method="bounded").x
    return math.exp(best), loss(best)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The neighbour graph as a new case needs it: places (n, d) of its cases, and the probabilities there (n, K)."""

    places: Array
    settled: Array
    directions: Array | None  # (F, d): scaled features @ directions are a place; None: they are one themselves
    count: int  # of neighbours that a new case asks
    spreading: str

    @cached_property
    def search(self) -> NearestNeighbors:
        return NearestNeighbors(n_neighbors=self.count, algorithm="brute").fit(self.places)


@dataclass(frozen=True, eq=False)
class Head:
    """Embeddings (N, F) -> probabilities (N, K): standardised, logistic regression, neighbours, one temperature."""

    classes: tuple[str, ...] | tuple[int, ...] | tuple[float, ...]
    mean: Array  # (F,)
    factor: Array  # (F,)
    coef: Array  # (K, F)
    intercept: Array  # (K,)
    temperature: float = 1.0
    neighbours: Neighbours | None = None
    model: str | None = None  # the hash of the model whose embeddings it takes, where that is known
    source: dict[str, Any] | None = None  # where this model is, and how recordings were cut for it: plain data

    @property
    def n_features(self) -> int:
        return len(self.mean)

    def predict_proba(self, X: Array) -> Array:
        """Return (N, K) probabilities in the order of `classes`."""
        return self.of_scaled((X - self.mean) * self.factor)

    def of_scaled(self, scaled: Array) -> Array:
        """Return (N, K) probabilities of cases whose features are standardised already."""
        scores = scaled @ self.coef.T + self.intercept
        if self.neighbours is None:
            return tempered(log_softmax(scores, axis=1), self.temperature)
        own = scaled if self.neighbours.directions is None else scaled @ self.neighbours.directions
        near = self.neighbours.search.kneighbors(own, return_distance=False)
        reach, weight = SPREADINGS[self.neighbours.spreading]
        found = self.neighbours.settled[near].mean(axis=1)
        return tempered(logarithm((1 - reach) * weight * softmax(scores, axis=1) + reach * found), self.temperature)

    def save(self, path: str | Path) -> Path:
        """Write the file, whole or not at all."""
        path = Path(path)
        check_head_file(path)
        arrays = {name: getattr(self, name) for name in REGRESSION}
        about: dict[str, Any] = {"classes": self.classes, "temperature": self.temperature, "model": self.model}
        about |= {} if self.source is None else {"source": self.source}
        if self.neighbours is not None:
            arrays |= {name: getattr(self.neighbours, name) for name in NEIGHBOURS}
            arrays["directions"] = np.eye(self.n_features) if arrays["directions"] is None else arrays["directions"]
            about |= {"count": self.neighbours.count, "spreading": self.neighbours.spreading}
        config = {**format_of(FORMAT, FORMAT_VERSION), **about, "sha256": OPEN}
        plain = {name: np.ascontiguousarray(array, np.float64) for name, array in arrays.items()}
        write_atomic(path, with_hash(save(plain, {"dicot": json.dumps(config)}), MARK))
        return path

    @classmethod
    def load(cls, path: str | Path) -> Head:
        """Read what `save` wrote, or raise an error that says why this is not such a file."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"There is no file {path}. `dicot classify VECTORS --save {path}` writes one.")
        try:
            data = path.read_bytes()
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            config = json.loads(header.get("__metadata__", {}).get("dicot", "null"))
            check_format(path, config, FORMAT, FORMAT_VERSION)
            check_hash(data, MARK)
            arrays = load(data)
            neighbours = None
            if "places" in arrays:
                own = {name: arrays[name] for name in NEIGHBOURS}
                neighbours = Neighbours(**own, count=config["count"], spreading=config["spreading"])
            rest: dict[str, Any] = {name: arrays[name] for name in REGRESSION}
            rest |= {name: config.get(name) for name in ("temperature", "model", "source")}
            head = cls(tuple(config["classes"]), **rest, neighbours=neighbours)
        except ModelFileError:
            raise
        except Exception as error:  # whatever a damaged file leads to
            raise ModelFileError(f"{path} cannot be read ({brief(error)}). Save the classifier again.") from error
        return head


def logarithm(probabilities: Array) -> Array:
    logs: Array = np.log(np.maximum(probabilities, SMALLEST))
    return logs


def tempered(logs: Array, temperature: float) -> Array:
    """Return the probabilities of these logarithms at a temperature."""
    probabilities: Array = softmax(logs / temperature, axis=1)
    return probabilities


def check_head_file(path: Path) -> None:
    """Refuse a name that cannot be written before any work is done."""
    if path.suffix != SUFFIX:
        raise InputError(f"{path} has the suffix {path.suffix!r}; a classifier is saved as {SUFFIX}.")
    check_writable(path)
