"""A run on disk, so that it can be killed at any moment and ends as if it had not been."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from dicot.errors import InputError, ModelFileError
from dicot.storage import write_atomic
from dicot.train.history import History


@dataclass
class Checkpoint:
    """Where and how often a run is kept; a file found at `path` is resumed from."""

    path: Path
    seconds: float = 10.0  # at least this long between two writes; 0 writes after every step
    _written: float = field(default_factory=time.monotonic, init=False, repr=False)

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
        return time.monotonic() - self._written >= self.seconds

    def write(
        self, method: nn.Module, optimiser: torch.optim.Optimizer, history: History, identity: Mapping[str, Any]
    ) -> None:
        """Replace the file as a whole: a reader sees the old run or the new one, never a half."""
        tensors = {f"method.{name}": value for name, value in method.state_dict().items()}
        for number, state in optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{number}.{name}": value for name, value in state.items()}
        tensors["history.loss"] = torch.tensor(history.loss, dtype=torch.float64)
        tensors["history.lr"] = torch.tensor(history.lr, dtype=torch.float64)
        about = {"identity": json.dumps(dict(identity)), "seconds": repr(history.seconds)}
        write_atomic(self.path, save({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, about))
        self._written = time.monotonic()

    def read(self, method: nn.Module, optimiser: torch.optim.Optimizer, identity: Mapping[str, Any]) -> History | None:
        """Load what is there into method and optimiser; None when there is nothing yet."""
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                about = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            found = json.loads(about["identity"])
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise ModelFileError(
                f"{self.path} is not a readable checkpoint ({error}). Delete it to start anew."
            ) from error
        _check_same_run(self.path, found, json.loads(json.dumps(dict(identity))))
        method.load_state_dict(_part(tensors, "method."))
        parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in _part(tensors, "optimiser.").items():
            number, _, key = name.partition(".")
            state.setdefault(int(number), {})[key] = _stored_as(value, parameters[int(number)])
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
        return History(tensors["history.loss"].tolist(), tensors["history.lr"].tolist(), float(about["seconds"]))


def _part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _stored_as(value: Tensor, parameter: Tensor) -> Tensor:
    """The fused optimiser goes through memory, so a moment must lie in memory as its parameter does."""
    return value if value.ndim == 0 else torch.empty_like(parameter, dtype=value.dtype).copy_(value)


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
