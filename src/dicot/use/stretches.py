"""The stretches of one activity in the recordings of a file of vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dicot.core.errors import naming
from dicot.data.cases import Array
from dicot.data.reading import least_time
from dicot.model.fewlabels import FewLabelClassifier
from dicot.model.head import Head
from dicot.store.modelplace import check_same_model
from dicot.store.vectors import Vectors
from dicot.use.features import LEVELS
from dicot.use.judging import JudgedVectors
from dicot.use.labels.given import labels_of
from dicot.use.segments import agreed, segment, segment_labels

USUAL_LEAST = "5s"


def least_length(windows: JudgedVectors, text: str | None) -> tuple[float, str]:
    """Return the least length of a stretch and its unit: seconds, or time steps where no rate is known.

    text : a time such as "5s", the default, or a number of time steps
    """
    vectors = windows.vectors
    with naming(windows.path):
        _, start, end = vectors.places()
    # Vectors of another program have start and end in seconds, and do not say how they were cut.
    has_rate = vectors.source is None or vectors.source.rate is not None
    unit = "seconds" if has_rate else "time steps"
    least = least_time(text, "--least", USUAL_LEAST, has_rate)
    if least is None:
        least = 2.0 * float(np.median(end - start))  # about what five seconds usually are
    return least, unit


def cluster_stretches(windows: JudgedVectors, least: float, clusters: int | None = None) -> pd.DataFrame:
    """Cut where the windows change; stretches that are alike get the same cluster number."""
    vectors = windows.vectors
    x, beside = vectors.x, windows.levels
    if windows.kind == LEVELS:
        assert windows.levels is not None
        x, beside = windows.levels, None
    with naming(windows.path):
        return segment(x, *vectors.places(), levels=beside, groups=vectors.group, least=least, clusters=clusters)


def label_stretches(
    windows: JudgedVectors,
    least: float,
    *,
    labels: Path | None = None,
    head: Path | None = None,
) -> pd.DataFrame:
    """Cut by the probabilities of a classifier: a saved one, or one that is fitted to labels."""
    if head is not None:
        p, classes = _by_head(windows, head)
    else:
        p, classes = _by_labels(windows, labels)
    with naming(windows.path):
        return segment_labels(p, classes, *windows.vectors.places(), least=least)


def _by_head(windows: JudgedVectors, path: Path) -> tuple[Array, Sequence[Any]]:
    head = Head.load(path)
    check_same_model(path, head.model, head.n_features, windows.path, windows.vectors)
    return head.predict_proba(windows.vectors.x), head.classes


def _by_labels(windows: JudgedVectors, path: Path | None) -> tuple[Array, Sequence[Any]]:
    """Return probabilities by vectors and levels; where both are there, what they agree on."""
    x, levels = windows.vectors.x, windows.levels
    parts = [x] if levels is None else [x, levels]
    if windows.kind == LEVELS:
        parts = parts[1:]
    labels = labels_of(windows.path, windows.vectors, path)
    with naming(path or windows.path):
        models = [FewLabelClassifier().fit(part, labels) for part in parts]
    p = models[0].label_distributions_
    if len(models) > 1:
        p = agreed(p, models[1].label_distributions_)
    return p, tuple(models[0].classes_)


def dated(table: pd.DataFrame, vectors: Vectors) -> dict[str, Array]:
    """Return the columns of stretches, with UTC times where the recordings have them."""
    columns = {str(name): table[name].to_numpy() for name in table}
    begun = vectors.begun()
    if not begun:
        return columns
    zero = np.array([begun.get(str(name), np.nan) for name in columns["recording"]])
    place = {name: columns.pop(name) for name in ("recording", "start", "end")}
    utc = {}
    for name in ("start", "end"):
        times = pd.to_datetime((zero + place[name]) * 1e6, unit="us")
        utc[f"{name}_time"] = times.round("us").to_numpy("M8[us]")
    return {**place, **utc, **columns}
