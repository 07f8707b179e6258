"""How one training step is carried out: op by op, or on a GPU as a CUDA graph per plan.

A graph is the whole step (batch, loss, gradients, optimiser) as the device sees it, recorded once and replayed without
the host, which for small networks is the slower of the two.
"""

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from dicot.device import release_memory
from dicot.encoders.constants import held
from dicot.errors import lookup
from dicot.methods import Batch, Method, Places
from dicot.recording import record
from dicot.train.draws import renew_generator
from dicot.train.memory import out_of_memory

log = logging.getLogger(__name__)

FEWEST_REPLAYS = 2  # recording takes about as long as a step op by op
MOST_GRAPHS = 64  # each holds the memory of its results, beside what all of them share


class Data(NamedTuple):
    """The training set on its device."""

    x: Tensor  # (N, C, T)
    y: Tensor | None  # (N,) class numbers, where the method needs them

    def batch(self, index: Tensor) -> Batch:
        return Batch(self.x[index], index, None if self.y is None else self.y[index])


class Outcome(NamedTuple):
    loss: Tensor  # scalar; the next step may overwrite it
    batch: Batch


class Recording(NamedTuple):
    graph: torch.cuda.CUDAGraph
    outcome: Outcome
    constants: list[object]  # what its replays read besides


Stepper = Callable[[Tensor, Hashable], Outcome]  # rows of the training set, plan -> outcome


class EagerStepper:
    """Op by op: the reference for the others."""

    def __init__(self, method: Method, optimiser: torch.optim.Optimizer, data: Data, plans: Sequence[Hashable]) -> None:
        self.method, self.optimiser, self.data = method, optimiser, data

    def __call__(self, index: Tensor, plan: Hashable) -> Outcome:
        batch = self.data.batch(index)
        self.optimiser.zero_grad()
        loss = self.method.loss(batch, plan)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return Outcome(loss.detach(), batch)


class GraphStepper:
    """CUDA graphs for the plans that come often, op by op for the rest and where recording fails.

    The plans of the whole run are known beforehand, so what is worth recording is not a guess. All of it is recorded in
    front of the second step, which tells early how much memory a run takes, and the largest plan first: the graphs
    never run at once and share their memory, but pieces that were taken for a small one are of no use to a larger one.
    Memory that does not suffice is an error: what to do about it depends on who else is there.
    """

    def __init__(self, method: Method, optimiser: torch.optim.Optimizer, data: Data, plans: Sequence[Hashable]) -> None:
        self.eager = EagerStepper(method, optimiser, data, plans)
        self.optimiser = optimiser
        counts = Counter(map(_program, plans))
        often = [program for program, count in counts.most_common(MOST_GRAPHS) if count >= FEWEST_REPLAYS]
        examples = {_program(plan): plan for plan in reversed(plans)}
        often.sort(key=lambda program: method.extent(examples[program]), reverse=True)
        self.unrecorded = {program: examples[program] for program in often}  # and worth it
        self.recorded: dict[Hashable, Recording] = {}
        self.again: set[Hashable] = set()  # failed once, and ran op by op since
        self.begun = False
        # Where the graphs read which rows to train on, and places in time.
        self.index: Tensor | None = None
        self.places: Tensor | None = None
        log.info("%d of %d programs come often enough to be recorded as CUDA graphs", len(often), len(counts))

    def __call__(self, index: Tensor, plan: Hashable) -> Outcome:
        # The first step makes the optimiser's moments and loads the libraries; neither may happen in a recording.
        warm = self.index is not None and len(self.optimiser.state) > 0
        program = _program(plan)
        if self.index is None:
            self.index = index.clone()
        if warm and not self.begun:
            self.begun = True
            for other, example in list(self.unrecorded.items()):
                self._record(other, example)
        elif program in self.again:
            self._record(program, plan)
        if program not in self.recorded:
            # What the step loads at first use (a plan of the FFT library) is there from now on: one more try next time.
            if self.begun and program in self.unrecorded:
                self.again.add(program)
            return self.eager(index, plan)
        if isinstance(plan, Places):
            self._place(plan)
        recording = self.recorded[program]
        self.index.copy_(index)
        recording.graph.replay()
        return recording.outcome

    def _place(self, plan: Places) -> Places:
        """The places of the plan, in the memory that recorded steps read them from."""
        assert self.index is not None
        at = torch.tensor(plan.at).to(self.index.device, non_blocking=True)
        self.places = at if self.places is None else self.places.copy_(at)
        return Places(self.places)

    def _step(self, plan: Hashable) -> Outcome:
        assert self.index is not None
        outcome = self.eager(self.index, plan)
        self.optimiser.zero_grad()  # the next gradients are no longer those of the recording
        return outcome

    def _record(self, program: Hashable, plan: Hashable) -> None:
        assert self.index is not None
        place = self.index.device
        plan = self._place(plan) if isinstance(plan, Places) else plan
        pool = next(iter(self.recorded.values())).graph.pool() if self.recorded else None
        for last_try in (False, True):
            try:
                with held() as constants:
                    graph, outcome = record(partial(self._step, plan), pool)
            except RuntimeError as error:  # torch.AcceleratorError is one
                self.optimiser.zero_grad()
                renew_generator(place)
                if not out_of_memory(error):
                    if program in self.again:
                        del self.unrecorded[program]
                        self.again.discard(program)
                        log.warning("steps of the plan %s run op by op: %s", program, str(error).splitlines()[0])
                    return
                if last_try:
                    raise
            else:
                break
            # Torch gives back by itself what nobody uses any more, but not while a graph is being recorded.
            release_memory(place)
        del self.unrecorded[program]
        self.again.discard(program)
        self.recorded[program] = Recording(graph, outcome, constants)


def _program(plan: Hashable) -> Hashable:
    """What of a plan decides which operations a step consists of."""
    return Places if isinstance(plan, Places) else plan


STEPPERS: dict[str, type[EagerStepper] | type[GraphStepper]] = {"eager": EagerStepper, "graphs": GraphStepper}


def build_stepper(
    name: str, method: Method, optimiser: torch.optim.Optimizer, data: Data, plans: Sequence[Hashable]
) -> Stepper:
    """ "auto" takes graphs on a GPU; anything else is taken at its word, graphs off a GPU with a logged reason not."""
    if name == "auto":
        name = "graphs" if data.x.is_cuda else "eager"
    kind = lookup(STEPPERS, name, "stepper")
    if kind is GraphStepper and not data.x.is_cuda:
        log.warning("CUDA graphs need a GPU; the steps run op by op on %s", data.x.device)
        kind = EagerStepper
    return kind(method, optimiser, data, plans)
