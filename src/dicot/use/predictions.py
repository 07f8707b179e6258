"""Labels of new recordings by a classifier that was saved; nothing is learned from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd

from dicot.core.errors import InputError, naming
from dicot.data.cases import Array
from dicot.model.head import Head
from dicot.model.stream import Stream
from dicot.store.source import DataSource, Say, be_silent
from dicot.store.vectors import COLUMNS, MadeOf, Vectors, read_vectors, write_vectors
from dicot.use.embedfiles import embed_recordings_into
from dicot.use.modelchoice import ChosenModel
from dicot.use.segments import label_runs
from dicot.use.why import model_behind

# Options of the recordings that a classifier was trained with which say what they are called, or whose they are.
LABELS_AND_NAMES = ("label", "names", "table", "table_unit")


@final
@dataclass(frozen=True, eq=False)
class SavedClassifier:
    """A file of `dicot classify --save`, and what it knows of its vectors."""

    path: Path
    head: Head
    made: MadeOf | None  # what the vectors were made of that it was trained with
    model: Path  # whose vectors it takes

    @classmethod
    def load(cls, path: Path, model: str | None = None) -> "SavedClassifier":
        """Read a classifier; `model` is where its model is now, if it was moved."""
        head = Head.load(path)
        with naming(path):
            made = None if head.source is None else MadeOf.from_dict(head.source)
            was_at = None if made is None else made.at or None
            return cls(path, head, made, model_behind(head.model, model or was_at))

    def reading(self) -> dict[str, Any]:
        """Return how new recordings are read: as those of the classifier, but for labels and names."""
        if self.made is None or self.made.kind != "recordings":
            return {}
        options = {name: value for name, value in self.made.options.items() if name not in LABELS_AND_NAMES}
        if self.made.options.keys() & {"names", "table"}:
            # A group stays only where a column has it: it may tell the recordings of a file apart.
            options.pop("group", None)
        if self.made.channels is not None:
            options["channels"] = list(self.made.channels)
        return options

    def stream(
        self,
        *,
        window: str | int | None = None,
        stride: str | int | None = None,
        rate: float | None = None,
        state: dict[str, Any] | None = None,
    ) -> Stream:
        """Open a stream that predicts labels; what nobody says of the windows is as when it was trained."""
        made = self.made
        if made is not None and made.kind == "recordings":
            window = window or made.n_times
            stride = stride or made.stride
            rate = rate or made.rate
        return Stream(self.model, window=window, stride=stride or "50%", rate=rate, head=self.head, state=state)

    def columns(self, x: Array) -> dict[str, Array]:
        """Return the most probable class of vectors (N, F), and the probability of each, p_CLASS."""
        p = self.head.predict_proba(x)
        predicted = np.array(self.head.classes)[p.argmax(axis=1)]
        by_class = {f"p_{name}": p[:, number] for number, name in enumerate(self.head.classes)}
        return {"predicted": predicted, **by_class}


@final
@dataclass(frozen=True, eq=False)
class Predictions:
    """What was predicted of the windows of a file of vectors."""

    vectors: Vectors
    columns: Mapping[str, Array]  # predicted, and p_CLASS of each class
    classes: tuple[Any, ...]

    def counts(self) -> tuple[Array, Array]:
        """Return the classes that were predicted, and how many windows have each."""
        names, counts = np.unique(self.columns["predicted"], return_counts=True)
        return names, counts

    def ranges(self) -> pd.DataFrame:
        """Join neighbouring windows with the same prediction."""
        p = np.stack([self.columns[f"p_{name}"] for name in self.classes], axis=1)
        return label_runs(p, self.classes, *self.vectors.places())


def predict_into(
    out: Path,
    classifier: SavedClassifier,
    source: DataSource,
    model: ChosenModel,
    *,
    append: bool = False,
    say: Say = be_silent,
) -> Predictions:
    """Embed recordings into a .parquet with predictions beside the vectors.

    append : keep what the file has, and embed only what is new
    """
    if not source.recorded:
        raise InputError(
            f"{classifier.path} was trained with cases, not with recordings. Say how to cut these: --window."
        )
    made = classifier.made
    like = None if made is None or made.channels is None else (made.channels, made.rate)
    run = embed_recordings_into(out, source, model, append=append, like=like, more=classifier.columns, say=say)
    vectors = read_vectors(out)
    columns = classifier.columns(vectors.x)
    if not run.added:
        # Predictions that are there may be those of another classifier.
        arrays = {COLUMNS[name]: values for name, values in vectors.columns().items()}
        write_vectors(out, {"": {"X": vectors.x, **arrays}}, vectors.source, columns)
    return Predictions(vectors, columns, tuple(classifier.head.classes))
