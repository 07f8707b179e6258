"""EmbeddingIndex: the nearest of many vectors, and where in which recording they lie."""

import hashlib
import warnings
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd

from dicot.core.errors import InputError, ModelFileError, OutputError, did_you_mean, is_whole, lookup
from dicot.core.storage import only_writer
from dicot.data.cases import Array
from dicot.data.labels import check_groups, check_labels
from dicot.store.folder import MANIFEST, TIMES, VECTORS, Store, write_manifest, write_shard
from dicot.store.nearest import MEMORY, NO_PAIRS, Floats, Mask, Pairs, Rows, Whole, norms_of

METRICS = {"cosine": None, "euclidean": None}
METHODS = {"exact": None, "auto": None, "usearch": None}  # all of them exact: what is left of an approximate search
SHARD_BYTES = 2**26  # of a saved index


@final
class EmbeddingIndex:
    """Find the embeddings that are nearest to a query, exactly, in bounded memory.

    Distances are computed in float64, and rows are ordered by (distance, row). The answer depends neither on the device
    nor on how many rows are looked at together. The cosine distance is 1 - cos; a vector of zeros has no direction and
    is at distance 1 of every query.

    Parameters
    ----------
    x : vectors (N, F). An array of float32, which may be a memory map, is used as it is and not copied
    metric : "cosine" or "euclidean"
    recording : the name of the recording that each vector is a window of (N,)
    start, end : where the window lies in it, in seconds (N,)
    group, label : of each window (N,)
    device : "cpu" (numpy), or "cuda", "cuda:N" or "auto" for a GPU (torch), which keeps the vectors from the first
        query on if half of its free memory suffices
    method : without effect: every search is exact. "usearch", an approximate graph that is gone, is deprecated
    memory : bytes that a search may take beside the vectors and its answer

    Attributes
    ----------
    recording, start, end, group, label : what is known of each vector (N,), or None
    """

    def __init__(
        self,
        x: Any,
        *,
        metric: str = "cosine",
        recording: Any = None,
        start: Any = None,
        end: Any = None,
        start_time: Any = None,
        end_time: Any = None,
        group: Any = None,
        label: Any = None,
        device: str = "cpu",
        method: str = "exact",
        memory: int = MEMORY,
    ) -> None:
        lookup(METRICS, metric, "metric")
        lookup(METHODS, method, "method")
        if method == "usearch":
            warnings.warn(
                'The approximate search method="usearch" is gone: this search is exact. Leave method= out.',
                FutureWarning,
                stacklevel=2,
            )
        self.metric = metric
        self.method = method
        self.memory = memory
        self._device = _gpu(device)
        self._origin: tuple[Path, str] | None = None  # the folder it is from, and the hash of what was there then
        self._rows = x if isinstance(x, Rows) else Rows([_checked_vectors(x, "x")], metric)
        columns = {
            "recording": recording,
            "start": start,
            "end": end,
            "start_time": start_time,
            "end_time": end_time,
            "group": group,
            "label": label,
        }
        self._set_columns(_checked_columns(len(self), columns))

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        columns = f", with {', '.join(self._columns)}" if self._columns else ""
        return f"EmbeddingIndex({len(self)} vectors of {self.n_features} features, {self.metric}{columns})"

    def _set_columns(self, columns: dict[str, Array]) -> None:
        self._columns = columns
        self.recording = columns.get("recording")
        self.start = columns.get("start")
        self.end = columns.get("end")
        self.group = columns.get("group")
        self.label = columns.get("label")
        self._rows_by_recording: Any = None  # filled at first use

    @property
    def n_features(self) -> int:
        """Give the number of features F."""
        return self._rows.n_features

    def vectors(self, rows: Any) -> Array:
        """Return copies of the vectors (M, F) in these rows."""
        return self._rows.take(self._row_numbers(rows, "rows"))

    def query(
        self,
        z: Any,
        k: int = 10,
        *,
        groups: Any = None,
        after: float | None = None,
        before: float | None = None,
        leave_out: Any = None,
    ) -> tuple[Floats, Whole]:
        """Return distances and rows of the k nearest vectors, the nearest first, of equal ones the smaller row first.

        For queries (Q, F) both have the shape (Q, k); where fewer than k rows remain, the rest is inf and -1. For one
        query (F,) both have the length k, or less where fewer remain.

        Parameters
        ----------
        z : queries (Q, F) or one query (F,)
        k : how many to find
        groups : a group or a list of groups; only their vectors are found
        after, before : seconds; only windows are found that start at `after` or later, and end at `before` or earlier
        leave_out : rows that are not found: for all queries, or a list with an array for each query (Q, F)
        """
        is_single = np.ndim(z) == 1
        queries = np.atleast_2d(np.asarray(z)).astype(np.float64)
        _checked_vectors(queries, "z", self.n_features)
        if (norms_of(queries, "z") == 0).any() and self.metric == "cosine":
            raise InputError("A query of zeros has no direction. Leave it out, or use metric='euclidean'.")
        if not is_whole(k, 1):
            raise InputError(f"k must be a whole number of at least 1; got {k!r}.")
        allowed = self._allowed(groups, after, before)
        left_out = NO_PAIRS
        if isinstance(leave_out, list | tuple) and any(np.ndim(rows) > 0 for rows in leave_out):
            left_out = self._pairs(leave_out, len(queries))
        elif leave_out is not None:
            allowed = np.ones(len(self), bool) if allowed is None else allowed
            allowed[self._row_numbers(leave_out, "leave_out")] = False
        distances, rows = self._rows.nearest(queries, k, allowed, left_out, self.memory, self._device)
        if is_single:
            found = rows[0] >= 0
            return distances[0, found], rows[0, found]
        return distances, rows

    def like(self, recording: Any, time: float, k: int = 10) -> tuple[Floats, Whole]:
        """Return distances and rows of the k vectors most like the window at `time` seconds of a recording.

        The window itself and all that overlap it in the same recording are left out. Of several windows at that time,
        the one whose middle is nearest to it is meant; `row_at` tells which.
        """
        row = self.row_at(recording, time)
        return self.query(self.vectors([row])[0], k, leave_out=self.overlapping(row))

    def row_at(self, recording: Any, time: float) -> int:
        """Return the row of the window at `time` seconds of a recording: start <= time < end."""
        rows, starts, ends = self._windows_of(recording)
        here = np.flatnonzero((starts <= time) & (time < ends))
        if not len(here):
            closest = int(np.argmin(np.maximum(starts - time, time - ends)))
            near = f"the closest of {len(rows)} is {starts[closest]:g} to {ends[closest]:g} s"
            raise InputError(f"No window of {recording!r} lies at {time:g} s; {near}.")
        middles = np.abs((starts[here] + ends[here]) / 2 - time)
        return int(rows[here[np.argmin(middles)]])

    def overlapping(self, row: int) -> Whole:
        """Return the rows of windows that share some time with this one, itself included, where places are known."""
        (row,) = self._row_numbers([row], "row")
        if not {"recording", "start", "end"} <= self._columns.keys():
            return np.array([row])
        rows, starts, ends = self._windows_of(self._column("recording")[row])
        is_itself = rows == row
        shares_time = (starts < ends[is_itself]) & (ends > starts[is_itself])
        return np.asarray(rows[is_itself | shares_time])

    def append(self, x: Any, **columns: Any) -> None:
        """Add vectors after those that are there, with the same columns: recording, start, end, group and label.

        The present ones are not copied.
        """
        array = _checked_vectors(x, "x", self.n_features)
        added = _checked_columns(len(array), columns)
        if added.keys() != self._columns.keys():
            expected = ", ".join(self._columns) or "none"
            got = ", ".join(added) or "none"
            raise InputError(f"What is appended must have the columns of the index, {expected}; it has {got}.")
        self._rows = self._rows.with_more(array, "x")
        self._set_columns({name: np.concatenate([self._columns[name], added[name]]) for name in added})

    def save(self, folder: str | Path) -> Path:
        """Write the index into a folder, whole or not at all, in place of one that is there.

        Shards that are there already are not written again. Of several processes one writes at a time; the others are
        refused. An index that was loaded from the folder is refused too where another process has saved one there
        since: its vectors would be lost.
        """
        folder = Path(folder)
        with only_writer(folder, folder=True):
            store = Store(folder) if (folder / MANIFEST).exists() else None
            self._check_unchanged(folder, store)
            saved_shards = {} if store is None else {shard.name: shard for shard in store.shards}
            rows_at_once = max(1, SHARD_BYTES // (4 * self.n_features))
            shards = []
            for number, first in enumerate(range(0, len(self), rows_at_once)):
                rows = np.arange(first, min(first + rows_at_once, len(self)))
                x = self._rows.take(rows)
                columns = {name: values[rows] for name, values in self._columns.items()}
                name = f"{_digest(x, *columns.values())}-{number:03d}"
                is_saved = name in saved_shards
                shards.append(saved_shards[name] if is_saved else write_shard(folder, name, x, columns))
            store = write_manifest(folder, VECTORS, [self.n_features], shards, {"metric": self.metric})
            self._origin = folder.resolve(), store.seal
        return folder

    def _check_unchanged(self, folder: Path, store: Store | None) -> None:
        """Refuse to save over what another process has saved since this index was loaded from there."""
        if self._origin is None or self._origin[0] != folder.resolve():
            return
        if store is None or store.seal != self._origin[1]:
            raise OutputError(
                f"{folder} was changed by another process after this index was loaded from it. Load it again and "
                "append to what is there, or choose another folder."
            )

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        metric: str | None = None,
        device: str = "cpu",
        method: str = "exact",
        memory: int = MEMORY,
    ) -> "EmbeddingIndex":
        """Open an index that `save` wrote, or the vectors that `dicot embed` wrote.

        The vectors are checked once by their hashes and stay on disk, mapped into memory. `metric` is that of the saved
        index, where none is given.
        """
        store = _opened(Path(folder))
        if store.kind != VECTORS:
            raise ModelFileError(f"{folder} holds {store.kind}, and only vectors are searched. Embed them first.")
        metric = metric or store.about.get("metric", "cosine")
        lookup(METRICS, metric, "metric")
        try:
            rows = Rows(store.maps(), metric, str(folder))
            index = cls(rows, metric=metric, device=device, method=method, memory=memory, **store.columns())
        except InputError as error:
            raise ModelFileError(f"{folder} cannot be loaded: {error}") from error
        index._origin = (Path(folder).resolve(), store.seal)
        return index

    def _column(self, name: str) -> Array:
        if name not in self._columns:
            raise InputError(f"The index does not know the {name} of its vectors. Build it with {name}=.")
        return self._columns[name]

    def _allowed(self, groups: Any, after: float | None, before: float | None) -> Mask | None:
        """Return which rows pass the filters (N,), or None where there are none."""
        if groups is None and after is None and before is None:
            return None
        allowed = np.ones(len(self), bool)
        if groups is not None:
            allowed &= self._of_groups(groups)
        if after is not None:
            allowed &= self._column("start") >= after
        if before is not None:
            allowed &= self._column("end") <= before
        return allowed

    def _of_groups(self, groups: Any) -> Mask:
        column = self._column("group")
        wanted = [groups] if isinstance(groups, str) or np.ndim(groups) == 0 else list(groups)
        known = set(column.tolist())
        unknown = [group for group in wanted if group not in known]
        if unknown:
            raise InputError(f"Unknown group {unknown[0]!r}. {did_you_mean(str(unknown[0]), map(str, known))}")
        return np.isin(column, wanted)

    def _pairs(self, leave_out: Any, n_queries: int) -> Pairs:
        """Return what single queries leave out."""
        if len(leave_out) != n_queries:
            raise InputError(f"leave_out must hold one array for each of {n_queries} queries; got {len(leave_out)}.")
        rows_of_query = [self._row_numbers(rows, f"leave_out[{number}]") for number, rows in enumerate(leave_out)]
        query = np.repeat(np.arange(n_queries), [len(rows) for rows in rows_of_query])
        row = np.concatenate(rows_of_query)
        order = np.argsort(row, kind="stable")
        return Pairs(query[order], row[order])

    def _row_numbers(self, rows: Any, what: str) -> Whole:
        numbers = np.atleast_1d(np.asarray(rows)) if np.size(rows) else np.empty(0, np.int64)
        if numbers.dtype.kind not in "iu" or ((numbers < 0) | (numbers >= len(self))).any():
            raise InputError(f"{what} must be row numbers from 0 to {len(self) - 1}; got {numbers}.")
        return numbers.astype(np.int64)

    def _windows_of(self, recording: Any) -> tuple[Whole, Array, Array]:
        """Return rows, starts and ends of the windows of a recording."""
        names = self._column("recording")
        if self._rows_by_recording is None:
            self._rows_by_recording = pd.Series(names).groupby(names).indices
        rows = lookup(self._rows_by_recording, str(recording), "recording")
        return rows, self._column("start")[rows], self._column("end")[rows]


