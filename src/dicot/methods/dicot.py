"""Di-COT, Divide and Contrast (ICML 2026): tell a sub-block's neighbour from the other sub-blocks of its case."""

import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.methods.base import Batch, Method, TrainingSet
from dicot.methods.settings import Positive, ShareBelowOne, one_of
from dicot.nets.encoders import Encoder
from dicot.nets.losses import POSITIVES, adjacent_block
from dicot.nets.views import ROUNDINGS, Blocks, block_layout, cut_blocks

WIDTH_PROJECTION = 128


class DiCOT(Method):
    """Every ablation row of the paper is an argument.

    k: how many sub-blocks, drawn anew at each step from a range (both ends included) or one fixed number.
    overlap: share of a block that the next one covers again. rounding: see `dicot.nets.views`.
    positive: the block to be picked, "previous", "next", "both" or "shuffled".
    projection: a non-linear head behind the encoder (it lowered accuracy in the paper).
    """

    summary = "pick a sub-block's temporal neighbour among the sub-blocks of the same case"
    paper = "Divide and Contrast, ICML 2026"
    complexity = "encodes 1.3 T to 1.8 T time steps per case in one pass; loss O(B k^2 F), free of T"

    def __init__(
        self,
        encoder: Encoder,
        *,
        k: int | Sequence[int] = (2, 10),
        overlap: ShareBelowOne = 0.5,
        temperature: Positive = 0.07,
        positive: Annotated[str, one_of(*POSITIVES)] = "previous",
        rounding: Annotated[str, one_of(*ROUNDINGS)] = "paper",
        projection: bool = False,
    ) -> None:
        super().__init__(encoder)
        self.k = tuple(k) if isinstance(k, Sequence) else k
        self.k_range = self.k if isinstance(self.k, tuple) else (self.k, self.k)
        if len(self.k_range) != 2 or not 2 <= self.k_range[0] <= self.k_range[1]:
            raise InputError(f"k must be a number >= 2 or a range (low, high) with 2 <= low <= high; got {k}.")
        self.overlap, self.temperature, self.positive, self.rounding = overlap, temperature, positive, rounding
        self.projection = projection
        widths = encoder.embed_dim, WIDTH_PROJECTION, WIDTH_PROJECTION
        self.head = (
            nn.Sequential(nn.Linear(*widths[:2]), nn.ReLU(), nn.Linear(*widths[1:])) if projection else nn.Identity()
        )

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

    def loss(self, batch: Batch, plan: Blocks) -> Tensor:
        blocks = cut_blocks(batch.x, plan)  # (B, k, C, L)
        z = self.head(self.encoder.embed(blocks.flatten(0, 1)))  # (B * k, F), the block index running fastest
        return adjacent_block(z.unflatten(0, blocks.shape[:2]), self.temperature, self.positive)
