"""Seconds of a training step, plain and ours, in short turns so that both see the same machine."""

import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from benchmarks.timing.plain import plain_seconds, plain_settings
from benchmarks.timing.reference import Definition, plain_pretrain
from benchmarks.timing.shapes import Effort, Shape
from dicot.data import Windows
from dicot.methods import Method, build_method
from dicot.methods.dicot import DiCOT
from dicot.model.fitting import seeded_weights
from dicot.nets.encoders import InceptionTime
from dicot.train import Recipe, Step, pretrain
from dicot.train.batches import plan_generator


@dataclass(frozen=True)
class RunSeconds:
    """Seconds of our run.

    `steps`: a step each, or on a GPU the mean of the steps between two reads. `total`: from call to return.
    """

    steps: list[float]
    total: float


def dicot(n_channels: int) -> DiCOT:
    """Build Di-COT as the paper has it."""
    return DiCOT(InceptionTime(n_channels))


def counts(seed: int, steps: int) -> list[int]:
    """List the k that `pretrain` draws for Di-COT at each step of this seed; the cost of a step depends on it."""
    return [int(plan_generator(seed, step).integers(2, 11)) for step in range(steps)]


def fresh_start(device: str) -> None:
    """Forget what earlier runs built: on a GPU cached matrices, graphs and memory too.

    There a run is timed as a whole. On a CPU single steps are, and what the first steps build is no part of them.
    """
    gc.collect()
    if device.startswith("cuda"):
        forget_caches()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def forget_caches() -> None:
    """Clear every cache of a function of the package."""
    for name, module in list(sys.modules.items()):
        if name.startswith("dicot."):
            for value in list(vars(module).values()):
                own = str(getattr(value, "__module__", "")).startswith("dicot.")
                if own and callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()


def our_seconds(
    make: Callable[[int], Method], train: Windows, recipe: Recipe, device: str, *, warm_up: int = 1, seed: int = 0
) -> RunSeconds:
    """Time `pretrain`. The first `warm_up` steps, on a GPU all until the first read, count in the total alone."""
    with seeded_weights(seed):
        method = make(train.n_channels)
    fresh_start(device)
    stamps: dict[float, int] = {}  # on a GPU the steps of a group are reported at the same second: the last counts

    def stamp(step: Step) -> None:
        stamps[step.seconds] = step.number

    started = time.perf_counter()
    pretrain(method, train, recipe, seed=seed, device=device, on_step=stamp)
    total = time.perf_counter() - started
    done, at = np.array(list(stamps.values())), np.array(list(stamps))
    counted = done[:-1] >= warm_up
    return RunSeconds((np.diff(at) / np.diff(done))[counted].tolist(), total)


@dataclass(frozen=True)
class StepSeconds:
    """Seconds of a step. `all_in` is the whole run divided by its steps, with whatever was built on the way."""

    plain: float
    ours: float
    all_in: float
    length: int  # steps of our run

    def ratio(self, kind: str) -> float:
        """Divide plain by ours: on a GPU by the run as a whole, on a CPU, where nothing is built, by the steps."""
        return self.plain / (self.all_in if kind == "cuda" else self.ours)


def in_turns(
    plain: Callable[[int], list[float]], ours: Callable[[int], RunSeconds], effort: Effort, on_turn: Callable[[], None]
) -> StepSeconds:
    """Call plain and ours alternately with the number of the turn, which serves as seed, and take the medians."""
    theirs: list[float] = []
    runs: list[RunSeconds] = []
    started = time.monotonic()
    for turn in range(effort.turns):
        if turn > 1 and time.monotonic() - started > effort.seconds:
            break
        theirs += plain(turn)[effort.warm_up :]
        if turn < effort.runs:
            runs.append(ours(turn))
        on_turn()
    length = run_length(effort)
    steps = [seconds for run in runs for seconds in run.steps]
    all_in = statistics.median(run.total for run in runs) / length
    return StepSeconds(statistics.median(theirs), statistics.median(steps), all_in, length)


def run_length(effort: Effort) -> int:
    """Return the number of steps of one of our runs."""
    return effort.length or effort.warm_up + effort.steps


def time_shape(shape: Shape, precision: str, device: str, effort: Effort, on_turn: Callable[[], None]) -> StepSeconds:
    """Time Di-COT by the plain loop and by `pretrain`, with the same data and the same draws of k."""
    train, recipe = shape.windows(), replace(shape.recipe(precision), steps=run_length(effort))

    def plain(turn: int) -> list[float]:
        fresh_start(device)
        return plain_seconds(train.x, shape.batch, counts(turn, effort.warm_up + effort.steps), device, seed=turn)

    def ours(turn: int) -> RunSeconds:
        return our_seconds(dicot, train, recipe, device, warm_up=effort.warm_up, seed=turn)

    return in_turns(plain, ours, effort, on_turn)


def time_method(
    name: str, shape: Shape, precision: str, device: str, effort: Effort, on_turn: Callable[[], None]
) -> StepSeconds:
    """Time a method of the registry by its plain loop and by `pretrain`."""
    train = shape.windows()
    recipe: Recipe = replace(shape.recipe(precision), steps=run_length(effort))

    def make(n_channels: int) -> Method:
        return build_method(name, InceptionTime(n_channels), {})

    def plain(turn: int) -> list[float]:
        fresh_start(device)
        steps = effort.warm_up + effort.steps
        with plain_settings(turn):
            method = build_method(name, Definition(shape.n_channels), {})
            return plain_pretrain(method, train, recipe, seed=turn, device=device, steps=steps)[1]

    def ours(turn: int) -> RunSeconds:
        return our_seconds(make, train, recipe, device, warm_up=effort.warm_up, seed=turn)

    return in_turns(plain, ours, effort, on_turn)
