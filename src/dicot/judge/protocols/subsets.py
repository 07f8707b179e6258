"""Which labelled cases a protocol may see. Every function returns sorted row numbers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, is_whole
from dicot.judge.protocols.base import Features, Labels, SubsetSeed

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


def check_subset_seed(setting: SubsetSeed) -> None:
    """Refuse what is neither a seed nor "run"."""
    if setting != "run" and not is_whole(setting, 0):
        raise InputError(
            f"subset_seed must be 'run' or a whole number from 0, such as the authors' {PAPER_SUBSET_SEED}; "
            f"got {setting!r}."
        )


def check_subsets(setting: SubsetSeed, draws: int) -> None:
    """Refuse an unknown setting and a number of draws below 1."""
    check_subset_seed(setting)
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise InputError(f"draws must be a positive integer; got {draws!r}.")


def subset_text(setting: SubsetSeed, draws: int) -> str:
    """Describe the subset, for a listing."""
    if setting == "run":
        return f"mean of {draws} draws" if draws > 1 else "drawn by the seed"
    return f"always those of seed {setting}"


def subset_suffix(setting: SubsetSeed) -> str:
    """Tell a protocol on one fixed subset from the usual one by its name."""
    return "" if setting == "run" else f"_subset{setting}"


def check_per_class(count: int) -> None:
    """Refuse a count of labelled cases that is not a positive integer."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"per_class must be a positive integer; got {count!r}.")


def _draw(y: Labels, wanted: dict[int, int], seed: Seed) -> Rows:
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
    return _draw(y, {c: max(1, int(fraction * n)) for c, n in enumerate(counts)}, seed)


def fixed_per_class(y: Labels, count: int, seed: Seed) -> Rows:
    """Draw `count` cases of every class; all of them where a class is smaller."""
    check_per_class(count)
    counts = np.unique(y, return_counts=True)[1]
    # D-41: the authors draw small classes with replacement, which only repeats cases.
    return _draw(y, {c: min(count, int(n)) for c, n in enumerate(counts)}, seed)


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
    return _draw(y, dict(enumerate(take.tolist())), seed)


def capped(train: Features, limit: int = MAX_CASES) -> Features:
    """Return at most `limit` training cases, the same ones each time."""
    return train if len(train.y) <= limit else train.rows(stratified_cap(train.y, limit))
