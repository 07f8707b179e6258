"""DATASETS' type: data sets by name in any capitalisation, those that only a folder of this machine knows included."""

from collections.abc import Callable, ItemsView, Iterable, Iterator, MutableMapping, Sequence, ValuesView
from typing import final

from dicot.core.errors import InputError, did_you_mean
from dicot.data.datasets.base import DataSet


@final
class Registry(MutableMapping[str, DataSet]):
    """The registered data sets by name, and those that `discover` finds on this machine at the moment of asking.

    A set that is registered and here comes before one of the same name that was discovered.
    """

    def __init__(self, sets: Iterable[DataSet], discover: Sequence[Callable[[], Iterable[DataSet]]] = ()) -> None:
        self._registered = {one.name.lower(): one for one in sets}
        self._discover = discover

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
        return (one for look in self._discover for one in look())
