"""What every solver asks of its arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.errors import InputError


def check_finite(what: str, values: NDArray[Any]) -> None:
    """Refuse NaN and infinity, which would come out as NaN everywhere."""
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise InputError(
            f"{what} must be finite; {len(bad)} of {len(values)} rows hold NaN or infinity, the first is row {bad[0]}."
        )
