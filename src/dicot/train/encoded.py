"""How much a method encodes: how often its encoder is called, and the time steps it reads for each one of a case."""

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dicot.data import Windows
from dicot.methods import Batch, Method, build_method
from dicot.nets.encoders import as_encoder
from dicot.train.batches import plan_generator

CASES, BATCH = 16, 2  # that are looked at: what a case costs does not depend on how many there are
PLANS = 20  # of a run, from its first step on
WIDTH = 8  # features of the encoder that only counts


class Encoded(NamedTuple):
    """The mean over steps."""

    passes: float  # calls of the encoder
    per_time_step: float  # time steps that it reads for each time step of a case


def encoded(method: str | type[Method], params: Mapping[str, Any], train: Windows, *, seed: int, steps: int) -> Encoded:
    """Count on the encoder's inputs what a step of a run encodes.

    Passes without a gradient count too; what fills up tensors in a CUDA graph does not. The plans are those of the run.
    The labels that a method may ask for are made up.
    """
    steps = min(steps, PLANS)
    rows = np.linspace(0, len(train) - 1, CASES).astype(int)
    few = Windows(np.ascontiguousarray(train.x[rows], np.float32), np.arange(CASES) % 2, name=train.name)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.default_generator.manual_seed(seed)
        counting = as_encoder(_Counting(few.n_channels), few.n_channels, few.n_times)
        built = build_method(method, counting, params)
        built.prepare(few)
        built.train()
        batch = Batch(torch.from_numpy(few.x[:BATCH]), torch.arange(BATCH), torch.arange(BATCH) % 2)
        counts: dict[Hashable, tuple[int, int]] = {}  # no shape depends on anything but the plan
        total = np.zeros(2)
        for step in range(steps):
            plan = built.plan((BATCH, few.n_channels, few.n_times), plan_generator(seed, step))
            if plan not in counts:
                _Counting.calls = _Counting.count = 0
                built.loss(batch, plan)
                counts[plan] = _Counting.calls, _Counting.count
            total += counts[plan]
    passes, read = (total / steps).tolist()
    return Encoded(passes, read / (BATCH * few.n_times))


class _Counting(nn.Module):
    """(B, C, T) -> (B, F, T) by the cheapest layer there is."""

    calls = count = 0  # and time steps, by all copies of an encoder

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.layer = nn.Conv1d(n_channels, WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        _Counting.calls += 1
        _Counting.count += x.shape[0] * x.shape[2]
        features: Tensor = self.layer(x)
        return features
