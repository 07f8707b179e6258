"""Tables in memory and .parquet files; of long ones, with a row per case and time step, the cases."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import InputError, did_you_mean
from dicot.core.storage import arrow
from dicot.data.cases import to_array
from dicot.data.labels import check_labels
from dicot.data.policies import Array, name_cases
from dicot.data.texts import is_number

# What unpacks to less is harmless; above it a file must be worth a hundredth of what it asks for.
_SMALL, _MOST_TIMES, _LEAST_BYTES = 1 << 28, 100, 4


def read_table(path: Path) -> Any:
    """Read a .parquet file as a pyarrow Table."""
    with open_parquet(path) as file:
        return file.read()


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a .parquet file to read from, checked by the checksums of its pages."""
    _, parquet = arrow()
    # Not by memory map, which a truncated file would turn into a crash of the process.
    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        refuse_bomb(path, file.metadata.num_rows * file.metadata.num_columns)
        yield file


def refuse_bomb(path: Path, n_values: int) -> None:
    """Refuse a file that unpacks to far more than it holds, by the number of its values."""
    size, unpacked = path.stat().st_size, _LEAST_BYTES * n_values
    if unpacked > max(_SMALL, _MOST_TIMES * size):
        raise InputError(
            f"{path} has {size:,} bytes and unpacks to {unpacked:,} or more, which may be made to fill the memory. "
            "Divide it into several files."
        )


def table_cases(
    table: Any,
    *,
    case: str | None,
    time: str | None,
    channels: Sequence[str] | None = None,
    label: str | None = None,
    group: str | None = None,
    ignore: Sequence[str] = (),
) -> tuple[list[Array], Array | None, Array | None, str, tuple[str, ...]]:
    """Return the cases (C, T_i) of a long table before any policy, labels, groups, what was read in words, channels."""
    columns = table_columns(table)
    if case is None or time is None:
        raise InputError(
            "A long table needs both case= and time=, the columns that name the case and order it. "
            f"It has the columns {', '.join(columns)}."
        )
    roles = {"case": case, "time": time, **{k: c for k, c in (("label", label), ("group", group)) if c is not None}}
    require_columns(columns, [*roles.values(), *(channels or ()), *ignore])
    if torn := [c for c in ignore if c in (*roles.values(), *(channels or ()))]:
        raise InputError(f"Column {torn[0]!r} cannot be used and ignored. Leave it out of ignore.")
    rest = [c for c in columns if c not in roles.values() and c not in ignore]
    used = list(channels) if channels is not None else [c for c in rest if _is_channel(columns[c], c)]
    if not used or not len(columns[case]):
        raise InputError(
            f"The table has 0 rows, or no channel: no column of numbers beside {case!r} and {time!r}. Name channels= "
            "(--channels)."
        )
    codes = _numbered(columns[case], case)
    _refuse_lost(codes < 0, case)
    names = columns[case][np.unique(codes, return_index=True)[1]]
    times = _times(columns[time], time)
    order = np.lexsort((times, codes))
    codes, times = codes[order], times[order]
    if len(twice := np.flatnonzero((np.diff(codes) == 0) & (times[1:] == times[:-1]))):
        some = ", ".join(f"case {names[codes[i]]!s} at time {times[i]!s}" for i in twice[:5])
        raise InputError(f"A case may have one row per time; {len(twice) + 1} came for {some}. Drop or average them.")
    values = np.stack([_numbers(columns[c], c) for c in used])[:, order]  # (C, rows)
    cases = np.split(values, np.flatnonzero(np.diff(codes)) + 1, axis=1)
    y, groups = (
        None if c is None else check_labels(_constant(columns[c], c, codes, order, names), len(cases), what)
        for c, what in ((label, "y"), (group, "group"))
    )
    if channels is None:
        _refuse_names(values, used, codes)
    unused = [c for c in rest if c not in used] + list(ignore)
    said = [
        *(f"{role}: {c}" for role, c in roles.items()),
        f"channels: {', '.join(used)}",
        *([f"not used: {', '.join(unused)}"] if unused else []),
        f"{len(cases)} cases",
        f"first case: {names[0]}, {cases[0].shape[1]} time steps",
        *(f"{c} = {' '.join(f'{v:g}' for v in row[:3])} ..." for c, row in zip(used[:3], cases[0], strict=False)),
        *(f"{role} {values[0]}" for role, values in (("label", y), ("group", groups)) if values is not None),
    ]
    return cases, y, groups, "; ".join(said), tuple(used)


def table_columns(table: Any) -> dict[str, Array]:
    """Return the columns of a pandas DataFrame, a pyarrow Table or a dict by name, all equally long."""
    if isinstance(table, Mapping):
        pairs = [(str(name), _column(values)) for name, values in table.items()]
    elif hasattr(table, "column_names"):  # pyarrow
        pairs = [(name, _column(table.column(i))) for i, name in enumerate(table.column_names)]
    elif hasattr(table, "iloc") and hasattr(table, "columns"):  # pandas
        pairs = [(str(name), _column(table.iloc[:, i])) for i, name in enumerate(table.columns)]
    else:
        raise InputError(
            f"A table must be a pandas DataFrame, a pyarrow Table or a dict of columns; got {type(table).__name__}."
        )
    columns = dict(pairs)
    if len(columns) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Every column must have a name of its own; {', '.join(twice)} came more than once.")
    if len({c.shape for c in columns.values()}) > 1 or any(c.ndim != 1 for c in columns.values()):
        raise InputError(f"The columns must be 1-D and equally long; got { {k: v.shape for k, v in columns.items()} }.")
    return columns


