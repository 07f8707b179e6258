"""The training loop, written once and read from top to bottom."""

import logging
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dicot.core.errors import DeviceMemoryError
from dicot.core.gpu.device import float32_arithmetic, release_memory, resolve_device
from dicot.core.gpu.memory import out_of_memory, said_memory
from dicot.data import Windows
from dicot.methods import Method
from dicot.train.batches import open_batches, visited, with_labels
from dicot.train.checkpoint import Checkpoint
from dicot.train.draws import OwnDraws, plan_generator, seed_prepare, seed_step
from dicot.train.history import History, LossReader, OnStep, Reporter
from dicot.train.interrupts import DelayedInterrupts
from dicot.train.ranks import ALONE, Ranks, current_ranks
from dicot.train.recipe import Recipe, lr_at
from dicot.train.run import OptimiserFactory, TrainingRun
from dicot.train.stepper import build_stepper

log = logging.getLogger(__name__)


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
    """`pretrain` for a run that is described already; divided among the ranks that this process has joined."""
    device, ranks = resolve_device(device), current_ranks()
    arithmetic = float32_arithmetic(device, fast=run.recipe.precision == "tf32")
    interrupts = DelayedInterrupts(run.checkpoint, patient=ranks.several)
    reporter = Reporter(run.on_step if ranks.is_first else None, run.recipe.steps)
    with OwnDraws(device), arithmetic, own_stream(device), interrupts:
        steps = persistent(run, device, ranks.stepper(stepper), reporter, ranks=ranks)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                history: History = end.value
                return history
            interrupts.deliver()


def own_stream(device: torch.device) -> Any:
    """A stream beside the caller's, which it first waits for: the default one cannot be captured in a graph."""
    if device.type != "cuda":
        return nullcontext()
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    return torch.cuda.stream(stream)


def persistent(
    run: TrainingRun,
    device: torch.device,
    stepper: str = "auto",
    reporter: Reporter | None = None,
    alone: Callable[[], bool] = lambda: True,
    ranks: Ranks = ALONE,
) -> Generator[None, None, History]:
    """`training`, begun anew op by op where the memory does not suffice for a run that is `alone`.

    Beside others the error is raised, with the method as it was at the start: others may end and free their memory.
    """
    reporter = Reporter(run.on_step, run.recipe.steps) if reporter is None else reporter
    start = _Start(run.method)
    for way in dict.fromkeys((stepper, "eager")):
        try:
            return (yield from training(run, device, way, reporter, ranks))
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            if not out_of_memory(error):
                raise
            traceback.clear_frames(error.__traceback__)  # an error that somebody keeps would keep their tensors
            start.restore()
            if not alone():
                raise
            log.warning("memory does not suffice for the run with the stepper %r: %s", way, str(error).splitlines()[0])
        release_memory(device)
    raise DeviceMemoryError(
        f"Batches of {min(run.recipe.batch_size, len(run.train))} cases of {run.train.n_times} time steps do not fit "
        f"into {said_memory(device)}, not even without other runs and op by op. Lower batch_size, or "
        "use shorter windows."
    )


def training(
    run: TrainingRun, device: torch.device, stepper: str, reporter: Reporter, ranks: Ranks = ALONE
) -> Generator[None, None, History]:
    """The run itself. It pauses after each step, so that other runs can take turns with it.

    Random state, precision and stream of the device are those of the caller. Every one of several ranks goes through
    it with the whole batch: what they divide among them is the work of the encoder.
    """
    method, recipe, seed, checkpoint = run.method, run.recipe, run.seed, run.checkpoint
    train = with_labels(run.train) if method.needs_labels else run.train
    run.load_initial()
    seed_prepare(seed)
    method.to(device, run.dtype).prepare(train)
    method.to(device, run.dtype).train()  # with the parts that were built just now
    ranks.start_equal(method)
    batch_size = min(recipe.batch_size, len(train))  # D-62
    ranks.check_batch(batch_size)
    steps_per_epoch = len(train) // batch_size
    source = open_batches(train, run.batches, device, run.dtype, with_labels=method.needs_labels)
    optimiser = run.build_optimiser(device)
    history, identity = History(), {}
    if checkpoint or ranks.several:
        identity = {**run.identity(train, optimiser), **ranks.identity()}
        ranks.check_same(identity)
    if checkpoint:
        checkpoint.writes = ranks.is_first
        history = checkpoint.read(method, optimiser, identity, recipe.steps, ranks.from_first) or history
    first, stop = len(history), recipe.steps
    if checkpoint and checkpoint.ended:  # a callback has ended it earlier
        stop = first
    losses = LossReader(history, device)
    shape = (batch_size, train.n_channels, train.n_times)
    plans = [method.plan(shape, plan_generator(seed, step)) for step in range(first, stop)]
    take_step = build_stepper(stepper, method, optimiser, source, plans)
    rows = visited(train, seed, first, stop, batch_size)
    reporter.told = max(reporter.told, first)
    started = time.perf_counter() - history.seconds
    if checkpoint:
        checkpoint.begin()

    with closing(source.inputs(rows)) as inputs, ranks.dividing(method, train, seed, device, run.dtype):
        for step, given, plan in zip(range(first, stop), inputs, plans, strict=True):
            rate = lr_at(step, recipe, steps_per_epoch)
            set_rate(optimiser, rate)
            seed_step(seed, step, device)
            loss, batch = take_step(given, plan)
            method.after_step(batch, (step + 1) / recipe.steps)

            losses.add(loss)
            history.lr.append(rate)
            is_last = step + 1 == recipe.steps
            is_asked = checkpoint is not None and checkpoint.asked  # a signal has come
            is_due = checkpoint is not None and (is_last or checkpoint.due())
            losses.read(wait=is_due or is_last)
            history.seconds = time.perf_counter() - started
            if checkpoint is not None and is_due:
                checkpoint.write(method, optimiser, history, identity)
            ends, leaves = ranks.agree(reporter.tell(history), is_asked, history, method)
            if ends and not is_last:
                losses.read(wait=True)  # on a GPU more steps have been taken than were reported
                history.seconds = time.perf_counter() - started
                if checkpoint is not None:
                    checkpoint.write(method, optimiser, history, identity, ended=True)
                reporter.tell(history)
                break
            if leaves:  # a signal has come to another rank, perhaps to this one too
                if checkpoint is not None:
                    losses.read(wait=True)
                    checkpoint.write(method, optimiser, history, identity)
                if not is_asked:
                    raise KeyboardInterrupt
            yield
    method.eval()
    return history


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


class _Start:
    """A method as it was before its run.

    A step that fails halfway has changed weights and statistics: the run is begun anew, or from its checkpoint. What
    `prepare` builds is built again then.
    """

    def __init__(self, method: Method) -> None:
        self.method = method
        self.state = {name: value.detach().to("cpu", copy=True) for name, value in method.state_dict().items()}

    @torch.no_grad()
    def restore(self) -> None:
        self.method.zero_grad()
        present = self.method.cpu().state_dict()
        for name, value in self.state.items():
            if name in present and present[name].shape == value.shape:
                present[name].copy_(value)
