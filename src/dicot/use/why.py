"""Why a window is what it is said to be: which channel and which stretch of time made the difference.

A piece of one channel is replaced, the window is embedded again, and the change of some number is the piece's effect.
In its place comes the stretch of the same channel that fits best there, so that the window stays one that could have
been measured: the encoder would see the jumps of a mean, or the calm of a straight line, as events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from dicot.core.errors import InputError, ModelFileError, did_you_mean
from dicot.data.cases import Array
from dicot.data.labels import as_text, labelled
from dicot.model.box import BOX, in_box
from dicot.model.deployed import OnnxEmbedder, hash_of, new_rows
from dicot.model.fewlabels import USUAL_STRENGTH, StandardScale
from dicot.use.outliers import EmbeddingOutlierDetector
from dicot.use.projection import drawn_rows

if TYPE_CHECKING:
    from dicot.model.estimator import TimeSeriesEmbedder

PIECES = 16  # of a channel
WIDTHS = (1, 2, 4)  # pieces that are replaced together: what is longer than one would otherwise stay
BESIDE = 3  # values on either side of a piece, which what replaces it must fit
REFERENCES = 8  # windows that a whole channel is taken from
MOST = 1_000  # windows that a classifier or a detector is fitted on: more would take a second for a look


class Explained(NamedTuple):
    """A number that a vector has, and what it is."""

    name: str
    of: Callable[[Array], Array]  # vectors (N, F) -> numbers (N,)
    rows: Array  # of windows that whole channels are best taken from


class Why(NamedTuple):
    """How much of a number each piece of a window makes."""

    effect: Array  # (C, P) the number with the piece less the number without it: above 0 where the piece raises it
    edges: Array  # (P + 1,) time steps of the window where pieces begin and end
    value: float  # the number of the window as it is
    target: str  # what the number is
    channels: Array | None = None  # (C,) the effects of whole channels, where there were windows to take them from

    def strongest(self, k: int) -> list[tuple[int, int]]:
        """Return channel and piece of the k effects that raise the number most, the strongest first."""
        order = np.argsort(-self.effect, axis=None, kind="stable")[:k]
        return [(int(place) // self.effect.shape[1], int(place) % self.effect.shape[1]) for place in order]


def explain(
    model: TimeSeriesEmbedder | OnnxEmbedder, window: Array, target: Explained, *, reference: Array | None = None
) -> Why:
    """Replace each piece of each channel of a window (C, T) in turn, and say how the target changes.

    Pieces are also replaced two and four at a time, and share the change: a piece's effect is the mean of its shares.
    What lasts as long as the window, such as a level, only whole channels can show: they are replaced by those of
    `reference` windows (R, C, T), and the effect is the mean over these.
    """
    n_channels, n_times = window.shape
    if reference is None:
        reference = np.empty((0, *window.shape))
    edges = np.unique(np.linspace(0, n_times, min(PIECES, n_times) + 1).round().astype(int))
    spans = [(first, first + wide) for wide in WIDTHS for first in range(len(edges) - wide)]
    places = [(channel, *span) for channel in range(n_channels) for span in spans]

    # First the window itself, then a case for each place, then the channels one by one from each reference.
    n_cases = 1 + len(places) + n_channels * len(reference)
    cases = np.repeat(np.asarray(window, np.float64)[None], n_cases, axis=0)
    for case, (channel, first, stop) in zip(cases[1:], places, strict=False):
        case[channel, edges[first] : edges[stop]] = _fitting(window[channel], edges[first], edges[stop])
    exchanged = cases[1 + len(places) :].reshape(n_channels, len(reference), n_channels, n_times)
    for channel in range(n_channels):
        exchanged[channel, :, channel] = reference[:, channel]
    vectors = model.transform_into(cases, new_rows, layout="nct")
    numbers = np.asarray(target.of(vectors), np.float64)
    changes = numbers[0] - numbers[1:]

    sums = np.zeros((n_channels, len(edges) - 1))
    counts = np.zeros_like(sums)
    for change, (channel, first, stop) in zip(changes, places, strict=False):
        sums[channel, first:stop] += change / (stop - first)
        counts[channel, first:stop] += 1
    channels = None
    if len(reference):
        channels = changes[len(places) :].reshape(n_channels, -1).mean(axis=1)
    return Why(sums / counts, edges, float(numbers[0]), target.name, channels)


def _fitting(channel: Array, first: int, stop: int) -> Array:
    """Return the stretch of a channel, off this place, that fits best into it, bent to meet both ends; else a line."""
    n_times = len(channel)
    around = [*range(first - BESIDE, first), *range(stop, stop + BESIDE)]
    beside = np.array([step for step in around if 0 <= step < n_times])
    reach = [first, stop - 1, *beside]
    shifts = np.arange(-min(reach), n_times - max(reach))
    shifts = shifts[np.abs(shifts) >= stop - first + BESIDE]
    if not len(shifts):
        return _line(channel, first, stop)
    differences = np.square(channel[beside + shifts[:, None]] - channel[beside]).sum(axis=1)
    begin = first + int(shifts[differences.argmin()])
    end = begin + stop - first
    bent: Array = channel[begin:end] + _line(channel, first, stop) - _line(channel, begin, end)
    return bent


def _line(channel: Array, first: int, stop: int) -> Array:
    """Return values on a line between those beside a place; at an end of the window, the one that there is."""
    beside = [step for step in (first - 1, stop) if 0 <= step < len(channel)]
    if not beside:
        return np.full(stop, channel.mean())
    line: Array = np.interp(np.arange(first, stop), beside, channel[beside])
    return line


def target_of(
    x: Array, row: int, labels: Array | None = None, leave_out: Any = (), asked: str | int | None = None
) -> Explained:
    """Choose what is explained of a window among vectors x (N, F), of which some have labels (N,).

    `asked` is "outlier", for its distance from the other windows; a label, for its probability, or the distance from
    its mean where it is the only one; or a row, for the distance from that window. None is the most probable label
    where there are two, and else "outlier". The window, and rows to `leave_out` that overlap it, are not learned from.
    """
    if isinstance(asked, int | np.integer):
        return Explained(f"distance from row {asked}", lambda z: _cosine(z, x[asked]), np.array([asked]))
    others = np.setdiff1d(np.arange(len(x)), [row, *leave_out])
    texts = np.full(len(x), "") if labels is None else np.where(labelled(labels), as_text(labels), "")
    named = others[texts[others] != ""]
    classes = np.unique(texts[named]).tolist()
    if asked == "outlier" or (asked is None and len(classes) < 2):
        return _distance_from_others(x, row, others)
    if asked is not None and asked not in classes:
        raise InputError(f"No other window has the label {asked!r}. {did_you_mean(asked, [*classes, 'outlier'])}")
    if len(classes) < 2:
        mean = x[named].mean(axis=0)
        rows = named[drawn_rows(len(named), REFERENCES, 0)]
        return Explained(f"distance from the mean of {asked}", lambda z: _cosine(z, mean), rows)
    return _probability(x, row, named, texts, asked)


def _distance_from_others(x: Array, row: int, others: Array) -> Explained:
    detector = EmbeddingOutlierDetector(alpha=0.5).fit(x[others[drawn_rows(len(others), MOST, 0)]])
    nearest = others[np.argsort(_cosine(x[others], x[row]), kind="stable")[:REFERENCES]]
    return Explained("distance from the other windows", lambda z: -detector.score_samples(z), nearest)


def _probability(x: Array, row: int, named: Array, texts: Array, asked: str | None) -> Explained:
    """Return the probability of a label, or of the most probable one, by the windows that have a label."""
    learned = named[drawn_rows(len(named), MOST, 0)]
    scale = StandardScale(x[learned])  # no FewLabelClassifier: its folds take ten times as long
    regression = LogisticRegression(C=USUAL_STRENGTH, max_iter=10_000).fit(scale(x[learned]), texts[learned])
    if asked is None:
        column = int(regression.predict_proba(scale(x[row][None]))[0].argmax())
    else:
        column = regression.classes_.tolist().index(asked)
    label = regression.classes_[column]
    unlike = named[texts[named] != label]
    rows = unlike[drawn_rows(len(unlike), REFERENCES, 0)]
    return Explained(f"probability of {label}", lambda z: regression.predict_proba(scale(z))[:, column], rows)


def nearest_labelled(x: Array, row: int, labels: Array, leave_out: Any = ()) -> tuple[list[int], list[float]]:
    """Return the three rows nearest to a window that have a label, and their distances; not those to leave out."""
    rows = np.setdiff1d(np.flatnonzero(labelled(labels)), [row, *leave_out])
    away = _cosine(x[rows], x[row])
    order = np.argsort(away, kind="stable")[:3]
    return rows[order].tolist(), away[order].tolist()


def model_behind(made: str | None, named: str | Path | None = None, *, usual: Sequence[str | Path] = ()) -> Path:
    """Find the model that made vectors with this hash: the one that is named, or else a usual one or one in the box."""
    candidates = [*usual, *BOX] if named is None else [named]
    for path in map(in_box, candidates):
        if path.exists() and _is_behind(made, path, is_named=named is not None):
            return path

    which = "do not say which model made them" if made is None else f"were made by the model {made[:12]}"
    if named is not None:
        which += f", and {named} is another one." if in_box(named).exists() else f", and there is none at {named}."
    elif usual:
        which += f", which is not at {usual[0]}."
    else:
        which += ". It does not come with dicot."
    raise InputError(f"The vectors {which} Name the model that embedded them (--model).")


def _is_behind(made: str | None, path: Path, is_named: bool) -> bool:
    """Tell whether the model at a path made vectors with this hash; a named one is believed where there is no hash."""
    try:
        found = hash_of(path)
    except ModelFileError:
        if is_named:
            raise
        return False  # damaged, or a folder of something else
    return made == found or (made is None and is_named)


def _cosine(z: Array, vector: Array) -> Array:
    a, b = z.astype(np.float64), vector.astype(np.float64)
    sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b)
    return np.asarray(1 - a @ b / np.where(sizes > 0, sizes, 1.0))
