"""What a run leaves behind: its history, what callbacks are told, and a file from which it can be continued.

A run can be killed at any moment, and ends as if it had not been.
"""

import json
import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from dicot.core.errors import DicotError, InputError, LostWorkerError, ModelFileError, NonFiniteLossError, brief
from dicot.core.storage import OPEN, TENSORS, check_hash, remove_leftovers, with_hash, write_atomic, writing
from dicot.train.together import agree, current_place, from_first

log = logging.getLogger(__name__)

EVERY = 50  # steps whose losses are fetched at once from a GPU: waiting for each would make the host as slow as it
REST = 10.0  # times as long as a write took, the run is not written again: most of its time is for training


@dataclass
class History:
    """Loss and learning rate of every step, and the seconds that were spent on them."""

    loss: list[float] = field(default_factory=list)
    lr: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.loss)


class Step(NamedTuple):
    """What a callback is told about a step."""

    number: int  # 1, 2, ..., steps
    steps: int  # of the whole run, unless a callback ends it early
    loss: float
    lr: float
    seconds: float  # since the run began, when the loss was read


OnStep = Callable[[Step], object]


def callbacks(on_step: OnStep | Sequence[OnStep] | None) -> tuple[OnStep, ...]:
    """Return what a user may pass as a tuple."""
    return (on_step,) if callable(on_step) else tuple(on_step or ())


def is_over(seconds: float, step: Step) -> bool:
    """Tell whether a run has had its time; as a callback it ends the run."""
    return step.seconds >= seconds


class Reporter:
    """Tells callbacks about each step once and in order, even where a run has to begin anew."""

    def __init__(self, on_step: OnStep | Sequence[OnStep] | None, steps: int) -> None:
        self.callbacks, self.steps = callbacks(on_step), steps
        self.told = 0

    def tell(self, history: History) -> bool:
        """Report the steps whose losses were read since the last call; True if a callback asks to end the run."""
        end = False
        while self.callbacks and self.told < len(history):
            at = self.told
            step = Step(at + 1, self.steps, history.loss[at], history.lr[at], history.seconds)
            self.told += 1
            for callback in self.callbacks:
                answer = callback(step)
                end |= isinstance(answer, bool | np.bool_) and bool(answer)
        return end


