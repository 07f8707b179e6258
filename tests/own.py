"""What a researcher brings along: a network, an encoder and a method that no registry knows."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from dicot import Encoder, Method
from dicot.nets.losses import nt_xent


class Net(nn.Module):
    """Two convolutions with BatchNorm, (B, C, T) -> (B, F, T)."""

    def __init__(self, n_channels: int = 2, dim: int = 8) -> None:
        super().__init__()
        self.first = nn.Conv1d(n_channels, dim, 5, padding=2)
        self.norm = nn.BatchNorm1d(dim)
        self.second = nn.Conv1d(dim, dim, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.relu(self.norm(self.first(x))))


class Summary(Net):
    """The same, pooled: (B, C, T) -> (B, F)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).amax(dim=-1)


class OwnEncoder(Encoder):
    """An Encoder that is not registered."""

    def __init__(self, n_channels: int, dim: int) -> None:
        super().__init__(n_channels, dim)
        self.layer = nn.Conv1d(n_channels, dim, 3, padding=1)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        h: Tensor = self.layer(x)
        return h if keep is None else h * keep[:, None]


class Halves(Method):
    """The halves of a case must find each other in the batch."""

    summary: ClassVar[str] = "the halves of a case must find each other in the batch"
    paper: ClassVar[str] = "none"
    complexity: ClassVar[str] = "two encoder passes of T/2, loss O(B^2 F)"

    def __init__(self, encoder: Encoder, *, temperature: float = 0.5) -> None:
        super().__init__(encoder)
        self.temperature = temperature

    def loss(self, batch, plan):
        half = batch.x.shape[2] // 2
        first, second = self.encoder.embed(batch.x[..., :half]), self.encoder.embed(batch.x[..., half:])
        return nt_xent(first, second, temperature=self.temperature)


def slow_start(step: int) -> float:
    """A schedule: step -> learning rate."""
    return 1e-3 * (step + 1) / 10
