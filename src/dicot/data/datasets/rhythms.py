"""Heart rhythms: from marks where a rhythm begins to a label for every time step."""

from collections.abc import Mapping, Sequence

import numpy as np

from dicot.core.errors import InputError
from dicot.data.policies import Array

RHYTHMS = ("AFIB", "AFL", "J", "N")  # atrial fibrillation, atrial flutter, junctional rhythm, all others
CODES: Mapping[str, int] = {f"({name}": code for code, name in enumerate(RHYTHMS)}
OTHER = -1


def rhythm_per_step(
    samples: Sequence[int] | Array, names: Sequence[str] | Array, n_times: int, codes: Mapping[str, int] = CODES
) -> tuple[int, Array]:
    """Return (first, labels): where the first rhythm begins, and the code of each time step from there to n_times.

    A rhythm lasts until the next one begins; one without a code is OTHER.
    """
    begins = np.asarray(samples, dtype=np.int64)
    if not len(begins) or not 0 <= begins[0] < n_times or (np.diff(begins) < 0).any():
        raise InputError("Marks of rhythms must lie inside the recording, in the order of time, and be one at least.")
    lasting = np.diff(np.minimum(np.append(begins, n_times), n_times))
    rhythms = np.array([codes.get(str(name), OTHER) for name in names], dtype=np.int8)
    return int(begins[0]), np.repeat(rhythms, lasting)


def majority(labels: Array, starts: Array, length: int) -> Array:
    """Return the most frequent label of each window, OTHER included; of several the smallest."""
    counts = [np.bincount(labels[at : at + length] - OTHER) for at in starts]
    return np.array([count.argmax() + OTHER for count in counts], dtype=np.int64)
