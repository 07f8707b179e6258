"""Windows that stay on disk: cases that are read a few rows at a time, and never all at once."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from dicot.data.collection import Windows, check_labels, labelled
from dicot.data.conversion import Conversion
from dicot.data.policies import Array, FloatArray, Scale


class CaseStore(ABC):
    """Cases (N, C, T) on disk, checked when they were stored. An estimator takes one wherever it takes Windows."""

    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    name: str
    channels: tuple[str, ...] | None
    rate: float | None
    ndim = 3

    @abstractmethod
    def read_rows(self, rows: Array, out: FloatArray) -> None:
        """Write the cases in these rows, in this order, to `out` (len(rows), C, T) of float32."""

    @abstractmethod
    def read_labels(self) -> Array | None:
        """Return the labels (N,) of all cases, or None where there are none."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value, without reading all of them."""

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def n_channels(self) -> int:
        """Give the number of channels C."""
        return self.shape[1]

    @property
    def n_times(self) -> int:
        """Give the number of time steps T."""
        return self.shape[2]

    def __getitem__(self, rows: slice | Array, /) -> FloatArray:
        """Read a slice of the cases, or those at these positions, as float32."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        out = np.empty((len(rows), *self.shape[1:]), np.float32)
        self.read_rows(rows, out)
        return out

    def label_fingerprint(self) -> str:
        """Return that of Windows with the same labels."""
        return _label_fingerprint(self.read_labels(), len(self))


@final
class OrderedStore(CaseStore):
    """The cases of a store with their channels in another order."""

    def __init__(self, store: CaseStore, order: Sequence[int]) -> None:
        self._store, self._order = store, list(order)
        self.shape, self.dtype, self.name, self.rate = store.shape, store.dtype, store.name, store.rate
        self.channels = None if store.channels is None else tuple(store.channels[i] for i in order)

    def read_rows(self, rows: Array, out: FloatArray) -> None:
        """Write the cases in these rows, in this order, to `out`."""
        out[...] = self._store[rows][:, self._order]

    def read_labels(self) -> Array | None:
        """Return the labels of all cases."""
        return self._store.read_labels()

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value, and with the order."""
        return hashlib.sha256(f"{self._store.fingerprint()} {self._order}".encode()).hexdigest()[:16]


@final
class StoredWindows:
    """The cases of a store as a fit prepared them, with the names of `Windows`: scaled when they are read."""

    segments: None = None

    def __init__(self, store: CaseStore, x: Conversion, y: Any = None) -> None:
        self.store, self.x = store, x
        self._y = None if y is None else check_labels(y, len(x), "y")

    @property
    def name(self) -> str:
        """Give the name of the store."""
        return self.store.name

    @property
    def y(self) -> Array | None:
        """Give the labels (N,), which are read when somebody asks for them."""
        if self._y is None:
            labels = self.store.read_labels()
            self._y = None if labels is None else labels[self.x.index]
        return self._y

    @property
    def n_channels(self) -> int:
        """Give the number of channels C."""
        return self.x.shape[1]

    @property
    def n_times(self) -> int:
        """Give the number of time steps T."""
        return self.x.shape[2]

    def __len__(self) -> int:
        return len(self.x)

    def labelled_only(self) -> "StoredWindows":
        """Return the cases whose label is known."""
        known = np.zeros(len(self), bool) if self.y is None else labelled(self.y)
        chosen = StoredWindows(self.store, self.x.chosen(known))
        chosen._y = None if self.y is None else self.y[known]
        return chosen

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value: the store's own, and what is done to its values."""
        said = [self.store.fingerprint(), repr(self.x.shape)]
        if isinstance(self.x.scale, Scale):
            said += [self.x.scale.mean.tobytes().hex(), self.x.scale.std.tobytes().hex()]
        else:
            said.append(str(self.x.scale))
        if len(self.x) < len(self.store):
            said.append(hashlib.sha256(self.x.index.tobytes()).hexdigest())
        return hashlib.sha256(" ".join(said).encode()).hexdigest()[:16]

    def label_fingerprint(self) -> str:
        """Return that of Windows with the same labels."""
        return _label_fingerprint(self.y, len(self))


TrainingCases = Windows | StoredWindows  # as a preparation leaves them


def _label_fingerprint(labels: Array | None, n: int) -> str:
    return Windows(np.broadcast_to(np.float32(0), (n, 1, 1)), labels).label_fingerprint()


def as_they_are(store: CaseStore) -> Conversion:
    """Return all cases of a store, unchanged."""
    n = len(store)
    # One value for all of the cases: there may be very many.
    lengths, gaps = np.broadcast_to(np.intp(store.n_times), n), np.broadcast_to(np.False_, n)
    return Conversion(store, lengths, gaps, np.arange(n), store.n_times)
