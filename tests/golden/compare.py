"""What a checker reports: the largest error of a file, in units of its tolerance."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

LOSS_RELATIVE = 1e-9
GRADIENT_ABSOLUTE = 1e-8

Vectors = Mapping[str, np.ndarray]


class Comparison:
    """Collects comparisons of one file."""

    def __init__(self) -> None:
        self.count = 0
        self.largest_error = 0.0
        self.failures: list[str] = []

    def close(self, what: str, ours: Any, theirs: Any, *, absolute: float = 0.0, relative: float = 0.0) -> None:
        ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
        self.count += 1
        if ours.shape != theirs.shape:
            self.failures.append(f"{what}: shape {ours.shape}, expected {theirs.shape}")
            return
        error = np.abs(ours - theirs)
        largest = float(error.max(initial=0.0))
        if not (error <= absolute + relative * np.abs(theirs)).all():  # written so that NaN fails
            self.failures.append(f"{what}: error {largest:.3g}")
        self.largest_error = max(self.largest_error, largest)

    def equal(self, what: str, ours: Any, theirs: Any) -> None:
        self.count += 1
        if not np.array_equal(np.asarray(ours), np.asarray(theirs)):
            self.failures.append(f"{what}: not equal")
            self.largest_error = float("inf")


def cases(vectors: Vectors, prefix: str = "c", count: str = "n_cases") -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """The arrays `c<i>_<name>` of each case i as {name: array}."""
    for i in range(int(vectors[count])):
        start = f"{prefix}{i}_"
        yield f"{prefix}{i}", {key.removeprefix(start): vectors[key] for key in vectors if key.startswith(start)}
