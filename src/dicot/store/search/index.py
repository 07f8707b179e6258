"""EmbeddingIndex: the nearest of many vectors, and where in which recording they lie."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from dicot.core.errors import InputError, ModelFileError, OutputError, did_you_mean, is_whole
from dicot.core.storage.locks import only_writer
from dicot.data.collection import check_groups, check_labels
from dicot.data.pieces import pieces, release
from dicot.data.policies import Array
from dicot.store.search import approximate
from dicot.store.search.exact import MEMORY, NO_PAIRS, Filter, Pairs, Space, first_of, nearest, sizes_within
from dicot.store.search.folder import SavedIndex, State, load_folder, save_folder, state_of
from dicot.store.search.rows import Floats, Rows, Whole, check_vectors, norms_of

METRICS = ("cosine", "euclidean")
METHODS = ("exact", "auto", "usearch")
COLUMNS = ("recording", "start", "end", "group", "label")
LEAST_MEMORY = 2**16
CANDIDATES = 4  # times as many as are wanted, and 32, that usearch is asked for
MOST_DROPPED = 1000  # rows left out that usearch is asked for in addition; with more, the search is exact


@final
class EmbeddingIndex:
    """Find the embeddings that are nearest to a query, exactly, in bounded memory.

    Distances are computed in float64 and rows are ordered by (distance, row). This order is exact: float32 products
    only narrow the choice, by bounds on their rounding. The answer depends neither on the device nor on how many rows
    are looked at together. The cosine distance is 1 - cos; a vector of zeros has no direction and is at distance 1 of
    every query.

    Parameters
    ----------
    x : vectors (N, F). An array of float32, which may be a memory map, is used as it is and not copied
    metric : "cosine" or "euclidean"
    recording : the name of the recording that each vector is a window of (N,)
    start, end : where the window lies in it, in seconds (N,)
    group, label : of each window (N,)
    device : "cpu" (numpy), or "cuda", "cuda:N" or "auto" for a GPU (torch), which keeps the vectors from the first
        query on if half of its free memory suffices
    method : "exact"; "usearch" for its approximate graph, an extra, whose candidates are put in order by exact
        distances; "auto" for usearch from 200,000 vectors on where it is installed, and otherwise exact. The graph is
        built at the first query, which takes minutes for a million vectors, grows by what is appended, and is not
        saved. A query with `groups`, `after` or `before`, or that leaves out more than 1,000 rows, is exact in any case
    memory : bytes that a search may take beside the vectors and its answer
    """

    def __init__(
        self,
        x: Any,
        *,
        metric: str = "cosine",
        recording: Any = None,
        start: Any = None,
        end: Any = None,
        group: Any = None,
        label: Any = None,
        device: str = "cpu",
        method: str = "exact",
        memory: int = MEMORY,
    ) -> None:
        for what, value, known in (("metric", metric, METRICS), ("method", method, METHODS)):
            if value not in known:
                raise InputError(f"Unknown {what} {value!r}. {did_you_mean(str(value), known)}")
        if not is_whole(memory, LEAST_MEMORY):
            raise InputError(f"memory must be a whole number of at least {LEAST_MEMORY} bytes; got {memory!r}.")
        if method == "usearch":
            approximate.check_installed()
        self.metric, self.method, self.memory = metric, method, int(memory)
        self._origin: tuple[Path, State | None] | None = None  # the folder it is from, and what was there then
        self._device = _gpu(device)
        array = check_vectors(x, "x")
        self._columns = _checked_columns(
            len(array), {"recording": recording, "start": start, "end": end, "group": group, "label": label}
        )
        self._graph: approximate.NeighbourGraph | None = None
        self._set(Rows([array], norms_of(array, "x")))

    def _set(self, rows: Rows) -> None:
        self._rows, self._space = rows, Space(rows, self.metric)
        # Name -> for each run of its rows the first, and the one after the last.
        self._by_recording: dict[str, list[tuple[int, int]]] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        known = f", with {', '.join(self._columns)}" if self._columns else ""
        return f"EmbeddingIndex({len(self)} vectors of {self.n_features} features, {self.metric}{known})"

    @property
    def n_features(self) -> int:
        """Give the number of features F."""
        return self._rows.n_features

    @property
    def recording(self) -> Array | None:
        """Give the recording of each vector, or None."""
        return self._columns.get("recording")

    @property
    def start(self) -> Array | None:
        """Give the second at which each window starts, or None."""
        return self._columns.get("start")

    @property
    def end(self) -> Array | None:
        """Give the second at which each window ends, or None."""
        return self._columns.get("end")

    @property
    def group(self) -> Array | None:
        """Give the group of each vector, or None."""
        return self._columns.get("group")

    @property
    def label(self) -> Array | None:
        """Give the label of each vector, or None."""
        return self._columns.get("label")

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
        array = np.asarray(z)
        single = array.ndim == 1
        queries = self._checked_queries(array[None] if single else array)
        if not is_whole(k, 1):
            raise InputError(f"k must be a whole number of at least 1; got {k!r}.")
        allowed = self._allowed(groups, after, before)
        left_out, n_dropped = self._left_out(leave_out, None if single else len(queries))
        if left_out is None:
            allowed = np.ones(len(self), bool) if allowed is None else allowed
            allowed[self._row_numbers(leave_out, "leave_out")] = False
        keep = Filter(allowed, left_out or NO_PAIRS)
        most = min(k, max(1, len(self)))
        filtered = groups is not None or after is not None or before is not None
        if self._uses_graph() and not filtered and n_dropped <= MOST_DROPPED:
            found = self._approximately(queries, most, keep, n_dropped)
        else:
            found = nearest(self._space, queries, most, keep, memory=self.memory, device=self._device)
        distances = np.pad(found[0], ((0, 0), (0, k - most)), constant_values=np.inf)
        rows = np.pad(found[1], ((0, 0), (0, k - most)), constant_values=-1)
        if single:
            n_found = int(np.count_nonzero(rows[0] >= 0))
            return distances[0, :n_found], rows[0, :n_found]
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
        if not np.isfinite(time):
            raise InputError(f"time must be a number of seconds; got {time!r}.")
        here = np.flatnonzero((starts <= time) & (time < ends))
        if not len(here):
            gaps = np.maximum(starts - time, time - ends)
            closest = int(np.argmin(gaps))
            raise InputError(
                f"No window of {recording!r} lies at {time:g} s. Its {len(rows)} windows lie between "
                f"{starts.min():g} and {ends.max():g} s; the closest is {starts[closest]:g} to {ends[closest]:g} s."
            )
        middles = np.abs((starts[here] + ends[here]) / 2 - time)
        return int(rows[here[np.argmin(middles)]])

    def overlapping(self, row: int) -> Whole:
        """Return the rows of all windows of the same recording that share some time with this one, itself included."""
        (row,) = self._row_numbers([row], "row")
        rows, starts, ends = self._windows_of(self._column("recording")[row])
        own = rows == row
        found: Whole = rows[own | ((starts < ends[own]) & (ends > starts[own]))]
        return found

    def append(
        self,
        x: Any,
        *,
        recording: Any = None,
        start: Any = None,
        end: Any = None,
        group: Any = None,
        label: Any = None,
    ) -> None:
        """Add vectors after those that are there, with the same columns. The present ones are not copied."""
        array = check_vectors(x, "x", self.n_features)
        added = _checked_columns(
            len(array), {"recording": recording, "start": start, "end": end, "group": group, "label": label}
        )
        if added.keys() != self._columns.keys():
            raise InputError(
                f"What is appended must have the columns of the index, {_listed(self._columns)}; "
                f"it has {_listed(added)}. Pass the same ones."
            )
        kinds = {name: (self._columns[name].dtype.kind == "U", added[name].dtype.kind == "U") for name in added}
        if mixed := [name for name, (one, other) in kinds.items() if one != other and len(self)]:
            raise InputError(f"{mixed[0]} must be all text or all numbers; the index and what is appended differ.")
        norms = np.concatenate([self._rows.norms, norms_of(array, "x")])
        self._columns = {name: np.concatenate([self._columns[name], added[name]]) for name in self._columns}
        self._set(Rows([*self._rows.parts, array], norms))

    def save(self, folder: str | Path) -> Path:
        """Write the index into a folder, whole or not at all, in place of one that is there.

        Of several processes one writes at a time; the others are refused. An index that was loaded from the folder is
        refused too where another process has saved one there since: its vectors would be lost.
        """
        folder = Path(folder)
        with only_writer(folder):
            origin, state = self._origin or (None, None)
            if origin == folder.resolve() and state != state_of(folder):
                raise OutputError(
                    f"{folder} was changed by another process after this index was loaded from it, and saving would "
                    "lose that. Load it again and append to what is there, or choose another folder."
                )
            save_folder(folder, self.metric, self._rows, self._columns)
            self._origin = folder.resolve(), state_of(folder)
        return folder

    @classmethod
    def load(
        cls, folder: str | Path, *, device: str = "cpu", method: str = "exact", memory: int = MEMORY
    ) -> "EmbeddingIndex":
        """Read an index that `save` wrote. Its vectors are checked once and stay on disk, mapped into memory."""
        cls(np.zeros((1, 1)), device=device, method=method, memory=memory)  # what is wrong below is the folder's
        content, state = _read(Path(folder))
        if unknown := sorted(content.columns.keys() - set(COLUMNS)):
            raise ModelFileError(f"{folder} holds a column {unknown[0]!r} that no index has. Save the index again.")
        try:
            index = cls(
                content.x, metric=content.metric, device=device, method=method, memory=memory, **content.columns
            )
        except InputError as error:
            raise ModelFileError(f"{folder} cannot be loaded: {error} Save the index again.") from error
        index._origin = Path(folder).resolve(), state
        return index

    def _checked_queries(self, z: Array) -> Floats:
        check_vectors(z, "z", self.n_features)
        queries: Floats = z.astype(np.float64)
        norms = norms_of(queries, "z")
        if self.metric == "cosine" and len(zero := np.flatnonzero(norms == 0)):
            raise InputError(f"Query {zero[0]} is all zeros and has no direction. Leave it out, or use 'euclidean'.")
        return queries

    def _column(self, name: str) -> Array:
        if name not in self._columns:
            raise InputError(f"The index does not know the {name} of its vectors. Build it with {name}=.")
        return self._columns[name]

    def _allowed(self, groups: Any, after: float | None, before: float | None) -> Any:
        """Return which rows pass the filters (N,), or None where there are none."""
        tests = []
        if groups is not None:
            held = self._column("group")
            wanted = [groups] if isinstance(groups, str) or np.ndim(groups) == 0 else list(groups)
            if not wanted:
                raise InputError("groups names no group. Name at least one, or leave it out.")
            known = set(held.tolist())
            if unknown := [one for one in wanted if one not in known]:
                raise InputError(
                    f"No vector has the group {unknown[0]!r}. {did_you_mean(str(unknown[0]), map(str, known))}"
                )
            tests.append(np.isin(held, wanted))
        for what, value in (("after", after), ("before", before)):
            if value is not None and np.isnan(value):
                raise InputError(f"{what} must be a number of seconds; got {value!r}.")
        if after is not None:
            tests.append(self._column("start") >= after)
        if before is not None:
            tests.append(self._column("end") <= before)
        return np.logical_and.reduce(tests) if tests else None

    def _left_out(self, leave_out: Any, n_queries: int | None) -> tuple[Pairs | None, int]:
        """Return what single queries leave out, or None where all leave out the same; and how many at most."""
        if leave_out is None:
            return NO_PAIRS, 0
        listed = isinstance(leave_out, list | tuple) and any(np.ndim(rows) > 0 for rows in leave_out)
        if not listed:
            return None, np.size(leave_out)
        if n_queries is None or len(leave_out) != n_queries:
            raise InputError(
                f"leave_out must hold row numbers for all queries, or one array for each of the {n_queries or 1} "
                f"queries (Q, F); got {len(leave_out)} arrays."
            )
        rows = [self._row_numbers(one, f"leave_out[{number}]") for number, one in enumerate(leave_out)]
        query = np.repeat(np.arange(len(rows)), [len(one) for one in rows])
        row = np.concatenate(rows)
        order = np.argsort(row, kind="stable")
        return Pairs(query[order], row[order]), max(map(len, rows))

    def _row_numbers(self, rows: Any, what: str) -> Whole:
        numbers = np.atleast_1d(np.asarray(rows))
        numbers = numbers.astype(np.int64) if not numbers.size else numbers
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise InputError(f"{what} must be row numbers; got {numbers.dtype} {numbers.shape}.")
        wrong = numbers[(numbers < 0) | (numbers >= len(self))]
        if len(wrong):
            raise InputError(f"{what} names row {wrong[0]}; the index has the rows 0 to {len(self) - 1}.")
        return numbers.astype(np.int64)

    def _windows_of(self, recording: Any) -> tuple[Whole, Array, Array]:
        """Return rows, starts and ends of the windows of a recording."""
        names, starts, ends = (self._column(name) for name in ("recording", "start", "end"))
        if self._by_recording is None:
            self._by_recording = _runs_of_equals(names)
        if str(recording) not in self._by_recording:
            raise InputError(f"Unknown recording {recording!r}. {did_you_mean(str(recording), self._by_recording)}")
        rows = np.concatenate([np.arange(*run) for run in self._by_recording[str(recording)]])
        return rows, starts[rows], ends[rows]

    def _uses_graph(self) -> bool:
        if self.method == "auto":
            return len(self) >= approximate.FROM and approximate.is_installed()
        return self.method == "usearch" and len(self) > 0

    def _approximately(self, queries: Floats, k: int, keep: Filter, n_dropped: int) -> tuple[Floats, Whole]:
        """Take some more candidates than needed from usearch's graph, and put them in order by exact distances."""
        self._graph = self._graph or approximate.NeighbourGraph(self._rows, self.metric)
        self._graph.extend(self._rows)
        count = min(len(self), CANDIDATES * k + 32 + n_dropped)
        query, row = self._graph.candidates(queries.astype(np.float32), count)
        here = np.ones(len(row), bool) if keep.allowed is None else keep.allowed[row]
        here &= ~np.isin(query * len(self) + row, keep.left_out.query * len(self) + keep.left_out.row)
        query, row = query[here], row[here]
        at_once = sizes_within(self.memory, self.n_features).pairs
        return first_of(query, row, self._space.distances(queries, query, row, at_once), k, len(queries))


