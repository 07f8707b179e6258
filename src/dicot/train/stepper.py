"""How one training step is carried out: op by op, or on a GPU as a CUDA graph.

A graph holds the whole step (batch, loss, gradients, optimiser) as the device sees it. It is captured once for each
plan and then replayed without the host, which for small networks is slower than the device.
"""

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from dicot.core.device import out_of_memory, release_memory, taken_bytes
from dicot.core.errors import lookup
from dicot.core.transfer import capture
from dicot.methods import Batch, Method, Places
from dicot.nets.encoders.base import Modules
from dicot.nets.encoders.inception.convolution import collect_constants
from dicot.train.batches import BatchSource, Inputs, renew_generator

log = logging.getLogger(__name__)

FEWEST_REPLAYS = 2  # capturing takes about as long as a step op by op
MUCH = 2**30  # bytes that are worth a pause of the device
MOST_GRAPHS = 64  # each holds the memory of its results, beside what all of them share


class Outcome(NamedTuple):
    loss: Tensor  # scalar; the next step may overwrite it
    batch: Batch


class Captured(NamedTuple):
    """A step as a graph."""

    graph: torch.cuda.CUDAGraph
    outcome: Outcome  # overwritten by every replay
    constants: list[object]  # tensors that replays read, and that must live as long


Stepper = Callable[[Inputs, Hashable], Outcome]  # what a batch is made of, plan -> outcome


@dataclass
class EagerStepper:
    """Takes steps op by op; the reference for the others."""

    method: Method
    optimiser: torch.optim.Optimizer
    source: BatchSource

    def __call__(self, inputs: Inputs, plan: Hashable) -> Outcome:
        batch = self.source.batch(inputs)
        self.optimiser.zero_grad()
        loss = self.method.loss(batch, plan)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return Outcome(loss.detach(), batch)


