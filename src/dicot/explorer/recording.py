"""Whole recordings for the large view: levels of detail in tiles, and what is said of them along time."""

import math
from threading import Lock
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.data.cases import Array
from dicot.data.clocks import EPOCH, seconds_since
from dicot.explorer.labelling import HandLabels
from dicot.store.series import RecordedSeries, Track
from dicot.store.vectors import Vectors
from dicot.use.segments import segment, segment_labels, shortest_event

TILE = 2048  # time steps or bins that one request brings
FIRST = 16  # time steps in a bin of the first level
FACTOR = 4  # bins of a level in one of the next
MEMORY = 2**28  # bytes of recordings with their levels that are kept for the next look
DIGITS = 6  # of seconds: what a label store tells apart

Floats = NDArray[np.float64]
Run = tuple[float, float, str]  # start, end and what it is called
Chances = tuple[Floats, list[str]]  # probabilities (N, K) of every window, and the K labels


class Level(NamedTuple):
    """A recording in bins: when each begins and ends, and between which values it lies; NaN where it has none."""

    first: Floats  # (n,) of the first time step in each bin
    last: Floats  # (n,)
    low: Array  # (C, n) float32
    high: Array  # (C, n) float32; of single time steps the same array


@final
class Detail:
    """A recording in levels of detail: single time steps, then bins of 16, 64, 256 and so on, until a tile holds all.

    Values are float32 around `offset`, which is 0 unless a recording needs float64 to tell its values apart.
    """

    def __init__(self, track: Track) -> None:
        self.track = track
        values = track.values
        self.offset = np.zeros(len(values))
        if values.dtype == np.float64:
            self.offset = np.nan_to_num(np.fmin.reduce(values, axis=1))
        around = values if values.dtype == np.float32 else (values - self.offset[:, None]).astype(np.float32)
        self.levels = [Level(track.times, track.times, around, around)]
        size = FIRST
        while len(self.levels[-1].first) > TILE:
            self.levels.append(_coarser(self.levels[-1], size))
            size = FACTOR

    @property
    def nbytes(self) -> int:
        """Return the memory that it holds."""
        return sum(level.low.nbytes + level.high.nbytes + level.first.nbytes for level in self.levels)

    @property
    def end(self) -> float:
        """Return when the recording ends: a usual step after its last time step."""
        return float(self.track.times[-1]) + 1 / (self.track.rate or 1.0)

    def about(self) -> dict[str, Any]:
        """Return what a page must know before it asks for tiles."""
        track, top = self.track, self.levels[-1]
        low, high = np.fmin.reduce(top.low, axis=1), np.fmax.reduce(top.high, axis=1)
        return {
            "channels": list(track.channels),
            "units": list(track.units) or [""] * len(track.channels),
            "offset": self.offset.tolist(),
            "low": np.nan_to_num(low).tolist(),
            "high": np.nan_to_num(high).tolist(),
            "rate": track.rate,
            "start": float(track.times[0]),
            "end": self.end,
            "origin": None if track.origin is None else seconds_since(EPOCH, track.origin),  # since 1970
            "tile": TILE,
            "sizes": [1, *(FIRST * FACTOR**number for number in range(len(self.levels) - 1))],
            "counts": [len(level.first) for level in self.levels],
            "edges": track.times[::TILE].tolist(),
        }

    def tile(self, level: int, number: int) -> bytes:
        """Return the times (float64) and values (C, n) (float32) of a tile: of bins first, last, least and greatest."""
        if not 0 <= level < len(self.levels):
            raise InputError(f"There is no level {level}; the levels are 0 to {len(self.levels) - 1}.")
        bins = self.levels[level]
        n_tiles = math.ceil(len(bins.first) / TILE)
        if not 0 <= number < n_tiles:
            raise InputError(f"Level {level} has no tile {number}; its tiles are 0 to {n_tiles - 1}.")
        tile = slice(number * TILE, (number + 1) * TILE)
        times, values = [bins.first, bins.last], [bins.low, bins.high]
        if level == 0:  # single time steps, whose least value is the greatest
            times, values = times[:1], values[:1]
        parts = [part[tile].astype("<f8").tobytes() for part in times]
        parts += [part[:, tile].astype("<f4").tobytes() for part in values]
        return b"".join(parts)


def _coarser(level: Level, size: int) -> Level:
    """Return a level with so many bins in one; the last may hold fewer. Missing values count only where all are."""
    n = len(level.first)
    n_padded = math.ceil(n / size) * size
    last = np.minimum(np.arange(size - 1, n_padded, size), n - 1)

    def joined(values: Array, extreme: np.ufunc) -> Array:
        if n_padded > n:
            values = np.pad(values, ((0, 0), (0, n_padded - n)), constant_values=np.nan)
        extremes = values[:, ::size].copy()
        for place in range(1, size):  # many times faster than along a short last axis
            extreme(extremes, values[:, place::size], out=extremes)
        return extremes

    return Level(level.first[::size], level.last[last], joined(level.low, np.fmin), joined(level.high, np.fmax))


