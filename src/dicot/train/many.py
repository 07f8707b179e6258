"""Many runs at once on one device: small ones leave a GPU mostly idle."""

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
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
    checkpoint: Checkpoint | str | Path | None = None


@dataclass
class _Active:
    number: int
    steps: Generator[bool, None, History]
    draws: OwnDraws
    stream: Any  # given back at the end
    seconds: float = 0.0  # of its own turns


def pretrain_many(
    runs: Sequence[Run],
    *,
    device: str | torch.device = "auto",
    stepper: str = "auto",
    at_once: int = AT_ONCE,
    on_run: Callable[[int, History], None] | None = None,
    on_error: Callable[[int, Exception], None] | None = None,
) -> list[History | None]:
    """Train every run in place, several at a time on a GPU, one after the other on a CPU.

    A run draws and computes what it does alone (see `pretrain`). A history's seconds are those of the run's own turns,
    `prepare` included, so that they add up to those of the whole call; seconds before a resumption do not count.
    `on_run` is told the number of a run that has ended, and its history. With `on_error`, which is told the number of a
    run that failed and why, the others go on and the failed one has no history; without it the first failure is raised.
    """
    place = resolve_device(device)
    histories: dict[int, History] = {}
    for precision in sorted({run.recipe.precision for run in runs}):  # a setting of the whole process
        waiting = deque(number for number, run in enumerate(runs) if run.recipe.precision == precision)
        active: deque[_Active] = deque()
        streams = [own_stream(place) for _ in range(at_once if place.type == "cuda" else 1)]
        with float32_arithmetic(fast=precision == "tf32"):
            while waiting or active:
                while waiting and streams:
                    run, number = runs[waiting[0]], waiting.popleft()
                    steps = training(run.method, run.train, run.recipe, run.seed, place, stepper, run.checkpoint)
                    active.append(_Active(number, steps, OwnDraws(place), streams.pop()))
                current = active.popleft()
                started = time.perf_counter()
                try:
                    with current.stream, current.draws:
                        history = _turn(current.steps)
                except Exception as error:
                    if on_error is None:
                        raise
                    streams.append(current.stream)
                    on_error(current.number, error)
                    continue
                current.seconds += time.perf_counter() - started
                if history is None:
                    active.append(current)
                    continue
                streams.append(current.stream)
                history.seconds = current.seconds
                histories[current.number] = history
                if on_run:
                    on_run(current.number, history)
    return [histories.get(number) for number in range(len(runs))]


def _turn(steps: Generator[bool, None, History]) -> History | None:
    """A few steps of a run; its history once it has ended."""
    try:
        for _ in range(TURN):
            next(steps)
    except StopIteration as end:
        history: History = end.value
        return history
    return None
