"""How raw input becomes cases, decided at fit and repeated at transform."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dicot.core.errors import DicotWarning, InputError, WindowLengthWarning, listed
from dicot.data.cases import Array, Cases, Policies, Scale
from dicot.data.collection import Windows, segments_under, warn_of_layout
from dicot.data.conversion import Conversion, convert, look
from dicot.data.labels import check_labels
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

    def fit(self, X: Any, y: Any = None) -> tuple["Preparation", Cases]:
        """Check the training set; the returned preparation remembers it."""
        cases = self._convert(X, self.scale)
        if not isinstance(X, Cases):
            warn_of_layout(cases.shape[1], cases.length, self.layout)
        if self.scale is None and cases.dtype is np.float64:
            warnings.warn(
                "The values of a channel differ by less than float32 can tell apart at their size. "
                'Set prepare={"scale": "dataset"}, or subtract what they have in common.',
                DicotWarning,
                stacklevel=4,  # of whoever called an estimator's fit
            )
        fitted = replace(
            self,
            n_channels=cases.shape[1],
            n_times=cases.length,
            statistics=cases.scale if isinstance(cases.scale, Scale) else None,
            fingerprint=_fingerprint(cases, X),
            channels=X.channels if isinstance(X, Cases) else None,
            rate=X.rate if isinstance(X, Cases) else None,
        )
        return fitted, _training_set(cases, X, y)

    def fit_another(self, X: Any, y: Any = None) -> tuple["Preparation", Cases]:
        """Prepare a second training set as the first: its statistics stay, and so does the length of "resample"."""
        order = self._order(X)
        length = self.n_times if self.unequal == "resample" else None
        cases = self._convert(X, self._scale, length, order)
        self._check_channels(cases)
        fitted = replace(self, n_times=cases.length, fingerprint=_fingerprint(cases, X))
        return fitted, _training_set(cases, X, y)

    def apply(self, X: Any) -> Iterator[tuple[Array, Conversion]]:
        """Yield positions and cases, one group per length, so that no case depends on its company."""
        order = self._order(X)
        if self.unequal == "error":
            groups = [self._convert(X, self._scale, order=order)]
        else:
            cases = look(X, self.layout, self.missing, self._scale, order)
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

    def _convert(
        self, X: Any, scale: str | Scale | None, length: int | None = None, order: Sequence[int] | None = None
    ) -> Conversion:
        policies: Policies = {"unequal": self.unequal, "missing": self.missing, "scale": scale, "length": length}
        return convert(X, layout=self.layout, order=order, **policies)

    def _order(self, X: Any) -> list[int] | None:
        """Return where the channels of the fit are in X, None where they are the same; refuse another rate.

        Another length than that of the fit is possible and seldom meant where both know how many time steps a second
        has, so it is warned of.
        """
        if not isinstance(X, Cases):
            return None
        if self.rate is not None and X.rate is not None and abs(X.rate / self.rate - 1) > SAME_RATE:
            raise InputError(
                f"X has {X.rate:g} time steps per second; this model was fitted on {self.rate:g}. Resample the "
                f"recordings with rate={self.rate:g}, as Windows.from_folder does."
            )
        if self.unequal == "error" and self.rate and X.rate and X.n_times != self.n_times:
            warnings.warn(
                f"Windows have {X.n_times} time steps; this model was fitted on {self.n_times}, and vectors of two "
                f"lengths are hard to compare. Cut windows of {self.n_times / self.rate:g} s.",
                WindowLengthWarning,
                stacklevel=4,
            )
        return None if X.channels is None else self.channel_order(X.channels)

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
        if self.n_channels and cases.shape[1] != self.n_channels:  # 0: of any number
            raise InputError(
                f"X has {cases.shape[1]} channel(s); this model was fitted on {self.n_channels}. "
                "Pass the same channels in the same order."
            )

    @property
    def _scale(self) -> str | Scale | None:
        return self.statistics if self.scale == "dataset" else self.scale

    def to_dict(self) -> dict[str, Any]:
        scale = self.statistics
        return {**vars(self), "statistics": scale and {"mean": scale.mean.tolist(), "std": scale.std.tolist()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Preparation":
        saved = data["statistics"]
        statistics = saved and Scale(np.array(saved["mean"]), np.array(saved["std"]))
        names = data.get("channels")  # models that were saved before channels had names have no entry
        return cls(**{**data, "statistics": statistics, "channels": names and tuple(names)})


def _fingerprint(cases: Conversion, X: Any) -> str:
    """Of the training cases before scaling; where windows are drawn, also of what they are drawn from."""
    if isinstance(X, Cases) and (not isinstance(X, Windows) or X.segments is not None):
        return X.fingerprint()
    return replace(cases, scale=None).fingerprint()


def _training_set(cases: Conversion, X: Any, y: Any) -> Cases:
    """Return what a method is trained on, in float32; labels and name of Windows stay theirs, and a corpus on disk."""
    y = X.y if y is None and isinstance(X, Windows) else y
    labels = None if y is None else check_labels(y, len(cases), "y")
    if isinstance(X, Cases) and not isinstance(X, Windows):
        return replace(cases, y=labels)
    name, segments = (X.name, segments_under(X, cases.scale)) if isinstance(X, Windows) else ("", None)
    # Training copies what it may not write to: made here, piece by piece, it is the only copy.
    return Windows(replace(cases, dtype=np.float32).whole(own=True), labels, name=name, segments=segments)
