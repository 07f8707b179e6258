"""The training loop, written once and read from top to bottom."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dicot.device import float32_arithmetic, resolve_device, to_device
from dicot.errors import InputError, NonFiniteLossError
from dicot.methods import Batch, Method
from dicot.train.checkpoint import Checkpoint
from dicot.train.draws import epoch_order, plan_generator, seed_prepare, seed_step
from dicot.train.history import History
from dicot.train.recipe import Recipe, lr_at
from dicot.windows import Windows

DTYPES = {"float32": torch.float32, "tf32": torch.float32, "float64": torch.float64}
STEPS_UNREAD = 50  # on a GPU losses are fetched this rarely: reading one waits for the device


def pretrain(
    method: Method,
    train: Windows,
    recipe: Recipe,
    *,
    seed: int,
    device: str | torch.device = "auto",
    on_step: Callable[[History], None] | None = None,
    checkpoint: Checkpoint | None = None,
) -> History:
    """Train `method` in place on the cases of `train`; the same seed gives the same weights on CPU.

    The caller's random state is left as it was. `on_step` sees the history whenever new losses were read.
    With a `checkpoint` the run is kept on disk and a run found there is continued.
    """
    place, dtype = resolve_device(device), DTYPES[recipe.precision]
    own_draws = torch.random.fork_rng(devices=[place] if place.type == "cuda" else [])
    with own_draws, float32_arithmetic(fast=recipe.precision == "tf32"):
        seed_prepare(seed)
        method.to(place, dtype).prepare(train)
        method.to(place, dtype).train()  # with the parts that were built just now
        return _train(method, train, recipe, seed, place, on_step, checkpoint)


def _train(
    method: Method,
    train: Windows,
    recipe: Recipe,
    seed: int,
    place: torch.device,
    on_step: Callable[[History], None] | None,
    checkpoint: Checkpoint | None,
) -> History:
    batch_size = min(recipe.batch_size, len(train))  # D-62
    steps_per_epoch = len(train) // batch_size  # the incomplete last batch is dropped
    x = to_device(train.x, place, DTYPES[recipe.precision])
    y = to_device(_class_numbers(train), place) if method.needs_labels else None
    optimiser = torch.optim.AdamW(
        method.param_groups(), lr=recipe.lr, betas=recipe.betas, weight_decay=recipe.weight_decay, fused=True
    )
    identity = _identity(method, train, recipe, seed)
    history = (checkpoint.read(method, optimiser, identity) if checkpoint else None) or History()
    unread: list[Tensor] = []
    started = time.perf_counter() - history.seconds
    order = torch.empty(0)

    for step in range(len(history), recipe.steps):
        epoch, position = divmod(step, steps_per_epoch)
        if position == 0 or not len(order):
            order = to_device(epoch_order(seed, epoch, len(train)), place)
        index = order[position * batch_size : (position + 1) * batch_size]
        batch = Batch(x[index], index, None if y is None else y[index])
        plan = method.plan(tuple(batch.x.shape), plan_generator(seed, step))  # type: ignore[arg-type]
        rate = lr_at(step, recipe, steps_per_epoch)
        for group in optimiser.param_groups:
            group["lr"] = rate

        seed_step(seed, step, place)
        optimiser.zero_grad()
        loss = method.loss(batch, plan)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        method.after_step(batch, (step + 1) / recipe.steps)

        unread.append(loss.detach())
        history.lr.append(rate)
        last = step + 1 == recipe.steps
        if last or place.type == "cpu" or len(unread) == STEPS_UNREAD:
            history.loss += _finite(torch.stack(unread).tolist(), first=len(history))
            unread.clear()
            history.seconds = time.perf_counter() - started
            if checkpoint and (last or checkpoint.due()):
                checkpoint.write(method, optimiser, history, identity)
            if on_step:
                on_step(history)
    method.eval()
    return history


def _finite(losses: list[float], first: int) -> list[float]:
    for step, loss in enumerate(losses, start=first):
        if not np.isfinite(loss):
            raise NonFiniteLossError(
                f"The loss of step {step} is {loss}. Scale the data (scale='dataset'), lower lr, or raise temperature."
            )
    return losses


def _class_numbers(train: Windows) -> np.ndarray:
    if train.y is None:
        raise InputError("This method learns from labels, and the training set has none. Pass y.")
    return np.unique(train.y, return_inverse=True)[1]


def _identity(method: Method, train: Windows, recipe: Recipe, seed: int) -> dict[str, Any]:
    """What must agree for a checkpoint to be continued."""
    plain = (bool, int, float, str, tuple)
    settings = {name: value for name, value in vars(method).items() if isinstance(value, plain) and name[0] != "_"}
    return {
        "method": type(method).__name__,
        "settings": repr({name: value for name, value in sorted(settings.items()) if name != "training"}),
        "parameters": sum(p.numel() for p in method.parameters()),
        "recipe": repr(recipe),
        "seed": seed,
        "data": train.fingerprint(),
    }
