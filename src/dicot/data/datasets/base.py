"""What a data set is: an object with a name, a Card (facts that cost nothing to read) and a Split (its cases)."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, MutableMapping, Sequence, ValuesView
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Unpack, final

import numpy as np

from dicot.core.errors import InputError, did_you_mean
from dicot.data import Split, Windows
from dicot.data.cases import Array, Policies
from dicot.data.splits import check_split, with_policies


class Sizes(NamedTuple):
    """Published sizes to compare a data set with; None where they are unknown or lengths differ."""

    n_train: int | None = None
    n_test: int | None = None
    n_channels: int | None = None
    n_times: int | None = None
    n_classes: int | None = None


def differences(actual: Sizes, expected: Sizes) -> list[str]:
    """Name every size that is not as expected: `2 training cases instead of 28`."""
    words = ("training cases", "test cases", "channels", "time steps", "classes")
    pairs = zip(actual, expected, words, strict=True)
    return [f"{here} {word} instead of {there}" for here, there, word in pairs if there is not None and here != there]


@dataclass(frozen=True)
class Card:
    """The facts about one data set; None or empty where they cannot be told without reading all of it."""

    name: str
    family: str | None  # "ucr", "uea", "large", "synthetic"
    n_train: int
    n_test: int
    n_channels: int
    n_times: int | None
    n_classes: int
    source: str = ""
    licence: str = ""
    citation: str = ""
    fingerprint: str = ""  # of all values, labels and groups; see the function below
    labels: tuple[str, ...] = ()  # what class 0, 1, ... means
    stride: int | None = None  # of windows cut out of recordings; their length is n_times
    segment: int | None = None  # time steps of the segment that training draws a window of each case from
    transfer_channels: tuple[int, ...] = ()  # the three of the sensor that several data sets share
    paper_transfer_channels: tuple[int, ...] = ()  # those of the authors' code where they differ
    settings: Mapping[str, Any] = field(default_factory=dict)  # it was prepared with
    notes: tuple[str, ...] = ()  # what a reader of results should know about the raw files
    version: str = ""  # of dicot, when it was prepared


class OnHand(NamedTuple):
    """The data sets on this machine: the cards of those that can be read, and why the others cannot, by name."""

    cards: list[Card]
    damaged: dict[str, str]


class DataSet(ABC):
    """A data set by name. Subclasses are final; `DATASETS` holds one object per set."""

    name: str  # in its usual spelling
    family: str | None = None  # whose recipe it is trained by: "ucr", "uea", "large", or None
    sizes: Sizes | None = None  # wherever it is at hand; None where only its files can tell
    transfer_channels: tuple[int, ...] = ()  # the three of the sensor that several data sets share
    paper_sizes: Sizes | None = None  # what the Di-COT paper states about it
    benchmark_policies: Mapping[str, Any] = {}  # what a benchmark loads it with
    paper_subset_seed: int | None = None  # of the authors' draw of labelled cases, where theirs is another than usual
    stands_in_for: str = ""  # the set of the paper in whose place it can be used
    class_sizes: tuple[int, ...] = ()  # labelled training cases of each class, where that is known without its files
    constant_accuracy: float | None = None  # percent, of always answering the class that most of these have

    @abstractmethod
    def is_here(self) -> bool:
        """Tell whether the set is on this machine."""

    @abstractmethod
    def card(self) -> Card:
        """Return its facts; a MissingDataError says how to get a set that is not here."""

    @abstractmethod
    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        """Return the cases; `channels` are the numbers of those to keep. `shaped` does both for a whole split."""

    def check(self) -> Card:
        """Read everything and return the card with its fingerprint; an InputError says what is wrong."""
        split = self.load(missing="zero")  # missing values are not damage
        return replace(self.card(), fingerprint=fingerprint(split))


def fingerprint(split: Split) -> str:
    """Return 16 hex digits that change with any value, label or group of either part."""
    digest = hashlib.sha256()
    for part in (split.train, split.test):
        if part is None:
            digest.update(b"no test part")
            continue
        digest.update(repr(part.x.shape).encode())
        digest.update(np.ascontiguousarray(part.x).data)
        if part.segments is not None:
            digest.update(f"segments {part.segments.shape}".encode())
            digest.update(np.ascontiguousarray(part.segments).data)
        for values in (part.y, part.group):  # as text: whole numbers of another size are the same labels
            digest.update(b"none" if values is None else "\n".join(map(str, values.tolist())).encode())
    return digest.hexdigest()[:16]


def pick_channels(split: Split, channels: Sequence[int] | None) -> Split:
    """Return the split with these channels only, counted from 0, in this order; None keeps all."""
    if channels is None:
        return split
    known = range(split.train.n_channels)
    if not channels or any(isinstance(c, bool) or c not in known for c in channels):
        raise InputError(f"channels must be numbers from 0 to {known.stop - 1} for {split.name}; got {list(channels)}.")

    def pick(part: Windows) -> Windows:
        segments = None if part.segments is None else np.ascontiguousarray(part.segments[:, list(channels)])
        return replace(part, x=np.ascontiguousarray(part.x[:, list(channels)]), segments=segments)

    return replace(split, train=pick(split.train), test=None if split.test is None else pick(split.test))


def shaped(split: Split, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
    """Apply what a user asked `load` for; values are read only where `channels` or a policy need them."""
    return with_policies(pick_channels(split, channels), **policies)


@final
class Registry(MutableMapping[str, DataSet]):
    """Data sets by name: those that are registered and here, then those that `discover` finds on this machine now."""

    def __init__(self, sets: Iterable[DataSet], discover: Sequence[Callable[[], Iterable[DataSet]]] = ()) -> None:
        self._registered = {one.name.lower(): one for one in sets}
        self.discover = list(discover)

    def __getitem__(self, name: str) -> DataSet:
        known = self.registered(name)
        if known is not None and known.is_here():
            return known
        found = next((one for one in self._discovered() if one.name.lower() == name.lower()), known)
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: str, dataset: DataSet) -> None:
        if name.lower() != dataset.name.lower():
            raise InputError(f"A data set is registered under its own name, {dataset.name!r}; got {name!r}.")
        self._registered[name.lower()] = dataset

    def __delitem__(self, name: str) -> None:
        del self._registered[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def values(self) -> ValuesView[DataSet]:
        """Return all sets; the folders are searched once."""
        return self._all().values()

    def items(self) -> ItemsView[str, DataSet]:
        """Return all sets with their names; the folders are searched once."""
        return self._all().items()

    def registered(self, name: str) -> DataSet | None:
        """Return the set that is registered under this name, wherever it is; no folder is searched."""
        return self._registered.get(name.lower())

    def find(self, name: str) -> DataSet:
        """Return the set of this name, or raise an InputError that suggests the closest one."""
        if (found := self.get(name)) is not None:
            return found
        raise InputError(
            f"Unknown data set {name!r}. {did_you_mean(name, self)} `dicot list datasets` names all of them; "
            "a file is given by its path, such as mine.npz."
        )

    def _all(self) -> dict[str, DataSet]:
        sets = dict(self._registered)
        for one in self._discovered():
            key = one.name.lower()
            if key not in sets or not sets[key].is_here():
                sets[key] = one
        return {one.name: one for one in sets.values()}

    def _discovered(self) -> Iterator[DataSet]:
        return (one for look in self.discover for one in look())


N, T, CLASSES = 90, 64, 3  # cases of each part, time steps, classes


@final
class Synthetic(DataSet):
    """Sine, square and sawtooth waves of random phase, pace, size and level in noise; always the same values.

    Hard enough to tell methods apart: the values themselves say next to nothing, and an encoder must look past size
    and level.
    """

    name = "synthetic"

    def is_here(self) -> bool:
        return True

    def card(self) -> Card:
        about = ("made by dicot.data.datasets.base", "BSD-3-Clause", "none")
        return Card(self.name, "synthetic", N, N, 2, T, CLASSES, *about)

    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        rng = np.random.default_rng(20180)
        train, test = _draw(rng), _draw(rng)
        split = check_split(train, test, name=self.name, how="given by the data set", **policies)
        return pick_channels(split, channels)


def _draw(rng: np.random.Generator) -> tuple[Array, Array]:
    y = rng.permutation(np.arange(N) % CLASSES)
    time = np.linspace(0.0, 1.0, T, endpoint=False)
    cycles = rng.uniform(2.0, 5.0, size=(N, 1)) * time + rng.uniform(size=(N, 1))  # (N, T)
    # The second channel runs a quarter of a cycle behind the first.
    phase = np.stack([cycles, cycles - 0.25], axis=1) % 1.0  # (N, 2, T)
    waves = np.stack([np.sin(2 * np.pi * phase), np.where(phase < 0.5, 1.0, -1.0), 2 * phase - 1])  # (3, N, 2, T)
    size, level = np.exp(0.2 * rng.standard_normal((N, 1, 1))), 0.5 * rng.standard_normal((N, 2, 1))
    return size * waves[y, np.arange(N)] + level + 0.5 * rng.standard_normal(phase.shape), y
