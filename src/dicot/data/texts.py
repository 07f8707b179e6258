"""Text as numpy holds it, where every text of an array takes the room of the longest."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dicot.errors import InputError, quoted

# What takes less is harmless; above it one long text must not make many short ones a hundred times as wide.
_SMALL = 1 << 26
_MOST_TIMES = 100
_CHARACTER = np.dtype("U1").itemsize


def text_array(texts: Sequence[str]) -> NDArray[np.str_]:
    """Make an array of texts, unless one of them is so long that all the others would fill the memory."""
    lengths = [len(text) for text in texts]
    longest = max(lengths, default=0)
    if _CHARACTER * longest * len(texts) > max(_SMALL, _MOST_TIMES * _CHARACTER * sum(lengths)):
        row = lengths.index(longest)
        raise InputError(
            f"A text of {longest:,} characters ({quoted(texts[row])}, row {row}) among {len(texts):,} short ones would "
            f"take {_CHARACTER * longest * len(texts):,} bytes. Shorten it, or leave its column out."
        )
    return np.array(texts, dtype=np.str_)
