"""How raw input becomes cases, decided at fit and repeated at transform."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dicot.core.errors import DicotWarning, InputError, WindowLengthWarning, listed
from dicot.core.settings import how_to_prepare, how_to_set
from dicot.data.cases import Array, Cases, Policies, Scale, pieces
from dicot.data.collection import Windows, segments_under, warn_of_layout
from dicot.data.conversion import Conversion, convert, look
from dicot.data.labels import check_labels
from dicot.data.offsets import COARSE, is_coarse
from dicot.data.timestamps import SAME_RATE

ENCODER = "in which this model's encoder takes values as they are,"
REMEDY = (
    f"Subtract the offset, or fit with {how_to_prepare('scale', 'case')}, or use the model instant or dicot-base, "
    "which subtract it themselves."
)
FEWEST_STEPS = 16  # of a window; the values of a shorter one may be near each other by chance
SELDOM = 0.05  # share of windows up to which a channel may be as coarse as a constant that was rounded

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
        warn_of_rounded(cases, X.channels if isinstance(X, Cases) else None)
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
            warn_of_rounded(group, self.channels)
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
                f"{f'It lacks {listed(lost)}. ' if lost else ''}Choose those of the model: "
                f"{how_to_set('channels', self.channels)}."
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


def warn_of_rounded(cases: Conversion, names: Sequence[str] | None) -> None:
    """Name the channels that came in float32 and had lost their signal in its rounding before."""
    if cases.may_lose or not cases.in_memory or cases.n_times < FEWEST_STEPS:
        return
    counts = cases.count(is_coarse)
    if counts.max(initial=0) <= SELDOM * len(cases):
        return
    warnings.warn(
        f"{_channels_named(counts, len(cases), names)} than {COARSE} steps of float32 at this size. The values came in "
        "float32: what it rounded away was lost before. Write the data in float64, or subtract the offset where they "
        "are recorded.",
        DicotWarning,
        stacklevel=5,
    )


def warn_of_unheld(cases: Cases, names: Sequence[str] | None, where: str = ENCODER, remedy: str = REMEDY) -> None:
    """Name the channels whose signal is lost where their values have to be taken as they are, in float32."""
    if not isinstance(cases, Conversion) or not cases.may_split or cases.n_times < FEWEST_STEPS:
        return
    offsets = [cases.split(rows).offsets for rows in pieces(cases.shape)]
    counts = np.count_nonzero(np.concatenate(offsets), axis=0)
    if not counts.any():
        return
    named = _channels_named(counts, len(cases), names)
    warnings.warn(f"{named} than float32, {where} can tell apart at this size. {remedy}", DicotWarning, stacklevel=5)


def _channels_named(counts: Array, n_cases: int, names: Sequence[str] | None) -> str:
    channels = np.flatnonzero(counts).tolist()
    named = [repr(names[channel]) if names else str(channel) for channel in channels]
    subject = f"Channels {listed(named)} vary" if len(named) > 1 else f"Channel {named[0]} varies"
    return f"{subject} by less in {counts.max():,} of {n_cases:,} windows"


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
    if cases.dtype is np.float64 and segments is None:
        # Kept with all their digits: what is subtracted from a channel has to be known when it becomes a vector.
        return replace(cases, dtype=np.float32, y=labels, title=name)
    # Training copies what it may not write to: made here, piece by piece, it is the only copy.
    return Windows(replace(cases, dtype=np.float32).whole(own=True), labels, name=name, segments=segments)