def _read(folder: Path) -> tuple[SavedIndex, State | None]:
    """Read a folder, once more where another process saves there meanwhile, and its state before that."""
    while True:
        state = state_of(folder)
        try:
            return load_folder(folder), state
        except ModelFileError:
            if state == state_of(folder):
                raise


def _runs_of_equals(names: Array) -> dict[str, list[tuple[int, int]]]:
    """Return where each name stands; rows of a recording are neighbours as a rule, so that nothing is sorted."""
    runs: dict[str, list[tuple[int, int]]] = {}
    first = 0
    for rows in pieces((len(names), 1, max(1, names.dtype.itemsize // 8))):
        block = names[rows.start : rows.stop + 1]  # with the next one's first
        for end in (np.flatnonzero(block[1:] != block[:-1]) + rows.start + 1).tolist():
            runs.setdefault(str(names[first]), []).append((first, end))
            first = end
        release(names[rows])
    if len(names):
        runs.setdefault(str(names[first]), []).append((first, len(names)))
    return runs


def _gpu(device: str) -> Any:
    """Return the torch device, or None for the CPU, where numpy does the work and torch is not loaded."""
    if str(device) == "cpu":
        return None
    from dicot.core.gpu.device import resolve_device

    resolved = resolve_device(device)
    return None if resolved.type == "cpu" else resolved


def _checked_columns(n: int, given: dict[str, Any]) -> dict[str, Array]:
    """Return the columns that are given, checked: recordings as text, times as float64."""
    columns = {}
    if (given["start"] is None) != (given["end"] is None):
        raise InputError("start and end belong together: pass both or neither.")
    for name, values in given.items():
        if values is None:
            continue
        if name == "recording":
            columns[name] = check_groups(values, n, name, "vectors").astype(str, copy=False)
        elif name in ("start", "end"):
            times = check_groups(values, n, name, "vectors")
            if times.dtype.kind == "U":
                raise InputError(f"{name} must be numbers of seconds; got text such as {times[:1].tolist()}.")
            columns[name] = times.astype(np.float64, copy=False)
        else:
            columns[name] = check_labels(values, n, name, "vectors")
    if "start" in columns and len(wrong := np.flatnonzero(columns["end"] < columns["start"])):
        raise InputError(f"The window of row {wrong[0]} ends before it starts. Correct start and end.")
    return columns


def _listed(names: Sequence[str] | dict[str, Array]) -> str:
    return ", ".join(names) or "none"
