"""Two files of vectors, of a reference and of what is new, and by what they are compared: units and classes."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dicot.core.errors import DicotWarning, InputError, naming
from dicot.data.cases import Array
from dicot.data.reading import seconds_of
from dicot.model.head import Head
from dicot.store.modelplace import CONFIG, check_same_model, model_beside
from dicot.store.series import Series, series_of
from dicot.store.vectors import Vectors, read_vectors
from dicot.use.blocks import blocks_of
from dicot.use.changes import changed_channels, changed_shares
from dicot.use.events import first_hits
from dicot.use.modelchoice import hash_at
from dicot.use.monitoring import Comparison, compare

UNITS = ("group", "recording", "week", "day", "window")
DATES = {"week": "%G-W%V", "day": "%Y-%m-%d"}  # of the start of a window, in UTC
SAMPLE = 200  # windows of each side that are read to say what has changed in the channels
ENOUGH_WINDOWS = 500  # to fit a model on whose vectors of new windows compare with those of the reference


@dataclass(frozen=True, eq=False)
class Side:
    """A file of vectors."""

    path: Path
    vectors: Vectors

    def column(self, name: str) -> Array:
        """Return what a column says of each window; a week and a day are those of its start."""
        column = "start_time" if name in DATES else name
        values: Array | None = self.vectors.columns().get(column)
        if values is None:
            remedy = "with dates (--time)" if name in DATES else "that have one (--names)"
            raise InputError(f"{self.path} does not say the {name} of its windows. Embed recordings {remedy}.")
        if name not in DATES:
            return values
        times = pd.Series(values)
        if times.isna().any():
            row = int(times.isna().argmax())
            raise InputError(f"{self.path}: row {row} has no date. Embed only recordings with time stamps.")
        return np.array(times.dt.strftime(DATES[name]))

    def blocks(self, seconds: float) -> Array:
        """Return for each window the block of time that it is of."""
        with naming(self.path):
            recording, start, _ = self.vectors.places()
        return blocks_of(recording, start, seconds)

    def sample(self, data: str | None) -> "tuple[list[Array], Series]":
        """Read windows from all over the recordings; those of lost ones are missing."""
        series = series_of(self.vectors, data, {}, path=self.path)
        n_windows = len(self.vectors)
        places = np.linspace(0, n_windows - 1, min(n_windows, SAMPLE)).astype(int)
        windows = [series.window(row) for row in np.unique(places).tolist()]
        return [window for window in windows if window is not None], series


@dataclass(frozen=True)
class ExchangedUnit:
    """What a test exchanges as a whole: recordings, groups, weeks, or blocks of time."""

    name: str
    seconds: float | None = None  # of blocks of time

    @classmethod
    def of(cls, text: str) -> "ExchangedUnit":
        """Read one of UNITS, or a time such as 10min."""
        if text in UNITS:
            return cls(text)
        try:
            seconds = seconds_of(text, "--unit")
        except InputError as error:
            known = ", ".join(UNITS)
            raise InputError(f"--unit is {known}, or a time such as 10min; got {text[:40]!r}.") from error
        if seconds <= 0:
            raise InputError(f"--unit {text}: a block of time must last longer than nothing. Say, for example, 10min.")
        return cls(f"{text} block", seconds)

    def values(self, side: Side) -> Array:
        """Return for each window which unit it is of."""
        return side.column(self.name) if self.seconds is None else side.blocks(self.seconds)


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of the windows of both sides."""

    values: tuple[Array, Array] | None = None
    are_predicted: bool = False
    are_evidence: bool = False  # whether a change of their shares may raise an alarm


