"""A run on disk, so that it can be killed at any moment and ends as if it had not been."""

import json
import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from dicot.core.errors import InputError, ModelFileError, brief
from dicot.core.storage import write_atomic
from dicot.core.storage.seals import OPEN, TENSORS, check_seal, sealed
from dicot.train.history import History

log = logging.getLogger(__name__)

MOMENTS = {"step", "exp_avg", "exp_avg_sq"}  # the state that AdamW has for a parameter
REST = 10.0  # times as long as a write took, the run is not written again: most of its time is for training
# What comes of a file that is no checkpoint; RecursionError is a RuntimeError.
UNREADABLE = (SafetensorError, LookupError, ValueError, TypeError, AttributeError, OverflowError, RuntimeError)
Fetch = Callable[[Callable[[], bytes | None]], bytes | None]


@dataclass
class Checkpoint:
    """Where and how often a run is written; if there is a file at `path`, its run is resumed."""

    path: Path
    seconds: float = 10.0  # at least this long between two writes, longer where they take long; 0: after every step
    overwrite: bool = False  # a damaged file or that of another run is replaced; otherwise it is refused
    resumed: bool = field(default=False, init=False)  # whether a run was read from the file
    ended: bool = field(default=False, init=False)  # whether that run had been ended early, by a callback
    writes: bool = field(default=True, init=False)  # of several ranks of a run, only the first writes it
    under_way: bool = field(default=False, init=False, repr=False)  # whether steps have begun
    asked: bool = field(default=False, init=False, repr=False)  # whether it is to be written after the present step
    _written: float = field(default_factory=time.monotonic, init=False, repr=False)
    _took: float = field(default=0.0, init=False, repr=False)  # seconds of the last write

    def __post_init__(self) -> None:
        self.path = Path(self.path)

    @classmethod
    def of(cls, given: "Checkpoint | str | Path | None") -> "Checkpoint | None":
        """Turn what a user may pass into a Checkpoint; a path stands for a Checkpoint there."""
        if isinstance(given, str | Path):
            return cls(Path(given))
        if given is not None and not isinstance(given, cls):
            raise InputError(f"checkpoint must be a path or a Checkpoint; got {given!r}.")
        return given

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
        if not self.writes:
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
        write_atomic(self.path, sealed(data, TENSORS))
        started, self._written = self._written, time.monotonic()
        self._took = self._written - started

    def read(
        self,
        method: nn.Module,
        optimiser: torch.optim.Optimizer,
        identity: Mapping[str, Any],
        steps: int,
        fetch: Fetch = lambda read: read(),
    ) -> History | None:
        """Load a run of so many steps into method and optimiser, and give its history; None if there is no file.

        `fetch` is given a function that reads the file; of several ranks one reads it for all.
        """
        self.resumed = self.ended = False
        try:
            data = fetch(self._read)
            if data is None:
                return None
            try:
                tensors, run = _contents(data)
                _check_same_run(self.path, run["identity"], json.loads(json.dumps(dict(identity))))
                # Everything is looked at before anything is loaded.
                weights = _fitting(_part(tensors, "method."), method.state_dict())
                state = _optimiser_state(
                    {**_part(tensors, "optimiser."), **_part(run["numbers"], "optimiser.")},
                    [parameter for group in optimiser.param_groups for parameter in group["params"]],
                    is_adamw=not identity["optimiser"],
                )
                history, ended = _history(tensors, float(run["seconds"]), steps), run["ended"] is True
            except ModelFileError:
                raise
            except UNREADABLE as error:
                raise self._unreadable(error) from error
        except ModelFileError as error:
            if not self.overwrite:
                raise
            log.info("the run starts anew: %s", error)
            if self.writes:
                self.path.unlink(missing_ok=True)
            return None
        method.load_state_dict(weights)
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
        self.resumed, self.ended = True, ended
        return history

    def _read(self) -> bytes | None:
        try:
            return self.path.read_bytes() if self.path.exists() else None
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ModelFileError:
        return ModelFileError(f"{self.path} is not a readable checkpoint ({brief(error)}). Delete it to start anew.")


def _contents(data: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    check_seal(data, TENSORS)
    header = data[8 : 8 + int.from_bytes(data[:8], "little")]
    return load(data), json.loads(json.loads(header)["__metadata__"]["run"])


def _part(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def _fitting(stored: dict[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the stored weights, or raise an error if the method's are others."""
    kinds, there = ({name: (t.shape, t.dtype) for name, t in part.items()} for part in (wanted, stored))
    if kinds != there:
        other = [name for name in sorted({*kinds, *there}) if kinds.get(name) != there.get(name)]
        raise ValueError(f"the weights {', '.join(other[:3])} are others than the method's")
    return stored


def _optimiser_state(
    values: Mapping[str, Any], parameters: list[Tensor], *, is_adamw: bool
) -> dict[int, dict[str, Any]]:
    """Return the state of each parameter, from values that are named "3.momentum_buffer".

    A fused optimiser goes through memory, so a moment must lie in memory as its parameter does. Those of our own AdamW
    must be there, with the shape of the parameter.
    """
    state: dict[int, dict[str, Any]] = {}
    for label, value in values.items():
        number, _, name = label.partition(".")
        parameter = parameters[int(number)]
        if isinstance(value, Tensor) and value.ndim and value.shape == parameter.shape:
            value = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
        state.setdefault(int(number), {})[name] = value
    for at, moments in state.items() if is_adamw else ():
        kind = parameters[at].shape, parameters[at].dtype
        wanted = dict.fromkeys(MOMENTS, kind) | {"step": (torch.Size(), torch.float32)}
        if {name: (value.shape, value.dtype) for name, value in moments.items()} != wanted:
            raise ValueError(f"the moments of parameter {at} do not fit it")
    return state


def _history(stored: Mapping[str, Tensor], seconds: float, steps: int) -> History:
    loss, lr = stored["history.loss"], stored["history.lr"]
    if loss.ndim != 1 or loss.shape != lr.shape or not 1 <= len(loss) <= steps:
        raise ValueError(f"its losses and rates are not those of 1 to {steps} steps")
    if not (loss.isfinite().all() and lr.isfinite().all() and math.isfinite(seconds)):
        raise ValueError("its history is not finite")
    return History(loss.tolist(), lr.tolist(), seconds)


def _check_same_run(path: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    differing = [
        f"{key}: {stored.get(key)!r} there, {wanted.get(key)!r} here"
        for key in sorted(stored.keys() | wanted.keys())
        if stored.get(key) != wanted.get(key)
    ]
    if differing:
        raise ModelFileError(
            f"{path} belongs to another run ({'; '.join(differing)}). Delete it, or give another path."
        )


class DelayedInterrupts:
    """A context in which the first SIGINT or SIGTERM has the checkpoint written before it takes effect.

    A step that is cut off would leave weights and history that do not match, so it is finished first. A second signal
    does not wait, nor does the first while no step is under way. Python delivers signals to the main thread only, so in
    other threads nothing changes. A signal that the caller ignores stays ignored.
    With `patient` a signal of the other kind is not a second one: torchrun answers Ctrl-C, which reaches every rank, by
    sending them SIGTERM as well.
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
