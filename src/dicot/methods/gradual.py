"""Gradual fine-tuning: a head that is fitted already, and rates that fall from it towards the input."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from dicot.methods.base import Batch, Method, TrainingSet
from dicot.nets.encoders import Encoder

FIRST_STAGE = 0.3  # rate of the stage nearest to the input, as a share of the head's
LOOKS = 10  # states that a run keeps, evenly spaced

State = Mapping[str, Tensor]


class StandardisedHead(nn.Module):
    """A linear layer (B, F) -> (B, K) on vectors that are standardised by fixed statistics."""

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: np.ndarray, scale: np.ndarray, weights: np.ndarray, intercepts: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(mean).float())
        self.register_buffer("scale", torch.from_numpy(scale).float())
        self.linear = _linear(torch.from_numpy(weights), torch.from_numpy(intercepts))

    def forward(self, z: Tensor) -> Tensor:
        scores: Tensor = self.linear((z.to(self.mean.dtype) - self.mean) / self.scale)
        return scores

    @torch.no_grad()
    def folded(self) -> nn.Linear:
        """Return the linear layer that computes the same of vectors as they are."""
        weight = self.linear.weight.double() / self.scale.double()
        return _linear(weight, self.linear.bias.double() - weight @ self.mean.double())


@torch.no_grad()
def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    """Make a layer of these numbers in float32; one that is made as usual would draw numbers first."""
    layer = nn.Linear(weight.shape[1], len(weight), device="meta").to_empty(device="cpu")
    layer.weight.copy_(weight)
    layer.bias.copy_(bias)
    return layer


class GradualTuning(Method):
    """Cross-entropy of a head that was fitted before; the nearer a weight is to the input, the slower it changes.

    The rates of the encoder's stages (`Encoder.stages`) fall geometrically from the head's to three tenths of it. After
    every tenth of the run its state is copied to `states`, for a choice among them afterwards. These are no part of a
    checkpoint: a run cannot be continued.

    head: scores (B, K) of vectors, fitted for the frozen encoder.
    pool: the vectors (B, F) of an encoder's cases (B, C, T).
    BatchNorm trains as usual: with fixed statistics classifiers became no better, in two to three times the time.
    """

    summary = "tune an encoder and a head that is fitted already, early layers slowest"
    paper = "Universal Language Model Fine-tuning, ACL 2018 (rates by layer)"
    complexity = "encodes T time steps per case in one pass; loss O(B F K) for K classes"
    needs_labels = True

    def __init__(self, encoder: Encoder, head: StandardisedHead, pool: Callable[[Encoder, Tensor], Tensor]) -> None:
        super().__init__(encoder)
        self.head = head
        self.pool = pool
        self.states: list[tuple[float, State]] = []  # how far the run was, in (0, 1], and the state then

    def prepare(self, train: TrainingSet) -> None:
        self.states.clear()  # of a run that is begun anew

    def param_groups(self) -> list[dict[str, Any]]:
        stages = self.encoder.stages()
        groups = [
            {"params": [p for p in stage if p.requires_grad], "rate": FIRST_STAGE ** (1 - number / len(stages))}
            for number, stage in enumerate(stages)
        ]
        return [*groups, {"params": list(self.head.parameters()), "rate": 1.0}]

    def loss(self, batch: Batch, plan: object) -> Tensor:
        assert batch.y is not None  # the loop sees to it
        return cross_entropy(self.head(self.pool(self.encoder, batch.x)), batch.y)

    def after_step(self, batch: Batch, progress: float) -> None:
        before = self.states[-1][0] if self.states else 0.0
        if _looks(progress) > _looks(before):
            self.keep(progress)

    def keep(self, progress: float) -> None:
        """Copy the state to the host."""
        state = {name: value.detach().to("cpu", copy=True) for name, value in self.state_dict().items()}
        self.states.append((progress, state))


def _looks(progress: float) -> int:
    """Count the looks that are due; a share of steps such as 3 / 10 may come out a little too small."""
    return int(progress * LOOKS + 1e-9)
