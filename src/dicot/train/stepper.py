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

from dicot.encoders.inception.constants import collect_constants as held
from dicot.errors import lookup
from dicot.gpu.device import release_memory
from dicot.gpu.graphs import record
from dicot.gpu.memory import held_bytes, out_of_memory
from dicot.methods import Batch, Method, Places
from dicot.train.draws import renew_generator

log = logging.getLogger(__name__)

FEWEST_REPLAYS = 2  # recording takes about as long as a step op by op
MUCH = 2**30  # bytes that are worth a pause of the device
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

    The plans of the whole run are known beforehand, so what is worth recording is not a guess. Each is recorded when it
    is needed, while the device works on earlier steps, but the largest one first: the graphs never run at once and
    share their memory, and what was taken piece by piece for a small one does not serve a larger one. Memory that does
    not suffice is an error: what to do about it depends on who else is there.
    """

    def __init__(self, method: Method, optimiser: torch.optim.Optimizer, data: Data, plans: Sequence[Hashable]) -> None:
        self.eager = EagerStepper(method, optimiser, data, plans)
        self.optimiser = optimiser
        counts = Counter(map(_program, plans))
        often = [program for program, count in counts.most_common(MOST_GRAPHS) if count >= FEWEST_REPLAYS]
        self.worthwhile = set(often)
        candidates = (plan for plan in dict.fromkeys(plans) if _program(plan) in self.worthwhile)
        self.largest = max(candidates, key=method.extent, default=None)
        self.mixed = len(often) < len(counts)  # with steps op by op to come
        self.held = held_bytes(data.x.device)
        self.recorded: dict[Hashable, Recording] = {}
        self.failures: Counter[Hashable] = Counter()
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
        if warm and self.largest is not None:
            self._begin(program)
        if warm and program in self.worthwhile and program not in self.recorded:
            self._record(program, plan)
        if program not in self.recorded:
            return self.eager(index, plan)
        if isinstance(plan, Places):
            self._place(plan)
        recording = self.recorded[program]
        self.index.copy_(index)
        recording.graph.replay()
        return recording.outcome

    def _begin(self, program: Hashable) -> None:
        """The largest plan before that of this step."""
        assert self.index is not None
        if not self.mixed and held_bytes(self.index.device) - self.held > MUCH:
            torch.cuda.empty_cache()  # what the first step leaves is of no use to recorded ones
        largest, self.largest = self.largest, None
        if _program(largest) != program:
            self._record(_program(largest), largest)

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
        plan = self._place(plan) if isinstance(plan, Places) else plan
        pool = next(iter(self.recorded.values())).graph.pool() if self.recorded else None
        for last_try in (False, True):
            try:
                with held() as constants:
                    graph, outcome = record(partial(self._step, plan), pool)
            except RuntimeError as error:  # torch.AcceleratorError is one
                self.optimiser.zero_grad()
                renew_generator(self.index.device)
                if out_of_memory(error) and last_try:
                    raise
                if not out_of_memory(error):
                    self._give_up(program, error)
                    return
            else:
                self.recorded[program] = Recording(graph, outcome, constants)
                return
            # Torch gives back by itself what nobody uses any more, but not while a graph is being recorded.
            release_memory(self.index.device)

    def _give_up(self, program: Hashable, error: Exception) -> None:
        """What a step loads at first use (a plan of the FFT library) is there after one run op by op: try once more."""
        self.failures[program] += 1
        if self.failures[program] > 1:
            self.worthwhile.discard(program)
            log.warning("steps of the plan %s run op by op: %s", program, str(error).splitlines()[0])


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
