"""Seconds of our own training: of single steps, and of a run as a whole with all that is built on the way."""

import gc
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from dicot.data import Windows
from dicot.encoders import InceptionTime
from dicot.fitting import seeded_weights
from dicot.methods import Method
from dicot.methods.dicot import DiCOT
from dicot.train import Recipe, Step, pretrain
from dicot.train.draws import plan_generator


@dataclass(frozen=True)
class Seconds:
    """`steps`: a step each, or on a GPU the mean of the steps between two reads. `total`: from call to return."""

    steps: list[float]
    total: float


def dicot(n_channels: int) -> DiCOT:
    """Di-COT as the paper has it."""
    return DiCOT(InceptionTime(n_channels))


def counts(seed: int, steps: int) -> list[int]:
    """The k that `pretrain` draws for Di-COT at each step of this seed; the cost of a step depends on it."""
    return [int(plan_generator(seed, step).integers(2, 11)) for step in range(steps)]


def fresh_start(device: str) -> None:
    """Leave nothing for the next run to profit or to suffer from: on a GPU cached matrices, graphs and memory too.

    There the run as a whole counts; on a CPU a step does, as it is after the first time that a length comes.
    """
    gc.collect()
    if not device.startswith("cuda"):
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("dicot."):
            for value in list(vars(module).values()):
                own = str(getattr(value, "__module__", "")).startswith("dicot.")
                if own and callable(getattr(value, "cache_clear", None)):
                    value.cache_clear()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def our_seconds(
    make: Callable[[int], Method], train: Windows, recipe: Recipe, device: str, *, warm_up: int = 1, seed: int = 0
) -> Seconds:
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
    return Seconds((np.diff(at) / np.diff(done))[counted].tolist(), total)
