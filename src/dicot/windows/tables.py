"""Long tables: one row per case and time step, one column per channel."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from dicot.errors import InputError, did_you_mean
from dicot.windows.cases import to_array
from dicot.windows.collection import Windows, check_collection
from dicot.windows.policies import Array, Policies, name_cases


def from_table(
    table: Any,
    *,
    case: str,
    time: str,
    channels: Sequence[str] | None = None,
    label: str | None = None,
    group: str | None = None,
    name: str = "",
    **policies: Unpack[Policies],
) -> Windows:
    """Windows from a pandas DataFrame, a pyarrow Table or a dict of columns.

    Rows may come in any order. Cases keep the order of their first row. Without `channels`, every other column of
    numbers is a channel. Label and group must be the same in all rows of a case.
    """
    cases, y, groups = table_cases(table, case=case, time=time, channels=channels, label=label, group=group)
    return check_collection(cases, y, group=groups, name=name, **policies)


def table_cases(
    table: Any,
    *,
    case: str,
    time: str,
    channels: Sequence[str] | None = None,
    label: str | None = None,
    group: str | None = None,
) -> tuple[list[Array], Array | None, Array | None]:
    """The cases (C, T_i), labels and groups of a long table, before any policy."""
    columns = _columns(table)
    _require(columns, [case, time, label, group, *(channels or ())])
    if channels is None:
        rest = [c for c in columns if c not in (case, time, label, group)]
        channels = [c for c in rest if columns[c].dtype.kind in "biuf"]
    if not channels:
        raise InputError(
            f"The table has no channel: no column of numbers beside {case!r} and {time!r}. Name channels=."
        )
    if not len(columns[case]):
        raise InputError("The table has 0 rows. Pass at least one.")
    codes, first_rows = _in_order(columns[case], case)
    times = _times(columns[time], time)
    order = np.lexsort((times, codes))
    codes, times = codes[order], times[order]
    names = columns[case][first_rows]
    _refuse_duplicates(codes, times, names)
    values = np.stack([_numbers(columns[c], c) for c in channels])[:, order]  # (C, rows)
    ends = np.flatnonzero(np.diff(codes)) + 1
    y, groups = (None if c is None else _constant(columns[c], c, codes, order, names) for c in (label, group))
    return np.split(values, ends, axis=1), y, groups


def _columns(table: Any) -> dict[str, Array]:
    if isinstance(table, Mapping):
        columns = {str(k): to_array(v) for k, v in table.items()}
    elif hasattr(table, "column_names"):  # pyarrow
        columns = {c: np.asarray(table.column(c).to_numpy()) for c in table.column_names}
    elif hasattr(table, "iloc") and hasattr(table, "columns"):  # pandas
        columns = {str(c): to_array(table[c]) for c in table.columns}
    else:
        raise InputError(
            f"A table must be a pandas DataFrame, a pyarrow Table or a dict of columns; got {type(table).__name__}."
        )
    if len({c.shape for c in columns.values()}) > 1 or any(c.ndim != 1 for c in columns.values()):
        raise InputError(f"The columns must be 1-D and equally long; got { {k: v.shape for k, v in columns.items()} }.")
    return columns


def _require(columns: Mapping[str, Array], wanted: Sequence[str | None]) -> None:
    lost = [w for w in wanted if w is not None and w not in columns]
    if lost:
        raise InputError(" ".join(f"The table has no column {w!r}. {did_you_mean(w, columns)}" for w in lost))


def _numbers(column: Array, name: str) -> Array:
    if column.dtype.kind not in "biufO":
        raise InputError(f"Channel {name!r} must hold numbers; got dtype {column.dtype}. Choose others with channels=.")
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"Channel {name!r} must hold numbers; {error}. Choose others with channels=.") from error


def _times(column: Array, name: str) -> Array:
    if column.dtype.kind in "OUS":
        try:
            column = column.astype("datetime64[us]")
        except (TypeError, ValueError) as error:
            raise InputError(f"Column {name!r} must hold numbers or ISO dates to sort by; {error}.") from error
    if column.dtype.kind not in "biufMm":
        raise InputError(f"Column {name!r} must hold numbers or dates to sort by; got dtype {column.dtype}.")
    lost = np.isnat(column) if column.dtype.kind in "Mm" else ~np.isfinite(column)
    if lost.any():
        raise InputError(
            f"Column {name!r} has no value in {name_cases(np.flatnonzero(lost), 'row', 'rows')}. Drop them."
        )
    return column


def _in_order(column: Array, name: str) -> tuple[Array, Array]:
    """A number per row, counted in order of first appearance, and the first row of each number."""
    if column.dtype == object:
        lost = [i for i, v in enumerate(column) if v is None or v != v]
        if lost:
            raise InputError(f"Column {name!r} has no value in {name_cases(lost, 'row', 'rows')}. Drop them.")
        column = column.astype(str)
    elif column.dtype.kind == "f" and np.isnan(column).any():
        which = name_cases(np.flatnonzero(np.isnan(column)), "row", "rows")
        raise InputError(f"Column {name!r} has no value in {which}. Drop them.")
    _, first, codes = np.unique(column, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[codes], np.sort(first)


def _refuse_duplicates(codes: Array, times: Array, names: Array) -> None:
    twice = np.flatnonzero((np.diff(codes) == 0) & (times[1:] == times[:-1]))
    if twice.size:
        found = ", ".join(f"case {names[codes[i]]!s} at time {times[i]!s}" for i in twice[:5])
        more = f" and {twice.size - 5} more" if twice.size > 5 else ""
        raise InputError(f"A case may have one row per time; several came for {found}{more}. Drop or average them.")


def _constant(column: Array, name: str, codes: Array, order: Array, names: Array) -> Array:
    """The one value of each case."""
    sorted_column = column[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
    values: Array = sorted_column[starts]
    expected = values[codes]
    # NaN differs from itself; a case that has nothing else is left to check_collection, which names it.
    differs = (sorted_column != expected) & ~((sorted_column != sorted_column) & (expected != expected))
    if differs.any():
        bad = names[np.unique(codes[differs])]
        raise InputError(
            f"Column {name!r} must have one value per case; it changes within case(s) {', '.join(map(str, bad[:5]))}. "
            "Cut the recording into windows with dicot.windows.recordings.slide instead."
        )
    return values