def _column(values: Any) -> Array:
    """Return the values of a column as they are; what may not become another type stays an object."""
    if isinstance(values, list | tuple) and len({type(value) for value in values}) > 1:
        array = np.empty(len(values), dtype=object)  # numpy makes 1 beside text "1", and 2**64 - 1 beside -1 a float
        array[:] = values
        return array
    if hasattr(values, "null_count"):  # pyarrow; a dictionary's nulls come out of it as some other value
        if hasattr(values.type, "index_type"):
            values = values.cast(values.type.value_type)
        if values.null_count and str(values.type).startswith(("int", "uint")):
            return _column(values.to_pylist())
        return np.asarray(values.to_numpy())
    if getattr(getattr(values, "dtype", None), "kind", "") in "iu" and hasattr(values, "isna") and values.isna().any():
        return np.asarray(values.to_numpy(dtype=object, na_value=None))  # pandas' Int64 and its kin
    return to_array(values)


def require_columns(columns: Mapping[str, Array], wanted: Sequence[str]) -> None:
    """Refuse names that no column has."""
    if lost := [w for w in wanted if w not in columns]:
        raise InputError(" ".join(f"The table has no column {w!r}. {did_you_mean(w, columns)}" for w in lost))


def lost_values(column: Array) -> NDArray[np.bool_]:
    """Tell where a column has no value: NaN, None, pandas.NA, NaT or an empty text."""
    lost: NDArray[np.bool_] = np.asarray(pd.isna(column))
    if column.dtype.kind in "US":
        lost |= column == column.dtype.type()
    if column.dtype == object:
        lost |= np.array([isinstance(value, str) and not value for value in column], dtype=bool)
    return lost


def _is_channel(column: Array, name: str) -> bool:
    """Tell whether a column that nobody named holds numbers; a mix of numbers and text is refused."""
    if column.dtype.kind not in "OUS":
        return column.dtype.kind in "biuf"
    known = column[~lost_values(column)]
    if all(isinstance(value, Number) for value in known):
        return len(known) > 0
    numbers = [is_number(str(value)) for value in known]
    if not any(numbers):
        return False
    other = next((str(value) for value, number in zip(known, numbers, strict=True) if not number), None)
    raise InputError(
        f"Column {name!r} holds numbers "
        + ("as text. " if other is None else f"and text ({other!r} in row {[str(v) for v in column].index(other)}). ")
        + "Repair it, or say what it is: channels=, label=, group= or ignore=."
    )


def _numbers(column: Array, name: str) -> Array:
    lost = lost_values(column)
    wrong = next((v for v in column[~lost] if not isinstance(v, Number)), None) if column.dtype.kind in "OUS" else None
    if wrong is not None or column.dtype.kind not in "biufOUS":
        came = f"dtype {column.dtype}" if wrong is None else repr(str(wrong))
        raise InputError(f"Channel {name!r} must hold numbers; got {came}. Choose others with channels= (--channels).")
    return np.where(lost, np.nan, column).astype(np.float64)


def _refuse_names(values: Array, channels: Sequence[str], codes: Array) -> None:
    """Refuse columns that nobody named and that tell cases apart but never change within one: ids or labels."""
    within = np.diff(codes) == 0
    still = (values[:, 1:] == values[:, :-1])[:, within].all(axis=1) & (values != values[:, :1]).any(axis=1)
    if within.any() and still.any():
        constant = [c for c, is_still in zip(channels, still, strict=True) if is_still]
        raise InputError(
            f"These columns never change within a case, as ids and labels do: {', '.join(constant)}. Say what each is: "
            "label=, group=, ignore= or, if it is a channel, channels=."
        )


def _times(column: Array, name: str) -> Array:
    _refuse_lost(lost_values(column), name)
    if column.dtype.kind == "O" and all(isinstance(v, Number) for v in column):
        column = np.array(column.tolist())
    if column.dtype.kind in "OUS":
        try:
            column = column.astype("datetime64[us]")
        except (TypeError, ValueError) as error:
            raise InputError(f"Column {name!r} must hold numbers or ISO dates to sort by; {error}.") from error
    if column.dtype.kind not in "biufMm":
        raise InputError(f"Column {name!r} must hold numbers or dates to sort by; got dtype {column.dtype}.")
    _refuse_lost(np.isnat(column) if column.dtype.kind in "Mm" else ~np.isfinite(column), name)
    return column


def _refuse_lost(lost: NDArray[np.bool_], name: str) -> None:
    if lost.any():
        which = name_cases(np.flatnonzero(lost), "row", "rows")
        raise InputError(f"Column {name!r} has no value in {which}. Drop them.")


def _numbered(column: Array, name: str) -> NDArray[np.intp]:
    """Number the values in order of first appearance; -1 for no value."""
    numbers = np.full(len(column), -1, dtype=np.intp)
    present = ~lost_values(column)
    try:
        numbers[present] = pd.factorize(column[present])[0]
    except TypeError as error:
        raise InputError(f"Column {name!r} must hold text or numbers; {error}.") from error
    return numbers


def _constant(column: Array, name: str, codes: Array, order: Array, names: Array) -> Array:
    """Return the one value of each case."""
    numbers = _numbered(column, name)[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    differs = numbers != numbers[starts][codes]
    if differs.any():
        bad = names[np.unique(codes[differs])]
        raise InputError(
            f"Column {name!r} must have one value per case; it changes within case(s) {', '.join(map(str, bad[:5]))}. "
            "Cut the recording into windows with Windows.from_array(..., window=...) instead."
        )
    return column[order[starts]]