@dataclass(frozen=True, eq=False)
class Sides:
    """A reference, and what is new: vectors of the same model."""

    reference: Side
    new: Side

    @classmethod
    def read(cls, reference: Path, new: Path) -> "Sides":
        """Read both files."""
        sides = cls(*(Side(path, read_vectors(path, finite=True)) for path in (reference, new)))
        old = sides.reference.vectors
        check_same_model(reference, old.model, old.x.shape[1], new, sides.new.vectors)
        return sides

    @property
    def vectors(self) -> tuple[Vectors, Vectors]:
        return self.reference.vectors, self.new.vectors

    def usual_unit(self) -> ExchangedUnit:
        """Return groups where both files have some and share none, or else recordings."""
        old, new = self.vectors
        if old.recording is None or new.recording is None:
            raise InputError("The files do not say which windows belong together. If each counts alone: --unit window.")
        # A recording alone is no group.
        groups = [_groups_beside_recordings(vectors) for vectors in self.vectors]
        if bool(groups[0]) != bool(groups[1]):
            _warn("Only one of the files has groups, so recordings count. Tell groups of both: --names ... --group ...")
        if all(groups) and not groups[0] & groups[1]:
            return ExchangedUnit("group")
        return ExchangedUnit("recording")

    def classes(self, head: Path | None = None) -> Classes:
        """Return predictions of a classifier, or else the labels of both files.

        Labels were given by somebody, and prove nothing.
        """
        old, new = self.vectors
        if head is None:
            has_labels = old.label is not None and new.label is not None
            return Classes((old.label, new.label)) if has_labels else Classes()  # type: ignore[arg-type]
        classifier = Head.load(head)
        check_same_model(head, classifier.model, classifier.n_features, self.new.path, new)
        names = np.array(classifier.classes)
        before, after = (names[classifier.predict_proba(side.x).argmax(axis=1)] for side in self.vectors)

        trained_with = set((classifier.source or {}).get("data", ()))
        data = () if old.source is None else old.source.data
        is_of_reference = bool(trained_with & set(data))
        if is_of_reference:
            path = self.reference.path
            _warn(f"{head} was trained with {path}, so shares of its predictions are shown and not tested.")
        return Classes((before, after), are_predicted=True, are_evidence=not is_of_reference)

    def compare(self, unit: ExchangedUnit, classes: Classes, by: str | None, alpha: float) -> Comparison:
        """Compare the new windows, or parts of them by a column, with the reference; see `compare`."""
        units = None
        if unit.name != "window":
            units = unit.values(self.reference), unit.values(self.new)
        old, new = self.vectors
        with naming(self.reference.path):
            return compare(
                old.x,
                new.x,
                units=units,
                classes=None if by == "label" else classes.values,
                test_classes=classes.are_evidence,
                parts=None if by is None else self.new.column(by),
                reference_parts=self.reference.column(by) if by == "label" else None,
                alpha=alpha,
            )

    def changes(self, found: Comparison, classes: Classes, data: str | None) -> list[str]:
        """Say in words what has changed most: shares of classes, and the channels, where the series are at hand.

        `data` is where the new series are; "" where no series is wanted.
        """
        most = max(found.parts, key=lambda part: part.shift)
        sentences = changed_shares(most.shares, classes.are_predicted)
        if data == "":
            return sentences
        try:
            before, old_series = self.reference.sample(None)
            now, new_series = self.new.sample(data)
        except InputError as error:
            return [*sentences, f"What has changed in the channels cannot be told: {error}"]
        if not before or not now or old_series.channels != new_series.channels:
            return sentences
        changes = changed_channels(before, now, old_series.channels, old_series.rate)
        return [*sentences, *(change.sentence for change in changes)]

    def farthest(self, found: Comparison, top: int) -> list[int]:
        """Return the rows of the new windows that lie farthest from the reference.

        The farthest of each recording comes first; then others that do not overlap.
        """
        if not top:
            return []
        new = self.new.vectors
        order = np.lexsort((-found.distance, found.outlier_p))
        if new.recording is None:
            return [int(row) for row in order[:top]]
        first_places = np.unique(new.recording[order], return_index=True)[1]
        of_each_recording = order[np.sort(first_places)].tolist()
        apart = first_hits(order.tolist(), new.places() if new.placed else None, top)
        return list(dict.fromkeys([*of_each_recording, *apart]))[:top]

    def doubt_about_fit(self) -> str:
        """Return why a difference proves nothing: the model was fitted on the few windows of the reference.

        Empty where there is no such doubt. Vectors of fitted windows keep all differences between these, and those of
        new windows lose what the fit did not see. Of recordings that are alike, such a fit on 120 windows gave an alarm
        each time, and on 720 none (eight trials each).
        """
        path, model = self.reference.path, self.reference.vectors.model
        folder = model_beside(path)
        if model is None or hash_at(folder) != model:
            return ""
        n_windows = json.loads((folder / CONFIG).read_bytes())["data"]["n_cases"]
        if n_windows >= ENOUGH_WINDOWS:
            return ""
        unfitted = path.with_stem(f"{path.stem}-dicot-base")
        return (
            f"The model of {path} was fitted on its own {n_windows} windows, too few to tell a change from the fit. "
            f"Embed both by a model that is not fitted: dicot embed dicot-base DATA --out {unfitted}"
        )


def _groups_beside_recordings(vectors: Vectors) -> set[object]:
    """Return the groups of vectors; none where they are the recordings themselves."""
    groups = set() if vectors.group is None else set(vectors.group.tolist())
    return set() if groups == set(vectors.recording) else groups  # type: ignore[arg-type]


def _warn(sentence: str) -> None:
    warnings.warn(sentence, DicotWarning, stacklevel=3)
