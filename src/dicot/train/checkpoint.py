"""A run on disk, so that it can be killed at any moment and ends as if it had not been."""

import json
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from dicot.core.errors import InputError, ModelFileError, brief
from dicot.core.storage import write_atomic
from dicot.core.storage.seals import OPEN, TENSORS, check_seal, sealed
from dicot.train.history import History

log = logging.getLogger(__name__)

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # the state that AdamW has for a parameter
Fetch = Callable[[Callable[[], bytes | None]], bytes | None]
REST = 10.0  # times as long as a write took, nothing in the process is written again: most of its time is for training


@dataclass
class Checkpoint:
    """Where and how often a run is written; if there is a file at `path`, its run is resumed."""

    path: Path
    seconds: float = 10.0  # at least this long between two writes, longer where they take long; 0: after every step
    overwrite: bool = False  # a damaged file or that of another run is replaced; otherwise it is refused
    resumed: bool = field(default=False, init=False)  # whether a run was read from the file
    ended: bool = field(default=False, init=False)  # whether that run had been ended early, by a callback
    writes: bool = field(default=True, init=False)  # of several ranks of a run, only the first writes it
    _rest_until: ClassVar[float] = 0.0  # of all runs of the process, which may take turns
    _written: float = field(default_factory=time.monotonic, init=False, repr=False)
    _under_way: bool = field(default=False, init=False, repr=False)
    _asked: bool = field(default=False, init=False, repr=False)

    def rest(self) -> None:
        """Say that there is nothing to be written until the first step."""
        self._under_way = self._asked = False

    def begin(self) -> None:
        """Say that steps begin; after each of them the run can be written."""
        self._under_way = True

    def ask(self) -> bool:
        """Have the run written as soon as the step under way is done; False if no step is."""
        self._asked = self._under_way
        return self._asked

    @property
    def asked(self) -> bool:
        """Whether what was asked for is still to be written."""
        return self._asked

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
        now = time.monotonic()
        rested = self.seconds == 0 or now >= Checkpoint._rest_until
        return self._asked or (rested and now - self._written >= self.seconds)

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
        started = time.monotonic()
        if not self.writes:
            self._written, self._asked = started, False
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
        self._written = time.monotonic()
        Checkpoint._rest_until = self._written + REST * (self._written - started)
        self._asked = False

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
            tensors, run = self._contents(data)
            is_own = not identity["optimiser"]  # AdamW, whose state is known
            _check_same_run(self.path, run["identity"], json.loads(json.dumps(dict(identity))))
            parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
            try:
                values = {**_part(tensors, "optimiser."), **_part(run["numbers"], "optimiser.")}
                state = _adamw_state(values, parameters) if is_own else _optimiser_state(values, parameters)
                weights = _fitting(_part(tensors, "method."), method.state_dict())
                history = _history(_part(tensors, "history."), float(run["seconds"]), steps)
                ended = run["ended"] is True
            except (LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
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
        if not self.path.exists():
            return None
        try:
            if not self.path.is_file():
                raise ValueError("it is not a plain file")
            return self.path.read_bytes()
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error

    def _contents(self, data: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
        try:
            header = data[8 : 8 + int.from_bytes(data[:8], "little")]
            check_seal(data, TENSORS)
            tensors, run = load(data), json.loads(json.loads(header)["__metadata__"]["run"])
            if not isinstance(run["identity"], dict):
                raise ValueError("its identity is not a table of names and values")
            return tensors, run
        except (SafetensorError, LookupError, ValueError, TypeError, RuntimeError) as error:
            raise self._unreadable(error) from error  # RecursionError is a RuntimeError

    def _unreadable(self, error: Exception) -> ModelFileError:
        return ModelFileError(f"{self.path} is not a readable checkpoint ({brief(error)}). Delete it to start anew.")


def _part(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def _fitting(stored: dict[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The stored weights, or an error if the method's are others."""
    if stored.keys() != wanted.keys():
        raise ValueError(f"it lacks or adds {', '.join(sorted(stored.keys() ^ wanted.keys())[:3])}")
    for name, value in wanted.items():
        _check_like(name, stored[name], value)
    return stored


def _check_like(name: str, stored: Tensor, wanted: Tensor) -> None:
    if (stored.shape, stored.dtype) != (wanted.shape, wanted.dtype):
        raise ValueError(
            f"{name} is {stored.dtype} of shape {tuple(stored.shape)}, not {wanted.dtype} of {tuple(wanted.shape)}"
        )


def _adamw_state(values: Mapping[str, Any], parameters: list[Tensor]) -> dict[int, dict[str, Any]]:
    """The state of our own optimiser: for each parameter all moments, or no state if it has not been updated yet."""
    state = _optimiser_state(values, parameters)
    for number, moments in state.items():
        if moments.keys() != set(MOMENTS) or not all(isinstance(value, Tensor) for value in moments.values()):
            raise ValueError(f"the moments of parameter {number} are {', '.join(sorted(moments))}")
        if moments["step"].ndim or not moments["step"].is_floating_point():
            raise ValueError(f"the step of parameter {number} is not a number")
        for name in MOMENTS[1:]:
            _check_like(f"{name} of parameter {number}", moments[name], parameters[number])
    return state


def _optimiser_state(values: Mapping[str, Any], parameters: list[Tensor]) -> dict[int, dict[str, Any]]:
    """The state of each parameter, from values that are named "3.momentum_buffer"."""
    state: dict[int, dict[str, Any]] = {}
    for label, value in values.items():
        number, _, name = label.partition(".")
        if not number.isdecimal() or int(number) >= len(parameters):
            raise ValueError(f"it adds {label} to the optimiser")
        state.setdefault(int(number), {})[name] = _stored_as(value, parameters[int(number)])
    return state


def _stored_as(value: Any, parameter: Tensor) -> Any:
    """A fused optimiser goes through memory, so a moment must lie in memory as its parameter does."""
    if not isinstance(value, Tensor) or value.shape != parameter.shape or value.ndim == 0:
        return value
    return torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def _history(stored: Mapping[str, Tensor], seconds: float, steps: int) -> History:
    loss, lr = stored["loss"], stored["lr"]
    if loss.ndim != 1 or loss.shape != lr.shape or not 1 <= len(loss) <= steps:
        raise ValueError(
            f"its losses and rates, {tuple(loss.shape)} and {tuple(lr.shape)}, are not of 1 to {steps} steps"
        )
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
