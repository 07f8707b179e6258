"""What a self-supervised method is, an encoder, a loss on a batch and the host's choices for a step; shared parts."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.data import Scale
from dicot.data.cases import Cases
from dicot.nets.encoders import Encoder

PARTS, LARGE = 4, 2**13  # a step of so many time steps has a CUDA graph for each quarter of a case that is filled
TrainingSet = Cases  # what a method may know of its training set; `dicot.Windows` is one


@dataclass(frozen=True)
class Batch:
    """What one training step sees."""

    x: Tensor  # (B, C, T)
    index: Tensor  # (B,) rows of the training set
    y: Tensor | None = None  # (B,) labels, only for methods that need them


@dataclass(frozen=True)
class Places:
    """A plan that consists of positions in time, on which the shape of no tensor depends, and of a few sizes.

    Steps with the same sizes are then the same operations on different numbers, so that one CUDA graph serves them
    all: it reads the positions from a tensor. Without a graph they are plain numbers.
    """

    at: tuple[int, ...] | Tensor
    room: tuple[int, ...] = ()  # time steps of tensors that hold what lies there: another program for each

    @property
    def extent(self) -> int:
        return sum(self.room)


def room_for(lengths: Sequence[int], n_cases: int, n_times: int) -> tuple[int, ...]:
    """How many time steps to keep free for so many of n_times: in a large step whole quarters, else all of them."""
    parts = PARTS if n_cases * n_times >= LARGE else 1
    return tuple(math.ceil(math.ceil(length * parts / n_times) * n_times / parts) for length in lengths)


class AveragedEncoder(nn.Module):
    """The equal-weight average of all iterates; BatchNorm statistics are the live encoder's."""

    n_averaged: Tensor

    def __init__(self, live: Encoder) -> None:
        super().__init__()
        self.encoder = copy.deepcopy(live).requires_grad_(False)
        self.register_buffer("n_averaged", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def update(self, live: Encoder) -> None:
        """Take one more iterate in: avg <- avg + (live - avg) / (n + 1); the first one replaces the average."""
        self.n_averaged.add_(1)
        averages: list[Tensor] = list(self.encoder.parameters())
        # All tensors by one call each: on a GPU three launches instead of three per tensor.
        steps = list(torch._foreach_sub(list(live.parameters()), averages))
        torch._foreach_div_(steps, self.n_averaged.to(averages[0].dtype))
        torch._foreach_add_(averages, steps)
        torch._foreach_copy_(list(self.encoder.buffers()), list(live.buffers()))


class Method(nn.Module, ABC):
    """Define an objective around one encoder: a loss on a batch, and the host's choices for a step.

    Subclasses implement `loss`; the rest is optional. Concrete methods are final: no method inherits from another. The
    keyword arguments of a constructor are the method's settings, each kept as an attribute of its own name; their
    annotations say what they may be (see `methods.settings`).

    Attributes
    ----------
    encoder : what is trained
    average : what is evaluated instead, where a method makes one; it takes every step in
    summary, paper, complexity : one line each for `dicot list methods`: what it does, where it was published, the time
        and memory of the loss
    needs_labels : whether batches must have labels
    needs_negatives : whether the cases of a batch are told apart, so that there must be two
    needs_time_steps : whether it reads features of single time steps, `encoder(x)` rather than `encoder.embed(x)`
    """

    summary: ClassVar[str]
    paper: ClassVar[str]
    complexity: ClassVar[str]
    needs_labels: ClassVar[bool] = False
    needs_negatives: ClassVar[bool] = False
    needs_time_steps: ClassVar[bool] = False

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        if self.needs_time_steps and not encoder.per_time_step:
            raise InputError(
                f"{type(self).__name__} learns from features of single time steps, and {encoder.describe()} does not "
                "give them for each time step of its input. Use a module (B, C, T) -> (B, F, T), or another method."
            )
        self.encoder = encoder
        self.average: AveragedEncoder | None = None

    @classmethod
    def paper_params(cls, family: str | None) -> dict[str, Any]:
        """Return the constructor arguments that the paper sets for a family of data sets; most methods have none."""
        return {}

    def settings(self) -> dict[str, Any]:
        """Return the constructor's keyword arguments, each kept as an attribute of its own name."""
        parameters = signature(type(self)).parameters.values()
        return {one.name: getattr(self, one.name) for one in parameters if one.kind is one.KEYWORD_ONLY}

    def prepare(self, train: TrainingSet) -> None:
        """Look at the training set once before the first step, and refuse here what cannot be trained on.

        Parts that depend on the data (on T, on the number of classes) are built here: random draws are seeded, and
        the optimiser is made afterwards. It must be safe to call again before a checkpoint is loaded.
        """
        if self.needs_negatives and len(train) < 2:
            raise InputError(
                f"{type(self).__name__} tells the cases of a batch apart, so a training set needs 2 cases; got 1 "
                "(n_samples=1). Pass more cases, or cut this one into windows."
            )

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Hashable:
        """Decide on the host what a step on a (B, C, T) batch does, as one small hashable value."""
        if self.needs_negatives and shape[0] < 2:  # BatchNorm of a head could not normalise one vector either
            raise InputError(
                f"{type(self).__name__} tells the cases of a batch apart, so a batch needs 2 cases; got 1. "
                "Use a larger batch_size."
            )
        return ()

    def extent(self, plan: Any) -> int:
        """Estimate how many time steps per case a step of this plan encodes, where plans differ in it.

        Only the order counts: the CUDA graph of the largest plan is captured first, and the others reuse its memory.
        """
        return getattr(plan, "extent", 0)

    @abstractmethod
    def loss(self, batch: Batch, plan: Any) -> Tensor:
        """Compute the scalar to minimise, by tensor operations alone: nothing waits for the device (`.item()`)."""

    def param_groups(self) -> list[dict[str, Any]]:
        """Return what the optimiser updates, as torch's parameter groups.

        The schedule sets the rate of every group; one with an entry "rate" gets this share of it, such as 0.1.
        """
        return [{"params": [p for p in self.parameters() if p.requires_grad]}]

    def after_step(self, batch: Batch, progress: float) -> None:
        """Do what follows an optimiser step, such as averaging a copy; `progress` is in (0, 1].

        Its state must live in parameters or buffers, so that a checkpoint contains it.
        """
        if self.average is not None:
            self.average.update(self.encoder)

    def trained_encoder(self) -> Encoder:
        """Return the encoder that is evaluated."""
        return self.encoder if self.average is None else self.average.encoder


def projector(dim: int, hidden: int, width: int) -> nn.Sequential:
    """A head (B, dim) -> (B, width)."""
    return nn.Sequential(nn.Linear(dim, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, width))


def channel_statistics(train: TrainingSet) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each channel in the training set, (C, 1) each; of a constant one 1."""
    found, dtype = Scale.fit(train), torch.get_default_dtype()
    mean, std = (torch.from_numpy(values).to(dtype).unsqueeze(1) for values in (found.mean, found.std))
    return mean, std


def noise_unit(train: TrainingSet, absolute: bool) -> Tensor:
    """(C, 1): what noise of strength 1 is, the channel's standard deviation in the training set (D-25), or 1."""
    return torch.ones(train.n_channels, 1) if absolute else channel_statistics(train)[1]
