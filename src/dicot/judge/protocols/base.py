"""The contract of a protocol, labelled embeddings in and named numbers out; its metrics; draws of labelled cases."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from dicot.core.errors import InputError

Floats = NDArray[np.float64]
Labels = NDArray[Any]
Rows = NDArray[np.intp]
Seed = int | Sequence[int]
SubsetSeed = int | Literal["run"]  # draws labelled cases: the same ones in all runs, or others with each run's seed

AUTHORS, PER_SEED = SUBSETS = ("authors", "per-seed")  # the one draw of a job: the authors', or one by the run's seed
PAPER_SUBSET_SEED = 42  # of the authors' draw, where a data set has no other
MAX_CASES = 100_000  # of training that a probe is fitted to


@dataclass(frozen=True)
class Metric:
    """A number that a protocol gives."""

    name: str  # in files and tables
    higher_is_better: bool = True
    decimals: int = 2
    headline: bool = True  # shown in tables for people; files hold every metric


CLASSIFICATION_METRICS = (
    Metric("accuracy"),
    Metric("macro_f1"),
    Metric("macro_precision", headline=False),
    Metric("macro_recall", headline=False),
)
CLUSTERING_METRICS = (Metric("nmi", decimals=3), Metric("ari", decimals=3))
COST_METRICS = (
    Metric("step_ms", higher_is_better=False),
    Metric("peak_mib", higher_is_better=False, decimals=0),
    Metric("fit_seconds", higher_is_better=False),
    Metric("embed_seconds", higher_is_better=False, decimals=3),  # all labelled cases of both parts
    Metric("encoded", higher_is_better=False),  # time steps in a training step for each time step of a case
)
COSTS = tuple(metric.name for metric in COST_METRICS)


class CaseScores(dict[str, float]):
    """Scores of one draw that also know which cases were classified right: what a paired test needs."""

    def __init__(self, values: Mapping[str, float], right: NDArray[np.bool_]) -> None:
        super().__init__(values)
        self.right = right  # (N,)


def classification_scores(truth: Labels, predicted: Labels) -> CaseScores:
    """Compute accuracy and macro averages in percent; a class that is never predicted counts as 0."""
    precision, recall, f1, _ = precision_recall_fscore_support(truth, predicted, average="macro", zero_division=0)
    values = (accuracy_score(truth, predicted), f1, precision, recall)
    scores = {metric.name: 100.0 * float(value) for metric, value in zip(CLASSIFICATION_METRICS, values, strict=True)}
    return CaseScores(scores, np.asarray(truth == predicted))


class Features:
    """Embeddings x (N, F), as float64, with their labels y (N,).

    `stored` is what the memory is spent on: float32 stays float32 there, and every look at `x` makes a copy. A protocol
    that looks once need not know; one for wide features takes pieces of `stored`.
    """

    __slots__ = ("stored", "y")

    def __init__(self, x: ArrayLike, y: ArrayLike | None) -> None:
        given, labels = np.asarray(x), np.asarray(y)
        if labels.dtype == object and all(isinstance(v, str) for v in labels.ravel()):  # a pandas column of strings
            labels = labels.astype(str)
        if labels.dtype.kind == "f" and np.array_equal(labels, np.round(labels)):
            labels = labels.astype(np.int64)  # whole numbers, as a text file gives them
        if labels.dtype.kind not in "biuU":
            raise InputError(f"Each case needs an integer or a string as its label; got {labels.dtype}.")
        if given.ndim != 2 or given.size == 0 or labels.shape != given.shape[:1]:
            raise InputError(
                f"Features must have shape (cases, features) and labels (cases,); got {given.shape} and {labels.shape}."
            )
        stored = given if given.dtype == np.float32 else given.astype(np.float64, copy=False)
        bad = np.flatnonzero(~np.isfinite(stored).all(axis=1))
        if len(bad):
            raise InputError(
                f"Features must be finite; {len(bad)} of {len(given)} cases have NaN or infinity, first case {bad[0]}."
                " Look for missing values in the data or a diverged encoder."
            )
        self.stored: NDArray[np.float32] | Floats = stored
        self.y: Labels = labels

    @property
    def x(self) -> Floats:
        # A float32 lbfgs stops early, and the reference decision values are double precision.
        return self.stored.astype(np.float64, copy=False)

    def rows(self, index: Rows) -> "Features":
        return Features(self.stored[index], self.y[index])


class AnyProtocol(ABC):
    """What every protocol says of itself, whatever it scores."""

    metrics: tuple[Metric, ...]
    subsets: str = AUTHORS  # which draw of labelled cases the paper's tables are on, where a protocol draws any
    trains: bool = False  # and would take fewer steps in a trial
    alone: bool = False  # what it measures is only true while nothing else runs

    @property
    @abstractmethod
    def name(self) -> str:
        """Return a short name, unique among different settings: the registry key where there is one."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Describe the protocol in one line, for a listing."""

    def on_subset(self, seed: SubsetSeed) -> Self:
        """Return the protocol on one draw of labelled cases, by this seed or the run's; itself where none is drawn."""
        return self

    @property
    def metric_names(self) -> tuple[str, ...]:
        return tuple(metric.name for metric in self.metrics)

    @property
    def draws_labels(self) -> bool:
        """Whether the labelled cases that it sees are drawn, so that it matters which draw it is."""
        return self.on_subset("run") is not self

    def draw_of(self, wanted: str = "") -> str:
        """Which draw a job takes: what is wanted, or that of the paper's tables."""
        return (wanted or self.subsets) if self.draws_labels else AUTHORS


