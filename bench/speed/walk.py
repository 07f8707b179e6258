"""A training run in single steps, with a clock between them.

The steps are those of `dicot.train.loop`: the same batches, plans, CUDA graphs and draws. What is left out is the
record of losses and the checkpoint.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from dicot.core.device import float32_arithmetic, out_of_memory
from dicot.data import Windows
from dicot.methods import Method
from dicot.train.batches import OwnDraws, open_batches, plan_generator, seed_prepare, seed_step, visited
from dicot.train.recipe import Recipe, lr_at
from dicot.train.stepper import build_stepper

SEED = 1
FEWEST = 3  # steps that are timed, however long they take
HOST_STEPS = 20  # more steps on a GPU, each begun with an idle device


@dataclass(frozen=True)
class Timing:
    """What some steps took: milliseconds a step, of which the host needed so many to issue it; all in all seconds."""

    warm_up: int
    timed: int
    step_ms: float
    host_ms: float  # NaN on a CPU, where there is no device beside the host
    seconds: float  # from the first look at the data to the last timed step
    peak_mib: float  # NaN on a CPU


def walk(method: Method, train: Windows, recipe: Recipe, device: torch.device, stepper: str) -> Iterator[None]:
    """Train, and pause after each step."""
    seed_prepare(SEED)
    method.to(device).prepare(train)
    method.to(device).train()
    batch_size = min(recipe.batch_size, len(train))
    source = open_batches(train, "auto", device, torch.float32, with_labels=method.needs_labels)

    on_gpu = device.type == "cuda"
    settings: Any = {"lr": recipe.lr, "betas": recipe.betas, "weight_decay": recipe.weight_decay}
    optimiser = torch.optim.AdamW(method.param_groups(), fused=True, capturable=on_gpu, **settings)
    for group in optimiser.param_groups:
        group["lr"] = torch.tensor(recipe.lr, device=device) if on_gpu else recipe.lr

    shape = (batch_size, *train.shape[1:])
    plans = [method.plan(shape, plan_generator(SEED, step)) for step in range(recipe.steps)]
    take_step = build_stepper(stepper, method, optimiser, source, plans)
    inputs = source.inputs(visited(train, SEED, 0, recipe.steps, batch_size))
    for step, batch_input, plan in zip(range(recipe.steps), inputs, plans, strict=True):
        rate = lr_at(step, recipe, len(train) // batch_size)
        for group in optimiser.param_groups:
            group_rate = rate * group.get("rate", 1.0)
            if on_gpu:
                group["lr"].fill_(group_rate)
            else:
                group["lr"] = group_rate
        seed_step(SEED, step, device)
        _, batch = take_step(batch_input, plan)
        method.after_step(batch, (step + 1) / recipe.steps)
        yield


def timing(
    method: Method,
    train: Windows,
    recipe: Recipe,
    device: torch.device,
    warm_up: int,
    limit: float = float("inf"),
) -> Timing:
    """Time the steps of a run after the first `warm_up`; fewer where they would take longer than `limit` seconds.

    Where the memory does not suffice for CUDA graphs the steps are taken op by op, as in a training.
    """
    on_gpu = device.type == "cuda"
    host_steps = HOST_STEPS if on_gpu else 0
    whole = Recipe(recipe.steps + host_steps, recipe.batch_size, precision=recipe.precision)
    try:
        with alone(device, recipe.precision):
            return _timing(walk(method, train, whole, device, "auto"), recipe.steps, device, warm_up, limit)
    except RuntimeError as error:
        if not on_gpu or not out_of_memory(error):
            raise
    with alone(device, recipe.precision):
        return _timing(walk(method, train, whole, device, "eager"), recipe.steps, device, warm_up, limit)


def _timing(steps: Iterator[None], n_steps: int, device: torch.device, warm_up: int, limit: float) -> Timing:
    started = time.perf_counter()
    for _ in range(warm_up - 1):
        next(steps)
    wait(device)

    # The last step of the warm-up tells how many there is time for.
    last_began = time.perf_counter()
    next(steps)
    wait(device)
    began = time.perf_counter()
    affordable = int(max(FEWEST, min(limit / (began - last_began), n_steps)))
    timed = min(n_steps - warm_up, affordable)
    for _ in range(timed):
        next(steps)
    wait(device)
    ended = time.perf_counter()

    host_ms = peak = float("nan")
    if device.type == "cuda":
        host_ms = _host_ms(steps, min(HOST_STEPS, timed), device)
        peak = torch.cuda.max_memory_allocated(device) / 2**20
    return Timing(warm_up, timed, 1e3 * (ended - began) / timed, host_ms, ended - started, peak)


def _host_ms(steps: Iterator[None], count: int, device: torch.device) -> float:
    """Milliseconds that the host needs to issue a step to an idle device."""
    seconds = 0.0
    for _ in range(count):
        wait(device)
        issued = time.perf_counter()
        next(steps)
        seconds += time.perf_counter() - issued
    return 1e3 * seconds / count


@contextmanager
def alone(device: torch.device, precision: str) -> Iterator[None]:
    """Forget what earlier runs left on the device, and set its arithmetic and stream as a training does."""
    gc.collect()
    stream: Any = nullcontext()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        stream = torch.cuda.stream(torch.cuda.Stream(device))  # type: ignore[no-untyped-call]
    with OwnDraws(device), float32_arithmetic(device, fast=precision == "tf32"), stream:
        yield


def wait(device: torch.device) -> None:
    """Until a GPU has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
