"""Long tables: one row per case and time step, one column per channel."""

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, brief, did_you_mean
from dicot.data.cases import to_array
from dicot.data.labels import check_labels
from dicot.data.policies import Array, name_cases
from dicot.data.texts import is_number


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
            "A long table needs both case= and time= (--case, --time), the columns that name the case and order it. "
            f"It has the columns {', '.join(columns)}."
        )
    roles = {"case": case, "time": time, **{k: c for k, c in (("label", label), ("group", group)) if c is not None}}
    require_columns(columns, [*roles.values(), *(channels or ()), *ignore])
    if torn := [c for c in ignore if c in (*roles.values(), *(channels or ()))]:
        raise InputError(f"Column {torn[0]!r} cannot be used and ignored. Leave it out of ignore (--ignore).")
    rest = [c for c in columns if c not in roles.values() and c not in ignore]
    chosen = channels is not None
    channels = list(channels) if channels is not None else [c for c in rest if _is_channel(columns[c], c)]
    if not channels:
        raise InputError(
            f"The table has no channel: no column of numbers beside {case!r} and {time!r}. Name channels= (--channels)."
        )
    if not len(columns[case]):
        raise InputError("The table has 0 rows. Pass at least one.")
    codes = _numbered(columns[case], case)
    _refuse_lost(codes < 0, case)
    names = columns[case][np.unique(codes, return_index=True)[1]]
    times = _times(columns[time], time)
    order = np.lexsort((times, codes))
    codes, times = codes[order], times[order]
    _refuse_duplicates(codes, times, names)
    values = np.stack([_numbers(columns[c], c) for c in channels])[:, order]  # (C, rows)
    cases = np.split(values, np.flatnonzero(np.diff(codes)) + 1, axis=1)
    y, groups = (
        None if c is None else check_labels(_constant(columns[c], c, codes, order, names), len(cases), what)
        for c, what in ((label, "y"), (group, "group"))
    )
    if not chosen:
        _refuse_names(values, channels, codes)
    unused = [c for c in rest if c not in channels] + list(ignore)
    said = [
        *(f"{role}: {c}" for role, c in roles.items()),
        f"channels: {', '.join(channels)}",
        *([f"not used: {', '.join(unused)}"] if unused else []),
        f"{len(cases)} cases",
        f"first case: {names[0]}, {cases[0].shape[1]} time steps",
        *(f"{c} = {_brief(v)}" for c, v in zip(channels[:3], cases[0], strict=False)),
        *(f"{role} {values[0]}" for role, values in (("label", y), ("group", groups)) if values is not None),
    ]
    return cases, y, groups, "; ".join(said), tuple(channels)


def _brief(values: Array) -> str:
    shown = [f"{v:g}" for v in values[:3]]
    return " ".join(shown if len(values) < 4 else [*shown, "..."])


def table_columns(table: Any) -> dict[str, Array]:
    """Return the columns of a pandas DataFrame, a pyarrow Table or a dict by name, all equally long."""
    if isinstance(table, Mapping):
        pairs = [(str(k), _exact(v)) for k, v in table.items()]
    elif hasattr(table, "column_names"):  # pyarrow
        pairs = [(c, _from_arrow(table.column(i))) for i, c in enumerate(table.column_names)]
    elif hasattr(table, "iloc") and hasattr(table, "columns"):  # pandas
        pairs = [(str(c), _from_pandas(table.iloc[:, i])) for i, c in enumerate(table.columns)]
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


def _exact(values: Any) -> Array:
    """Return a sequence's own values; numpy alone makes 1 beside text "1", and 2**64 - 1 beside -1 a float."""
    array = to_array(values)
    if isinstance(values, list | tuple) and array.ndim == 1 and array.dtype.kind in "Uf":
        kind = str if array.dtype.kind == "U" else float | np.floating
        if not all(isinstance(v, kind) for v in values):
            return _objects(values)
    return array


def _objects(values: Sequence[Any]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _from_arrow(column: Any) -> Array:
    if hasattr(column.type, "value_type") and hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)  # a dictionary's nulls come out of to_numpy as some other value
    # Whole numbers beside nulls would become floats, which cannot tell long ids apart.
    if column.null_count and str(column.type).startswith(("int", "uint")):
        return _objects(column.to_pylist())
    try:
        return np.asarray(column.to_numpy())
    except Exception as error:  # of text that is not UTF-8 pyarrow raises its most general one
        raise InputError(
            f"A column of {column.type} cannot be read ({brief(error)}). Write the table again."
        ) from error


