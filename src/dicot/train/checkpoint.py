"""A run on disk, so that it can be killed at any moment and ends as if it had not been."""

import hashlib
import json
import logging
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from dicot.errors import InputError, ModelFileError, brief
from dicot.storage import write_atomic
from dicot.train.history import History

log = logging.getLogger(__name__)

# The header names the hash of the whole file, taken while zeros stand in its place.
SEAL = re.compile(rb'"sha256":"([0-9a-f]{64})"')
OPEN_SEAL = b'"sha256":"' + b"0" * 64 + b'"'
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what the optimiser keeps of a parameter


@dataclass
class Checkpoint:
    """Where and how often a run is kept; a file found at `path` is resumed from."""

    path: Path
    seconds: float = 10.0  # at least this long between two writes; 0 writes after every step
    overwrite: bool = False  # a damaged file or that of another run is replaced; otherwise it is refused
    resumed: bool = field(default=False, init=False)  # whether a run was found and continued
    _written: float = field(default_factory=time.monotonic, init=False, repr=False)
    _under_way: bool = field(default=False, init=False, repr=False)
    _asked: bool = field(default=False, init=False, repr=False)

    def rest(self) -> None:
        """Until the first step there is nothing to be written."""
        self._under_way = self._asked = False

    def begin(self) -> None:
        """The first step is next, and after each the run can be written."""
        self._under_way = True

    def ask(self) -> bool:
        """Have the run written as soon as the step under way is done; False where there is none."""
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
        """What a user may pass as checkpoint: a path stands for a Checkpoint there."""
        if isinstance(given, str | Path):
            return cls(Path(given))
        if given is not None and not isinstance(given, cls):
            raise InputError(f"checkpoint must be a path or a Checkpoint; got {given!r}.")
        return given

    def due(self) -> bool:
        return self._asked or time.monotonic() - self._written >= self.seconds

    def write(
        self, method: nn.Module, optimiser: torch.optim.Optimizer, history: History, identity: Mapping[str, Any]
    ) -> None:
        """Replace the file as a whole: a reader sees the old run or the new one, never a half."""
        tensors = {f"method.{name}": value for name, value in method.state_dict().items()}
        for number, state in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": value for name, value in state.items()}
        tensors["history.loss"] = torch.tensor(history.loss, dtype=torch.float64)
        tensors["history.lr"] = torch.tensor(history.lr, dtype=torch.float64)
        about = {"identity": json.dumps(dict(identity)), "seconds": repr(history.seconds), "sha256": "0" * 64}
        data = save({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, about)
        seal = b'"sha256":"' + hashlib.sha256(data).hexdigest().encode() + b'"'
        write_atomic(self.path, data.replace(OPEN_SEAL, seal, 1))
        self._written = time.monotonic()
        self._asked = False

    def read(
        self, method: nn.Module, optimiser: torch.optim.Optimizer, identity: Mapping[str, Any], steps: int
    ) -> History | None:
        """Load what is there of a run of so many steps into method and optimiser; None when there is nothing yet."""
        self.resumed = False
        if not self.path.exists():
            return None
        try:
            tensors, about = self._contents()
            _check_same_run(self.path, about["identity"], json.loads(json.dumps(dict(identity))))
            parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
            try:
                state = _optimiser_state(_part(tensors, "optimiser."), parameters)
                weights = _fitting(_part(tensors, "method."), method.state_dict())
                history = _history(_part(tensors, "history."), float(about["seconds"]), steps)
            except (KeyError, ValueError) as error:
                raise self._unreadable(error) from error
        except ModelFileError as error:
            if not self.overwrite:
                raise
            log.info("the run starts anew: %s", error)
            self.path.unlink(missing_ok=True)
            return None
        method.load_state_dict(weights)
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
        self.resumed = True
        return history

    def _contents(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        try:
            if not self.path.is_file():
                raise ValueError("it is no plain file")
            data = self.path.read_bytes()
            header = data[8 : 8 + int.from_bytes(data[:8], "little")]
            found = SEAL.search(header)
            if found is None:
                raise ValueError("it has no hash")
            sealed = hashlib.sha256(data.replace(found.group(), OPEN_SEAL, 1)).hexdigest()
            if sealed.encode() != found.group(1):
                raise ValueError("its hash does not fit")
            tensors, about = load(data), json.loads(header)["__metadata__"]
            identity = json.loads(about["identity"])
            if not isinstance(identity, dict):
                raise ValueError("its identity is no table of names and values")
            return tensors, {**about, "identity": identity}
        except (SafetensorError, OSError, LookupError, ValueError, TypeError, RuntimeError) as error:
            raise self._unreadable(error) from error  # RecursionError is a RuntimeError

    def _unreadable(self, error: Exception) -> ModelFileError:
        return ModelFileError(f"{self.path} is not a readable checkpoint ({brief(error)}). Delete it to start anew.")


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _fitting(found: dict[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    if found.keys() != wanted.keys():
        raise ValueError(f"it lacks or adds {', '.join(sorted(found.keys() ^ wanted.keys())[:3])}")
    for name, value in wanted.items():
        _check_like(name, found[name], value)
    return found


def _check_like(name: str, found: Tensor, wanted: Tensor) -> None:
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        raise ValueError(
            f"{name} is {found.dtype} of shape {tuple(found.shape)}, not {wanted.dtype} of {tuple(wanted.shape)}"
        )


def _optimiser_state(found: Mapping[str, Tensor], parameters: list[Tensor]) -> dict[int, dict[str, Tensor]]:
    """All moments of a parameter or, where it has not been updated yet, none."""
    left = dict(found)
    state: dict[int, dict[str, Tensor]] = {}
    for number, parameter in enumerate(parameters):
        if not any(f"{number}.{name}" in left for name in MOMENTS):
            continue
        held = {name: left.pop(f"{number}.{name}") for name in MOMENTS}
        if held["step"].ndim or not held["step"].is_floating_point():
            raise ValueError(f"the step of parameter {number} is no number")
        for name in MOMENTS[1:]:
            _check_like(f"{name} of parameter {number}", held[name], parameter)
        state[number] = {name: _stored_as(value, parameter) for name, value in held.items()}
    if left:
        raise ValueError(f"it adds {', '.join(sorted(left)[:3])} to the optimiser")
    return state


def _stored_as(value: Tensor, parameter: Tensor) -> Tensor:
    """The fused optimiser goes through memory, so a moment must lie in memory as its parameter does."""
    return value if value.ndim == 0 else torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def _history(found: Mapping[str, Tensor], seconds: float, steps: int) -> History:
    loss, lr = found["loss"], found["lr"]
    if loss.ndim != 1 or loss.shape != lr.shape or not 1 <= len(loss) <= steps:
        raise ValueError(
            f"its losses and rates, {tuple(loss.shape)} and {tuple(lr.shape)}, are not of 1 to {steps} steps"
        )
    if not (loss.isfinite().all() and lr.isfinite().all() and math.isfinite(seconds)):
        raise ValueError("its history is not finite")
    return History(loss.tolist(), lr.tolist(), seconds)


def _check_same_run(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    differing = [
        f"{key}: {found.get(key)!r} there, {wanted.get(key)!r} here"
        for key in sorted(found.keys() | wanted.keys())
        if found.get(key) != wanted.get(key)
    ]
    if differing:
        raise ModelFileError(
            f"{path} belongs to another run ({'; '.join(differing)}). Delete it, or name another place."
        )