@dataclass
class Checkpoint:
    """Where and how often a run is written; if there is a file at `path`, its run is resumed."""

    path: Path
    seconds: float = 10.0  # at least this long between two writes, longer where they take long; 0: after every step
    overwrite: bool = False  # a damaged file or that of another run is replaced; otherwise it is refused
    resumed: bool = field(default=False, init=False)  # whether a run was read from the file
    ended: bool = field(default=False, init=False)  # whether that run had been ended early, by a callback
    under_way: bool = field(default=False, init=False, repr=False)  # whether steps have begun
    asked: bool = field(default=False, init=False, repr=False)  # whether it is to be written after the present step
    _written: float = field(default_factory=time.monotonic, init=False, repr=False)
    _took: float = field(default=0.0, init=False, repr=False)  # seconds of the last write

    def __post_init__(self) -> None:
        self.path = Path(self.path)

    @classmethod
    def of(cls, given: "Checkpoint | str | Path | None") -> "Checkpoint | None":
        """Turn what a user may pass into a Checkpoint; a path stands for a Checkpoint there."""
        return cls(Path(given)) if isinstance(given, str | Path) else given

    def due(self) -> bool:
        """Whether it is time to write, or somebody has asked for it."""
        pause = max(self.seconds, REST * self._took) if self.seconds else 0.0
        return self.asked or time.monotonic() - self._written >= pause

    def write(
        self,
        method: nn.Module,
        optimiser: torch.optim.Optimizer,
        history: History,
        identity: Mapping[str, Any],
        *,
        ended: bool = False,
    ) -> None:
        """Replace the file as a whole: a reader sees the old run or the new one, never a half."""
        self._written, self.asked = time.monotonic(), False
        if not current_place().is_first:
            return
        tensors = {f"method.{name}": value for name, value in method.state_dict().items()}
        numbers: dict[str, Any] = {}
        for number, state in optimiser.state_dict()["state"].items():
            for name, value in state.items():
                if not isinstance(value, Tensor | bool | int | float | None):
                    raise InputError(
                        f"A checkpoint cannot hold the {type(value).__name__} that {type(optimiser).__name__} calls "
                        f"{name!r}. Train without a checkpoint."
                    )
                (tensors if isinstance(value, Tensor) else numbers)[f"optimiser.{number}.{name}"] = value
        tensors["history.loss"] = torch.tensor(history.loss, dtype=torch.float64)
        tensors["history.lr"] = torch.tensor(history.lr, dtype=torch.float64)
        # In one entry: safetensors writes several in any order, another one each time.
        run = {"identity": dict(identity), "seconds": history.seconds, "ended": ended, "numbers": numbers}
        about = {"run": json.dumps(run, sort_keys=True), "sha256": OPEN}
        data = save({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, about)
        write_atomic(self.path, with_hash(data, TENSORS))
        started, self._written = self._written, time.monotonic()
        self._took = self._written - started

    def remove(self) -> None:
        """Remove the file, and what a process left that was killed while it wrote it."""
        with writing(self.path):
            remove_leftovers(self.path)
            self.path.unlink(missing_ok=True)

    def read(self, method: nn.Module, optimiser: torch.optim.Optimizer, identity: Mapping[str, Any]) -> History | None:
        """Load a run into method and optimiser, and give its history; None if there is no file.

        Of several processes the first reads the file for all.
        """
        self.resumed = self.ended = False
        try:
            data = from_first(self._read)
            if data is None:
                return None
            check_hash(data, TENSORS)  # what is sealed is what was written
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            tensors, run = load(data), json.loads(header["__metadata__"]["run"])
            self._check_same_run(run["identity"], json.loads(json.dumps(dict(identity))))
        except Exception as error:  # whatever a damaged file leads to
            found = error if isinstance(error, DicotError) else self._unreadable(error)
            if not self.overwrite or isinstance(error, LostWorkerError):
                raise found from error
            log.info("the run starts anew: %s", found)
            if current_place().is_first:
                self.path.unlink(missing_ok=True)
            return None
        method.load_state_dict(_part(tensors, "method."))
        values = {**_part(tensors, "optimiser."), **_part(run["numbers"], "optimiser.")}
        state = _optimiser_state(values, [one for group in optimiser.param_groups for one in group["params"]])
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
        self.resumed, self.ended = True, run["ended"]
        return History(tensors["history.loss"].tolist(), tensors["history.lr"].tolist(), run["seconds"])

    def _read(self) -> bytes | None:
        try:
            return self.path.read_bytes() if self.path.exists() else None
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ModelFileError:
        return ModelFileError(f"{self.path} is not a readable checkpoint ({brief(error)}). Delete it to start anew.")

    def _check_same_run(self, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
        differing = [
            f"{key}: {stored.get(key)!r} there, {wanted.get(key)!r} here"
            for key in sorted(stored.keys() | wanted.keys())
            if stored.get(key) != wanted.get(key)
        ]
        if differing:
            raise ModelFileError(
                f"{self.path} belongs to another run ({'; '.join(differing)}). Delete it, or give another path."
            )


def _part(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def _optimiser_state(values: Mapping[str, Any], parameters: Sequence[Tensor]) -> dict[int, dict[str, Any]]:
    """Return the state of each parameter, from values that are named "3.momentum_buffer".

    A fused optimiser goes through memory, so a moment must lie in memory as its parameter does.
    """
    state: dict[int, dict[str, Any]] = {}
    for label, value in values.items():
        number, _, name = label.partition(".")
        parameter = parameters[int(number)]
        if isinstance(value, Tensor) and value.ndim and value.shape == parameter.shape:
            value = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
        state.setdefault(int(number), {})[name] = value
    return state


class Record:
    """What a run notes step by step: its history, its checkpoint, and what callbacks are told."""

    def __init__(
        self,
        method: nn.Module,
        optimiser: torch.optim.Optimizer,
        checkpoint: Checkpoint | None,
        identity: Mapping[str, Any],
        reporter: Reporter,
        device: torch.device,
    ) -> None:
        self.method, self.optimiser, self.checkpoint, self.identity = method, optimiser, checkpoint, identity
        self.reporter, self.steps = reporter, reporter.steps
        self.history = History()
        if checkpoint:
            self.history = checkpoint.read(method, optimiser, identity) or self.history
        self.first = len(self.history)
        self.stop = self.first if checkpoint and checkpoint.ended else self.steps
        self.unread: list[Tensor] = []  # losses that are still on the device
        self.every = EVERY if device.type == "cuda" else 1

    def begin(self) -> None:
        """Say that steps begin; after each of them the run can be written."""
        self.reporter.told = max(self.reporter.told, self.first)
        self.started = time.perf_counter() - self.history.seconds
        if self.checkpoint:
            self.checkpoint.under_way = True

    def note(self, loss: Tensor, rate: float) -> bool:
        """Note a step, write the run where it is time, and tell whether it ends early, because a callback says so."""
        checkpoint = self.checkpoint
        self.unread.append(loss.clone())  # the next step may overwrite it
        self.history.lr.append(rate)
        is_last = len(self.history.lr) == self.steps
        is_asked = checkpoint is not None and checkpoint.asked  # a signal has come
        if is_last or (checkpoint is not None and checkpoint.due()):
            self._write()
        elif len(self.unread) >= self.every:
            self._read()
        ends, leaves = agree(self.reporter.tell(self.history), is_asked, self.history.loss)
        if ends and not is_last:
            self._write(ended=True)  # on a GPU more steps have been taken than were reported
            self.reporter.tell(self.history)
            return True
        if leaves:  # a signal has come to another process, perhaps to this one too
            self._write()
            if not is_asked:
                raise KeyboardInterrupt
        return False

    def _read(self) -> None:
        """Move losses from the device to the history."""
        for loss in torch.stack(self.unread).tolist() if self.unread else ():
            if not np.isfinite(loss):
                raise NonFiniteLossError(
                    f"The loss of step {len(self.history)} is {loss}. "
                    "Scale the data (scale='dataset'), lower lr, or change the method's settings."
                )
            self.history.loss.append(loss)
        self.unread.clear()
        self.history.seconds = time.perf_counter() - self.started

    def _write(self, *, ended: bool = False) -> None:
        self._read()
        if self.checkpoint is not None:
            self.checkpoint.write(self.method, self.optimiser, self.history, self.identity, ended=ended)


class DelayedInterrupts:
    """A context in which the first SIGINT or SIGTERM has the checkpoint written before it takes effect.

    A step that is cut off would leave weights and history that do not match, so it is finished first. A second signal
    does not wait, nor does the first while no step is under way. Python delivers signals to the main thread only, so in
    other threads nothing changes. A signal that the caller ignores stays ignored.
    With `patient` a signal of the other kind is not a second one: torchrun answers Ctrl-C, which reaches every process,
    by sending them SIGTERM as well.
    """

    def __init__(self, checkpoint: Checkpoint | None, *, patient: bool = False) -> None:
        self.checkpoint, self.patient = checkpoint, patient
        self.callers: dict[int, Any] = {}
        self.arrived: int | None = None

    def __enter__(self) -> "DelayedInterrupts":
        if self.checkpoint is not None and threading.current_thread() is threading.main_thread():
            self.checkpoint.under_way = self.checkpoint.asked = False
            handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
            self.callers = {n: handler for n, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
            self._delay()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._restore()
        if self.arrived is not None and kind is None:
            signal.raise_signal(self.arrived)

    def deliver(self) -> None:
        """Between two steps: once the run is written, pass the signal on to the caller's own handler."""
        if self.arrived is None or (self.checkpoint is not None and self.checkpoint.asked):
            return
        number, self.arrived = self.arrived, None
        self._restore()
        signal.raise_signal(number)
        self._delay()  # the handler wants the run to go on

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        assert self.checkpoint is not None
        if self.arrived is None and self.checkpoint.under_way:
            self.arrived, self.checkpoint.asked = number, True
        elif not self.patient or self.arrived in (None, number):
            self.arrived = None
            self._restore()
            signal.raise_signal(number)

    def _delay(self) -> None:
        for number in self.callers:
            signal.signal(number, self._arrive)

    def _restore(self) -> None:
        for number, handler in self.callers.items():
            signal.signal(number, handler)
