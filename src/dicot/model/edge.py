"""Run what `dicot export` wrote with numpy and onnxruntime alone: the model, its classifier, and a stream of samples.

This file imports nothing else of dicot, so that a copy of it runs where neither dicot nor torch is installed:
`dicot export MODEL --onnx model.onnx --runner run.py` puts one beside the model. Then

    python run.py model.onnx --window 2.56s --rate 50 < samples.csv

writes a line of JSON for each window as soon as its last sample is there, and in Python:

    from run import EdgeStream, ExportedModel

    model = ExportedModel("model.onnx")
    vectors = model.embed(windows)  # (cases, channels, time steps) -> (cases, features)
    for window in EdgeStream(model, stride=64).push(samples):  # (time steps, channels)
        print(window.start, window.label, window.probability)
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import re
import socket
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# What the file of a model says of itself; model/deployed.py writes and reads the same entries.
MODEL_FORMAT, MODEL_VERSION = "dicot-onnx", 1
INPUT, VECTORS, PROBABILITIES = "window", "embedding", "probabilities"
ABOUT, SEAL = "dicot", "dicot.sha256"
SEAL_MARK = f"{SEAL}\x12@".encode()

HEAD_FORMAT = "dicot-head"
HEAD_MARK = b'\\"sha256\\": \\"'
SMALLEST_PROBABILITY = 1e-12
# How far a probability moves along the graph of neighbours, and what the regression's guess weighs there.
SPREADINGS = {"none": (0.0, 1.0), "guesses": (0.5, 1.0), "labels": (0.8, 0.02)}

STATE_FORMAT = "dicot-stream 1"
STATE_SETTINGS = ("window", "stride", "rate", "gap", "n_channels")
USUAL_GAP = 1.5  # usual steps; a longer one between two time stamps is a gap
OTHER_RATE = 0.1  # share by which the mean step may differ from the usual one
RECENT_STEPS = 63  # between time stamps, which tell the rate of a stream
SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
LENGTH = re.compile(r"\s*(?P<number>\d+(\.\d*)?|\.\d+)\s*(?P<unit>ms|s|min|h|d|%)?\s*")


# Windows out of samples


class CutWindow(NamedTuple):
    """A window that is complete: values (time steps, channels) and the time of each time step."""

    values: np.ndarray
    times: np.ndarray


@dataclass(frozen=True)
class HeldSamples:
    """What later windows depend on."""

    values: np.ndarray  # (n, channels) samples that are still needed
    times: np.ndarray  # (n,)
    recent: np.ndarray  # the last steps between time stamps, in usual steps
    skip: int = 0  # time steps of these samples and the next ones that lie in no window
    seen: int = 0  # samples so far
    last: float | None = None  # time stamp, where samples come with some


class LiveWindows:
    """Cut samples into windows while they are measured; no window spans a gap in the time stamps.

    `after` does not change anything: it returns the windows and what is held then, and the caller puts that into
    `held` once the windows are answered. So a push that is refused leaves the stream as it was.
    """

    def __init__(self, window: int, stride: int, rate: float | None, gap: float, n_channels: int) -> None:
        self.window, self.stride, self.rate, self.gap, self.n_channels = window, stride, rate, gap, n_channels
        nothing = np.empty(0)
        self.held = HeldSamples(np.empty((0, n_channels)), nothing, nothing)

    def after(self, samples: Any, times: Any = None) -> tuple[list[CutWindow], HeldSamples]:
        """Return the windows that these samples complete, and what is held afterwards.

        Rows are time steps, as lines of a .csv are. One time step alone may come as (channels,), one channel alone as
        (time steps,). `times` has a time stamp in seconds for each time step; without any there are no gaps.
        """
        new = self._checked(samples)
        if len(new) == 0:
            return [], self.held
        if self.held.seen and (times is None) != (self.held.last is None):
            raise ValueError("Some samples came with time stamps and some without. Pass times always, or never.")
        if times is None:
            stamps = (self.held.seen + np.arange(len(new))) / (self.rate or 1.0)
            recent = self.held.recent
            gaps: list[int] = []
        else:
            stamps, recent, gaps = self._checked_times(times, len(new))

        values = self.held.values.reshape(-1, new.shape[1])
        clock = self.held.times
        skip = self.held.skip
        windows: list[CutWindow] = []
        for first, stop in pairwise([0, *gaps, len(new)]):
            if first in gaps:
                # Nothing from before the gap may be in a window with what comes after it.
                values, clock, skip = values[:0], clock[:0], 0
            values = np.concatenate([values, new[first:stop]])
            clock = np.concatenate([clock, stamps[first:stop]])
            while skip + self.window <= len(values):
                end = skip + self.window
                windows.append(CutWindow(values[skip:end], clock[skip:end]))
                skip += self.stride
            past = min(skip, len(values))
            values, clock, skip = values[past:], clock[past:], skip - past
        last = None if times is None else float(stamps[-1])
        return windows, HeldSamples(values, clock, recent, skip, self.held.seen + len(new), last)

    def keep(self, held: HeldSamples) -> None:
        self.held = held
        self.n_channels = held.values.shape[1] if held.values.ndim == 2 and held.seen else self.n_channels

    def state(self) -> dict[str, Any]:
        """Return all that later windows depend on, as plain data for JSON."""
        settings = {name: getattr(self, name) for name in STATE_SETTINGS}
        held = {
            name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self.held).items()
        }
        return {"format": STATE_FORMAT, **settings, **held}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned; refuse what is no state, or one of other settings."""
        try:
            held, n_channels = _held_of_state(state)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"This is no state of a stream ({str(error)[:200]}). Pass what state() returned."
            ) from error
        for name in STATE_SETTINGS:
            setting = getattr(self, name)
            takes_any = name == "n_channels" and setting == 0
            if not takes_any and state.get(name) != setting:
                raise ValueError(f"The state is of a stream with {name}={state.get(name)}; this one has {setting}.")
        self.held, self.n_channels = held, n_channels

    def _checked(self, samples: Any) -> np.ndarray:
        """Return samples (n, channels) in float64, which holds every float32 and whole number as it is."""
        array = np.asarray(samples)
        if array.size == 0:
            return np.empty((0, self.n_channels))
        if array.ndim == 1:
            array = array[:, None] if self.n_channels == 1 else array[None]
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise ValueError(f"push takes numbers (time steps, channels); got {array.dtype} {array.shape}.")
        wanted = self.n_channels or array.shape[1]
        if array.shape[1] != wanted:
            turned = " Is it (channels, time steps)? Pass its transpose." if len(array) == wanted else ""
            raise ValueError(f"push takes (time steps, {wanted} channels); got {array.shape}.{turned}")
        missing = np.argwhere(~np.isfinite(array))
        if len(missing):
            step, channel = missing[0].tolist()
            raise ValueError(
                f"Time step {step} of this push has {array[step, channel]} in channel {channel}. "
                "Fill it in, or leave out such time steps and pass times=."
            )
        return array.astype(np.float64)

    def _checked_times(self, times: Any, n: int) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """Return time stamps, the last steps between them, and the rows before which there is a gap."""
        if self.rate is None:
            raise ValueError("Time stamps need a rate, which tells what a gap is. Say rate= when you make the stream.")
        stamps = np.asarray(times)
        if stamps.shape != (n,) or stamps.dtype.kind not in "iuf":
            raise ValueError(
                f"times must be {n} numbers, a time in seconds for each time step; got {stamps.shape} of "
                f"{stamps.dtype}. Convert dates to seconds first."
            )
        stamps = stamps.astype(np.float64)
        wrong = np.flatnonzero(~(np.diff(stamps, prepend=-np.inf) > 0) | ~np.isfinite(stamps))
        if len(wrong):
            raise ValueError(
                f"times must increase and be finite; time step {wrong[0]} is at {stamps[wrong[0]]:g} s. Push in order."
            )
        last = self.held.last
        if last is not None and stamps[0] <= last:
            raise ValueError(f"times must increase; {stamps[0]:.15g} s came after {last:.15g} s. Push in order.")

        steps = np.diff(stamps, prepend=stamps[0] if last is None else last) * self.rate
        measured = steps[1:] if last is None else steps  # the first of all samples has no step before it
        recent = np.concatenate([self.held.recent, measured])[-RECENT_STEPS:]
        usual = recent[recent <= self.gap]
        mostly_gaps = 2 * len(usual) < RECENT_STEPS
        if len(recent) == RECENT_STEPS and (mostly_gaps or abs(float(usual.mean()) - 1) > OTHER_RATE):
            measured_rate = self.rate / float(np.median(recent))
            raise ValueError(
                f"times have {measured_rate:.4g} steps per second; the rate is {self.rate:g}. Resample first."
            )
        return stamps, recent, np.flatnonzero(steps > self.gap).tolist()