def _from_pandas(column: Any) -> Array:
    if getattr(column.dtype, "kind", "") in "iu" and column.isna().any():  # Int64 and its kin
        return np.asarray(column.to_numpy(dtype=object, na_value=None))
    return to_array(column)


def require_columns(columns: Mapping[str, Array], wanted: Sequence[str]) -> None:
    """Refuse names that no column has."""
    lost = [w for w in wanted if w not in columns]
    if lost:
        raise InputError(" ".join(f"The table has no column {w!r}. {did_you_mean(w, columns)}" for w in lost))


def lost_values(column: Array) -> NDArray[np.bool_]:
    """Tell where a column has no value: NaN, None, pandas.NA, NaT or an empty text."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind in "US":
        return np.asarray(column == column.dtype.type())
    if column.dtype != object:
        return np.zeros(len(column), dtype=bool)
    return np.array([_is_nothing(v) for v in column], dtype=bool)


def _is_nothing(value: Any) -> bool:
    if isinstance(value, Number):
        return bool(value != value)
    # pandas.NA is neither equal nor unequal to itself, so it is told by its name.
    return value is None or (isinstance(value, str) and not value) or type(value).__name__ in ("NAType", "NaTType")


def _is_channel(column: Array, name: str) -> bool:
    """Tell whether a column that nobody named holds numbers; a mix of numbers and text is refused."""
    if column.dtype.kind not in "OUS":
        return column.dtype.kind in "biuf"
    values = column[~lost_values(column)]
    if all(isinstance(v, Number) for v in values):
        return len(values) > 0
    kinds = {text: is_number(text) for text in map(str, values)}
    number = next((text for text, numeric in kinds.items() if numeric), None)
    if number is None:
        return False
    other = next((text for text, numeric in kinds.items() if not numeric), None)
    raise InputError(
        f"Column {name!r} holds numbers ({number!r}) "
        + ("as text. " if other is None else f"and text ({other!r} in row {_row(column, other)}). ")
        + "Repair it, or say what it is: channels=, label=, group= or ignore= (--channels, --label, --group, --ignore)."
    )


def _row(column: Array, text: str) -> int:
    return next(i for i, v in enumerate(column) if str(v) == text)


def _numbers(column: Array, name: str) -> Array:
    lost = lost_values(column)
    came = "" if column.dtype.kind in "biufOUS" else f"dtype {column.dtype}"
    if column.dtype.kind in "OUS":
        wrong = next((i for i in np.flatnonzero(~lost) if not isinstance(column[i], Number)), None)
        came = "" if wrong is None else f"{str(column[wrong])!r} in row {wrong}"
    if came:
        raise InputError(f"Channel {name!r} must hold numbers; got {came}. Choose others with channels= (--channels).")
    try:
        return np.where(lost, np.nan, column).astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"Channel {name!r} must hold numbers; {error}. Choose others with channels=.") from error


def _refuse_names(values: Array, channels: Sequence[str], codes: Array) -> None:
    """Refuse columns that nobody named and that tell cases apart but never change within one: ids or labels."""
    within = np.diff(codes) == 0
    still = (values[:, 1:] == values[:, :-1])[:, within].all(axis=1) & (values != values[:, :1]).any(axis=1)
    if within.any() and still.any():
        constant = [c for c, is_still in zip(channels, still, strict=True) if is_still]
        raise InputError(
            f"These columns never change within a case, as ids and labels do: {', '.join(constant)}. Say what each is: "
            "label=, group=, ignore= or, if it is a channel, channels= (--label, --group, --ignore, --channels)."
        )


def _times(column: Array, name: str) -> Array:
    lost = lost_values(column)
    _refuse_lost(lost, name)
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
    present = ~lost_values(column)
    numbers = np.full(len(column), -1, dtype=np.intp)
    if column.dtype == object:
        seen: dict[Any, int] = {}
        try:
            numbers[present] = [seen.setdefault(v, len(seen)) for v in column[present]]
        except TypeError as error:
            raise InputError(f"Column {name!r} must hold text or numbers; {error}.") from error
    else:
        _, first, codes = np.unique(column[present], return_index=True, return_inverse=True)
        numbers[present] = np.argsort(np.argsort(first))[codes]
    return numbers


def _refuse_duplicates(codes: Array, times: Array, names: Array) -> None:
    twice = np.flatnonzero((np.diff(codes) == 0) & (times[1:] == times[:-1]))
    if twice.size:
        some = ", ".join(f"case {names[codes[i]]!s} at time {times[i]!s}" for i in twice[:5])
        more = f" and {twice.size - 5} more" if twice.size > 5 else ""
        raise InputError(f"A case may have one row per time; several came for {some}{more}. Drop or average them.")


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
