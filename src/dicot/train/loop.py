"""The training loop, written once and read from top to bottom."""

import hashlib
import logging
import time
from collections.abc import Callable, Generator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dicot import __version__
from dicot.data import Windows
from dicot.data.collection import labelled
from dicot.errors import InputError
from dicot.gpu.device import float32_arithmetic, release_memory, resolve_device, to_device
from dicot.gpu.memory import out_of_memory
from dicot.methods import Method
from dicot.train.checkpoint import Checkpoint
from dicot.train.draws import OwnDraws, batch_rows, plan_generator, seed_prepare, seed_step
from dicot.train.history import History
from dicot.train.interrupts import HeldInterrupts
from dicot.train.losses import LossReader
from dicot.train.recipe import Recipe, lr_at
from dicot.train.restart import Start, forget, too_large
from dicot.train.stepper import Data, build_stepper

log = logging.getLogger(__name__)
DTYPES = {"float32": torch.float32, "tf32": torch.float32, "float64": torch.float64}


def pretrain(
    method: Method,
    train: Windows,
    recipe: Recipe,
    *,
    seed: int,
    device: str | torch.device = "auto",
    stepper: str = "auto",
    on_step: Callable[[History], None] | None = None,
    checkpoint: Checkpoint | str | Path | None = None,
) -> History:
    """Train `method` in place on the cases of `train`; the same seed gives the same weights on CPU.

    The caller's random state is left as it was. `on_step` sees the history whenever new losses were read.
    With a `checkpoint`, or a path for one, the run is kept on disk and a run found there is continued. Ctrl-C then
    writes it first.
    `stepper`: "eager", "graphs" (CUDA graphs) or "auto"; same numbers up to rounding. Where memory does not suffice for
    graphs the run is begun once more op by op.
    """
    place = resolve_device(device)
    history, kept = History(), Checkpoint.of(checkpoint)
    run = persistent(method, train, recipe, seed, place, stepper, kept, history)
    held, arithmetic = HeldInterrupts(kept), float32_arithmetic(place, fast=recipe.precision == "tf32")
    with OwnDraws(place), arithmetic, own_stream(place), held:
        for read in run:
            if read and on_step:
                on_step(history)
            held.deliver()
    return history


def own_stream(place: torch.device) -> Any:
    """A stream beside the caller's, which it first waits for: nothing can be recorded on the default one."""
    if place.type != "cuda":
        return nullcontext()
    stream = torch.cuda.Stream(place)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(place))
    return torch.cuda.stream(stream)


def persistent(
    method: Method,
    train: Windows,
    recipe: Recipe,
    seed: int,
    place: torch.device,
    stepper: str = "auto",
    checkpoint: Checkpoint | None = None,
    history: History | None = None,
    alone: Callable[[], bool] = lambda: True,
) -> Generator[bool, None, History]:
    """`training`, and where memory does not suffice for a run that is `alone`, once more op by op.

    Beside others the error is raised, with the method as it was at the start: others may end and leave theirs.
    """
    start = Start(method)
    for way in dict.fromkeys((stepper, "eager")):
        try:
            return (yield from training(method, train, recipe, seed, place, way, checkpoint, history))
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            if not out_of_memory(error):
                raise
            forget(error)
            start.restore()
            if not alone():
                raise
            log.warning("memory does not suffice for the run with the stepper %r: %s", way, str(error).splitlines()[0])
        release_memory(place)
    raise too_large(train, recipe, place)


