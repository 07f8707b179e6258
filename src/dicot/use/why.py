"""Why a window is what it is said to be: which channel and which stretch of time made the difference.

By occlusion on the frozen encoder: a piece of one channel is replaced, the window is embedded again, and the difference
in some number, the target, is the piece's effect. In its place comes the stretch of the same channel that fits best
between the values beside it, so that the window stays one that could have been measured: the encoder would see the jumps
of a mean, and the calm of a straight line, as events of their own. A whole channel is replaced by that of windows that
the window is compared with: its neighbours, windows of other classes, or the one that it is held against.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dicot.core.errors import InputError, did_you_mean
from dicot.data.cases import Array
from dicot.data.labels import as_text, labelled
from dicot.model.box import BOX
from dicot.model.deployed import hash_of, open_model
from dicot.model.fewlabels import FewLabelClassifier
from dicot.use.outliers import EmbeddingOutlierDetector

if TYPE_CHECKING:
    from dicot.model.deployed import OnnxEmbedder
    from dicot.model.estimator import TimeSeriesEmbedder

PIECES = 16  # of a channel
WIDTHS = (1, 2, 4)  # pieces that are replaced together: what is longer than one would otherwise stay
BESIDE = 3  # values on either side of a piece, which what replaces it must fit
REFERENCES = 8  # other windows that a whole channel is taken from
MOST = 2_000  # windows that a classifier or a detector is fitted on: more would take seconds for a look
OUTLIER = "outlier"


class Target(NamedTuple):
    """A number that a vector has, and what it is."""

    name: str
    of: Callable[[Array], Array]  # vectors (N, F) -> numbers (N,)
    rows: Array  # of windows that whole channels are best taken from: those that a window is compared with


class Why(NamedTuple):
    """How much of a number each piece of a window makes."""

    effect: Array  # (C, P) the number with the piece less the number without it: above 0 where the piece raises it
    edges: Array  # (P + 1,) time steps of the window where pieces begin and end
    value: float  # the number of the window as it is
    target: str  # what the number is
    channels: Array | None = None  # (C,) the same of whole channels, where there were windows to take them from

    def strongest(self, k: int) -> list[tuple[int, int]]:
        """Return channel and piece of the k effects that raise the number most, the strongest first."""
        order = np.argsort(-self.effect, axis=None, kind="stable")[:k]
        return [(int(place) // self.effect.shape[1], int(place) % self.effect.shape[1]) for place in order]


def explain(
    model: TimeSeriesEmbedder | OnnxEmbedder,
    window: Array,
    target: Target,
    *,
    reference: Array | None = None,
    pieces: int = PIECES,
) -> Why:
    """Replace each piece of each channel of a window (C, T) in turn, and say how the target changes.

    Pieces are also replaced two and four at a time, and the difference is shared among them: a piece's effect is the
    mean of its shares. What lasts as long as the window, such as a level, only whole channels can show: they are
    replaced by those of `reference` windows (R, C, T), and the effect is the mean over these.
    """
    (n_channels, n_times), like = window.shape, np.empty((0, *window.shape)) if reference is None else reference
    edges = np.unique(np.linspace(0, n_times, min(pieces, n_times) + 1).round().astype(int))
    n_pieces = len(edges) - 1
    spans = [(first, first + wide) for wide in WIDTHS for first in range(n_pieces - wide + 1)]
    places = [(channel, *span) for channel in range(n_channels) for span in spans]
    cases = np.repeat(np.asarray(window, np.float64)[None], 1 + len(places) + n_channels * len(like), axis=0)
    for case, (channel, first, stop) in zip(cases[1:], places, strict=False):
        case[channel, edges[first] : edges[stop]] = _fitting(window[channel], edges[first], edges[stop])
    whole = cases[1 + len(places) :].reshape(n_channels, len(like), n_channels, n_times)
    for channel in range(n_channels):
        whole[channel, :, channel] = like[:, channel]
    vectors = model.transform_into(cases, lambda n, width: np.empty((n, width), np.float32), layout="nct")
    numbers = np.asarray(target.of(vectors), np.float64)
    changes = numbers[0] - numbers[1:]
    sums, counts = np.zeros((2, n_channels, n_pieces))
    for change, (channel, first, stop) in zip(changes, places, strict=False):
        sums[channel, first:stop] += change / (stop - first)
        counts[channel, first:stop] += 1
    channels = changes[len(places) :].reshape(n_channels, -1).mean(axis=1) if len(like) else None
    return Why(sums / counts, edges, float(numbers[0]), target.name, channels)


def _fitting(channel: Array, first: int, stop: int) -> Array:
    """Return the stretch of a channel that fits best into this place, bent to meet both ends; a line where none does.

    Neither it nor the values that are compared overlap the place.
    """
    n_times, away = len(channel), stop - first + BESIDE
    beside = np.array([at for at in (*range(first - BESIDE, first), *range(stop, stop + BESIDE)) if 0 <= at < n_times])
    low, high = (min(first, *beside), max(stop - 1, *beside)) if len(beside) else (0, n_times)
    shifts = np.arange(-low, n_times - high)
    shifts = shifts[np.abs(shifts) >= away]
    if not len(shifts):
        return _line(channel, first, stop)
    unlike = np.square(channel[beside + shifts[:, None]] - channel[beside]).sum(axis=1)
    shift = int(shifts[unlike.argmin()])
    taken = channel[first + shift : stop + shift]
    return taken + _line(channel, first, stop) - _line(channel, first + shift, stop + shift)


def _line(channel: Array, first: int, stop: int) -> Array:
    """Return values on a line between those beside a place; at an end of the window, the one that there is."""
    beside = [at for at in (first - 1, stop) if 0 <= at < len(channel)]
    if not beside:
        return np.full(stop - first, channel.mean())
    return np.interp(np.arange(first, stop), beside, channel[beside])


def target_of(
    x: Array, row: int, labels: Array | None = None, leave_out: Any = None, asked: str | int | None = None
) -> Target:
    """Choose what is explained of a window among vectors x (N, F).

    Parameters
    ----------
    labels : (N,) those that are known; without one for the others
    leave_out : rows that overlap the window; neither they nor the window itself are learned from
    asked : "outlier" for its distance from the other windows, as `dicot outliers` has it; a label, for the probability
        of this class; a row, for the distance from that window. None is the most probable class where there are labels
        of two, and else "outlier"
    """
    others = _but(np.arange(len(x)), row, leave_out)
    if isinstance(asked, int | np.integer):
        return Target(f"distance from row {asked}", lambda z: _cosine(z, x[asked]), np.array([asked]))
    named = np.array([], np.intp) if labels is None else others[labelled(labels[others])]
    texts = np.array([]) if labels is None else as_text(labels)
    classes = np.unique(texts[named]).tolist()
    if asked == OUTLIER or (asked is None and len(classes) < 2):
        detector = EmbeddingOutlierDetector(alpha=0.5).fit(x[_some(others)])
        near = others[np.argsort(_cosine(x[others], x[row]), kind="stable")[:REFERENCES]]
        return Target("distance from the other windows", lambda z: -detector.score_samples(z), near)
    if asked is not None and asked not in classes:
        raise InputError(f"No other window has the label {asked!r}. {did_you_mean(asked, classes)}")
    if len(classes) < 2:
        mean = x[named].mean(axis=0)
        return Target(f"distance from the mean of {asked}", lambda z: _cosine(z, mean), _some(named, REFERENCES))
    learned = _some(named)
    head = FewLabelClassifier(spreading="none").fit(x[learned], texts[learned]).head_
    best = int(head.predict_proba(x[row][None])[0].argmax()) if asked is None else head.classes.index(asked)
    rows = _some(named[texts[named] != head.classes[best]], REFERENCES)
    return Target(f"probability of {head.classes[best]}", lambda z: head.predict_proba(z)[:, best], rows)


def nearest_labelled(
    x: Array, row: int, labels: Array, leave_out: Any = None, k: int = 3
) -> tuple[list[int], list[float]]:
    """Return the k rows nearest to a window that have a label, and their cosine distances; not those to leave out."""
    rows = _but(np.flatnonzero(labelled(labels)), row, leave_out)
    away = _cosine(x[rows], x[row])
    order = np.argsort(away, kind="stable")[:k]
    return rows[order].tolist(), away[order].tolist()


def model_behind(made: str | None, named: str | Path | None = None) -> TimeSeriesEmbedder | OnnxEmbedder:
    """Load the model that made vectors: the one that is named, or else the one in the box with their hash."""
    candidates = [str(named)] if named is not None else list(BOX)
    for one in candidates:
        if made in (None, hash_of(one)) and (named is not None or made is not None):
            return open_model(one)
    which = "do not say by which model they were made" if made is None else f"were made by the model {made[:12]}"
    no = "no model in the box" if named is None else f"not {named}"
    raise InputError(f"The vectors {which}, which is {no}. Name the model that embedded them (--model).")


def _but(rows: Array, row: int, leave_out: Any) -> Array:
    return np.setdiff1d(rows, [row, *(() if leave_out is None else leave_out)])


def _some(rows: Array, most: int = MOST) -> Array:
    """Draw rows, at most so many and always the same."""
    return rows if len(rows) <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def _cosine(z: Array, vector: Array) -> Array:
    a, b = z.astype(np.float64), vector.astype(np.float64)
    sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b)
    return 1 - a @ b / np.where(sizes > 0, sizes, 1.0)
