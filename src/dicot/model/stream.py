"""Stream: samples come in as they are measured, windows go out with their vectors; by torch, or an ONNX file alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from dicot.core.errors import InputError, brief
from dicot.data.cases import Array
from dicot.data.conversion import convert
from dicot.data.cutting import without_noise
from dicot.data.reading import Reading
from dicot.data.timestamps import GAP, OTHER_RATE, SAME_RATE, Seconds, check_stamps
from dicot.model.deployed import OnnxEmbedder, new_rows, open_model
from dicot.model.fewlabels import FewLabelClassifier, Head

if TYPE_CHECKING:
    from dicot.model.estimator import TimeSeriesEmbedder

FORMAT = "dicot-stream 1"
SETTINGS = ("window", "stride", "rate", "gap", "n_channels")  # that a state has in common with its stream
RECENT = 63  # steps between time stamps that tell the rate of a stream


class StreamedWindow(NamedTuple):
    """A window that a push completed."""

    start: float  # seconds from the first sample, or by the time stamps; time steps where no rate is known
    end: float
    vector: Array  # (F,)
    label: Any = None  # the most probable class, where there is a classifier
    probability: float | None = None  # of that class
    outlier: float | None = None  # p-value, where there is a detector: small where the window is unusual


class _Held(NamedTuple):
    values: Array  # (n, C) samples that are still needed
    times: Seconds  # (n,)
    recent: Seconds  # the last steps between time stamps, in usual steps
    skip: int = 0  # time steps of these samples and the next that lie in no window
    seen: int = 0  # samples so far
    last: float | None = None  # time stamp, where they have some


@final
class Stream:
    """Embed one recording while it is measured: a window is answered as soon as its last sample is there.

    Windows lie where `dicot embed` cuts them, and have the vectors that `transform` gives each alone, whatever the
    samples of a push. A push that is refused changes nothing. No window spans a gap in the time stamps.

    Parameters
    ----------
    model : a fitted TimeSeriesEmbedder or an OnnxEmbedder; or a folder, "dicot-base" or an .onnx file (without torch)
    window, stride : as `Reading` has them; by default the length that the model was fitted on, and half of it
    rate : time steps per second; by default the model's
    gap : a step between time stamps that is longer than so many usual steps is a gap
    head : a fitted FewLabelClassifier, its Head, or the file of `dicot classify --save`; an .onnx file may have its own
    detector : a fitted EmbeddingOutlierDetector
    state : what `state()` of such a stream returned; this one goes on from there

    Attributes
    ----------
    window, stride, rate : in time steps, and time steps per second or None
    channels, n_channels : of a sample, names or None, and number; 0 before the first push, where the model takes any
    """

    def __init__(
        self,
        model: TimeSeriesEmbedder | OnnxEmbedder | str | Path,
        *,
        window: str | int | None = None,
        stride: str | int = "50%",
        rate: float | None = None,
        gap: float = GAP,
        head: FewLabelClassifier | Head | str | Path | None = None,
        detector: Any = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = open_model(model) if isinstance(model, str | Path) else model
        known = self.model.preparation_
        if rate is not None and known.rate is not None and abs(rate / known.rate - 1) > SAME_RATE:
            raise InputError(f"This model was fitted on a rate of {known.rate:g}; got {rate:g}. Resample first.")
        reading = Reading(window=window or known.n_times or None, stride=stride, rate=rate or known.rate, gap=gap)
        self.rate, self.gap = reading.rate, reading.gap
        self.window, self.stride = reading.steps(self.rate)
        self.channels, self.n_channels = known.channels, known.n_channels
        head = Head.load(head) if isinstance(head, str | Path) else head
        self.head, self.detector = head.head_ if isinstance(head, FewLabelClassifier) else head, detector
        self.classes: tuple[Any, ...] = getattr(self.model if self.head is None else self.head, "classes", ())
        width = self.model.n_features if isinstance(self.model, OnnxEmbedder) else self.model._n_features_out
        if self.head is not None and self.head.n_features != width:
            said = f"The classifier takes vectors of {self.head.n_features} numbers; this model makes {width}."
            raise InputError(f"{said} Train it on vectors of this very model: dicot embed, dicot classify --save.")
        self._held = _Held(np.empty((0, self.n_channels)), np.empty(0), np.empty(0))
        if self.n_channels:  # the first window shall not take longer than others, and what does not fit is told now
            self._answer(np.zeros((self.window, self.n_channels)), np.arange(self.window) / 1.0)
        if state is not None:
            self._restore(state)

    def push(self, samples: Any, times: Any = None) -> list[StreamedWindow]:
        """Take samples (time steps, channels), any number of them, and return the windows that they complete.

        Rows are time steps, as lines of a .csv are; one alone may come as (channels,), one channel as (time steps,).
        `times` holds a time stamp in seconds for each, such as Unix time; without any there are no gaps.
        """
        new, before = self._checked(samples), self._held
        if not len(new):
            return []
        if before.seen and (times is None) != (before.last is None):
            raise InputError("Some samples came with time stamps and some without. Pass times always, or never.")
        stamps, recent, breaks = (before.seen + np.arange(len(new))) / (self.rate or 1.0), before.recent, list[int]()
        if times is not None:
            stamps, recent, breaks = self._timed(times, len(new))
        values, clock, skip, found = before.values.reshape(-1, new.shape[1]), before.times, before.skip, []
        for first, stop in pairwise([0, *breaks, len(new)]):
            if first in breaks:
                values, clock, skip = values[:0], clock[:0], 0
            values, clock = np.concatenate([values, new[first:stop]]), np.concatenate([clock, stamps[first:stop]])
            while skip + self.window <= len(values):
                found.append(self._answer(values[skip : skip + self.window], clock[skip : skip + self.window]))
                skip += self.stride
            past = min(skip, len(values))
            values, clock, skip = values[past:], clock[past:], skip - past
        last = None if times is None else float(stamps[-1])
        self._held, self.n_channels = _Held(values, clock, recent, skip, before.seen + len(new), last), new.shape[1]
        return found

    def state(self) -> dict[str, Any]:
        """Return all that later windows depend on, but for the model, as plain data for JSON."""
        held = {name: getattr(value, "tolist", lambda v=value: v)() for name, value in self._held._asdict().items()}
        return {"format": FORMAT, **{name: getattr(self, name) for name in SETTINGS}, **held}

    def _restore(self, state: Mapping[str, Any]) -> None:
        try:
            n_channels, last = int(state["n_channels"]), state["last"]
            values, times, recent = (np.array(state[name], np.float64) for name in ("values", "times", "recent"))
            values, counts = values.reshape(len(times), n_channels), (int(state["skip"]), int(state["seen"]))
            sound = np.isfinite([*values.ravel(), *times, *recent, last or 0.0]).all() and min(counts) >= 0
            if not sound or state["format"] != FORMAT:
                raise ValueError("another format, or numbers that cannot be")
            held = _Held(values, times, recent, *counts, last)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"This is no state of a stream ({brief(error)}). Pass what state() returned.") from error
        for name in SETTINGS:
            if (own := getattr(self, name)) != 0 and state.get(name) != own:  # 0: any number of channels
                raise InputError(f"The state is of a stream with {name}={state.get(name)}; this one has {own}.")
        self._held, self.n_channels = held, n_channels

    def _checked(self, samples: Any) -> Array:
        """Return samples (n, C) in float64, which holds every float32 and whole number as it is."""
        array = np.asarray(samples)
        if not array.size:
            return np.empty((0, self.n_channels))
        if array.ndim == 1:
            array = array[:, None] if self.n_channels == 1 else array[None]
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise InputError(f"push takes numbers (time steps, channels); got {array.dtype} {array.shape}.")
        wanted = self.n_channels or array.shape[1]
        if array.shape[1] != wanted:
            turned = " Is it (channels, time steps)? Pass its transpose." if len(array) == wanted else ""
            raise InputError(f"push takes (time steps, {wanted} channels); got {array.shape}.{turned}")
        if len(bad := np.argwhere(~np.isfinite(array))):
            step, channel = bad[0].tolist()
            said = f"Time step {step} of this push has {array[step, channel]} in channel {channel}"
            raise InputError(f"{said}. Fill it in, or leave out such time steps and pass times=.")
        return array.astype(np.float64)

    def _timed(self, times: Any, n: int) -> tuple[Seconds, Seconds, list[int]]:
        """Return time stamps, the last steps between them, and the rows before which there is a gap."""
        if self.rate is None:
            raise InputError("Time stamps need a rate, which tells what a gap is. Say rate= when you make the stream.")
        stamps, last = check_stamps(times, n, "times"), self._held.last
        if last is not None and stamps[0] <= last:
            raise InputError(f"times must increase; {stamps[0]:.15g} s came after {last:.15g} s. Push in order.")
        steps = np.diff(stamps, prepend=stamps[0] if last is None else last) * self.rate
        recent = np.concatenate([self._held.recent, steps[int(last is None) :]])[-RECENT:]
        usual = recent[recent <= self.gap]
        if len(recent) == RECENT and (2 * len(usual) < RECENT or abs(float(usual.mean()) - 1) > OTHER_RATE):
            own = self.rate / float(np.median(recent))
            raise InputError(f"times have {own:.4g} steps per second; the rate is {self.rate:g}. Resample first.")
        return stamps, recent, np.flatnonzero(steps > self.gap).tolist()

    def _answer(self, values: Array, times: Seconds) -> StreamedWindow:
        case: Any = convert(np.ascontiguousarray(values.T)[None]).whole()  # rounded as cut windows are
        if self.head is None and self.classes and isinstance(self.model, OnnxEmbedder):
            vectors, chances = self.model.transform_and_predict(case, layout="nct")
        else:
            vectors = self.model.transform_into(case, new_rows, layout="nct")
            chances = np.ones((1, 1)) if self.head is None else self.head.predict_proba(vectors)
        best = int(chances[0].argmax())
        label, chance = (self.classes[best], float(chances[0, best])) if self.classes else (None, None)
        p = None if self.detector is None else float(self.detector.p_values(vectors)[0])
        start, end = without_noise(np.array([times[0], times[-1] + 1 / (self.rate or 1.0)]), self.rate).tolist()
        return StreamedWindow(start, end, vectors[0], label, chance, p)
