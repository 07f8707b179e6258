"""Di-COT, Divide and Contrast (ICML 2026): tell a sub-block's neighbour from the other sub-blocks of its case."""

import warnings
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from dicot.core.errors import InputError, lookup
from dicot.methods.base import Batch, Method, TrainingSet
from dicot.nets.encoders import Encoder
from dicot.nets.losses.adjacent_block import POSITIVES, adjacent_block
from dicot.nets.views.blocks import ROUNDINGS, Blocks, block_layout, cut_blocks, k_range

WIDTH_PROJECTION = 128


class DiCOT(Method):
    """Every ablation row of the paper is an argument.

    k: how many sub-blocks, drawn anew at each step from a range (both ends included) or one fixed number.
    overlap: share of a block that the next one covers again. rounding: see `dicot.nets.views`.
    positive: the block to be picked, "previous", "next", "both" or "shuffled".
    projection: a non-linear head behind the encoder (it lowered accuracy in the paper).
    """

    summary: ClassVar[str] = "pick a sub-block's temporal neighbour among the sub-blocks of the same case"
    paper: ClassVar[str] = "Divide and Contrast, ICML 2026"
    complexity: ClassVar[str] = "encodes 1.3 T to 1.8 T time steps per case in one pass; loss O(B k^2 F), free of T"

    def __init__(
        self,
        encoder: Encoder,
        *,
        k: int | Sequence[int] = (2, 10),
        overlap: float = 0.5,
        temperature: float = 0.07,
        positive: str = "previous",
        rounding: str = "paper",
        projection: bool = False,
    ) -> None:
        super().__init__(encoder)
        self.k = k if isinstance(k, int) else tuple(k)
        self.k_range = k_range(k)
        if not 0 <= overlap < 1:
            raise InputError(f"overlap is a share of a block, 0 <= overlap < 1; got {overlap}.")
        if not temperature > 0:
            raise InputError(f"temperature must be above 0; got {temperature}.")
        lookup(POSITIVES, positive, "positive")
        lookup(ROUNDINGS, rounding, "rounding")
        self.overlap, self.temperature, self.positive, self.rounding = overlap, temperature, positive, rounding
        self.projection = projection
        self.head = _projection(encoder.dim) if projection else nn.Identity()

    @classmethod
    def paper_params(cls, family: str | None) -> dict[str, Any]:
        return {"temperature": 1.0 if family == "ucr" else 0.07}  # D-05

    def prepare(self, train: TrainingSet) -> None:
        if train.n_times < 2:
            raise InputError(
                f"The cases have {train.n_times} time step (n_features = {train.n_times} in 2-D X); Di-COT needs 2. "
                "Use longer windows, or a method that does not cut cases into sub-blocks."
            )
        if train.n_times < 4:
            warnings.warn(
                f"Cases of {train.n_times} time steps are too short for overlapping sub-blocks: "
                "each time step becomes a block of its own.",
                stacklevel=2,
            )

    def plan(self, shape: tuple[int, int, int], rng: np.random.Generator) -> Blocks:
        k = int(rng.integers(self.k_range[0], self.k_range[1] + 1))
        return block_layout(shape[2], k, self.overlap, self.rounding)

    def extent(self, plan: Hashable) -> int:
        assert isinstance(plan, Blocks)
        return len(plan) * plan.length

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        assert isinstance(plan, Blocks)
        blocks = cut_blocks(batch.x, plan)  # (B, k, C, L)
        z = self.head(self.encoder.embed(blocks.flatten(0, 1)))  # (B * k, F), the block index running fastest
        return adjacent_block(z.unflatten(0, blocks.shape[:2]), self.temperature, self.positive)


def _projection(dim: int) -> nn.Module:
    return nn.Sequential(nn.Linear(dim, WIDTH_PROJECTION), nn.ReLU(), nn.Linear(WIDTH_PROJECTION, WIDTH_PROJECTION))
