"""What a run reports: the loss, rate and time of its steps, as plain data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dicot.core.errors import NonFiniteLossError

EVERY = 50  # steps whose losses are fetched at once from a GPU


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


class Reporter:
    """Tells callbacks about each step once and in order, even where a run has to begin anew."""

    def __init__(self, on_step: OnStep | Sequence[OnStep] | None, steps: int) -> None:
        given = [on_step] if callable(on_step) else on_step or ()
        self.callbacks, self.steps = tuple(given), steps
        self.told = 0

    def tell(self, history: History) -> bool:
        """Report the steps whose losses were read since the last call; True if a callback asks to end the run."""
        if not self.callbacks:
            return False
        end = False
        while self.told < len(history):
            at = self.told
            step = Step(at + 1, self.steps, history.loss[at], history.lr[at], history.seconds)
            self.told += 1
            for callback in self.callbacks:
                answer = callback(step)
                end |= isinstance(answer, bool | np.bool_) and bool(answer)
        return end


class LossReader:
    """Moves losses from the device to the history: on a CPU at once, on a GPU in groups.

    Waiting for each loss would make the host as slow as the device.
    """

    def __init__(self, history: History, device: torch.device) -> None:
        self.history, self.every = history, EVERY if device.type == "cuda" else 1
        self.unread: list[Tensor] = []

    def add(self, loss: Tensor) -> None:
        """Keep the loss of a step."""
        self.unread.append(loss.clone())  # the next step may overwrite it

    def read(self, *, wait: bool = False) -> None:
        """Append the losses to the history once there are enough of them, with `wait` in any case."""
        if not self.unread or not (wait or len(self.unread) >= self.every):
            return
        for loss in torch.stack(self.unread).tolist():
            if not np.isfinite(loss):
                raise NonFiniteLossError(
                    f"The loss of step {len(self.history)} is {loss}. "
                    "Scale the data (scale='dataset'), lower lr, or change the method's settings."
                )
            self.history.loss.append(loss)
        self.unread.clear()