class Protocol(AnyProtocol):
    """One way to turn embeddings into scores."""

    @abstractmethod
    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        """Return a number for each of `metrics`: the mean where labelled cases are drawn more than once."""

    def score_draws(self, train: Features, test: Features, *, seed: int) -> list[dict[str, float]]:
        """Return the numbers of every draw of labelled cases; a list of one where nothing is drawn."""
        return [self.score(train, test, seed=seed)]

    def classified_by(self, classifier: str) -> "Protocol":
        """Return the protocol with another classifier, of CLASSIFIERS, where it would take a linear one."""
        return self

    def without_draws(self, y: Labels) -> "Protocol":
        """Return what the protocol comes to with these training labels: another one where each draw takes them all."""
        return self


def check_classes(features: Features, purpose: str) -> None:
    """Refuse a single class: every score would be perfect by construction."""
    classes = np.unique(features.y)
    if len(classes) < 2:
        raise InputError(
            f"{purpose} needs at least 2 classes; all {len(features.y)} cases have the label {classes[0]!r}. "
            "Use more cases or another split."
        )


def subset_seeds(setting: SubsetSeed, run_seed: int, draws: int) -> list[Seed]:
    """Return the seed of each draw in a run, the same for every contender, so that all see the same cases.

    D-40: the authors' subset is one and the same for all runs, so its spread shows pre-training seeds only.
    """
    return [(run_seed, draw) for draw in range(draws)] if setting == "run" else [setting]


def _draw(y: Labels, wanted: Sequence[int], seed: Seed) -> Rows:
    """Draw `wanted[c]` rows of the c-th class (ascending) without replacement."""
    rng = np.random.default_rng(seed)
    classes, code = np.unique(y, return_inverse=True)
    drawn = [rng.choice(np.flatnonzero(code == c), wanted[c], replace=False) for c in range(len(classes))]
    return np.sort(np.concatenate(drawn))


def stratified_fraction(y: Labels, fraction: float, seed: Seed) -> Rows:
    """Draw a share of every class, rounded down, but at least one case of each."""
    counts = np.unique(y, return_counts=True)[1]
    return _draw(y, [max(1, int(fraction * n)) for n in counts], seed)


def fixed_per_class(y: Labels, count: int, seed: Seed) -> Rows:
    """Draw `count` cases of every class; all of them where a class is smaller."""
    counts = np.unique(y, return_counts=True)[1]
    # D-41: the authors draw small classes with replacement, which only repeats cases.
    return _draw(y, [min(count, int(n)) for n in counts], seed)


def stratified_cap(y: Labels, limit: int) -> Rows:
    """Draw at most `limit` rows with the classes in proportion, at least one of each.

    Shares are rounded by largest remainder. scikit-learn's stratified split refuses classes with one member.
    """
    if len(y) <= limit:
        return np.arange(len(y))
    counts = np.unique(y, return_counts=True)[1]
    if limit < len(counts):
        raise InputError(f"A cap of {limit} cases cannot hold {len(counts)} classes. Raise the cap.")
    share = counts * (limit / len(y))
    take = np.maximum(1, share.astype(np.intp))
    while take.sum() != limit:  # at most one pass per class: floors miss, and lifted classes exceed, by less than one
        if take.sum() < limit:
            take[np.argmax(share - take)] += 1
        else:
            take[np.argmax(np.where(take > 1, take - share, -np.inf))] -= 1
    return _draw(y, take.tolist(), seed=0)


def to_fit(train: Features, purpose: str) -> Features:
    """Refuse a single class; return at most MAX_CASES cases, the same ones each time."""
    check_classes(train, purpose)
    return train if len(train.y) <= MAX_CASES else train.rows(stratified_cap(train.y, MAX_CASES))
