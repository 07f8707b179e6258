"""What a step must cost at least on this machine: operations and bytes, over ceilings measured in the same run.

They are counted by the convolutions of the network as defined; code that needs fewer operations may be faster.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from benchmarks.timing.shapes import Shape
from dicot.nets.encoders import InceptionTime
from dicot.nets.views import block_layout

PASSES = 3  # forwards, and backwards once for the input and once for the weights
REPEATS = 7
SIDE = {"cpu": 1024, "cuda": 8192}  # of the matrices that are multiplied
COPIED = {"cpu": 2**27, "cuda": 2**31}  # bytes


@dataclass(frozen=True)
class StepWork:
    """Operations and bytes of one training step."""

    operations: float
    bytes: float


@dataclass(frozen=True)
class Ceilings:
    """Operations and bytes per second, reached by a large matrix product and by a large copy."""

    operations: float
    bytes: float


def convolutions(encoder: nn.Module) -> list[nn.Conv1d]:
    """List every convolution of the network."""
    return [module for module in encoder.modules() if isinstance(module, nn.Conv1d)]


def multiply_adds(encoder: nn.Module) -> int:
    """Count those of a time step of a case; every convolution keeps the length, so each weight is used once."""
    return sum(conv.weight.numel() for conv in convolutions(encoder))


def stored_values(encoder: nn.Module) -> int:
    """Count what must exist in memory for one time step of one case: the output of every convolution.

    BatchNorm needs all of it before the first value is known; what lies between that and the next convolution can be
    computed on the way.
    """
    return sum(conv.out_channels for conv in convolutions(encoder))


def time_steps(shape: Shape) -> float:
    """Average over k = 2 .. 10 the time steps that go through the encoder in a step of Di-COT."""
    layouts = [block_layout(shape.n_times, k, 0.5) for k in range(2, 11)]
    return shape.batch * statistics.fmean(len(blocks) * blocks.length for blocks in layouts)


def step_work(shape: Shape) -> StepWork:
    """Count a multiply-add as two operations; a value and its gradient are each written once and read once."""
    encoder, rows = InceptionTime(shape.n_channels), time_steps(shape)
    return StepWork(2 * PASSES * rows * multiply_adds(encoder), 4 * 4 * rows * stored_values(encoder))


@contextmanager
def matrix_precision(precision: str) -> Iterator[None]:
    """Compute float32 matrix products on a GPU in true float32 or in TF32."""
    matmul: Any = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    try:
        matmul.fp32_precision = "tf32" if precision == "tf32" else "ieee"
        yield
    finally:
        matmul.fp32_precision = before


def measure_ceilings(device: str, precision: str) -> Ceilings:
    """Take the best of a few repeats: a ceiling is what the machine can do, not what it does on average."""
    kind = torch.device(device).type
    side = SIDE[kind]
    noise = torch.Generator(device).manual_seed(0)  # a product of ones would draw less power than a real one
    a, b, c = (torch.randn(side, side, device=device, generator=noise) for _ in range(3))
    with matrix_precision(precision):
        product = _best(lambda: torch.mm(a, b, out=c), kind)
    source = torch.ones(COPIED[kind] // 4, device=device)
    target = torch.empty_like(source)
    copy = _best(lambda: target.copy_(source), kind)
    return Ceilings(2 * side**3 / product, 2 * COPIED[kind] / copy)


def best_of(a: Ceilings, b: Ceilings) -> Ceilings:
    """Take the higher of each."""
    return Ceilings(max(a.operations, b.operations), max(a.bytes, b.bytes))


def _best(call: Callable[[], object], kind: str) -> float:
    def wait() -> None:
        if kind == "cuda":
            torch.cuda.synchronize()

    seconds = []
    for _ in range(REPEATS):
        wait()
        started = time.perf_counter()
        call()
        wait()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
