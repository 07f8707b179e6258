"""Data sets for jobs: loaded once for neighbouring units, with a fingerprint that says which data a name stood for."""

from dataclasses import dataclass

from dicot.bench.jobs import DataSet
from dicot.datasets import available, fingerprint, is_path, load
from dicot.datasets.archive import archive_card
from dicot.datasets.base import pick_channels
from dicot.errors import InputError
from dicot.windows import Split

KEPT = 2  # data sets in memory at a time: a source and a target


@dataclass(frozen=True, eq=False)
class Loaded:
    """A labelled training and test part, and the fingerprint of both."""

    split: Split
    fingerprint: str


class Shelf:
    """The data sets loaded last; one per process."""

    def __init__(self) -> None:
        self._held: dict[str, Loaded] = {}

    def get(self, wanted: DataSet) -> Loaded:
        loaded = self._held.pop(wanted.name, None) or load_labelled(wanted.name)
        self._held[wanted.name] = loaded
        for name in list(self._held)[:-KEPT]:
            del self._held[name]
        return Loaded(pick_channels(loaded.split, wanted.channels), loaded.fingerprint)


def load_labelled(name: str) -> Loaded:
    """The data set, or an InputError where it cannot be scored on; the archive's missing values are interpolated."""
    split = load(name, **({} if is_path(name) or archive_card(name) is None else {"missing": "interpolate"}))
    if split.test is None:
        raise InputError(f"{name} has no test part. A benchmark needs a fixed one.")
    for part in (split.train, split.test):
        if part.y is None:
            raise InputError(f"{name} has no labels, and scoring needs them.")
    return Loaded(split, fingerprint(split))


def missing_sets(names: set[str]) -> list[str]:
    """Those that are not on this machine."""
    here = {card.name for card in available()}
    return sorted(name for name in names if name not in here and not is_path(name))