def _held_of_state(state: Mapping[str, Any]) -> tuple[HeldSamples, int]:
    n_channels = int(state["n_channels"])
    last = state["last"]
    values, times, recent = (np.array(state[name], np.float64) for name in ("values", "times", "recent"))
    values = values.reshape(len(times), n_channels)
    skip, seen = int(state["skip"]), int(state["seen"])
    is_finite = np.isfinite([*values.ravel(), *times, *recent, last or 0.0]).all()
    if not is_finite or min(skip, seen) < 0 or state["format"] != STATE_FORMAT:
        raise ValueError("another format, or numbers that cannot be")
    return HeldSamples(values, times, recent, skip, seen, last), n_channels


def length_in_steps(text: str | int, rate: float | None, window: int | None = None) -> int:
    """Return the time steps of a length: a number of them, a time such as "2.56s", or a share of the window."""
    match = LENGTH.fullmatch(str(text).lower())
    if match is None or (match["unit"] == "%" and window is None):
        raise ValueError(f"{text!r} is no length. Give time steps such as 128, or a time such as 2.56s.")
    number, unit = float(match["number"]), match["unit"]
    if unit == "%":
        return max(1, round((window or 1) * number / 100))
    if unit is not None and rate is None:
        raise ValueError(f"{text!r} needs a rate. Say how many time steps a second has, or give time steps.")
    steps = round(number * SECONDS_PER_UNIT[unit] * (rate or 1.0)) if unit else int(number)
    if steps < 1:
        raise ValueError(f"{text!r} is less than one time step. Give a longer one.")
    return steps


