"""Which labelled cases a protocol may see. Every function returns sorted row numbers."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from statistics import fmean
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.judge.protocols.base import Features, Labels, Protocol, SubsetSeed
from dicot.judge.protocols.metrics import CLASSIFICATION_METRICS, classification_scores

Rows = NDArray[np.intp]
Seed = int | Sequence[int]

PAPER_SUBSET_SEED = 42  # of the authors' draw, where a data set has no other
MAX_CASES = 100_000  # of training that a probe is fitted to
DRAWS = 10  # of labelled cases in a run: which few they are moves a score more than the seed of a training does


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
    if not 0 < fraction <= 1:
        raise InputError(f"fraction must lie in (0, 1]; got {fraction}.")
    counts = np.unique(y, return_counts=True)[1]
    return _draw(y, [max(1, int(fraction * n)) for n in counts], seed)


def fixed_per_class(y: Labels, count: int, seed: Seed) -> Rows:
    """Draw `count` cases of every class; all of them where a class is smaller."""
    counts = np.unique(y, return_counts=True)[1]
    # D-41: the authors draw small classes with replacement, which only repeats cases.
    return _draw(y, [min(count, int(n)) for n in counts], seed)


def stratified_cap(y: Labels, limit: int, seed: int = 0) -> Rows:
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
    return _draw(y, take.tolist(), seed)


def capped(train: Features, limit: int = MAX_CASES) -> Features:
    """Return at most `limit` training cases, the same ones each time."""
    return train if len(train.y) <= limit else train.rows(stratified_cap(train.y, limit))


class Drawn(Protocol):
    """A classifier on labelled cases that are drawn: a fraction of every class, so many of each, or all.

    They are drawn `draws` times in a run, anew with each seed; a number `subset_seed`, such as the authors' 42, draws
    the same ones in every run.
    """

    metrics = CLASSIFICATION_METRICS
    fraction: float | None = None
    per_class: int | None = None
    subset_seed: SubsetSeed = "run"
    draws: int = DRAWS

    @abstractmethod
    def predicted(self, train: Features, rows: Rows, test: Features) -> Labels:
        """Return a label for each test case, with the labels of these rows."""

    def subset_rows(self, y: Labels, seed: Seed) -> Rows:
        """Draw the labelled cases."""
        if self.fraction is not None:
            return stratified_fraction(y, self.fraction, seed)
        return np.arange(len(y)) if self.per_class is None else fixed_per_class(y, self.per_class, seed)

    def on_subset(self, seed: SubsetSeed) -> Self:
        if self.fraction is None and self.per_class is None:
            return self
        other = copy(self)
        other.subset_seed, other.draws = seed, 1
        return other

    def run_draws(self, y: Labels, seed: int) -> list[Rows]:
        """Draw the labelled cases of the run with this seed."""
        draws = 1 if self.fraction is None and self.per_class is None else self.draws
        return [self.subset_rows(y, one) for one in subset_seeds(self.subset_seed, seed, draws)]

    def score_draws(self, train: Features, test: Features, *, seed: int) -> list[dict[str, float]]:
        return [
            classification_scores(test.y, self.predicted(train, rows, test)) for rows in self.run_draws(train.y, seed)
        ]

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        draws = self.score_draws(train, test, seed=seed)
        return draws[0] if len(draws) == 1 else {metric: fmean(draw[metric] for draw in draws) for metric in draws[0]}

    def named(self, prefix: str) -> str:
        """Give the protocol's name, which tells one fixed subset from the usual ones."""
        amount = "all" if self.per_class is None else f"{self.per_class}"
        amount = amount if self.fraction is None else f"{100 * self.fraction:g}pct"
        return f"{prefix}_{amount}" + ("" if self.subset_seed == "run" else f"_subset{self.subset_seed}")

    def subset_text(self) -> str:
        """Describe the draws, for a listing."""
        if self.subset_seed == "run":
            return f"mean of {self.draws} draws" if self.draws > 1 else "drawn by the seed"
        return f"always those of seed {self.subset_seed}"
