"""Rows of one time stamp, as phones write them that deliver samples in bursts: refused, averaged, or the first kept."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import SettingNeededError
from dicot.core.settings import COLUMN, how_to_set
from dicot.data.cases import Array
from dicot.data.timestamps import Seconds, Where, row_name


def burst_starts(times: Seconds) -> NDArray[np.intp]:
    """Return the places in sorted time stamps (T,) at which another one begins than before."""
    return np.flatnonzero(np.diff(times, prepend=-np.inf) != 0)


def refuse_bursts(starts: NDArray[np.intp], rows: Array, where: Where = row_name) -> None:
    """Raise the error for time stamps that are not all different: `rows` (T,) are the rows in the order of time."""
    longest = int(np.diff(starts, append=len(rows)).max())
    n_shared = len(rows) - len(starts)
    place = _first_repeated(starts, len(rows))
    raise SettingNeededError(
        f"{n_shared:,} of {len(rows):,} rows share their time stamp with the row before, in bursts of up to "
        f"{longest:,}; the first is {where(int(rows[place]))}. Average each burst by --duplicates mean, or keep its "
        "first row by --duplicates first. If several recordings share the file, name the column that tells them "
        f'apart: {how_to_set("group", COLUMN)}, of a DataFrame recording="{COLUMN}".',
        duplicates="mean",
    )


def _first_repeated(starts: NDArray[np.intp], n_rows: int) -> int:
    """Return the first place whose time stamp is that of the place before."""
    is_start = np.zeros(n_rows, dtype=bool)
    is_start[starts] = True
    return int(np.argmin(is_start))


def merge_values(values: Array, starts: NDArray[np.intp], how: str) -> Array:
    """Return one row of values (C, T) for each burst: its first, or the mean of what is not missing in it."""
    if how == "first":
        return np.ascontiguousarray(values[:, starts])
    is_missing = np.isnan(values)
    exact = np.where(is_missing, 0.0, values).astype(np.float64)
    sums = np.add.reduceat(exact, starts, axis=1)
    counts = np.add.reduceat((~is_missing).astype(np.int64), starts, axis=1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means.astype(values.dtype)


def merge_labels(label: Any, starts: NDArray[np.intp]) -> Any:
    """Return the label of the first row of each burst; one label of a whole recording stays."""
    return label[starts] if isinstance(label, np.ndarray) else label
