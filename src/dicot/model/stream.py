"""Stream: samples come in as they are measured, windows go out with their vectors; by torch, or an ONNX file alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from dicot.core.errors import InputError
from dicot.data.cases import Array
from dicot.data.conversion import convert
from dicot.data.cutting import without_noise
from dicot.data.reading import Reading
from dicot.data.timestamps import GAP, SAME_RATE
from dicot.model.deployed import OnnxEmbedder, new_rows, open_model
from dicot.model.edge import CutWindow, LiveWindows
from dicot.model.fewlabels import FewLabelClassifier
from dicot.model.head import Head

if TYPE_CHECKING:
    from dicot.model.estimator import TimeSeriesEmbedder


class StreamedWindow(NamedTuple):
    """A window that a push completed."""

    start: float  # seconds from the first sample, or by the time stamps; time steps where no rate is known
    end: float
    vector: Array  # (F,)
    label: Any = None  # the most probable class, where there is a classifier
    probability: float | None = None  # of that class
    outlier: float | None = None  # p-value, where there is a detector: small where the window is unusual


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
        preparation = self.model.preparation_
        fitted_rate = preparation.rate
        if rate is not None and fitted_rate is not None and abs(rate / fitted_rate - 1) > SAME_RATE:
            raise InputError(f"This model was fitted on a rate of {fitted_rate:g}; got {rate:g}. Resample first.")
        window = window or preparation.n_times or None
        reading = Reading(window=window, stride=stride, rate=rate or fitted_rate, gap=gap)
        self.rate, self.gap = reading.rate, reading.gap
        self.window, self.stride = reading.steps(self.rate)
        self.channels = preparation.channels
        self.head = self._checked_head(head)
        self.detector = detector
        self.classes: tuple[Any, ...] = getattr(self.model if self.head is None else self.head, "classes", ())
        self._windows = LiveWindows(self.window, self.stride, self.rate, self.gap, preparation.n_channels)
        if self.n_channels:  # the first window shall not take longer than others, and what does not fit is told now
            self._answer(CutWindow(np.zeros((self.window, self.n_channels)), np.arange(self.window) / 1.0))
        if state is not None:
            with _as_input_error():
                self._windows.restore(state)

    def _checked_head(self, head: FewLabelClassifier | Head | str | Path | None) -> Head | None:
        """Return the head that labels windows, which must take the vectors of the model."""
        if isinstance(head, str | Path):
            head = Head.load(head)
        if isinstance(head, FewLabelClassifier):
            head = head.head_
        width = self.model.n_features if isinstance(self.model, OnnxEmbedder) else self.model._n_features_out
        if head is not None and head.n_features != width:
            raise InputError(
                f"The classifier takes vectors of {head.n_features} numbers; this model makes {width}. Train it on "
                "vectors of this very model: dicot embed, dicot classify --save."
            )
        return head

    def push(self, samples: Any, times: Any = None) -> list[StreamedWindow]:
        """Take samples (time steps, channels), any number of them, and return the windows that they complete.

        Rows are time steps, as lines of a .csv are; one alone may come as (channels,), one channel as (time steps,).
        `times` holds a time stamp in seconds for each, such as Unix time; without any there are no gaps.
        """
        with _as_input_error():
            cut, held = self._windows.after(samples, times)
        answers = [self._answer(window) for window in cut]
        self._windows.keep(held)
        return answers

    @property
    def n_channels(self) -> int:
        """Number of channels of a sample; 0 before the first push, where the model takes any number."""
        return self._windows.n_channels

    def state(self) -> dict[str, Any]:
        """Return all that later windows depend on, but for the model, as plain data for JSON."""
        return self._windows.state()

    def _answer(self, window: CutWindow) -> StreamedWindow:
        case: Any = convert(np.ascontiguousarray(window.values.T)[None]).whole()  # rounded as cut windows are
        if self.head is None and self.classes and isinstance(self.model, OnnxEmbedder):
            vectors, chances = self.model.transform_and_predict(case, layout="nct")
        else:
            vectors = self.model.transform_into(case, new_rows, layout="nct")
            chances = np.ones((1, 1)) if self.head is None else self.head.predict_proba(vectors)

        best = int(chances[0].argmax())
        label, chance = (self.classes[best], float(chances[0, best])) if self.classes else (None, None)
        p = None if self.detector is None else float(self.detector.p_values(vectors)[0])

        last_end = window.times[-1] + 1 / (self.rate or 1.0)
        start, end = without_noise(np.array([window.times[0], last_end]), self.rate).tolist()
        return StreamedWindow(start, end, vectors[0], label, chance, p)


@contextmanager
def _as_input_error() -> Iterator[None]:
    """Raise what LiveWindows refuses as dicot's own error; edge.py stands alone and does not know it."""
    try:
        yield
    except ValueError as error:
        raise InputError(str(error)) from error