def training(
    method: Method,
    train: Windows,
    recipe: Recipe,
    seed: int,
    place: torch.device,
    stepper: str = "auto",
    checkpoint: Checkpoint | None = None,
    history: History | None = None,
) -> Generator[bool, None, History]:
    """The run itself, written into `history`. It pauses after each step, and others may run meanwhile.

    It says whether new losses were read. Random state, precision and stream of the device are those of the caller.
    """
    dtype = DTYPES[recipe.precision]
    train = _with_labels(train) if method.needs_labels else train
    seed_prepare(seed)
    method.to(place, dtype).prepare(train)
    method.to(place, dtype).train()  # with the parts that were built just now
    batch_size = min(recipe.batch_size, len(train))  # D-62
    steps_per_epoch = len(train) // batch_size
    y = to_device(_class_numbers(train), place) if method.needs_labels else None
    data = Data(to_device(train.x, place, dtype), y)
    optimiser = build_optimiser(method, recipe, place)
    identity = _identity(method, train, recipe, seed)
    history = History() if history is None else history
    found = checkpoint.read(method, optimiser, identity, recipe.steps) if checkpoint else None
    begun = History() if found is None else found
    history.loss, history.lr, history.seconds = begun.loss, begun.lr, begun.seconds
    losses = LossReader(history, place)
    shape = (batch_size, train.n_channels, train.n_times)
    first = len(history)
    plans = [method.plan(shape, plan_generator(seed, step)) for step in range(first, recipe.steps)]
    take_step = build_stepper(stepper, method, optimiser, data, plans)
    # All at once: a copy to a GPU waits for the steps that are under way there.
    rows = to_device(batch_rows(seed, first, recipe.steps, len(train), batch_size), place)
    started = time.perf_counter() - history.seconds
    if checkpoint:
        checkpoint.begin()

    for step, index, plan in zip(range(first, recipe.steps), rows, plans, strict=True):
        rate = lr_at(step, recipe, steps_per_epoch)
        set_rate(optimiser, rate)
        seed_step(seed, step, place)
        loss, batch = take_step(index, plan)
        method.after_step(batch, (step + 1) / recipe.steps)

        losses.add(loss)
        history.lr.append(rate)
        save = checkpoint is not None and (step + 1 == recipe.steps or checkpoint.due())
        read = losses.read(wait=save or step + 1 == recipe.steps)
        history.seconds = time.perf_counter() - started
        if checkpoint is not None and save:
            checkpoint.write(method, optimiser, history, identity)
        yield read
    method.eval()
    return history


def build_optimiser(method: Method, recipe: Recipe, place: torch.device) -> torch.optim.Optimizer:
    """Fused AdamW; on a GPU its rate is a tensor there, so that a recorded step reads the current one."""
    on_gpu = place.type == "cuda"
    return torch.optim.AdamW(
        method.param_groups(),
        lr=torch.tensor(recipe.lr, device=place) if on_gpu else recipe.lr,
        betas=recipe.betas,
        weight_decay=recipe.weight_decay,
        fused=True,
        capturable=on_gpu,
    )


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def _with_labels(train: Windows) -> Windows:
    """The cases a method can learn from that needs labels."""
    known = np.zeros(len(train), dtype=bool) if train.y is None else labelled(train.y)
    if not known.any():
        raise InputError(f"This method learns from labels, and none of the {len(train)} cases has one. Pass y.")
    return train if known.all() else train.subset(known)


def _class_numbers(train: Windows) -> np.ndarray:
    assert train.y is not None  # _with_labels has seen to it
    return np.unique(train.y, return_inverse=True)[1]


def _identity(method: Method, train: Windows, recipe: Recipe, seed: int) -> dict[str, Any]:
    """What decides the result, rounding aside, and so must agree for a checkpoint to be continued."""
    plain = (bool, int, float, str, tuple, list, dict, type(None))
    settings = {name: value for name, value in vars(method).items() if isinstance(value, plain) and name[0] != "_"}
    return {
        "library": f"dicot {__version__}",
        "method": type(method).__name__,
        "settings": repr({name: value for name, value in sorted(settings.items()) if name != "training"}),
        "encoder": f"{type(method.encoder).__name__} {dict(method.encoder.config())}",
        "layers": hashlib.sha256(repr(method).encode()).hexdigest()[:16],  # and what they are set to
        "recipe": repr(recipe),
        "seed": seed,
        "data": train.fingerprint(),
        "labels": train.label_fingerprint() if method.needs_labels else "",
    }
