"""Many runs at once on one device: small ones leave a GPU mostly idle."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dicot.device import float32_arithmetic, resolve_device
from dicot.methods import Method
from dicot.train.checkpoint import Checkpoint
from dicot.train.history import History
from dicot.train.loop import own_draws, own_stream, training
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


def pretrain_many(
    runs: Sequence[Run],
    *,
    device: str | torch.device = "auto",
    stepper: str = "auto",
    at_once: int = AT_ONCE,
    on_run: Callable[[int, History], None] | None = None,
) -> list[History]:
    """Train every run in place, several at a time on a GPU, one after the other on a CPU.

    A run draws and computes what it does alone (see `pretrain`); a history's seconds include the others' turns.
    `on_run` is told the number of a run that has ended, and its history.
    """
    place = resolve_device(device)
    histories: dict[int, History] = {}
    for precision in sorted({run.recipe.precision for run in runs}):  # a setting of the whole process
        waiting = deque(number for number, run in enumerate(runs) if run.recipe.precision == precision)
        active: deque[tuple[int, Generator[bool, None, History], Any]] = deque()
        streams = [own_stream(place) for _ in range(at_once if place.type == "cuda" else 1)]
        with own_draws(place), float32_arithmetic(fast=precision == "tf32"):
            while waiting or active:
                while waiting and streams:
                    number = waiting.popleft()
                    run = runs[number]
                    steps = training(run.method, run.train, run.recipe, run.seed, place, stepper, run.checkpoint)
                    active.append((number, steps, streams.pop()))
                number, steps, stream = active.popleft()
                with stream:
                    history = _turn(steps)
                if history is None:
                    active.append((number, steps, stream))
                    continue
                streams.append(stream)
                histories[number] = history
                if on_run:
                    on_run(number, history)
    return [histories[number] for number in range(len(runs))]


def _turn(steps: Generator[bool, None, History]) -> History | None:
    """A few steps of a run; its history once it has ended."""
    try:
        for _ in range(TURN):
            next(steps)
    except StopIteration as end:
        history: History = end.value
        return history
    return None
