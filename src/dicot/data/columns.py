"""Labels or groups that come in parts, joined: as text where some part has text."""

from collections.abc import Sequence

import numpy as np

from dicot.data.collection import labelled
from dicot.data.policies import Array
from dicot.data.texts import as_text, join_values


def join_column(parts: Sequence[Array | None], counts: Sequence[int]) -> Array | None:
    """Join a column: as text where some part has text, and unknown where a part knows none; None where all do."""
    if all(part is None for part in parts):
        return None
    arrays = [np.full(n, np.nan) if part is None else part for part, n in zip(parts, counts, strict=True)]
    if any(array.dtype.kind == "U" and labelled(array).any() for array in arrays):
        arrays = [as_text(array) for array in arrays]
    else:
        arrays = [np.full(len(array), np.nan) if array.dtype.kind == "U" else array for array in arrays]
    return join_values(arrays)
