"""Stream: samples come in as they are measured, windows go out with their vectors; by torch, or an ONNX file alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, final

import numpy as np

from dicot.core.errors import InputError, brief, listed
from dicot.data.cases import Array
from dicot.data.conversion import convert
from dicot.data.cutting import without_noise
from dicot.data.reading import Reading
from dicot.data.timestamps import GAP, OTHER_RATE, SAME_RATE, Seconds, check_stamps
from dicot.model.deployed import OnnxEmbedder, hash_of, open_model
from dicot.model.fewlabels import FewLabelClassifier, Head

if TYPE_CHECKING:
    from dicot.model.estimator import TimeSeriesEmbedder

FORMAT, FORMAT_VERSION = "dicot-stream", 1
RECENT = 63  # steps between time stamps that tell the rate of a stream


class StreamedWindow(NamedTuple):
    """A window that a push completed."""

    start: float  # seconds from the first sample, or by the time stamps; time steps where no rate is known
    end: float
    vector: Array  # (F,)
    label: Any = None  # the most probable class, where there is a classifier
    probability: float | None = None  # of that class
    outlier: float | None = None  # p-value, where there is a detector: small where the window is unusual


class JudgesVectors(Protocol):
    """What a fitted EmbeddingOutlierDetector does for a stream."""

    def p_values(self, X: Any) -> Any: ...


@final
class Stream:
    """Embed one recording while it is measured: a window is answered as soon as its last sample is there.

    Windows lie where `dicot embed` cuts them, and have the vectors that `transform` gives them. They are embedded one by
    one, so that nothing depends on how the samples are divided into pushes. A push that is refused changes nothing. A
    gap in the time stamps starts a new stretch: no window spans it.

    Parameters
    ----------
    model : a fitted TimeSeriesEmbedder or an OnnxEmbedder; or where one is: a folder, "dicot-base" or an .onnx file,
        which needs no torch
    window, stride : as `Reading` has them; by default windows are as long as the model was fitted on, and half of each
        lies in the next one
    rate : time steps per second; by default the model's
    gap : a step between time stamps that is longer than so many usual steps is a gap
    head : a fitted FewLabelClassifier or its Head, or the file of `dicot classify --save`; an .onnx file may have its own
    detector : a fitted EmbeddingOutlierDetector
    state : what `state()` of such a stream returned; this one goes on from there

    Attributes
    ----------
    window, stride : in time steps
    rate : time steps per second, or None
    channels : names in the order of a sample, where the model knows them, or None
    n_channels : of a sample; 0 until the first push, where the model takes any number
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
        detector: JudgesVectors | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        place = model if isinstance(model, str | Path) else None
        self.model = open_model(model) if isinstance(model, str | Path) else model
        known = self.model.preparation_
        if rate is not None and known.rate is not None and abs(rate / known.rate - 1) > SAME_RATE:
            raise InputError(
                f"rate={rate:g} was asked for; this model was fitted on {known.rate:g} time steps per second. Resample "
                f"the samples to {known.rate:g} before they are pushed."
            )
        reading = Reading(window=window or known.n_times or None, stride=stride, rate=rate or known.rate, gap=gap)
        self.rate, self.gap = reading.rate, reading.gap
        self.window, self.stride = reading.steps(self.rate)
        self.channels, self.n_channels = known.channels, known.n_channels
        self.head, self.detector = _head_of(head, place), detector
        self._values, self._times = np.empty((0, self.n_channels)), np.empty(0)  # what later windows still need
        self._skip = 0  # time steps of the next samples that lie in no window
        self._count = 0  # samples that came so far
        self._timed: bool | None = None  # whether they had time stamps
        self._recent: Seconds = np.empty(0)  # the last steps between time stamps
        self._last: float | None = None  # time stamp
        if self.n_channels:  # the first window shall not take longer than others, and what does not fit is told now
            self._answer(np.zeros((self.window, self.n_channels)), np.arange(self.window))
        if state is not None:
            self._restore(state)

    def push(self, samples: Any, times: Any = None) -> list[StreamedWindow]:
        """Take samples (time steps, channels), any number of them, and return the windows that they complete.

        The rows are time steps, as the lines of a .csv are; a single time step may come as (channels,), and samples of
        a single channel as (time steps,). `times` holds a time stamp in seconds for each of them, such as Unix time;
        without any the samples follow each other without a gap.
        """
        values = self._checked(samples)
        if not len(values):
            return []
        if self._timed not in (None, times is not None):
            raise InputError("Samples came with time stamps before and without now, or the reverse. Pass times always.")
        stamps, recent = (self._count + np.arange(len(values))) / (self.rate or 1.0), self._recent
        breaks: list[int] = []
        if times is not None:
            stamps, recent, breaks = self._timed_by(times, len(values))
        held, clock, skip, found = self._values.reshape(-1, values.shape[1]), self._times, self._skip, []
        for first, stop in pairwise([0, *breaks, len(values)]):
            if first in breaks:
                held, clock, skip = held[:0], clock[:0], 0
            held, clock = np.concatenate([held, values[first:stop]]), np.concatenate([clock, stamps[first:stop]])
            while skip + self.window <= len(held):
                own = slice(skip, skip + self.window)
                found.append(self._answer(held[own], clock[own]))
                skip += self.stride
            past = min(skip, len(held))
            held, clock, skip = held[past:], clock[past:], skip - past
        self._values, self._times, self._skip, self._recent = held, clock, skip, recent
        self._count, self._timed, self.n_channels = self._count + len(values), times is not None, values.shape[1]
        self._last = float(stamps[-1])
        return found

    def state(self) -> dict[str, Any]:
        """Return all that later windows depend on as plain data for JSON; the model is not among it."""
        arrays = {"values": self._values.tolist(), "times": self._times.tolist(), "recent": self._recent.tolist()}
        rest = {"skip": self._skip, "count": self._count, "timed": self._timed, "last": self._last}
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **self._settings(), **arrays, **rest}

    def _settings(self) -> dict[str, Any]:
        cut = {"window": self.window, "stride": self.stride, "rate": self.rate, "gap": self.gap}
        return {**cut, "n_channels": self.n_channels}

    def _restore(self, state: Mapping[str, Any]) -> None:
        try:
            if (state["format"], state["format_version"]) != (FORMAT, FORMAT_VERSION):
                raise ValueError(f"it is of {state['format']} {state['format_version']}")
            n_channels = int(state["n_channels"])
            values = np.array(state["values"], np.float64).reshape(-1, n_channels) if n_channels else np.empty((0, 0))
            times, recent = (np.array(state[name], np.float64) for name in ("times", "recent"))
            if times.shape != (len(values),) or not all(np.isfinite(one).all() for one in (values, times, recent)):
                raise ValueError("its samples and times are not of one number, or not finite")
            skip, count, last = int(state["skip"]), int(state["count"]), state["last"]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"This is no state of a stream ({brief(error)}). Pass what state() returned, or start without one."
            ) from error
        own = self._settings()
        if other := [name for name in own if state[name] != own[name] and own[name] != 0]:
            said = ", ".join(f"{name} {state[name]}, not {own[name]}" for name in other)
            raise InputError(f"The state is of another stream ({said}). Make this one with the same settings.")
        self._values, self._times, self._recent, self._skip = values, times, recent, max(0, skip)
        self._count, self._last, self.n_channels = count, None if last is None else float(last), n_channels
        self._timed = None if state["timed"] is None else bool(state["timed"])

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
            named = "" if self.channels is None else f" ({listed(self.channels)})"
            turned = " This looks like (channels, time steps): pass its transpose." if len(array) == wanted else ""
            raise InputError(f"A sample of this stream has {wanted} channel(s){named}; got {array.shape}.{turned}")
        if len(bad := np.argwhere(~np.isfinite(array))):
            step, channel = bad[0].tolist()
            raise InputError(
                f"Time step {step} of this push has {array[step, channel]} in channel "
                f"{channel if self.channels is None else repr(self.channels[channel])}. Fill it in, for example with "
                "the value before it; or leave such time steps out and pass times=, and a new stretch begins there."
            )
        return array.astype(np.float64)

    def _timed_by(self, times: Any, n: int) -> tuple[Seconds, Seconds, list[int]]:
        """Return time stamps, the last steps between them, and the rows before which there is a gap."""
        if self.rate is None:
            raise InputError("Time stamps need a rate, which tells what a gap is. Say rate= when you make the stream.")
        stamps = check_stamps(times, n, "times")
        before = stamps[:1] if self._last is None else np.array([self._last])
        if self._last is not None and stamps[0] <= self._last:
            raise InputError(
                f"times must increase: they begin at {stamps[0]:.15g} s, and the sample before was at "
                f"{self._last:.15g} s. Push samples in the order of time, each once."
            )
        steps = np.diff(stamps, prepend=before) * self.rate
        steps = steps if self._last is not None else steps[1:]
        recent = np.concatenate([self._recent, steps])[-RECENT:]
        usual = recent[recent <= self.gap]
        if len(recent) == RECENT and (2 * len(usual) < RECENT or abs(float(usual.mean()) - 1) > OTHER_RATE):
            raise InputError(
                f"The time stamps have {self.rate / float(np.median(recent)):.4g} steps per second; this stream has a "
                f"rate of {self.rate:g}. Resample the samples before they are pushed, or say rate=."
            )
        return stamps, recent, (np.flatnonzero(steps > self.gap) + (self._last is None)).tolist()

    def _answer(self, values: Array, times: Array) -> StreamedWindow:
        # Rounded as windows of a recording are, where they are cut.
        case, head, chances = convert(np.ascontiguousarray(values.T)[None]).whole(), self.head, None
        if head is None and isinstance(self.model, OnnxEmbedder) and self.model.classes:
            vectors, chances = self.model.transform_and_predict(case, layout="nct")
        else:
            vectors = self.model.transform_into(case, lambda n, width: np.empty((n, width), np.float32), layout="nct")
        if head is not None:
            if head.n_features != vectors.shape[1]:
                raise InputError(
                    f"The classifier takes vectors of {head.n_features} numbers; this model makes {vectors.shape[1]}. "
                    "Train it on vectors of this very model: dicot embed, then dicot classify --save."
                )
            chances = head.predict_proba(vectors)
        label, chance, p = None, None, None
        if chances is not None:
            best = int(chances[0].argmax())
            label, chance = (head or self.model).classes[best], float(chances[0, best])  # type: ignore[union-attr]
        if self.detector is not None:
            p = float(self.detector.p_values(vectors)[0])
        start, end = without_noise(np.array([times[0], times[-1] + 1 / (self.rate or 1.0)]), self.rate).tolist()
        return StreamedWindow(start, end, vectors[0], label, chance, p)


def _head_of(head: FewLabelClassifier | Head | str | Path | None, model: str | Path | None) -> Head | None:
    """Return the head; one from a file must be of the folder that the model is from."""
    if not isinstance(head, str | Path):
        return head.head_ if isinstance(head, FewLabelClassifier) else head
    read = Head.load(head)
    # An ONNX file does not say of which folder it was made, and a head may be of vectors of either.
    if read.model is not None and model is not None and Path(model).suffix != ".onnx" and read.model != hash_of(model):
        raise InputError(
            f"{head} is of vectors of another model than {model}. Train it on vectors of this very model: dicot embed, "
            "then dicot classify --save."
        )
    return read
