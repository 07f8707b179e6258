"""How raw input becomes cases, decided at fit and repeated at transform."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dicot.data.cases import to_cases
from dicot.data.collection import Windows, check_labels, warn_of_layout
from dicot.data.conversion import Conversion, check_policies, convert, survey
from dicot.data.policies import Array, Scale, target_length
from dicot.errors import InputError, PrecisionWarning

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
        found = self._convert(X, self.scale)
        if not isinstance(X, Windows):
            warn_of_layout(found.shape[1], found.length, self.layout)
        if self.scale is None and found.dtype is np.float64:
            warnings.warn(
                "The values of a channel differ by less than float32 can tell apart at their size. "
                'Set scale="dataset", or subtract what they have in common.',
                PrecisionWarning,
                stacklevel=4,  # of whoever called an estimator's fit
            )
        fitted = replace(
            self,
            n_channels=found.shape[1],
            n_times=found.length,
            statistics=found.scale if isinstance(found.scale, Scale) else None,
            fingerprint=replace(found, scale=None).fingerprint(),
        )
        return fitted, _training_set(found, X, y)

    def fit_another(self, X: Any, y: Any = None) -> tuple["Preparation", Windows]:
        """Prepare a second training set as the first: its statistics stay, and so does the length of "resample"."""
        found = self._convert(X, self._scale, length=self.n_times if self.unequal == "resample" else None)
        self._check_channels(found)
        fitted = replace(self, n_times=found.length, fingerprint=replace(found, scale=None).fingerprint())
        return fitted, _training_set(found, X, y)

    def apply(self, X: Any) -> Iterator[tuple[Array, Conversion]]:
        """Positions and cases, one group per length, so that no case depends on its company."""
        if self.unequal == "error":
            groups = [self._convert(X, self._scale)]
        else:
            cases = self._looked_at(X, self._scale)
            groups = [
                replace(
                    cases,
                    index=np.flatnonzero(cases.lengths == own),
                    length=LENGTHS[self.unequal](int(own), self.n_times),
                    unequal=self.unequal,
                )
                for own in np.unique(cases.lengths)
            ]
        for group in groups:
            self._check_channels(group)
            yield group.index, replace(group, dtype=np.float32)

    def _convert(self, X: Any, scale: str | Scale | None, length: int | None = None) -> Conversion:
        if isinstance(X, Windows):
            cases = self._looked_at(X, scale)
            cases = replace(cases, unequal=self.unequal, length=target_length(cases.lengths, self.unequal, length))
            # Windows hold float64 only where float32 would swallow all differences.
            cases = replace(cases, dtype=np.float64 if X.x.dtype == np.float64 else np.float32)
            return replace(cases, scale=Scale.fit(replace(cases, scale=None))) if scale == "dataset" else cases
        policies = {"unequal": self.unequal, "missing": self.missing}
        return convert(X, layout=self.layout, scale=scale, length=length, **policies)

    def _looked_at(self, X: Any, scale: str | Scale | None) -> Conversion:
        """Survey the cases; those of Windows were looked at when the Windows were made."""
        if not isinstance(X, Windows):
            return survey(to_cases(X, self.layout), self.missing, scale)
        check_policies(self.missing, scale)
        if not (n := len(X)):
            raise InputError("X has 0 sample(s) (empty Windows) while a minimum of 1 is required: pass one.")
        lengths, gaps = np.full(n, X.n_times), np.zeros(n, bool)
        return Conversion(X.x, lengths, gaps, np.arange(n), X.n_times, missing=self.missing, scale=scale)

    def _check_channels(self, cases: Conversion) -> None:
        if cases.shape[1] != self.n_channels:
            raise InputError(
                f"X has {cases.shape[1]} channel(s); this model was fitted on {self.n_channels}. "
                "Pass the same channels in the same order."
            )

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


def _training_set(found: Conversion, X: Any, y: Any) -> Windows:
    """What a method is trained on, in float32; labels and name of Windows stay theirs."""
    given = X if isinstance(X, Windows) else None
    y = given.y if y is None and given is not None else y
    labels = None if y is None else check_labels(y, len(found), "y")
    # Training copies what it may not write to: made here, piece by piece, it is the only copy.
    x = replace(found, dtype=np.float32).whole(own=True)
    return Windows(x, labels, name=given.name if given else "")
