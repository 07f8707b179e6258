"""Training: what decides a run, and the loop itself, written once and read from top to bottom."""

import hashlib
import logging
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dicot.core import __version__
from dicot.core.device import describe_device, float32_arithmetic, out_of_memory, release_memory, resolve_device
from dicot.core.errors import DeviceMemoryError
from dicot.data import Windows
from dicot.data.cases import Cases
from dicot.data.labels import label_fingerprint
from dicot.methods import Method
from dicot.train.batches import (
    OwnDraws,
    as_training_set,
    open_batches,
    plan_generator,
    seed_prepare,
    seed_step,
    visited,
    with_labels,
)
from dicot.train.recipe import Recipe, lr_at
from dicot.train.record import Checkpoint, DelayedInterrupts, History, OnStep, Record, Reporter
from dicot.train.stepper import build_stepper
from dicot.train.together import current_place, shared_work, start_equal

log = logging.getLogger(__name__)

DTYPES = {"float32": torch.float32, "tf32": torch.float32, "float64": torch.float64}
# Settings of an optimiser that change how it computes, not what; the rate of each step comes from the schedule.
HOW_IT_COMPUTES = {"lr", "capturable", "differentiable", "foreach", "fused"}

OptimiserFactory = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]


@dataclass
class TrainingRun:
    """Hold what `pretrain` is told about one run, by the names it describes."""

    method: Method
    train: Cases
    recipe: Recipe
    seed: int
    checkpoint: Checkpoint | None = None
    optimiser: OptimiserFactory | None = None
    on_step: OnStep | Sequence[OnStep] | None = None
    initial: Mapping[str, Tensor] | None = None
    batches: str = "auto"

    def __post_init__(self) -> None:
        self.train = as_training_set(self.train)
        self.checkpoint = Checkpoint.of(self.checkpoint)

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.recipe.precision]

    def build_optimiser(self, device: torch.device) -> torch.optim.Optimizer:
        """Make the run's own optimiser, or fused AdamW.

        On a GPU the rate of an optimiser that a CUDA graph can capture is a tensor, so that the graph reads the current
        one.
        """
        recipe, on_gpu = self.recipe, device.type == "cuda"
        settings: Any = {"lr": recipe.lr, "betas": recipe.betas, "weight_decay": recipe.weight_decay}
        usual: Any = partial(torch.optim.AdamW, **settings, fused=True, capturable=on_gpu)
        optimiser = (self.optimiser or usual)(self.method.param_groups())
        for group in optimiser.param_groups:
            # A tensor for each group: one that was given as the default would be shared, and rates may differ.
            if on_gpu and group.get("capturable"):
                group["lr"] = torch.tensor(float(group["lr"]), device=device)
        return optimiser

    def identity(self, train: Cases, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
        """What decides the result, rounding aside, and so must agree for a checkpoint to be continued."""
        method = self.method
        return {
            "library": f"dicot {__version__}",
            "method": type(method).__name__,
            "settings": repr(dict(sorted(method.settings().items()))),
            "encoder": f"{type(method.encoder).__name__} {dict(method.encoder.config())}",
            "layers": hashlib.sha256(repr(method).encode()).hexdigest()[:16],  # and what they are set to
            "recipe": repr(self.recipe.to_dict()),
            "optimiser": "" if self.optimiser is None else _described(optimiser),
            "initial": weights_hash(self.initial),
            "seed": self.seed,
            "data": train.fingerprint(),
            "labels": label_fingerprint(train.labels()) if method.needs_labels else "",
        }


def pretrain(
    method: Method,
    train: Windows | Any,
    recipe: Recipe,
    *,
    seed: int,
    device: str | torch.device = "auto",
    stepper: str = "auto",
    optimiser: OptimiserFactory | None = None,
    on_step: OnStep | Sequence[OnStep] | None = None,
    initial: Mapping[str, Tensor] | None = None,
    checkpoint: Checkpoint | str | Path | None = None,
    batches: str = "auto",
) -> History:
    """Train `method` in place on the cases of `train`; the same seed gives the same weights.

    The caller's random state is left as it was. With a checkpoint, Ctrl-C writes the run before it takes effect.

    Parameters
    ----------
    method : a `Method` around the encoder to train
    train : `Windows`, an array (N, C, T), or a map-style torch Dataset of (C, T) or ((C, T), label) items. Items must
        not draw from torch's global random generator: a thread reads them while the step draws from it
    recipe : steps, batch size, learning rate and so on, a `Recipe`
    seed : decides batches and draws; the weights are those that the method comes with
    device : "auto", "cpu", "cuda" or "cuda:N"
    stepper : "eager", "graphs" (CUDA graphs) or "auto", with equal numbers up to rounding. Where memory does not
        suffice for graphs the run is begun once more op by op
    optimiser : makes the optimiser from the method's parameter groups, for example
        `functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9)`; None is AdamW with the recipe's settings. The rate
        of every step comes from the recipe's schedule
    on_step : a function or a sequence of them; each is given a `Step` (number, steps, loss, lr, seconds) once per step
        and in order, on a GPU some steps late and in groups. One that returns True ends the run early
    initial : weights to continue from, a state dict of the method's encoder
    checkpoint : a `Checkpoint` or a path; the run is written there, and a run found there is continued
    batches : "device", where the training set is copied to the device; "streamed", where batches are read on the host
        ahead of their step; or "auto": on the device unless the data would take more than half of a GPU's free memory.
        The result is the same
    """
    run = TrainingRun(method, train, recipe, seed, Checkpoint.of(checkpoint), optimiser, on_step, initial, batches)
    return carry_out(run, device=device, stepper=stepper)


def carry_out(run: TrainingRun, *, device: str | torch.device = "auto", stepper: str = "auto") -> History:
    """`pretrain` for a run that is described already; shared with the processes that this one has joined."""
    device, place = resolve_device(device), current_place()
    are_several = place.world > 1
    arithmetic = float32_arithmetic(device, fast=run.recipe.precision == "tf32")
    interrupts = DelayedInterrupts(run.checkpoint, patient=are_several)
    reporter = Reporter(run.on_step if place.is_first else None, run.recipe.steps)
    with OwnDraws(device), arithmetic, own_stream(device), interrupts:
        # What processes exchange is no part of a CUDA graph.
        steppers = ("eager",) if are_several else tuple(dict.fromkeys((stepper, "eager")))
        return _persistent(run, device, steppers, reporter, interrupts)


def own_stream(device: torch.device) -> Any:
    """A stream beside the caller's, which it first waits for: the default one cannot be captured in a graph."""
    if device.type != "cuda":
        return nullcontext()
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    return torch.cuda.stream(stream)


def _persistent(
    run: TrainingRun,
    device: torch.device,
    steppers: Sequence[str],
    reporter: Reporter,
    interrupts: DelayedInterrupts,
) -> History:
    """`training`, begun anew op by op where the memory does not suffice."""
    start = {name: value.detach().to("cpu", copy=True) for name, value in run.method.state_dict().items()}
    for stepper in steppers:
        try:
            return training(run, device, stepper, reporter, interrupts)
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            if not out_of_memory(error):
                raise
            traceback.clear_frames(error.__traceback__)  # an error that somebody keeps would keep their tensors
            _restore(run.method, start)
            reason = str(error).splitlines()[0]
            log.warning("memory does not suffice for the run with the stepper %r: %s", stepper, reason)
        release_memory(device)
    raise DeviceMemoryError(
        f"Batches of {min(run.recipe.batch_size, len(run.train))} cases of {run.train.n_times} time steps do not fit "
        f"into the memory of {describe_device(device)}, not even op by op. Lower batch_size, or use shorter windows."
    )


def training(
    run: TrainingRun,
    device: torch.device,
    stepper: str,
    reporter: Reporter,
    interrupts: DelayedInterrupts,
) -> History:
    """The run itself.

    Random state, precision and stream of the device are those of the caller. Every one of several processes goes
    through it with the whole batch: what they share is the work of the encoder.
    """
    method, recipe, seed = run.method, run.recipe, run.seed
    train = with_labels(run.train) if method.needs_labels else run.train
    if run.initial is not None:
        for encoder in {method.encoder, method.trained_encoder()}:  # the one that is evaluated may be another
            encoder.load_state_dict(run.initial)
    seed_prepare(seed)
    method.to(device, run.dtype).prepare(train)
    method.to(device, run.dtype).train()  # with the parts that were built just now
    batch_size = min(recipe.batch_size, len(train))  # D-62
    source = open_batches(train, run.batches, device, run.dtype, with_labels=method.needs_labels)
    optimiser = run.build_optimiser(device)
    identity = run.identity(train, optimiser) if run.checkpoint or current_place().world > 1 else {}
    start_equal(method, identity)
    record = Record(method, optimiser, run.checkpoint, identity, reporter, device)
    first, stop = record.first, record.stop
    plans = [method.plan((batch_size, *train.shape[1:]), plan_generator(seed, step)) for step in range(first, stop)]
    take_step = build_stepper(stepper, method, optimiser, source, plans)
    rows = visited(train, seed, first, stop, batch_size)
    record.begin()

    reseed = partial(seed_step, seed, 0, device)
    with closing(source.inputs(rows)) as inputs, shared_work(method, optimiser, train, reseed):
        for step, given, plan in zip(range(first, stop), inputs, plans, strict=True):
            rate = lr_at(step, recipe, len(train) // batch_size)
            set_rate(optimiser, rate)
            seed_step(seed, step, device)
            loss, batch = take_step(given, plan)
            method.after_step(batch, (step + 1) / recipe.steps)
            if record.note(loss, rate):
                break
            interrupts.deliver()
    method.eval()
    return record.history


def set_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Set the rate of all parameters, that of a group with a "rate" to this share of it.

    A tensor is changed in place, because CUDA graphs read it.
    """
    for group in optimiser.param_groups:
        own = rate * group.get("rate", 1.0)
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(own)
        else:
            group["lr"] = own


@torch.no_grad()
def _restore(method: Method, start: Mapping[str, Tensor]) -> None:
    """Make a method what it was before its run: a step that failed halfway has changed weights and statistics.

    What `prepare` builds is built again then.
    """
    method.zero_grad()
    present = method.cpu().state_dict()
    for name, value in start.items():
        if name in present and present[name].shape == value.shape:
            present[name].copy_(value)


def _described(optimiser: torch.optim.Optimizer) -> str:
    """Its class and what it was made with."""
    kind = type(optimiser)
    defaults = {name: value for name, value in optimiser.defaults.items() if name not in HOW_IT_COMPUTES}
    plain = {name: value.tolist() if isinstance(value, Tensor) else value for name, value in sorted(defaults.items())}
    return f"{kind.__module__}.{kind.__qualname__} {plain}"


def weights_hash(weights: Mapping[str, Tensor] | None) -> str:
    if weights is None:
        return ""
    digest = hashlib.sha256()
    for name in sorted(weights):
        value = weights[name].detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]
