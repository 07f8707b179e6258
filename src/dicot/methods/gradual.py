"""Gradual fine-tuning: a head that is fitted already, and rates that fall from it towards the input."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.modules.batchnorm import _BatchNorm

from dicot.encoders import Encoder
from dicot.methods.base import Batch, Method, TrainingSet

FIRST_STAGE = 0.1  # rate of the stage nearest to the input, as a share of the head's
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
        self.linear = nn.utils.skip_init(nn.Linear, weights.shape[1], len(weights))
        with torch.no_grad():
            self.linear.weight.copy_(torch.from_numpy(weights))
            self.linear.bias.copy_(torch.from_numpy(intercepts))

    def forward(self, z: Tensor) -> Tensor:
        scores: Tensor = self.linear((z.to(self.mean.dtype) - self.mean) / self.scale)
        return scores

    @torch.no_grad()
    def folded(self) -> nn.Linear:
        """Return the linear layer that computes the same of vectors as they are."""
        head = nn.utils.skip_init(nn.Linear, self.linear.in_features, self.linear.out_features)
        weight = self.linear.weight.double() / self.scale.double()
        head.weight.copy_(weight)
        head.bias.copy_(self.linear.bias.double() - weight @ self.mean.double())
        return head


class GradualTuning(Method):
    """Cross-entropy of a head that was fitted before; the nearer a weight is to the input, the slower it changes.

    The rates of the encoder's stages (`Encoder.stages`) fall geometrically from the head's to a tenth of it. Every
    tenth of the run its state is copied to `states`, for a choice among them afterwards. These are no part of a
    checkpoint: a run cannot be continued.

    head: scores (B, K) of vectors, fitted for the frozen encoder.
    pool: the vectors (B, F) of an encoder's cases (B, C, T).
    frozen_norms: keep BatchNorm's statistics, in training too, as the head was fitted with them.
    """

    summary: ClassVar[str] = "tune an encoder and a head that is fitted already, early layers slowest"
    paper: ClassVar[str] = "Universal Language Model Fine-tuning, ACL 2018 (rates by layer)"
    complexity: ClassVar[str] = "encodes T time steps per case in one pass; loss O(B F K) for K classes"
    needs_labels: ClassVar[bool] = True

    def __init__(
        self,
        encoder: Encoder,
        head: StandardisedHead,
        pool: Callable[[Encoder, Tensor], Tensor],
        *,
        frozen_norms: bool = True,
    ) -> None:
        super().__init__(encoder)
        self.head = head
        self.pool = pool
        self.frozen_norms = frozen_norms
        self.was_plain = encoder.plain
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

    def train(self, mode: bool = True) -> "GradualTuning":
        super().train(mode)
        if self.frozen_norms:
            # A faster path would take the statistics of the batch, whatever mode a BatchNorm is in.
            self.encoder.plain = mode or self.was_plain
            for module in self.encoder.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
        return self

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        assert batch.y is not None  # the loop sees to it
        z = self.pool(self.encoder, batch.x)
        with torch.autocast(z.device.type, enabled=False):
            return cross_entropy(self.head(z), batch.y)

    def after_step(self, batch: Batch, progress: float) -> None:
        due = int(progress * LOOKS + 1e-6)
        if due > (int(self.states[-1][0] * LOOKS + 1e-6) if self.states else 0):
            self.keep(progress)

    def keep(self, progress: float) -> None:
        """Copy the state to the host."""
        state = {name: value.detach().to("cpu", copy=True) for name, value in self.state_dict().items()}
        self.states.append((progress, state))
