"""How raw input becomes cases, decided at fit and repeated at transform."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dicot.core.errors import InputError, PrecisionWarning, WindowLengthWarning
from dicot.data.cases import to_cases
from dicot.data.collection import Windows, check_labels, segments_under, warn_of_layout
from dicot.data.conversion import Conversion, check_policies, convert, settle, survey
from dicot.data.naming import listed
from dicot.data.policies import Array, Scale
from dicot.data.stored import CaseStore, OrderedStore, StoredWindows, TrainingCases
from dicot.data.timestamps import SAME_RATE

# The length a case of length `own` gets after a fit on length `fitted`: it depends on that case alone.
LENGTHS: dict[str, Callable[[int, int], int]] = {"pad": max, "crop": min, "resample": lambda own, fitted: fitted}


@dataclass(frozen=True, eq=False)
class Preparation:
    """The policies, and what was learned from the training set: its shape and, for scale="dataset", its statistics.

    Of Windows that know them, the names of the channels and the rate are kept too, and later Windows must fit to them.
    """

    layout: str = "nct"
    unequal: str = "error"
    missing: str = "error"
    scale: str | None = None
    n_channels: int = 0
    n_times: int = 0
    statistics: Scale | None = None
    fingerprint: str = ""  # of the training cases before scaling
    channels: tuple[str, ...] | None = None  # names
    rate: float | None = None  # time steps per second

    def fit(self, X: Any, y: Any = None) -> tuple["Preparation", TrainingCases]:
        """Check the training set; the returned preparation remembers it."""
        cases = self._convert(X, self.scale)
        if not isinstance(X, Windows | CaseStore):
            warn_of_layout(cases.shape[1], cases.length, self.layout)
        if self.scale is None and cases.dtype is np.float64:
            warnings.warn(
                "The values of a channel differ by less than float32 can tell apart at their size. "
                'Set scale="dataset", or subtract what they have in common.',
                PrecisionWarning,
                stacklevel=4,  # of whoever called an estimator's fit
            )
        fitted = replace(
            self,
            n_channels=cases.shape[1],
            n_times=cases.length,
            statistics=cases.scale if isinstance(cases.scale, Scale) else None,
            fingerprint=_fingerprint(cases, X),
            channels=X.channels if isinstance(X, Windows | CaseStore) else None,
            rate=X.rate if isinstance(X, Windows | CaseStore) else None,
        )
        return fitted, _training_set(cases, X, y)

    def fit_another(self, X: Any, y: Any = None) -> tuple["Preparation", TrainingCases]:
        """Prepare a second training set as the first: its statistics stay, and so does the length of "resample"."""
        X = self._as_fitted(X)
        cases = self._convert(X, self._scale, length=self.n_times if self.unequal == "resample" else None)
        self._check_channels(cases)
        fitted = replace(self, n_times=cases.length, fingerprint=_fingerprint(cases, X))
        return fitted, _training_set(cases, X, y)

    def apply(self, X: Any) -> Iterator[tuple[Array, Conversion]]:
        """Yield positions and cases, one group per length, so that no case depends on its company."""
        X = self._as_fitted(X)
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
        if isinstance(X, Windows | CaseStore):
            return settle(self._looked_at(X, scale), self.unequal, length)
        policies = {"unequal": self.unequal, "missing": self.missing}
        return convert(X, layout=self.layout, scale=scale, length=length, **policies)

    def _looked_at(self, X: Any, scale: str | Scale | None) -> Conversion:
        """Survey the cases; those of Windows and of a store were looked at when these were made."""
        if not isinstance(X, Windows | CaseStore):
            return survey(to_cases(X, self.layout), self.missing, scale)
        check_policies(self.missing, scale)
        if not (n := len(X)):
            raise InputError("X has 0 sample(s) (empty Windows) while a minimum of 1 is required: pass one.")
        # One value for all: of the cases of a store there may be very many.
        lengths, gaps = np.broadcast_to(np.intp(X.n_times), n), np.broadcast_to(np.False_, n)
        x = X.x if isinstance(X, Windows) else X
        return Conversion(x, lengths, gaps, np.arange(n), X.n_times, missing=self.missing, scale=scale)

    def _as_fitted(self, X: Any) -> Any:
        """Return X, Windows with their channels in the order of the fit; refuse other channels and another rate.

        Another length than that of the fit is possible and seldom meant where both know how many time steps a second
        has, so it is warned of.
        """
        if not isinstance(X, Windows | CaseStore):
            return X
        if self.rate is not None and X.rate is not None and abs(X.rate / self.rate - 1) > SAME_RATE:
            raise InputError(
                f"X has {X.rate:g} time steps per second; this model was fitted on {self.rate:g}. Resample the "
                f"recordings with rate={self.rate:g} (--rate {self.rate:g}), as windows_from does."
            )
        if self.unequal == "error" and self.rate and X.rate and X.n_times != self.n_times:
            warnings.warn(
                f"Windows have {X.n_times} time steps; this model was fitted on {self.n_times}, and vectors of two "
                f"lengths are hard to compare. Cut windows of {self.n_times / self.rate:g} s.",
                WindowLengthWarning,
                stacklevel=4,
            )
        order = None if X.channels is None else self.channel_order(X.channels)
        if order is None:
            return X
        if isinstance(X, Windows):
            return replace(X, x=X.x[:, order], channels=self.channels)
        return OrderedStore(X, order)

    def channel_order(self, names: Sequence[str]) -> list[int] | None:
        """Return the places of the fit's channels among these names, None where they are the same; refuse others."""
        if self.channels is None or tuple(names) == self.channels:
            return None
        if sorted(names) != sorted(self.channels):
            lost = [name for name in self.channels if name not in names]
            raise InputError(
                f"X has the channels {', '.join(names)}; this model was fitted on {', '.join(self.channels)}. "
                f"{f'It lacks {listed(lost)}. ' if lost else ''}Choose those of the model with channels= (--channels)."
            )
        return [list(names).index(name) for name in self.channels]

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
        """Return plain data for a config file."""
        statistics = self.statistics and {
            "mean": self.statistics.mean.tolist(),
            "std": self.statistics.std.tolist(),
        }
        return {**vars(self), "statistics": statistics}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Preparation":
        """Make a preparation of what `to_dict` gave."""
        saved = data["statistics"]
        statistics = saved and Scale(np.array(saved["mean"]), np.array(saved["std"]))
        names = data.get("channels")  # models that were saved before channels had names have no entry
        return cls(**{**data, "statistics": statistics, "channels": names and tuple(names)})


def _fingerprint(cases: Conversion, X: Any) -> str:
    """Of the training cases before scaling; where windows are drawn, also of what they are drawn from."""
    if isinstance(X, CaseStore) or (isinstance(X, Windows) and X.segments is not None):
        return str(X.fingerprint())
    return replace(cases, scale=None).fingerprint()


def _training_set(cases: Conversion, X: Any, y: Any) -> TrainingCases:
    """Return what a method is trained on, in float32; labels and name of Windows stay theirs."""
    if isinstance(X, CaseStore):
        return StoredWindows(X, cases, y)
    given = X if isinstance(X, Windows) else None
    segments = None if given is None else segments_under(given, cases.scale)
    y = given.y if y is None and given is not None else y
    labels = None if y is None else check_labels(y, len(cases), "y")
    # Training copies what it may not write to: made here, piece by piece, it is the only copy.
    x = replace(cases, dtype=np.float32).whole(own=True)
    return Windows(x, labels, name=given.name if given else "", segments=segments)
