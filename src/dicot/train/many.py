"""Many runs at once on one device: small ones leave a GPU mostly idle."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dicot.device import float32_arithmetic, resolve_device
from dicot.methods import Method
from dicot.train.checkpoint import Checkpoint
from dicot.train.draws import OwnDraws
from dicot.train.history import History
from dicot.train.loop import own_stream, training
from dicot.train.recipe import Recipe
from dicot.windows import Windows

AT_ONCE = 8  # more runs than this gained nothing
TURN = 8  # steps that a run sends to the device before it is the next one's turn


@dataclass
class Run:
    """What `pretrain` is told about one run."""

    method: Method
    train: Windows
    recipe: Recipe
    seed: int
    checkpoint: Checkpoint | None = None


@dataclass
class _Active:
    number: int
    steps: Generator[bool, None, History]
    draws: OwnDraws
    stream: Any  # given back at the end


def pretrain_many(
    runs: Sequence[Run],
    *,
    device: str | torch.device = "auto",
    stepper: str = "auto",
    at_once: int = AT_ONCE,
    on_run: Callable[[int, History], None] | None = None,
    on_error: Callable[[int, Exception], None] | None = None,
) -> list[History]:
    """Train every run in place, several at a time on a GPU, one after the other on a CPU.

    A run draws and computes what it does alone (see `pretrain`); a history's seconds include the others' turns.
    `on_run` is told the number of a run that has ended, and its history. The error of a run is raised, or with
    `on_error` handed over, while the others go on; its history is then as far as it came.
    """
    place = resolve_device(device)
    histories = [History() for _ in runs]
    for precision in sorted({run.recipe.precision for run in runs}):  # a setting of the whole process
        waiting = deque(number for number, run in enumerate(runs) if run.recipe.precision == precision)
        active: deque[_Active] = deque()
        streams = [own_stream(place) for _ in range(at_once if place.type == "cuda" else 1)]
        with float32_arithmetic(fast=precision == "tf32"):
            while waiting or active:
                while waiting and streams:
                    run, number = runs[waiting[0]], waiting.popleft()
                    steps = training(
                        run.method, run.train, run.recipe, run.seed, place, stepper, run.checkpoint, histories[number]
                    )
                    active.append(_Active(number, steps, OwnDraws(place), streams.pop()))
                current = active.popleft()
                try:
                    with current.stream, current.draws:
                        ended = _turn(current.steps)
                except Exception as error:
                    if on_error is None:
                        raise
                    on_error(current.number, error)
                    streams.append(current.stream)
                    continue
                if not ended:
                    active.append(current)
                    continue
                streams.append(current.stream)
                if on_run:
                    on_run(current.number, histories[current.number])
    return histories


def _turn(steps: Generator[bool, None, History]) -> bool:
    """A few steps of a run; whether it has ended."""
    try:
        for _ in range(TURN):
            next(steps)
    except StopIteration:
        return True
    return False
