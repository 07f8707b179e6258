"""Why a window of a file of vectors is what it is said to be, with names and times."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, naming
from dicot.data.cases import Array
from dicot.model.deployed import open_model
from dicot.store.modelplace import places_of_model
from dicot.store.series import Series, series_of
from dicot.store.vectors import Vectors
from dicot.use.why import Why, explain, model_behind, target_of

SMALLEST = 1e-300  # effect by which others are divided for shades


@dataclass(frozen=True, eq=False)
class ExplainedWindow:
    """What each piece of a window does to a number, such as the probability of a label."""

    why: Why
    channels: tuple[str, ...]  # in the order of the model
    order: list[int]  # places of these channels in the series
    times: list[float]  # where pieces begin and end, in seconds, or in time steps of a case

    @property
    def shades(self) -> NDArray[np.float64]:
        """Return effects from -1 to 1 (C, P), the channels as the series have them."""
        effect = self.why.effect
        shades = np.zeros_like(effect)
        shades[self.order] = effect / max(float(np.abs(effect).max()), SMALLEST)
        return shades


def explain_window(
    path: Path,
    vectors: Vectors,
    row: int,
    asked: str | int | None = None,
    *,
    labels: Array | None = None,
    leave_out: Array | None = None,
    model: str | Path | None = None,
    data: str | None = None,
) -> ExplainedWindow:
    """Explain a window by its recording and the model that made its vector.

    path : of the vectors, for errors and for the model beside them
    asked : what is explained, see `target_of`
    labels : of the windows (N,), as in Windows
    leave_out : rows that nothing is learned from, such as those that overlap the window
    model, data : where the model and the recordings are now, if they were moved
    """
    with naming(path):
        usual = places_of_model(path, vectors.source)
        embedder = open_model(model_behind(vectors.model, model, usual=usual))
        series = series_of(vectors, data, {}, path=path)
        order = embedder.preparation_.channel_order(series.channels) or list(range(len(series.channels)))
        values = series.window(row)
        target = target_of(vectors.x, row, labels, () if leave_out is None else leave_out, asked)
    if values is None:
        raise InputError(series.lost[str(vectors.places()[0][row])])

    reference = windows_of_shape(series, target.rows, values.shape, order)
    why = explain(embedder, values[order], target, reference=reference)
    channels = tuple(series.channels[place] for place in order)
    return ExplainedWindow(why, channels, order, _times(vectors, row, why.edges, values.shape[1]))


def windows_of_shape(series: Series, rows: Array, shape: tuple[int, ...], order: list[int]) -> Array | None:
    """Read the windows that whole channels are taken from; cases may have another length."""
    windows = [series.window(row) for row in rows.tolist()]
    same = [window[order] for window in windows if window is not None and window.shape == shape]
    return np.stack(same) if same else None


def _times(vectors: Vectors, row: int, edges: Array, n_times: int) -> list[float]:
    start, end = 0.0, float(n_times)
    if vectors.start is not None and vectors.end is not None:
        start, end = float(vectors.start[row]), float(vectors.end[row])
    return [start + (end - start) * edge / n_times for edge in edges.tolist()]