def _checked_vectors(x: object, what: str, n_features: int | None = None) -> Array:
    """Return vectors (N, F) of float32, or an error that names the shape; `norms_of` looks at the values."""
    array = np.asanyarray(x)
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[1]:
        raise InputError(f"{what} must be numbers of shape (cases, features); got {array.dtype} {array.shape}.")
    if n_features is not None and array.shape[1] != n_features:
        raise InputError(
            f"{what} has vectors of {array.shape[1]} features, the index holds vectors of {n_features}. Embed both by "
            "the same model."
        )
    with np.errstate(over="ignore"):  # what becomes inf is refused with the others
        return array if array.dtype == np.float32 else array.astype(np.float32)


def _opened(folder: Path) -> Store:
    """Open a store, once more where another process saves there meanwhile."""
    while True:
        before = (folder / MANIFEST).read_bytes() if (folder / MANIFEST).is_file() else b""
        try:
            return Store(folder, verify=True)
        except ModelFileError:
            if not (folder / MANIFEST).is_file() or before == (folder / MANIFEST).read_bytes():
                raise


def _gpu(device: str) -> Any:
    """Return the torch device, or None for the CPU, where numpy does the work and torch is not loaded."""
    if str(device) == "cpu":
        return None
    from dicot.core.device import resolve_device

    resolved = resolve_device(device)
    return None if resolved.type == "cpu" else resolved


def _checked_columns(n: int, columns: dict[str, Any]) -> dict[str, Array]:
    """Return the columns that are not None, checked: recordings as text, times as float64."""
    return {name: _checked_column(n, name, values) for name, values in columns.items() if values is not None}


def _checked_column(n: int, name: str, values: Any) -> Array:
    if name in TIMES:
        times = np.asarray(values, "M8[us]")
        if times.shape != (n,):
            raise InputError(f"{name} must have one time for each of the {n} vectors; got {times.shape}.")
        return times
    if name in ("group", "label"):
        return check_labels(values, n, name, "vectors")
    column = check_groups(values, n, name, "vectors")  # each of these must be known
    return column.astype(str if name == "recording" else float, copy=False)


def _digest(*arrays: Array) -> str:
    """Name a shard by its content, so that what was saved before is known again."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(f"{array.dtype} {array.shape}".encode())
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()[:16]