def rounded_time(time: float, rate: float | None) -> float:
    """Round a time to a nanosecond or a millionth of a time step, but to at most 15 digits, as dicot does for files."""
    if rate is None:
        return time
    finest = max(9, 6 + math.ceil(math.log10(rate)))
    digits_before_point = int(np.searchsorted(10.0 ** np.arange(15), abs(time), side="right"))
    return float(np.round(time, min(max(15 - digits_before_point, 0), finest)))


# The model and its classifier


class ExportedModel:
    """The .onnx file that `dicot export` wrote.

    Attributes
    ----------
    about : what the file says of itself: channels, rate, n_times, policies, classes, the vector
    channels, n_channels : names or None, and number; 0 where it takes any
    rate, n_times : time steps per second or None, and time steps of the windows that it was fitted on
    classes : the labels that probabilities have a column for; empty where the file has no classifier
    n_features : the length of a vector
    """

    def __init__(self, path: str | Path, threads: int | None = None) -> None:
        import onnxruntime

        content = Path(path).read_bytes()
        _check_seal(content, SEAL_MARK, path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        self.session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        takes_float64 = self.session.get_inputs()[0].type == "tensor(double)"
        self.input_type = np.float64 if takes_float64 else np.float32
        metadata = self.session.get_modelmeta().custom_metadata_map
        self.about: dict[str, Any] = json.loads(metadata.get(ABOUT, "{}"))
        if self.about.get("format") != MODEL_FORMAT or self.about.get("format_version") != MODEL_VERSION:
            raise ValueError(f"{path} is no model that `dicot export` of this version wrote. Export it again.")
        self.path = Path(path)
        self.channels: tuple[str, ...] | None = tuple(self.about["channels"]) if self.about["channels"] else None
        self.n_channels: int = self.about["n_channels"]
        self.rate: float | None = self.about["rate"]
        self.n_times: int = self.about["n_times"]
        self.classes: tuple[Any, ...] = tuple(self.about["classes"])
        self.n_features: int = self.about["n_features"]

    def embed(self, windows: Any) -> np.ndarray:
        """Return vectors (cases, features) of raw windows (cases, channels, time steps) of one length."""
        return self._run(windows, [VECTORS])[0]

    def embed_and_classify(self, windows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors, and probabilities (cases, classes) by the classifier inside the file."""
        if not self.classes:
            raise ValueError(f"{self.path} has no classifier. Export it with one: dicot export ... --classifier FILE.")
        vectors, probabilities = self._run(windows, [VECTORS, PROBABILITIES])
        return vectors, probabilities

    def _run(self, windows: Any, outputs: list[str]) -> list[np.ndarray]:
        windows = np.asarray(windows)
        wanted = self.n_channels or "any number of"
        if windows.ndim != 3 or (self.n_channels and windows.shape[1] != self.n_channels):
            raise ValueError(f"{self.path} takes (cases, {wanted} channels, time steps); got {windows.shape}.")
        if self.input_type is np.float32 and loses_signal(windows):
            warnings.warn(
                f"A channel varies by less than float32, in which {self.path} takes windows, can tell apart at its "
                "size. Export the model again, with --float64.",
                stacklevel=4,
            )
        # The file does all else: scale, missing values, other lengths. It answers NaN where the model would refuse.
        results: list[np.ndarray] = self.session.run(outputs, {INPUT: windows.astype(self.input_type)})
        refused = np.flatnonzero(~np.isfinite(results[0]).all(axis=1))
        if len(refused):
            raise ValueError(
                f"{self.path} cannot use case {refused[0]}: it has missing or infinite values, or far too large ones."
            )
        return results


def loses_signal(windows: np.ndarray) -> bool:
    """Tell whether float32 takes more than a 512th of what a channel of windows (N, C, T) varies by."""
    rounded = windows.astype(np.float32).astype(np.float64)
    if np.array_equal(rounded, windows, equal_nan=True):
        return False
    error = np.abs(rounded - windows).max(axis=2)
    spread = windows.max(axis=2) - windows.min(axis=2)
    is_noise = spread <= 1e-14 * np.abs(windows).max(axis=2)
    return bool((~is_noise & (error > spread / 512)).any())


class SavedHead:
    """The classifier that `dicot classify --save` wrote: vectors (cases, features) -> probabilities."""

    def __init__(self, path: str | Path) -> None:
        content = Path(path).read_bytes()
        _check_seal(content, HEAD_MARK, path)
        self.path = Path(path)
        self.arrays, config = _read_safetensors(content)
        if config.get("format") != HEAD_FORMAT:
            raise ValueError(f"{path} is no classifier of `dicot classify --save`. Save it again.")
        self.classes: tuple[Any, ...] = tuple(config["classes"])
        self.n_features = len(self.arrays["mean"])
        self.temperature = float(config["temperature"])
        self.count = int(config.get("count", 0))
        self.spreading = str(config.get("spreading", "none"))

    def predict_proba(self, vectors: np.ndarray) -> np.ndarray:
        """Return probabilities (cases, classes) in the order of `classes`."""
        scaled = (vectors - self.arrays["mean"]) * self.arrays["factor"]
        scores = scaled @ self.arrays["coef"].T + self.arrays["intercept"]
        if "places" not in self.arrays:
            return _softmax(scores / self.temperature)

        places = self.arrays["places"]
        own = scaled @ self.arrays["directions"]
        distances = (places**2).sum(axis=1) - 2 * own @ places.T  # less what all places have in common
        near = np.argpartition(distances, self.count - 1, axis=1)[:, : self.count]
        around = self.arrays["settled"][near].mean(axis=1)
        reach, weight = SPREADINGS[self.spreading]
        together = (1 - reach) * weight * _softmax(scores) + reach * around
        return _softmax(np.log(np.maximum(together, SMALLEST_PROBABILITY)) / self.temperature)


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: np.ndarray = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _check_seal(content: bytes, mark: bytes, path: str | Path) -> None:
    """Refuse a file whose hash, which stands behind a mark in it, is not that of its content."""
    seal = re.search(re.escape(mark) + rb"([0-9a-f]{64})", content)
    if seal is None:
        return  # another program has changed the file on purpose and says so, or it is no such file: that is told later
    without = content[: seal.start(1)] + b"0" * 64 + content[seal.end(1) :]
    if hashlib.sha256(without).hexdigest().encode() != seal.group(1):
        raise ValueError(f"{path} is damaged: its hash does not match its content. Copy or write it again.")


def _read_safetensors(content: bytes) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the float64 arrays of a .safetensors file, and dicot's entry of its metadata."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    config = json.loads(header.pop("__metadata__", {}).get("dicot", "{}"))
    arrays = {}
    for name, entry in header.items():
        first, stop = entry["data_offsets"]
        values = np.frombuffer(content[8 + size + first : 8 + size + stop], "<f8")
        arrays[name] = values.reshape(entry["shape"])
    return arrays, config


# The stream


class EdgeWindow(NamedTuple):
    """A window that a push completed."""

    start: float  # seconds from the first sample, or by the time stamps; time steps where no rate is known
    end: float
    vector: np.ndarray  # (features,)
    label: Any = None  # the most probable class, where there is a classifier
    probability: float | None = None  # of that class


class EdgeStream:
    """Answer the windows of one recording while it is measured, as `dicot.Stream` does.

    Parameters
    ----------
    model : an ExportedModel
    window, stride : time steps, a time such as "2.56s", or for the stride a share such as "50%"; by default the length
        that the model was fitted on, and half of it
    rate : time steps per second; by default the model's
    gap : a step between time stamps that is longer than so many usual steps is a gap
    head : a SavedHead, where the classifier is not in the model's file
    state : what `state()` of such a stream returned; this one goes on from there
    """

    def __init__(
        self,
        model: ExportedModel,
        *,
        window: str | int | None = None,
        stride: str | int = "50%",
        rate: float | None = None,
        gap: float = USUAL_GAP,
        head: SavedHead | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        if window is None and not model.n_times:
            raise ValueError(f"{model.path} was fitted on no length of windows. Say how long they are: window=.")
        if head is not None and head.n_features != model.n_features:
            raise ValueError(
                f"{head.path} takes vectors of {head.n_features} numbers; the model has {model.n_features}."
            )
        self.model, self.head = model, head
        self.classes = model.classes if head is None else head.classes
        self.rate = rate or model.rate
        steps = length_in_steps(window or model.n_times, self.rate)
        self.windows = LiveWindows(steps, length_in_steps(stride, self.rate, steps), self.rate, gap, model.n_channels)
        if state is not None:
            self.windows.restore(state)

    def push(self, samples: Any, times: Any = None) -> list[EdgeWindow]:
        """Take samples (time steps, channels), any number of them, and return the windows that they complete."""
        cut, held = self.windows.after(samples, times)
        answers = [self._answer(window) for window in cut]
        self.windows.keep(held)
        return answers

    def state(self) -> dict[str, Any]:
        """Return all that later windows depend on, but for the model, as plain data for JSON."""
        return self.windows.state()

    def _answer(self, window: CutWindow) -> EdgeWindow:
        start = rounded_time(float(window.times[0]), self.rate)
        end = rounded_time(float(window.times[-1]) + 1 / (self.rate or 1.0), self.rate)
        case = window.values.T[None]
        if not self.classes:
            return EdgeWindow(start, end, self.model.embed(case)[0])
        if self.head is None:
            vectors, probabilities = self.model.embed_and_classify(case)
        else:
            vectors = self.model.embed(case)
            probabilities = self.head.predict_proba(vectors)
        best = int(probabilities[0].argmax())
        return EdgeWindow(start, end, vectors[0], self.classes[best], float(probabilities[0, best]))


# Lines of text in, lines of JSON out


class BadLineError(ValueError):
    """A line that holds no sample."""


@dataclass
class SampleLines:
    """Read samples from lines of a .csv whose first line names the columns.

    A column called `time` holds seconds, or dates in ISO 8601, which are UTC where they name no zone. The channels are
    those of the model where it knows their names, and otherwise all other columns.
    """

    lines: Iterable[str]
    channels: Sequence[str] | None = None
    time: str = "time"
    has_times: bool = field(init=False)
    left_out: list[str] = field(init=False)  # columns that are no channels of the model

    def __post_init__(self) -> None:
        self._rows = csv.reader(self.lines)
        self._names = [name.strip() for name in next(self._rows, [])]
        if not self._names:
            raise BadLineError("There is no first line that names the columns, such as time,x,y,z.")
        self.has_times = self.time in self._names
        others = [name for name in self._names if name != self.time]
        self._channels = list(self.channels or others)
        lacking = [name for name in self._channels if name not in others]
        if lacking:
            raise BadLineError(
                f"The first line has no column {lacking[0]!r}, which is a channel of the model. It names "
                f"{', '.join(self._names)}; the model takes {', '.join(self._channels)}."
            )
        self.left_out = [name for name in others if name not in self._channels]

    def __iter__(self) -> Iterator[tuple[list[float], list[float] | None] | BadLineError]:
        """Yield the values of a sample and its time stamp, if there are some; or what is wrong with a line."""
        for row in self._rows:
            if not row:
                continue
            try:
                yield self._sample(row)
            except BadLineError as error:
                yield error

    def name_of_line(self) -> str:
        return f"line {self._rows.line_num}"

    def _sample(self, row: list[str]) -> tuple[list[float], list[float] | None]:
        line = f"{self.name_of_line()} ({','.join(row)[:60]})"
        if len(row) != len(self._names):
            raise BadLineError(
                f"{line} has {len(row)} values. Send {len(self._names)}, one for each of {', '.join(self._names)}."
            )
        cells = dict(zip(self._names, row, strict=True))
        values = []
        for name in self._channels:
            try:
                values.append(float(cells[name]))
            except ValueError:
                raise BadLineError(f"{line} has {cells[name]!r} in the column {name!r}. Send a number.") from None
        if not self.has_times:
            return values, None
        try:
            return values, [_seconds(cells[self.time])]
        except ValueError:
            raise BadLineError(
                f"{line} has {cells[self.time]!r} in the column {self.time!r}. Send seconds, or a date such as "
                "2026-03-02T08:00:00Z."
            ) from None


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        date = datetime.fromisoformat(text.strip())
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def json_line(window: Any, with_vector: bool) -> str:
    """Write an answered window as a line of JSON; what it does not have is left out."""
    parts = {name: value for name, value in window._asdict().items() if value is not None and name != "vector"}
    if with_vector:
        parts["vector"] = window.vector.tolist()
    return json.dumps(parts)


@dataclass
class LineCounts:
    """How many lines became what."""

    samples: int = 0
    windows: int = 0
    bad: int = 0


def answer_lines(
    stream: Any,
    lines: SampleLines,
    write: Callable[[str], None],
    complain: Callable[[str], None],
    *,
    with_vector: bool = True,
    strict: bool = False,
    state_file: Path | None = None,
) -> LineCounts:
    """Push each sample into a stream, and write a line for each window that is complete.

    A line that cannot be used is named and left out where samples have time stamps, because the time tells that one is
    missing. Without time stamps, and where it is `strict`, it ends the stream.
    """
    counts = LineCounts()
    for sample in lines:
        try:
            if isinstance(sample, BadLineError):
                raise sample
            windows = stream.push(*sample)
        except ValueError as error:
            problem = error if isinstance(error, BadLineError) else f"{lines.name_of_line()} was refused: {error}"
            if strict or not lines.has_times:
                raise BadLineError(str(problem)) from error
            counts.bad += 1
            complain(f"Left out: {problem}")
            continue
        counts.samples += 1
        counts.windows += len(windows)
        for window in windows:
            write(json_line(window, with_vector))
        if windows and state_file is not None:
            write_state(stream, state_file)
    if state_file is not None:
        write_state(stream, state_file)
    return counts


def write_state(stream: Any, path: Path) -> None:
    """Put the state of a stream into a file, whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(stream.state()), encoding="utf-8")
    os.replace(part, path)


def read_state(path: Path | None) -> dict[str, Any] | None:
    """Return the state that a file holds; None where there is no such file yet."""
    if path is None or not path.exists():
        return None
    try:
        state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} holds no state of a stream. Move it away to begin anew.") from error
    return state


