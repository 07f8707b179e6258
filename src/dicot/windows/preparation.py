"""How raw input becomes cases, decided at fit and repeated at transform."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dicot.errors import InputError
from dicot.windows.collection import Windows, check_collection, split_by_length, warn_of_layout
from dicot.windows.policies import Array, Scale

# The length a case of length `own` gets after a fit on length `fitted`: it depends on that case alone.
LENGTHS: dict[str, Callable[[int, int], int]] = {"pad": max, "crop": min, "resample": lambda own, fitted: fitted}


@dataclass(frozen=True, eq=False)
class Preparation:
    """The policies, and what was learned from the training set: its shape and, for scale="dataset", its statistics."""

    layout: str = "nct"
    unequal: str = "error"
    missing: str = "error"
    scale: str | None = None
    n_channels: int = 0
    n_times: int = 0
    statistics: Scale | None = None
    fingerprint: str = ""  # of the training cases before scaling

    def fit(self, X: Any, y: Any = None) -> tuple["Preparation", Windows]:
        """Check the training set; the returned preparation remembers it."""
        plain = check_collection(X, y, layout=self.layout, unequal=self.unequal, missing=self.missing)
        if not isinstance(X, Windows):
            warn_of_layout(plain.n_channels, plain.n_times, self.layout)
        statistics = Scale.fit(plain.x) if self.scale == "dataset" else None
        fitted = replace(
            self,
            n_channels=plain.n_channels,
            n_times=plain.n_times,
            statistics=statistics,
            fingerprint=plain.fingerprint(),
        )
        return fitted, check_collection(plain, scale=fitted._scale)

    def fit_another(self, X: Any, y: Any = None) -> tuple["Preparation", Windows]:
        """Prepare a second training set as the first: its statistics stay, and so does the length of "resample"."""
        length = self.n_times if self.unequal == "resample" else None
        plain = check_collection(X, y, layout=self.layout, unequal=self.unequal, missing=self.missing, length=length)
        self._check_channels(plain)
        fitted = replace(self, n_times=plain.n_times, fingerprint=plain.fingerprint())
        return fitted, check_collection(plain, scale=self._scale)

    def apply(self, X: Any) -> Iterator[tuple[Array, Windows]]:
        """Positions and cases, one group per length, so that no case depends on its company."""
        if self.unequal == "error":
            whole = check_collection(X, layout=self.layout, missing=self.missing, scale=self._scale)
            groups = [(np.arange(len(whole)), whole)]
        else:
            groups = [(index, self._conform(cases)) for index, cases in split_by_length(X, self.layout)]
        for index, windows in groups:
            self._check_channels(windows)
            yield index, windows

    def _check_channels(self, windows: Windows) -> None:
        if windows.n_channels != self.n_channels:
            raise InputError(
                f"X has {windows.n_channels} channel(s); this model was fitted on {self.n_channels}. "
                "Pass the same channels in the same order."
            )

    def _conform(self, cases: Array) -> Windows:
        length = LENGTHS[self.unequal](cases.shape[2], self.n_times)
        return check_collection(cases, unequal=self.unequal, missing=self.missing, scale=self._scale, length=length)

    @property
    def _scale(self) -> str | Scale | None:
        return self.statistics if self.scale == "dataset" else self.scale

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a config file."""
        statistics = self.statistics and {
            "mean": self.statistics.mean.tolist(),
            "std": self.statistics.std.tolist(),
        }
        return {**vars(self), "statistics": statistics}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Preparation":
        """The inverse of `to_dict`."""
        found = data["statistics"]
        statistics = found and Scale(np.array(found["mean"]), np.array(found["std"]))
        return cls(**{**data, "statistics": statistics})