def runs(start: Floats, end: Floats, names: NDArray[np.str_]) -> list[Run]:
    """Return the stretches in which windows (N,) are called the same, one after the other; "" is no name.

    Where windows overlap, a moment belongs to the window whose middle is nearest.
    """
    order = np.argsort(start, kind="stable")
    start, end, names = start[order], end[order], names[order]
    if not len(order):
        return []
    middle = (start + end) / 2
    is_gap = start[1:] > end[:-1] + 10.0**-DIGITS
    border = (middle[1:] + middle[:-1]) / 2
    begins = np.concatenate([start[:1], np.where(is_gap, start[1:], border)])
    stops = np.concatenate([np.where(is_gap, end[:-1], border), end[-1:]])
    is_new = is_gap | (names[1:] != names[:-1])
    firsts = np.flatnonzero(np.concatenate([[True], is_new]))
    lasts = np.concatenate([firsts[1:], [len(names)]]) - 1
    stretches = zip(begins[firsts].tolist(), stops[lasts].tolist(), names[firsts].tolist(), strict=True)
    return [(round(begin, DIGITS), round(stop, DIGITS), name) for begin, stop, name in stretches if name]


def _runs_of(table: pd.DataFrame) -> list[Run]:
    places = table["start"].round(DIGITS), table["end"].round(DIGITS), table["label"]
    return [(first, last, str(label)) for first, last, label in zip(*places, strict=True)]


@final
class Recordings:
    """The recordings of all windows, by number; several threads may ask at once."""

    def __init__(self, known: Vectors, series: RecordedSeries, labels: HandLabels) -> None:
        recording, self._start, self._end = known.places()
        self.names, self._rows_of = np.unique(recording.astype(str), return_inverse=True)
        self._x = known.x
        self._segments: dict[int, list[Run]] = {}  # by recording, found at the first look
        self._predicted: tuple[Chances, float, pd.DataFrame] | None = None
        self._firsts = np.unique(self._rows_of, return_index=True)[1]
        self._series = series
        self._labels = labels
        self._details: dict[int, Detail] = {}  # the one that was asked for last comes last
        self._lock = Lock()

    def about(self) -> list[dict[str, Any]]:
        """Return every recording, and whether it is lost."""
        return [{"name": name, "lost": name in self._series.lost} for name in self.names.tolist()]

    def detail(self, number: int) -> Detail:
        """Return a recording with its levels of detail, which are made at the first look."""
        name = self.name(number)
        with self._lock:
            if number not in self._details:
                track = self._series.track(int(self._firsts[number]))
                if track is None:
                    raise InputError(self._series.lost.get(name, f"The recording {name!r} is not at hand."))
                self._details[number] = Detail(track)
            detail = self._details[number] = self._details.pop(number)
            while len(self._details) > 1 and sum(other.nbytes for other in self._details.values()) > MEMORY:
                del self._details[next(iter(self._details))]
        return detail

    def said(self, number: int, chances: Chances | None, least: float | None = None) -> dict[str, Any]:
        """Return what is said along a recording: ranges with a label, labels of its windows, and predictions.

        Predictions are the stretches that `dicot segment` finds by the same probabilities, of `least` seconds or more;
        by default of two windows. Without them there are segments in their place: stretches of one activity, found
        without labels.
        """
        name = self.name(number)
        rows = np.flatnonzero(self._rows_of == number)
        given = self._labels.given()
        if chances is None:
            least = None
            predictions = self._stretches(number, rows)
        else:
            least = least or shortest_event(self._rows_of, self._start, self._end)
            predictions = self._smoothed(number, chances, least)
        return {
            "ranges": [(*key[1:], label) for key, label in given.ranges.items() if key[0] == name],
            "windows": runs(self._start[rows], self._end[rows], given.all[rows]),
            "predictions": predictions,
            "segmented": chances is None,
            "least": least,
        }

    def _stretches(self, number: int, rows: NDArray[np.intp]) -> list[Run]:
        """Return the stretches of one activity of a recording, found without labels."""
        if number not in self._segments:
            table = segment(self._x[rows], None, self._start[rows], self._end[rows])
            self._segments[number] = _runs_of(table.assign(label="segment " + table["cluster"].astype(str)))
        return self._segments[number]

    def _smoothed(self, number: int, chances: Chances, least: float) -> list[Run]:
        """Return the predicted stretches of a recording; those of all are found at once, as their usual length is."""
        predicted = self._predicted
        if predicted is None or predicted[0] is not chances or predicted[1] != least:
            table = segment_labels(*chances, self._rows_of, self._start, self._end, least=least)
            predicted = self._predicted = chances, least, table
        table = predicted[2]
        return _runs_of(table[table["recording"] == number])

    def place(self, number: int, start: float, end: float) -> tuple[str, float, float]:
        """Return the key of a range, which is cut to its recording; an error where nothing is left."""
        detail = self.detail(number)
        first = round(max(start, float(detail.track.times[0])), DIGITS)
        last = round(min(end, detail.end), DIGITS)
        if not first < last:
            whole = f"from {detail.track.times[0]:g} to {detail.end:g} s"
            raise InputError(f"A range ends after it starts, within {whole}; got {start:g} to {end:g}.")
        return self.name(number), first, last

    def name(self, number: int) -> str:
        """Return the name of a recording; an error where there is none of this number."""
        if not 0 <= number < len(self.names):
            raise InputError(f"There is no recording {number}; the numbers are 0 to {len(self.names) - 1}.")
        return str(self.names[number])