def lines_of(address: str | None) -> Iterator[str]:
    """Yield lines of the standard input, or of a socket at HOST:PORT."""
    if address is None:
        yield from sys.stdin
        return
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise ValueError(f"{address!r} is no address. Give HOST:PORT, such as 192.168.0.5:5000.")
    with closing(socket.create_connection((host or "localhost", int(port)))) as connection:
        yield from connection.makefile(encoding="utf-8", newline="")


def main() -> int:
    """Read samples, write windows.

    Exit code 0: done, 1: an error, 2: a wrong call, 3: lines were left out, 130: interrupted, 141: nobody reads on.
    """
    parser = argparse.ArgumentParser(description="Embed and classify samples of a .csv while they come.")
    parser.add_argument("model", type=Path, help="The .onnx file that `dicot export` wrote.")
    parser.add_argument("--window", help="Time steps, or a time such as 2.56s; default: the model's.")
    parser.add_argument("--stride", default="50%", help="Time steps, a time, or a share of the window.")
    parser.add_argument("--rate", type=float, help="Time steps per second; default: the model's.")
    parser.add_argument("--time", default="time", help="The column of time stamps.")
    parser.add_argument("--head", type=Path, help="A classifier of `dicot classify --save`.")
    parser.add_argument("--connect", metavar="HOST:PORT", help="Read from a socket in place of the standard input.")
    parser.add_argument("--state", type=Path, help="Go on from this file, and keep the state there.")
    parser.add_argument("--no-vectors", action="store_true", help="Write place, label and probability alone.")
    parser.add_argument("--strict", action="store_true", help="End at the first line that cannot be used.")
    options = parser.parse_args()
    try:
        model = ExportedModel(options.model)
        stream = EdgeStream(
            model,
            window=options.window,
            stride=options.stride,
            rate=options.rate,
            head=None if options.head is None else SavedHead(options.head),
            state=read_state(options.state),
        )
        counts = answer_lines(
            stream,
            SampleLines(lines_of(options.connect), model.channels, options.time),
            lambda line: _write_line(sys.stdout, line),
            lambda line: _write_line(sys.stderr, line),
            with_vector=not options.no_vectors,
            strict=options.strict,
            state_file=options.state,
        )
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # behind `| head`, which has its lines
        give_up_output()
        return 141
    except (ValueError, OSError, ImportError) as error:
        _write_line(sys.stderr, f"Error: {error}")
        return 1
    return 3 if counts.bad else 0


def give_up_output() -> None:
    """Write nothing any more: Python would try once more at the end, and complain that nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.dup2(nowhere, sys.stderr.fileno())


def _write_line(file: Any, line: str) -> None:
    file.write(f"{line}\n")
    file.flush()


if __name__ == "__main__":
    sys.exit(main())
