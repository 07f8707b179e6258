"""Many runs at once on one device: small ones leave a GPU mostly idle."""

import inspect
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dicot.device import float32_arithmetic, resolve_device
from dicot.methods import Method
from dicot.train.checkpoint import Checkpoint
from dicot.train.draws import drawn_on_device
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


@dataclass
class _Active:
    number: int
    steps: Generator[bool, None, History]
    slot: Any  # a stream, given back at the end
    stream: Any  # the stream that the steps are sent to
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
        slots = [own_stream(place) for _ in range(at_once if place.type == "cuda" else 1)]
        shared = own_stream(place)
        with own_draws(place), float32_arithmetic(fast=precision == "tf32"):
            while waiting or active:
                while waiting and slots:
                    run, slot = runs[waiting[0]], slots.pop()
                    steps = training(run.method, run.train, run.recipe, run.seed, place, stepper, run.checkpoint)
                    active.append(_Active(waiting.popleft(), steps, slot, slot))
                current = active.popleft()
                started = time.perf_counter()
                try:
                    with current.stream:
                        history = _turn(current.steps)
                except Exception as error:
                    if on_error is None:
                        raise
                    slots.append(current.slot)
                    on_error(current.number, error)
                    continue
                current.seconds += time.perf_counter() - started
                if history is None:
                    if current.stream is current.slot and drawn_on_device(place):
                        # Recorded steps read the seed of their draws from one place in memory: they must not overlap.
                        shared.stream.wait_stream(current.slot.stream)
                        current.stream = shared
                    active.append(current)
                    continue
                slots.append(current.slot)
                history.seconds = current.seconds
                histories[current.number] = history
                if on_run:
                    on_run(current.number, history)
    return [histories.get(number) for number in range(len(runs))]


def _turn(steps: Generator[bool, None, History]) -> History | None:
    """A few steps of a run, at first only one; its history once it has ended."""
    first = inspect.getgeneratorstate(steps) == inspect.GEN_CREATED
    try:
        for _ in range(1 if first else TURN):
            next(steps)
    except StopIteration as end:
        history: History = end.value
        return history
    return None
