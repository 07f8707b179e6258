"""Which labelled cases a protocol may see. Every draw returns sorted row numbers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.judge.protocols.base import Features, Labels, SubsetSeed, check_classes

Rows = NDArray[np.intp]
Seed = int | Sequence[int]

PAPER_SUBSET_SEED = 42  # of the authors' draw, where a data set has no other
MAX_CASES = 100_000  # of training that a probe is fitted to


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


def to_fit(train: Features, purpose: str) -> Features:
    """Refuse a single class; return at most MAX_CASES cases, the same ones each time."""
    check_classes(train, purpose)
    return train if len(train.y) <= MAX_CASES else train.rows(stratified_cap(train.y, MAX_CASES))
