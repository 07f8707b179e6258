"""What a self-supervised method is: an encoder, a loss on a batch, and the host's choices for a step."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from dicot.data import Windows
from dicot.encoders import Encoder
from dicot.errors import InputError


@dataclass(frozen=True)
class Batch:
    """What one training step sees."""

    x: Tensor  # (B, C, T)
    index: Tensor  # (B,) rows of the training set
    y: Tensor | None = None  # (B,) labels, only for methods that need them


@dataclass(frozen=True)
class Places:
    """A plan of time steps that a step reads at, without any shape depending on them.

    All of them share one tensor program: a recorded step is given them as a tensor instead of numbers.
    """

    at: tuple[int, ...] | Tensor


class Method(nn.Module, ABC):
    """An objective around one encoder. Concrete methods are final: no method inherits from another."""

    summary: ClassVar[str]  # one line for `dicot list methods`
    paper: ClassVar[str]  # where it was published
    cost: ClassVar[str]  # time and memory of the loss
    needs_labels: ClassVar[bool] = False
    needs_time_steps: ClassVar[bool] = False  # reads features of single time steps: encoder(x), not encoder.embed(x)

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        if self.needs_time_steps and not encoder.per_time_step:
            raise InputError(
                f"{type(self).__name__} learns from features of single time steps, and {encoder.describe()} does not "
                "give them for each time step of its input. Use a module (B, C, T) -> (B, F, T), or another method."
            )
        self.encoder = encoder

    @classmethod
    def paper_params(cls, family: str | None, temperature: float) -> dict[str, Any]:
        """Constructor arguments that the paper sets per family of data sets; most methods have none.

        `temperature` is Di-COT's own for the family (see `paper_recipe`).
        """
        return {}

    def prepare(self, train: Windows) -> None:
        """Look at the training set once before the first step; refuse here what cannot be trained on.

        Parts that depend on the data (on T, on the number of classes) are built here: random draws are seeded, and
        the optimiser is made afterwards. It must be safe to call again before a checkpoint is loaded.
        """
        return

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Hashable:
        """Everything the host decides for one step on a (B, C, T) batch, as one small hashable value."""
        return ()

    def extent(self, plan: Hashable) -> int:
        """About how many time steps per case a step of this plan encodes, where plans differ in it.

        Only the order counts: steps are recorded from the largest to the smallest, which then fit into its memory.
        """
        return 0

    @abstractmethod
    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        """The scalar to minimise: a pure tensor program for a given plan, without a host synchronisation."""

    def param_groups(self) -> list[dict[str, Any]]:
        """What the optimiser updates."""
        return [{"params": [p for p in self.parameters() if p.requires_grad]}]

    def after_step(self, batch: Batch, progress: float) -> None:
        """Called after each optimiser step, `progress` in (0, 1]: averaged copies, annealing.

        Whatever it keeps must live in parameters or buffers, so that a checkpoint holds it.
        """
        return

    def trained_encoder(self) -> Encoder:
        """The encoder that is evaluated."""
        return self.encoder