class GraphStepper:
    """Replays CUDA graphs for the plans that come often, and takes the other steps op by op.

    The plans of the whole run are known beforehand, so there is no guess about which come often. Each graph is captured
    when it is needed first, while the device works on earlier steps, except that the one of the largest plan comes
    first of all: graphs never run at once and share their memory, and many small blocks taken for a small plan would be
    of no use to a larger one. A plan that cannot be captured runs op by op as well. Too little memory is an error: what
    to do about it depends on the runs beside this one.
    """

    def __init__(
        self, method: Method, optimiser: torch.optim.Optimizer, source: BatchSource, plans: Sequence[Hashable]
    ) -> None:
        self.eager = EagerStepper(method, optimiser, source)
        self.optimiser, self.device = optimiser, source.device
        counts = Counter(map(_program, plans))
        often = [program for program, count in counts.most_common(MOST_GRAPHS) if count >= FEWEST_REPLAYS]
        self.worthwhile = set(often)
        candidates = (plan for plan in dict.fromkeys(plans) if _program(plan) in self.worthwhile)
        self.largest = max(candidates, key=method.extent, default=None)
        self.mixed = len(often) < len(counts)  # some steps will be taken op by op
        self.bytes_before = taken_bytes(self.device)
        self.captured: dict[Hashable, Captured] = {}
        self.failures: Counter[Hashable] = Counter()
        self.cold: set[Hashable] = set()  # failed once, and not taken op by op since
        # The memory that graphs read the inputs of a step and positions in time from.
        self.inputs: Inputs | None = None
        self.positions: Tensor | None = None
        log.info("%d of %d programs come often enough for a CUDA graph", len(often), len(counts))

    def __call__(self, inputs: Inputs, plan: Hashable) -> Outcome:
        # The first step makes the optimiser's moments and loads libraries; neither may happen during a capture.
        warm = self.inputs is not None and len(self.optimiser.state) > 0
        program = _program(plan)
        if self.inputs is None:
            self.inputs = tuple(tensor.clone() for tensor in inputs)
        if warm and self.largest is not None:
            self._capture_largest(program)
        if warm and program in self.worthwhile and program not in self.captured and program not in self.cold:
            self._capture(program, plan)
        if program not in self.captured:
            self.cold.discard(program)
            return self.eager(inputs, plan)
        if isinstance(plan, Places):
            self._write_positions(plan)
        for mine, given in zip(self.inputs, inputs, strict=True):
            mine.copy_(given)
        captured = self.captured[program]
        captured.graph.replay()
        return captured.outcome

    def _capture_largest(self, program: Hashable) -> None:
        """Capture the largest plan, unless it is that of the present step, which is captured next anyway."""
        if not self.mixed and taken_bytes(self.device) - self.bytes_before > MUCH:
            torch.cuda.empty_cache()  # graphs cannot use what the first step has left
        largest, self.largest = self.largest, None
        if _program(largest) != program:
            self._capture(_program(largest), largest)

    def _write_positions(self, plan: Places) -> Places:
        """Copy the positions of a plan to the memory that graphs read them from."""
        at = torch.tensor(plan.at).to(self.device, non_blocking=True)
        self.positions = at if self.positions is None else self.positions.copy_(at)
        return replace(plan, at=self.positions)

    def _step(self, plan: Hashable) -> Outcome:
        assert self.inputs is not None
        outcome = self.eager(self.inputs, plan)
        self.optimiser.zero_grad()  # gradients of later steps must not be those in the graph's memory
        return outcome

    def _capture(self, program: Hashable, plan: Hashable) -> None:
        plan = self._write_positions(plan) if isinstance(plan, Places) else plan
        pool = next(iter(self.captured.values())).graph.pool() if self.captured else None
        for last_try in (False, True):
            try:
                with collect_constants() as constants:
                    graph, outcome = capture(partial(self._step, plan), pool)
            except RuntimeError as error:  # torch.AcceleratorError is one
                self.optimiser.zero_grad()
                renew_generator(self.device)
                if out_of_memory(error) and last_try:
                    raise
                if not out_of_memory(error):
                    self._note_failure(program, error)
                    return
            else:
                self.captured[program] = Captured(graph, outcome, constants)
                return
            release_memory(self.device)  # torch does so by itself, but not during a capture

    def _note_failure(self, program: Hashable, error: Exception) -> None:
        """Try again once: what a step loads at first use (a plan of the FFT library) is there after a step op by op."""
        self.failures[program] += 1
        self.cold.add(program)
        if self.failures[program] > 1:
            self.worthwhile.discard(program)
            log.warning("steps of the plan %s run op by op: %s", program, str(error).splitlines()[0])


def _program(plan: Hashable) -> Hashable:
    """The part of a plan that decides which operations a step consists of."""
    return (Places, plan.room) if isinstance(plan, Places) else plan


def build_stepper(
    name: str, method: Method, optimiser: torch.optim.Optimizer, source: BatchSource, plans: Sequence[Hashable]
) -> Stepper:
    """Make the stepper of this name; "auto" is graphs on a GPU. Where graphs are impossible, the log says why."""
    lookup(dict.fromkeys(("auto", "eager", "graphs")), name, "stepper")
    if name == "eager" or (name == "auto" and source.device.type != "cuda"):
        return EagerStepper(method, optimiser, source)
    if obstacle := _obstacle(method, optimiser, source.device):
        log.warning("%s; the steps run op by op on %s", obstacle, source.device)
        return EagerStepper(method, optimiser, source)
    return GraphStepper(method, optimiser, source, plans)


def _obstacle(method: Method, optimiser: torch.optim.Optimizer, device: torch.device) -> str:
    """Why a step cannot be a CUDA graph; empty where it can."""
    if device.type != "cuda":
        return "CUDA graphs need a GPU"
    if Modules(method).have_hooks():
        return "a CUDA graph would not call the hooks of a module when it is replayed"
    if not all(group.get("capturable") and isinstance(group["lr"], Tensor) for group in optimiser.param_groups):
        return f"CUDA graphs need an optimiser with capturable=True, which {type(optimiser).__name__} is not"
    return ""
