"""Seconds of a training step, by a plain loop and by ours, in short turns so that both see the same machine."""

import gc
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from bench.speed.plain import plain_seconds, plain_settings
from bench.speed.reference import Definition, plain_pretrain
from bench.speed.shapes import Effort, Shape
from bench.tables import Row
from dicot.data import Windows
from dicot.methods import Method, build_method
from dicot.methods.dicot import DiCOT
from dicot.model.fitting import seeded_weights
from dicot.nets.encoders import InceptionTime
from dicot.train import Recipe, Step, pretrain
from dicot.train.batches import plan_generator


@dataclass(frozen=True)
class RunSeconds:
    """Seconds of our run: of each step, on a GPU the mean of those between two reads; and from call to return."""

    steps: list[float]
    total: float


@dataclass(frozen=True)
class StepSeconds:
    """Seconds of a step. `all_in` is the whole run divided by its steps, with whatever was built on the way."""

    plain: float
    ours: float
    all_in: float
    length: int  # steps of our run

    def row(self, kind: str) -> dict[str, float]:
        """Milliseconds, and plain divided by ours: on a GPU by the run as a whole, because it captures graphs."""
        row = {"plain ms": 1e3 * self.plain, "ours ms": 1e3 * self.ours}
        if kind == "cuda":
            row |= {"ours all in ms": 1e3 * self.all_in, "steps": self.length}
        return row | {"ratio": self.plain / (self.all_in if kind == "cuda" else self.ours)}


def dicot(n_channels: int) -> DiCOT:
    """Build Di-COT as the paper has it."""
    return DiCOT(InceptionTime(n_channels))


def sub_blocks(seed: int, steps: int) -> list[int]:
    """The k that `pretrain` draws for Di-COT at each step of this seed; the cost of a step depends on it."""
    return [int(plan_generator(seed, step).integers(2, 11)) for step in range(steps)]


def fresh_start(device: str) -> None:
    """Forget what earlier runs built: on a GPU cached matrices, graphs and memory too.

    There a run is timed as a whole. On a CPU single steps are, and what the first steps build is no part of them.
    """
    gc.collect()
    if device.startswith("cuda"):
        _forget_caches()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def _forget_caches() -> None:
    modules = [module for name, module in sys.modules.items() if name.startswith("dicot.")]
    for module in modules:
        for value in list(vars(module).values()):
            belongs_to_us = str(getattr(value, "__module__", "")).startswith("dicot.")
            if belongs_to_us and callable(getattr(value, "cache_clear", None)):
                value.cache_clear()


def our_seconds(
    make: Callable[[int], Method],
    train: Windows,
    recipe: Recipe,
    device: str,
    *,
    warm_up: int = 1,
    seed: int = 0,
) -> RunSeconds:
    """Time `pretrain`. The first `warm_up` steps, on a GPU all until the first read, count in the total alone."""
    with seeded_weights(seed):
        method = make(train.n_channels)
    fresh_start(device)
    # On a GPU the steps between two reads are reported at the same second: the last of them counts.
    step_at: dict[float, int] = {}

    def note(step: Step) -> None:
        step_at[step.seconds] = step.number

    started = time.perf_counter()
    pretrain(method, train, recipe, seed=seed, device=device, on_step=note)
    total = time.perf_counter() - started

    numbers, seconds = np.array(list(step_at.values())), np.array(list(step_at))
    counted = numbers[:-1] >= warm_up
    per_step = np.diff(seconds) / np.diff(numbers)
    return RunSeconds(per_step[counted].tolist(), total)


def in_turns(plain: Callable[[int], list[float]], ours: Callable[[int], RunSeconds], effort: Effort) -> StepSeconds:
    """Call plain and ours alternately with the number of the turn, which serves as seed, and take the medians."""
    plain_steps: list[float] = []
    runs: list[RunSeconds] = []
    started = time.monotonic()
    for turn in range(effort.turns):
        if turn > 1 and time.monotonic() - started > effort.seconds:
            break
        plain_steps += plain(turn)[effort.warm_up :]
        if turn < effort.runs:
            runs.append(ours(turn))

    our_steps = [seconds for run in runs for seconds in run.steps]
    all_in = statistics.median(run.total for run in runs) / effort.run_length
    return StepSeconds(statistics.median(plain_steps), statistics.median(our_steps), all_in, effort.run_length)


def time_dicot(shape: Shape, precision: str, device: str, effort: Effort) -> StepSeconds:
    """Time Di-COT by the plain loop and by `pretrain`, with the same data and the same draws of k."""
    train = shape.windows()
    recipe = replace(shape.recipe(precision), steps=effort.run_length)

    def plain(turn: int) -> list[float]:
        fresh_start(device)
        counts = sub_blocks(turn, effort.warm_up + effort.steps)
        return plain_seconds(train.x, shape.batch, counts, device, seed=turn)

    def ours(turn: int) -> RunSeconds:
        return our_seconds(dicot, train, recipe, device, warm_up=effort.warm_up, seed=turn)

    return in_turns(plain, ours, effort)


def time_method(name: str, shape: Shape, precision: str, device: str, effort: Effort) -> StepSeconds:
    """Time a method of the registry by its plain loop and by `pretrain`."""
    train = shape.windows()
    recipe = replace(shape.recipe(precision), steps=effort.run_length)

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

    return in_turns(plain, ours, effort)


def method_row(name: str, shape: Shape, precision: str, device: str, effort: Effort) -> Row:
    """A row of the table of methods."""
    pair = time_method(name, shape, precision, device, effort)
    return {"method, B, T, C, precision": f"{name} {shape} {precision}", **pair.row(torch.device(device).type)}
