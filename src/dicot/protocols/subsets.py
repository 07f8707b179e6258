"""Which labelled cases a protocol may see. Every function returns sorted row numbers."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dicot.errors import InputError
from dicot.protocols.base import Labels

Rows = NDArray[np.intp]
SubsetSeed = Literal["paper", "run"]

PAPER_SUBSET_SEED = 42


def subset_seed_for(setting: SubsetSeed, run_seed: int) -> int:
    """D-40: the paper's subset is the same for all runs, so its spread shows pre-training seeds only."""
    return PAPER_SUBSET_SEED if setting == "paper" else run_seed


def check_subset_seed(setting: str) -> None:
    """Refuse anything but the two settings."""
    if setting not in ("paper", "run"):
        raise InputError(f"subset_seed must be 'paper' (always {PAPER_SUBSET_SEED}) or 'run'; got {setting!r}.")


def check_per_class(count: int) -> None:
    """A count of labelled cases is a positive integer."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"per_class must be a positive integer; got {count!r}.")


def _draw(y: Labels, wanted: dict[int, int], seed: int) -> Rows:
    """`wanted[c]` rows of the c-th class (ascending) without replacement."""
    rng = np.random.default_rng(seed)
    classes, code = np.unique(y, return_inverse=True)
    drawn = [rng.choice(np.flatnonzero(code == c), wanted[c], replace=False) for c in range(len(classes))]
    return np.sort(np.concatenate(drawn))


def stratified_fraction(y: Labels, fraction: float, seed: int) -> Rows:
    """A share of every class, rounded down, but at least one case of each."""
    if not 0 < fraction <= 1:
        raise InputError(f"fraction must lie in (0, 1]; got {fraction}.")
    counts = np.unique(y, return_counts=True)[1]
    return _draw(y, {c: max(1, int(fraction * n)) for c, n in enumerate(counts)}, seed)


def fixed_per_class(y: Labels, count: int, seed: int) -> Rows:
    """`count` cases of every class; all of them where a class is smaller."""
    check_per_class(count)
    counts = np.unique(y, return_counts=True)[1]
    # D-41: the authors draw small classes with replacement, which only repeats cases.
    return _draw(y, {c: min(count, int(n)) for c, n in enumerate(counts)}, seed)


def stratified_cap(y: Labels, limit: int, seed: int = 0) -> Rows:
    """At most `limit` rows with the classes in proportion, at least one of each.

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
