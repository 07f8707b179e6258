"""A toy of each kind, as a user would write it: one class and one line that registers it."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from dicot.data import Split
from dicot.data.datasets.base import Card, DataSet, pick_channels
from dicot.data.splits import check_split
from dicot.judge.protocols import Features, Metric, Protocol
from dicot.judge.protocols.base import check_classes
from dicot.methods import Batch, Method
from dicot.model.embedding import Pooling
from dicot.model.presets import Preset
from dicot.nets.encoders import Encoder
from dicot.train import Recipe


class Together(Method):
    """Brings the two halves of a case together and keeps cases apart."""

    summary: ClassVar[str] = "toy: both halves of a case have similar embeddings"
    paper: ClassVar[str] = "unpublished"
    complexity: ClassVar[str] = "one pass over each half"

    def __init__(self, encoder: Encoder, *, margin: float = 1.0) -> None:
        super().__init__(encoder)
        self.margin = margin

    def loss(self, batch: Batch, plan: object) -> Tensor:
        half = batch.x.shape[2] // 2
        a, b = (self.encoder.embed(part) for part in (batch.x[..., :half], batch.x[..., -half:]))
        spread = torch.cdist(a, b) + 1e-6
        return (spread.diagonal() - spread.mean() + self.margin).relu().mean() + 1e-3 * (a + b).square().mean()


class Stack(Encoder):
    """A toy: some convolutions of three time steps, `depth` of them."""

    def __init__(self, n_channels: int, dim: int = 256, depth: int = 2) -> None:
        super().__init__(n_channels, dim)
        self.depth = depth
        self.input = nn.Conv1d(n_channels, dim, 1, bias=False)
        self.convolutions = nn.ModuleList(nn.Conv1d(dim, dim, 3, padding=1) for _ in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm1d(dim) for _ in range(depth))

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        self.check_shape(x.shape)
        h = self.input(x)
        if keep is not None:
            h = h * keep.unsqueeze(1)
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            h = torch.relu(norm(convolution(h)))
        return h


class NearestMean(Protocol):
    """Counts the test cases that lie nearer to the mean of another class: lower is better."""

    name = "nearest_mean"
    description = "toy: test cases in percent whose nearest class mean is another class's"
    metrics = (Metric("errors", higher_is_better=False, decimals=1),)

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        check_classes(train, "The toy")
        classes = np.unique(train.y)
        means = np.stack([train.x[train.y == c].mean(axis=0) for c in classes])
        distances = ((test.x[:, None] - means) ** 2).sum(axis=2)
        return {"errors": 100.0 * float(np.mean(classes[distances.argmin(axis=1)] != test.y))}


class Slopes(DataSet):
    """Straight lines in noise, which rise or fall."""

    name = "slopes"

    def is_here(self) -> bool:
        return True

    def card(self) -> Card:
        return Card(self.name, None, 12, 12, 2, 24, 2, source="toy: made up for a test", licence="BSD-3-Clause")

    def load(self, *, channels: Sequence[int] | None = None, **policies: Any) -> Split:
        rng = np.random.default_rng(5)
        y = np.arange(24) % 2
        x = (2 * y - 1)[:, None, None] * np.linspace(-1, 1, 24) + 0.5 * rng.normal(size=(24, 2, 24))
        split = check_split((x[:12], y[:12]), (x[12:], y[12:]), name=self.name, how="made up", **policies)
        return pick_channels(split, channels)


def _range(h: Tensor) -> Tensor:
    return h.amax(dim=-1) - h.amin(dim=-1)


RANGE = Pooling(None, _range, "toy: the largest value less the smallest")


SHORT = Preset(
    "short", "toy: two steps", "across", lambda family, n_cases, n_times: Recipe(2, 4), features={"pooling": "max"}
)
